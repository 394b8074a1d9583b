"""The matcher as a file beside the tables. It is a cache: without it, the matcher is built from the tables.

The name has the last change of a subscription that is in it, and the moment up to which subscriptions have begun and ended.
"""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tamis.errors import SnapshotError
from tamis.matcher.engine_store import Contents, EngineStore
from tamis.matcher.snapshot import open_snapshot, read_contents, write_snapshot
from tamis.storage import container

_NAME = re.compile(r"matcher-(\d+)-(-?\d+)\.tamis")


class Stamp(NamedTuple):
    """What a saved matcher has seen."""

    change: int
    moment: int

    @property
    def file_name(self) -> str:
        return f"matcher-{self.change}-{self.moment}.tamis"


def write_matcher(folder: Path, contents: Contents, stamp: Stamp) -> None:
    """Write a matcher, and delete older ones.

    Raises
    ------
    SnapshotError
    """
    write_snapshot(folder / stamp.file_name, contents, None)
    remove_others(folder, stamp)


def read_matcher(folder: Path, last_change: int) -> tuple[EngineStore, Stamp] | None:
    """The newest matcher that can be read; None if there is none.

    A matcher with later changes than `last_change` belongs to other tables: somebody has restored a backup of the tables alone.
    """
    for stamp in sorted(stamps(folder), reverse=True):
        if stamp.change <= last_change:
            with suppress(SnapshotError, OSError):
                store = EngineStore(None)
                store.restore(read_contents(open_snapshot(container.open(folder / stamp.file_name))))
                return store, stamp
    return None


def remove_others(folder: Path, kept: Stamp | None) -> None:
    """Delete all saved matchers but one."""
    for stamp in stamps(folder):
        if stamp != kept:
            with suppress(OSError):
                (folder / stamp.file_name).unlink()


def stamps(folder: Path) -> list[Stamp]:
    """The stamps of all saved matchers."""
    found = (_NAME.fullmatch(path.name) for path in folder.glob("matcher-*.tamis"))
    return [Stamp(*map(int, match.groups())) for match in found if match]
