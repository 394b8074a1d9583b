"""The indexes by name."""

from __future__ import annotations

from tamis.errors import UnknownIndexError, shortened
from tamis.index.interface import Capabilities, Index
from tamis.index.scan import Scan

AUTO = "auto"

_INDEXES: dict[str, type[Index]] = {index.name: index for index in (Scan,)}
_DEFAULT = Scan


def find_index(name: str) -> type[Index]:
    """The index of a name; `auto` is the one that users get by default.

    Raises
    ------
    UnknownIndexError
        With the names that there are.
    """
    if not isinstance(name, str):
        raise UnknownIndexError(shortened(name), [AUTO, *_INDEXES])
    index = _DEFAULT if name == AUTO else _INDEXES.get(name)
    if index is None:
        raise UnknownIndexError(name, [AUTO, *_INDEXES])
    return index


def indexes() -> dict[str, Capabilities]:
    """All indexes by name, with what they can do.

    >>> "scan" in indexes()
    True
    """
    return {name: index.capabilities for name, index in _INDEXES.items()}
