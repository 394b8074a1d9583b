"""Checksums of rows: SQLite finds damage of its pages, but not a value that a disk has changed.

A checksum is a CRC-32 of the row's columns as text, joined by `|`. None is the text `None`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from zlib import crc32

from tamis.errors import BrokerError, shortened

DAMAGED = " Hint: the file is damaged or not a broker's. Restore a backup of the folder"


def checksum(*values: object) -> int:
    """The checksum of a row. SQL has it as a function with the same name."""
    return crc32("|".join(map(str, values)).encode())


def with_checksums(rows: Iterable[tuple[int, int, int | None, str, str]]) -> Iterator[tuple[Any, ...]]:
    """Rows of `events` with their two checksums. Publishing must be quick, so this is `checksum` written out."""
    for sequence, published, valid_until, event, matches in rows:
        of_event = crc32(f"{sequence}|{event}".encode())
        of_row = crc32(f"{sequence}|{published}|{valid_until}|{matches}".encode())
        yield sequence, published, valid_until, event, matches, of_event, of_row


def keys_with_checksums(rows: Iterable[tuple[str, int, int]]) -> Iterator[tuple[Any, ...]]:
    """Rows of `keys` with their checksum, for the same reason."""
    for key, published, sequence in rows:
        yield key, published, sequence, crc32(f"{key}|{published}|{sequence}".encode())


def checked(row: Sequence[Any]) -> Sequence[Any]:
    """A row without its last column, which is the checksum of the others.

    Raises
    ------
    BrokerError
        The row is damaged.
    """
    *values, expected = row
    if checksum(*values) != expected:
        raise damaged_row(values[0])
    return values


def damaged_row(key: object) -> BrokerError:
    """The error for a row of the tables that cannot be right."""
    return BrokerError(f"a row of the tables is damaged or missing: {shortened(key)}.{DAMAGED}")


def with_checksum(row: Sequence[Any]) -> tuple[Any, ...]:
    """A row with its checksum as the last column."""
    return (*row, checksum(*row))
