"""Which saved matcher belongs to the tables. It never lacks more than `changes_behind` changes.

A thread in the background saves the matcher early. If a call changes more subscriptions than that thread keeps up with, such as
`subscribe_many`, the call saves the matcher itself, and stores its name with the changes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tamis.broker import cache_names
from tamis.broker.limits import BrokerLimits
from tamis.broker.matcher_file import KIND, Stamp, write_matcher
from tamis.broker.tables import Tables
from tamis.errors import SnapshotError
from tamis.matcher.engine_store import Contents


class MatcherFiles:
    """The files with saved matchers. The caller holds the lock. `saved` is the last change in the newest one."""

    def __init__(self, tables: Tables, folder: Path, limits: BrokerLimits, saved: int) -> None:
        self._tables = tables
        self._folder = folder
        self._behind = limits.changes_behind
        self.saved = saved
        self.problem: str | None = None

    def save_before(self, stamp: Stamp, contents: Callable[[], Contents]) -> NewFile | None:
        """Save the matcher, if the file would lack too many changes when those up to the stamp are stored."""
        if stamp.change - self.saved <= self._behind:
            return None
        try:
            name = write_matcher(self._folder, contents(), stamp)
        except SnapshotError as error:  # It is only a cache.
            self.problem = str(error)
            return None
        return NewFile(self, name, stamp.change)

    def take(self, name: str, change: int) -> None:
        """Let the tables know a file that was saved in the background, unless there is a later one."""
        if change < self.saved:
            self._delete([name])
            return
        with self._tables.transaction():
            self.put(name)
        self.settle(name, change)

    def put(self, name: str) -> None:
        """Let the tables know a file. The caller has begun a transaction."""
        self._tables.put_cache(name, self._others(name))

    def settle(self, name: str, change: int) -> None:
        """The tables know a file. Others are not needed any more."""
        self.saved, self.problem = change, None
        self._delete(self._others(name))

    def _others(self, name: str) -> list[str]:
        return [each for each in cache_names.found_in(self._folder, KIND) if each != name]

    def _delete(self, names: list[str]) -> None:
        for name in names:
            with suppress(OSError):
                (self._folder / name).unlink()


class NewFile(NamedTuple):
    """A saved matcher that the tables do not know yet."""

    files: MatcherFiles
    name: str
    change: int

    def put(self) -> None:
        self.files.put(self.name)

    def settle(self) -> None:
        self.files.settle(self.name, self.change)
