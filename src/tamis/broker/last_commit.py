"""The last commit of the writer, in a small file that is mapped into memory. It survives `kill -9`, and needs no sync.

    last event, last change     8 bytes each
    machine's start, inode      which tables they belong to, and since when the system has had all that was written to them

After a crash, the log of the tables may be cut off or gone. To SQLite that looks like a commit that was never finished. So
whoever opens the folder compares the tables with this file. If the machine has started again meanwhile, or the tables are
another file, such as a copy, it says nothing. It is deleted together with the log, when the last process closes the tables.
"""

from __future__ import annotations

import mmap
import struct
from contextlib import suppress
from pathlib import Path

from tamis.broker.checking import machine_start
from tamis.broker.folder import LAST_COMMIT, TABLES
from tamis.broker.stored_ends import end_of
from tamis.broker.tables import Tables
from tamis.errors import BrokerError

_NUMBERS = struct.Struct("<qq")


class LastCommit:
    """The file while the writer has the tables open."""

    def __init__(self, folder: Path, event: int, change: int) -> None:
        self._path = folder / LAST_COMMIT
        self._map: mmap.mmap | None = None
        new = self._path.with_name(f"{LAST_COMMIT}-new")
        with suppress(OSError, ValueError):  # such as a full disk, or a file system that maps nothing
            self._path.unlink(missing_ok=True)
            new.write_bytes(_NUMBERS.pack(event, change) + _owner(folder))
            with open(new, "r+b") as stream:
                self._map = mmap.mmap(stream.fileno(), 0)
            new.replace(self._path)

    def note(self, event: int, change: int) -> None:
        """Note the numbers of a commit. This comes after the commit, and before its caller knows of it."""
        if self._map is not None:
            _NUMBERS.pack_into(self._map, 0, event, change)

    def close(self) -> None:
        """Leave the file to the next process if there is a log. The tables are closed."""
        if self._map is not None:
            self._map.close()
            self._map = None
        if not self._path.with_name(f"{TABLES}-wal").exists():
            with suppress(OSError):
                self._path.unlink(missing_ok=True)


def last_commit(folder: Path) -> tuple[int, int]:
    """The last event and change that were noted of these tables; zeros if nothing is known."""
    with suppress(OSError):
        content = (folder / LAST_COMMIT).read_bytes()
        if len(content) > _NUMBERS.size and content[_NUMBERS.size :] == _owner(folder):
            event, change = _NUMBERS.unpack_from(content)
            return event, change
    return 0, 0


def ensure_complete(tables: Tables, folder: Path, noted: tuple[int, int]) -> None:
    """Refuse tables that lack what was noted. It must have been read before the tables were opened.

    Raises
    ------
    BrokerError
    """
    event, change = noted
    if not event and not change:
        return
    with tables.snapshot():
        events, changes = event - end_of(tables)[0], change - tables.last("subscriptions", "change")
    if events > 0 or changes > 0:
        raise BrokerError(
            f"{folder / TABLES} lacks the last {max(events, 0)} events and {max(changes, 0)} changes of subscriptions: "
            f"{TABLES}-wal was cut off or deleted. Hint: put it back, or restore a backup to another folder. "
            f"To go on without these calls, delete {folder / LAST_COMMIT}"
        )


def _owner(folder: Path) -> bytes:
    return f"{machine_start()} {(folder / TABLES).stat().st_ino}\n".encode()
