"""Checking tables as a whole. It reads all of them, so it is done only if they may have been damaged.

`Folder` notes in the file `lock` in which state the last writer left the tables:

    running <machine's start> <file> <synchronous>    a process has the folder open, or was killed
    running <machine's start> <file> failed           the same, and a commit has failed
    closed <size> <time of the last write>

A killed process damages nothing, since the system still has all that it wrote. The tables are checked if the machine has
started again since, if the file is another one, such as a copy, or if something else has written to it. The log is checked in
any case. It is short.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from tamis.broker.checksums import DAMAGED, checksum, damaged_row
from tamis.broker.folder import TABLES, Folder
from tamis.broker.log_check import check_log
from tamis.broker.schema import CHECKED, TEXT_CHECKED
from tamis.broker.tables import Synchronous, Tables
from tamis.errors import BrokerError

_GAPLESS = (
    ("subscribers", "number", "0"),
    ("subscriptions", "number", "0"),
    ("events", "sequence", "coalesce((SELECT value FROM settings WHERE name = 'last_deleted_event'), 0)"),
    ("meetings", "number", "coalesce((SELECT value FROM settings WHERE name = 'last_deleted_meeting'), 0)"),
)
"""Tables, their numbers, and the number after which none may be missing."""
_FAILED = "failed"
_START = Path("/proc/sys/kernel/random/boot_id")


def check(tables: Tables) -> None:
    """Look for damage everywhere.

    Raises
    ------
    BrokerError
        Something is damaged.
    """
    (first,) = next(tables.rows("PRAGMA integrity_check(1)"))
    if first != "ok":
        raise BrokerError(f"{tables.path}: {first}.{DAMAGED}")
    with tables.snapshot():
        for table, columns in CHECKED.items():
            _check_rows(tables, f"SELECT {', '.join(columns)}, checksum FROM {table}")
        for table in TEXT_CHECKED:
            _check_rows(tables, f"SELECT sequence, event, event_checksum FROM {table} WHERE event IS NOT NULL")
        for table, number, start in _GAPLESS:
            sql = f"SELECT count(DISTINCT {number}), coalesce(max({number}) - {start}, 0) FROM {table} WHERE {number} > {start}"
            found, expected = tables.one(sql)
            if found != expected:
                raise BrokerError(f"{tables.path}: {expected - found} rows of `{table}` are missing.{DAMAGED}")


def ensure_sound_log(folder: Folder) -> None:
    """Check the log before SQLite reads it, if this process is going to write.

    Raises
    ------
    BrokerError
    """
    kind, start, _, synchronous = [*folder.mark.split(), "", "", "", ""][:4]
    if not folder.is_writer:
        return
    # Without a sync at every commit, a power cut may leave later commits and not the one before them.
    is_cut_off = kind == "running" and synchronous != "full" and start != machine_start()
    # A part of a commit that failed may stay behind the commits that came after it.
    if not is_cut_off and synchronous != _FAILED:
        check_log(folder / TABLES)


def ensure_sound(tables: Tables, folder: Folder, synchronous: Synchronous) -> None:
    """Check tables that are not as the last writer left them.

    Raises
    ------
    BrokerError
    """
    path = folder / TABLES
    if not is_as_left(path, folder.mark):
        check(tables)
    if folder.is_writer:
        # The next process must not look at what failed commits left, so it is taken away.
        is_clean = not folder.mark.endswith(_FAILED) or tables.shorten_log()
        folder.note(f"{running_mark(path)} {synchronous if is_clean else _FAILED}")
        tables.after_failure = lambda: folder.note(f"{running_mark(path)} {_FAILED}")


def _check_rows(tables: Tables, sql: str) -> None:
    for row in tables.rows(sql):
        if checksum(*row[:-1]) != row[-1]:
            raise damaged_row(row[0])


def running_mark(path: Path) -> str:
    """What `lock` says while a process has the tables open."""
    return f"running {machine_start()} {path.stat().st_ino}"


def machine_start() -> str:
    """What says that the machine has not started again; something new if the machine does not tell."""
    with suppress(OSError):
        return _START.read_text().strip()
    return os.urandom(8).hex()


def closed_mark(path: Path) -> str:
    """What `lock` says of tables that were closed. Nothing if they are gone."""
    with suppress(OSError):
        found = path.stat()
        return f"closed {found.st_size} {found.st_mtime_ns}"
    return ""


def is_as_left(path: Path, mark: str) -> bool:
    """Whether tables are as the last writer left them."""
    with suppress(OSError):
        return bool(mark) and (mark == closed_mark(path) or mark.rpartition(" ")[0] == running_mark(path))
    return False
