"""Documents as rules, correlations and filters of pySigma."""

from __future__ import annotations

import copy
from typing import Any

from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.filters import SigmaFilter
from sigma.rule import SigmaRule

from tamis.errors import FileError
from tamis.sigma.documents import TOO_DEEP, Document
from tamis.sigma.regular import POLICY

Parsed = SigmaRule | SigmaCorrelationRule | SigmaFilter

_SAME = {"utf16le": "wide"}
"""Modifiers of the specification that pySigma knows under another name."""


class Parser:
    """Reads documents in their order: `action: global` and `action: repeat` build on earlier documents of the file."""

    def __init__(self) -> None:
        self._path = ""
        self._general: list[dict[str, Any]] = []
        """The document with `action: global` that holds now."""
        self._last: list[dict[str, Any]] = []

    def parse(self, document: Document) -> Parsed | FileError | None:
        """The rule of a document, its error, or None if it only serves others."""
        if document.path != self._path:
            self._path, self._general, self._last = document.path, [], []
        data = document.data
        action = data.get("action")
        if action in ("global", "reset"):
            self._general = [data] if action == "global" else []
            return None
        try:
            for section in ("detection", "filter"):
                if isinstance(data.get(section), dict):
                    data = {**data, section: _with_known_modifiers(data[section])}
            built_on = [*self._general, *self._last] if action == "repeat" else self._general
            if action != "repeat":
                self._last = [data]
            read = SigmaCollection.from_dicts(
                # Merging documents changes them.
                copy.deepcopy([*built_on, data]) if built_on else [data],
                collect_errors=True,
                collect_filters=True,
                resolve_references=False,
                policy=POLICY,
            )
            if not read.errors:
                # Otherwise each rule that the filter is about would have the error.
                for found in read.filters:
                    for condition in found.filter.parsed_condition:
                        condition.parse()
        except RecursionError:
            return document.error(TOO_DEEP)
        except Exception as error:  # pySigma raises many kinds of errors for YAML that is no rule.
            return document.wrong(error)
        if read.errors:
            return document.wrong(read.errors[0])
        return (read.filters or read.rules)[-1]


def _with_known_modifiers(data: Any) -> Any:
    if isinstance(data, list):
        return [_with_known_modifiers(each) for each in data]
    if not isinstance(data, dict):
        return data
    return {_known(key): _with_known_modifiers(value) for key, value in data.items()}


def _known(key: Any) -> Any:
    if not isinstance(key, str) or "|" not in key:
        return key
    field, *modifiers = key.split("|")
    return "|".join([field, *(_SAME.get(modifier, modifier) for modifier in modifiers)])
