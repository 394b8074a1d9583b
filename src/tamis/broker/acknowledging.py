"""Acknowledging from a process that only reads otherwise. It holds the lock of the writer for a moment, and needs no matcher."""

from __future__ import annotations

import os

from tamis.broker.folder import TABLES, Folder
from tamis.broker.tables import Tables


def acknowledge(path: str | os.PathLike[str], subscriber: str, sequence: int) -> None:
    """Move the cursor of a subscriber to a note that was read, in a folder that nobody writes to at the moment.

    An earlier number changes nothing, so 0 only tries the lock.

    Raises
    ------
    LockedError
        Another process writes to the folder. The cursor has not moved.
    BrokerError
    """
    folder = Folder(path, read_only=False)
    try:
        tables = Tables(str(folder / TABLES))
        try:
            sql = "UPDATE subscribers SET cursor = ? WHERE name = ? AND removed = 0 AND cursor < ?"
            with tables.transaction():
                tables.rows(sql, (sequence, subscriber, sequence))
        finally:
            tables.close()
    finally:
        folder.close()
