"""Files of rules as YAML documents that know their lines, so that errors say where they are."""

from __future__ import annotations

import gzip
import os
import re
import zlib
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from sigma.exceptions import SigmaConditionError, SigmaError
from sigma.rule.base import check_alias_expansion
from sigma.rule.detection import SigmaDetectionItem
from yaml.constructor import ConstructorError

from tamis.errors import FileError
from tamis.sigma.regular import POLICY

ENDS = (".yml", ".yaml", ".yml.gz", ".yaml.gz")
"""Endings of the files that are read from a folder."""

TOO_DEEP = "is nested too deeply"

_GZIP = b"\x1f\x8b"

_KEYS = {
    "date": "date",
    "falsepositives": "falsepositives",
    "fields": "fields",
    "identifier": "id",
    "level": "level",
    "logsource": "logsource",
    "modified": "modified",
    "name": "name",
    "references": "references",
    "related": "related",
    "scope": "scope",
    "status": "status",
    "tag": "tags",
    "taxonomy": "taxonomy",
    "title": "title",
}
"""The part of an error's class name between `Sigma` and `Error`, and the key of the rule that the error is about."""


_OBJECT = re.compile(r"<sigma\.types\.Sigma(\w+) object at 0x[0-9a-f]+>")


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its values, and the nodes that they were read from."""

    path: str
    data: dict[str, Any]
    node: yaml.Node

    @property
    def line(self) -> int:
        """The line where the document begins, from 1."""
        return int(self.node.start_mark.line) + 1

    def error(self, reason: str, line: int | None = None) -> FileError:
        """The error for a rule: it names the file, the line and the rule."""
        title = self.data.get("title")
        named = f"'{title}': {reason}" if isinstance(title, str) and title else reason
        return FileError(named, path=self.path, line=self.line if line is None else line)

    def wrong(self, error: Exception) -> FileError:
        """The error that pySigma found in the document, with its line."""
        return self.error(reason_of(error), self._line_of(error))

    def _line_of(self, error: Exception) -> int:
        word = type(error).__name__.removeprefix("Sigma").removesuffix("Error").lower()
        if "correlation" in self.data:
            return _line(self.node, "correlation", word)
        if _KEYS.get(word) in self.data or word in ("logsource", "title"):
            return _line(self.node, _KEYS[word])
        section = "filter" if "filter" in self.data else "detection"
        if isinstance(error, SigmaConditionError):
            return _line(self.node, section, "condition")
        return _wrong_item(self.data.get(section), _value(self.node, section)) or _line(self.node, section)


def documents(paths: Iterable[str | Path]) -> Iterator[Document | FileError]:
    """The documents of files and folders, and an error for each file or document that cannot be read.

    Raises
    ------
    FileError
        When a path does not exist, or a folder has no rules.
    """
    for path in paths:
        for file in files_of(str(path), ENDS):
            yield from _documents_of(file)


def files_of(path: str, ends: Sequence[str]) -> list[str]:
    """A file itself, or the files below a folder whose names end so, sorted.

    Raises
    ------
    FileError
        When there is no such file, or no file below the folder.
    """
    if not os.path.isdir(path):
        if not os.path.lexists(path):
            raise FileError("there is no such file", path=path or "''")
        return [path]
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.lower().endswith(tuple(ends))
    )
    if not found:
        raise FileError(f"the folder has no files that end in {' or '.join(ends)}", path=path)
    return found


def reason_of(error: Exception) -> str:
    """What an error of pySigma says, in one line. Other exceptions come from rules that pySigma did not expect."""
    text = str(error.args[0]) if error.args else str(error)
    if not isinstance(error, SigmaError):
        text = f"pySigma cannot read this ({type(error).__name__}: {text})"
    text = _OBJECT.sub(lambda found: found[1].lower(), text)
    return " ".join((text or type(error).__name__).split())


def _documents_of(path: str) -> Iterator[Document | FileError]:
    try:
        content = Path(path).read_bytes()
        if content.startswith(_GZIP):
            content = gzip.decompress(content)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        yield FileError(f"cannot be read: {reason}", path=path)
        return
    try:
        loader = _Loader(content)
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            found = _document(loader, path, node)
            if found is not None:
                yield found
    except yaml.YAMLError as error:  # The parser cannot go on behind it.
        yield _not_yaml(path, error)
    except RecursionError:
        yield FileError(TOO_DEEP, path=path)


def _document(loader: _Loader, path: str, node: yaml.Node) -> Document | FileError | None:
    """A document, the error in it, or None for an empty one."""
    try:
        data = loader.construct_document(node)
    except yaml.YAMLError as error:
        return _not_yaml(path, error)
    except RecursionError:
        return FileError(TOO_DEEP, path=path, line=node.start_mark.line + 1)
    except ValueError as error:  # a date such as 2026-13-40
        return FileError(f"not YAML: {error}", path=path, line=node.start_mark.line + 1)
    if data is None:
        return None
    try:
        check_alias_expansion(data)
    except (
        SigmaError
    ) as error:  # A value that holds itself, or aliases of aliases of aliases, would be walked for ever.
        return FileError(reason_of(error), path=path, line=node.start_mark.line + 1)
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        return FileError(
            "a rule must be a mapping with title, logsource and detection", path=path, line=node.start_mark.line + 1
        )
    return Document(path, data, node)


def _not_yaml(path: str, error: yaml.YAMLError) -> FileError:
    mark = getattr(error, "problem_mark", None)
    if mark is None:
        return FileError(f"not YAML: {' '.join(str(error).split())}", path=path)
    return FileError(
        f"not YAML: {getattr(error, 'problem', error)} (column {mark.column + 1})", path=path, line=mark.line + 1
    )


class _Loader(yaml.CSafeLoader):
    """Refuses a key that is given twice, of which YAML readers would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable):
                if key in seen:
                    raise ConstructorError(None, None, f"the key {key!r} is given twice", key_node.start_mark)
                seen.add(key)
        return super().construct_mapping(node, deep)


def _entries(node: yaml.Node | None) -> list[tuple[yaml.Node, yaml.Node]]:
    """The nodes of the keys and values of a mapping; none for other nodes."""
    return node.value if isinstance(node, yaml.MappingNode) else []


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    return next((value for each, value in _entries(node) if each.value == key), None)


def _line(node: yaml.Node, *keys: str) -> int:
    """The line of a key inside of others, from 1; that of the last key on the way that is there."""
    line, inside = node.start_mark.line, node
    for key in keys:
        found = next((entry for entry in _entries(inside) if entry[0].value == key), None)
        if found is None:
            break
        line, inside = found[0].start_mark.line, found[1]
    return int(line) + 1


def _wrong_item(data: Any, node: yaml.Node | None) -> int | None:
    """The line of the first field, with its modifiers and values, that pySigma refuses by itself; None if there is none."""
    if isinstance(data, list) and isinstance(node, yaml.SequenceNode):
        found = (_wrong_item(*pair) for pair in zip(data, node.value, strict=False))
        return next((line for line in found if line is not None), None)
    for key_node, value_node in _entries(node):
        key, value = str(key_node.value), data.get(key_node.value) if isinstance(data, dict) else None
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, dict) for each in value)):
            line = _wrong_item(value, value_node)
            if line is not None:
                return line
        elif not _is_right(key, value):
            return int(key_node.start_mark.line) + 1
    return None


def _is_right(key: str, value: Any) -> bool:
    try:
        SigmaDetectionItem.from_mapping(key, value, policy=POLICY)
    except SigmaError:
        return False
    return True
