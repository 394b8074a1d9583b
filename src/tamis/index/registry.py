"""The indexes by name."""

from __future__ import annotations

from tamis.errors import UnknownIndexError, shortened
from tamis.index.interface import Capabilities, Index
from tamis.index.scan import Scan

AUTO = "auto"
ENGINE = "engine"
"""Our own engine, which is no index of this package: it owns its subscriptions, versions and files."""

_ENGINE_SUMMARY = "segments with access paths chosen by cost; what you get unless you ask for another"

_INDEXES: dict[str, type[Index]] = {index.name: index for index in (Scan,)}


def find_index(name: str) -> type[Index] | None:
    """The index of a name; None for the engine, which is also what `auto` means.

    Raises
    ------
    UnknownIndexError
        With the names that there are.
    """
    if name in (AUTO, ENGINE):
        return None
    index = _INDEXES.get(name) if isinstance(name, str) else None
    if index is None:
        raise UnknownIndexError(name if isinstance(name, str) else shortened(name), [AUTO, ENGINE, *_INDEXES])
    return index


def summary_of(name: str) -> str:
    """What an index is, in a line."""
    index = find_index(name)
    return (
        "segments with access paths chosen by cost; what you get unless you ask for another"
        if index is None
        else index.summary
    )


def indexes() -> dict[str, Capabilities]:
    """All indexes by name, with what they can do.

    >>> "scan" in indexes()
    True
    """
    return {ENGINE: Capabilities(), **{name: index.capabilities for name, index in _INDEXES.items()}}
