"""The folder of a broker: its files, and the lock of the one that writes.

broker.sqlite (-wal, -shm)    the tables, with all truth
lock                          held by the writer; says which process that is, and how it left the tables: see `checking`
last-commit                   what the writer has committed: see `last_commit`
matcher-<change>-<moment>     the matcher as a snapshot, with all changes up to this number and moment: a cache
queue-<span>                  blocks of notes: a cache
valid-<event>                 the valid events in columns, up to this event: a cache
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path

from tamis.errors import BrokerError, LockedError
from tamis.storage.replacing import flush_folder

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

TABLES, LOCK, LAST_COMMIT = "broker.sqlite", "lock", "last-commit"
PART = f"{TABLES}-part"
"""The tables of a backup that is not complete."""
_CACHES = ("matcher-", "queue-", "valid-")
"""How the names of the files begin that nobody makes without tables."""


def is_locked(path: Path) -> bool:
    """Whether a process writes to a folder. A moment later, that may be different."""
    try:
        with open(path / LOCK, "rb") as stream:
            if sys.platform == "win32":
                msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
                msvcrt.locking(stream.fileno(), msvcrt.LK_UNLCK, 1)
            else:
                fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


class Folder:
    """A folder with a broker in it."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool) -> None:
        self.path = Path(os.fsdecode(path)).absolute()
        """Absolute: a process may change its working directory, and files are opened later, too."""
        try:
            is_file, has_tables = self.path.exists() and not self.path.is_dir(), (self.path / TABLES).exists()
        except OSError as error:
            raise BrokerError(f"{self.path} cannot be used: {error.strerror}") from None
        if is_file:
            raise BrokerError(f"{self.path} is a file. Hint: a broker needs a folder of its own")
        if not has_tables and (self.path / PART).exists():
            raise BrokerError(
                f"{self.path} has a backup that is not complete. Hint: delete this folder, and make the backup again"
            )
        if read_only and not has_tables:
            raise BrokerError(f"{self.path} has no broker. Hint: open it once without read_only")
        self._lock: FileIO | None = None
        self.mark = ""
        """What the last writer noted of the tables; see `checking`."""
        if read_only:
            self.mark = self._read_mark()
        else:
            try:
                make_folder(self.path)
            except OSError as error:
                raise BrokerError(f"{self.path} cannot be made: {error.strerror}") from None
            self._check_foreign()
            self._take_lock()

    def __truediv__(self, name: str) -> Path:
        return self.path / name

    def _check_foreign(self) -> None:
        """Refuse a folder that has other files but no broker."""
        if not (self.path / TABLES).exists():
            others = [each.name for each in self.path.iterdir() if not each.name.startswith((LOCK, f"{TABLES}-new"))]
            if any(name.startswith((f"{TABLES}-", LAST_COMMIT, *_CACHES)) for name in others):
                raise BrokerError(f"{self.path / TABLES} is gone. Hint: put it back, or restore a backup of the folder")
            if others:
                raise BrokerError(
                    f"{self.path} has other files, such as {others[0]!r}. Hint: name an empty or a new folder"
                )

    def _take_lock(self) -> None:
        try:
            stream = open(self.path / LOCK, "a+b", buffering=0)  # noqa: SIM115 - held until the broker is closed
        except OSError as error:
            raise BrokerError(
                f"{self.path} cannot be written: {error.strerror}. Hint: open it with read_only=True"
            ) from None
        try:
            if sys.platform == "win32":
                msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            stream.seek(0)
            holder = stream.read().decode(errors="replace").partition("\n")[0].strip()
            stream.close()
            who = f"process {holder}" if holder else "another process"
            raise LockedError(
                f"{who} writes to {self.path}. Hint: close that broker, or open this one with read_only=True"
            ) from None
        self._lock = stream
        self.mark = self._read_mark()
        self.note(self.mark)  # as it was: nothing has changed so far

    @property
    def is_writer(self) -> bool:
        return self._lock is not None

    def _read_mark(self) -> str:
        with suppress(OSError, UnicodeDecodeError):
            return (self.path / LOCK).read_text().partition("\n")[2].strip()
        return ""

    def note(self, mark: str) -> None:
        """Write into the lock which process writes, and a mark for the next one.

        If the disk is full, there is no mark, and the next process checks the tables.
        """
        assert self._lock is not None
        with suppress(OSError):
            self._lock.seek(0)
            self._lock.truncate()  # first: the file is open to append
            self._lock.write(f"{os.getpid()}\n{mark}\n".encode())
            os.fsync(self._lock.fileno())

    def close(self, mark: str | None = None) -> None:
        """Give the lock back. `mark` is for the next process; None leaves the mark that is there."""
        if self._lock is not None:
            if mark is not None:
                self.note(mark)
            if sys.platform != "win32":  # A process that is just being forked may have the file open, too.
                fcntl.flock(self._lock, fcntl.LOCK_UN)
            self.part()

    def part(self) -> None:
        """Close the file of the lock. In a process that was forked, its parent keeps the lock."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def make_folder(path: Path) -> None:
    """Make a folder and those above it. Each new name survives a power cut."""
    above = path.absolute()
    missing = [above]
    while not (above := above.parent).exists():
        missing.append(above)
    path.mkdir(parents=True, exist_ok=True)
    for each in missing:
        flush_folder(each.parent)
