"""The rows of a table that satisfy an expression, and rows as JSON."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from datetime import date, datetime
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.cli.event_filter import EventFilter
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.flat_rows import flat_rows
from tamis.errors import EventError


class Decided(NamedTuple):
    """A row, whether it matches, and the problem if the row is wrong."""

    row: int
    matches: bool
    problem: str | None = None


def decided(table: pa.Table, event_filter: EventFilter) -> Iterator[Decided]:
    """The decision for each row.

    Raises
    ------
    TableError
        If the table does not hold events.
    """
    events, wrong = flat_rows(table, Asked.names(event_filter.attributes))
    problems: dict[int, str] = {}
    for odd in wrong:
        odd.note(problems)
    for row, event in enumerate(events):
        problem, matches = problems.get(row), False
        if problem is None:
            try:
                matches = event_filter.matches_flat(event)
            except EventError as error:
                problem = str(error)
        yield Decided(row, matches, problem)


def json_lines(table: pa.Table) -> Iterator[bytes]:
    """The rows as JSON objects."""
    for row in table.to_pylist(maps_as_pydicts="lossy"):
        try:
            text = json.dumps(row, ensure_ascii=False, allow_nan=False, default=_text)
        except ValueError:
            text = json.dumps(_without_nan(row), ensure_ascii=False, default=_text)
        yield text.encode()


def _text(value: Any) -> Any:
    """A value that JSON cannot represent: times as ISO 8601, bytes as base64, others as Python writes them."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)


def _without_nan(value: Any) -> Any:
    """The value with null in place of NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
