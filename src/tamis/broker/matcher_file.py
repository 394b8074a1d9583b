"""The matcher as a file beside the tables. It is a cache: without it, the matcher is built from the tables.

The file has no earlier events: these come from the tables in any case.

The name has the last change of a subscription that is in it, and the moment up to which subscriptions have begun and ended.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tamis.broker import cache_names
from tamis.earlier.history import History
from tamis.earlier.retained import RetainedContents
from tamis.errors import SnapshotError
from tamis.matcher.engine_store import Contents, EngineStore
from tamis.matcher.history_snapshot import HistoryContents
from tamis.matcher.history_store import store_of
from tamis.matcher.snapshot import open_snapshot, read_contents, write_snapshot
from tamis.storage import container

KIND = "matcher"


class Stamp(NamedTuple):
    """What a saved matcher has seen."""

    change: int
    moment: int


class SavedMatcher(NamedTuple):
    """A matcher that was read from a file."""

    name: str
    stamp: Stamp
    store: EngineStore


def write_matcher(folder: Path, contents: Contents, stamp: Stamp) -> str:
    """Write a matcher to a file. Returns its name.

    Raises
    ------
    SnapshotError
    """
    name = cache_names.new_name(KIND, stamp)
    write_snapshot(folder / name, contents, None)
    return name


def _with_history(contents: Contents, history: History | None) -> Contents:
    """The contents with a history without events, if there is one."""
    if history is None:
        return contents
    parts = {} if contents.history is None else contents.history.parts
    return contents._replace(history=HistoryContents(history, RetainedContents([], None, None, 0), parts))


def read_matcher(folder: Path, own: Collection[str], history: History | None) -> SavedMatcher | None:
    """The newest matcher that can be read; None if there is none. `own` has the names of files that belong to the tables."""
    for numbers, name in cache_names.numbered(own, KIND):
        with suppress(SnapshotError, OSError):
            contents = read_contents(open_snapshot(container.open(folder / name)))
            if history is None and contents.history is not None:
                continue
            return SavedMatcher(name, Stamp(*numbers), store_of(_with_history(contents, history), None))
    return None
