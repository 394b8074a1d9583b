"""Webhooks and dead letters of a tenant, in SQLite. Every call is one transaction, and safe on disk when it returns."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, fields
from pathlib import Path

from tamis.errors import BrokerError
from tamis.service.tenant_files import WEBHOOKS
from tamis.service.webhooks.record import DeadLetter, Webhook

_VERSION = 2

_TABLES = """
CREATE TABLE webhooks (
    subscriber TEXT PRIMARY KEY, id TEXT NOT NULL, url TEXT NOT NULL, secret TEXT NOT NULL, batch INTEGER NOT NULL,
    state TEXT NOT NULL, reason TEXT NOT NULL, tries INTEGER NOT NULL, next_try REAL NOT NULL, retrying TEXT,
    batch_last INTEGER NOT NULL, failures INTEGER NOT NULL, missed INTEGER NOT NULL,
    old_secret TEXT NOT NULL DEFAULT '', old_until REAL NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE TABLE dead_letters (
    subscriber TEXT NOT NULL REFERENCES webhooks ON DELETE CASCADE, sequence INTEGER NOT NULL, note TEXT NOT NULL,
    tries INTEGER NOT NULL, reason TEXT NOT NULL, moment REAL NOT NULL, replaying INTEGER NOT NULL,
    PRIMARY KEY (subscriber, sequence)
) WITHOUT ROWID;
"""
_SECOND = """
ALTER TABLE webhooks ADD COLUMN old_secret TEXT NOT NULL DEFAULT '';
ALTER TABLE webhooks ADD COLUMN old_until REAL NOT NULL DEFAULT 0;
"""
"""What brings tables of the first version up to date."""
_COLUMNS = ", ".join(each.name for each in fields(Webhook))
_PLACES = ", ".join("?" for _ in fields(Webhook))
_CHANGES = ", ".join(f"{each.name} = ?" for each in fields(Webhook))
_EXCLUDED = ", ".join(f"{each.name} = excluded.{each.name}" for each in fields(Webhook))
_LETTER = "sequence, note, tries, reason, moment, replaying"


class Store:
    """The file of the webhooks of one tenant. Any number of threads may use it.

    Raises
    ------
    BrokerError
        The file cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / WEBHOOKS
        self._lock = threading.Lock()
        with self._errors():
            # The file has secrets: only its owner may read it, from the first moment on.
            os.close(os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600))
            self._tables = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            self._tables.execute("PRAGMA journal_mode = WAL")
            self._tables.execute("PRAGMA synchronous = FULL")
            self._tables.execute("PRAGMA foreign_keys = ON")
            version = self._tables.execute("PRAGMA user_version").fetchone()[0]
            if version in (0, 1):
                change = _SECOND if version else _TABLES
                self._tables.executescript(f"BEGIN; {change} PRAGMA user_version = {_VERSION}; COMMIT;")
            elif version != _VERSION:
                raise BrokerError(f"{self._path} is of a newer version of Tamis. Hint: use that version")

    def all(self) -> list[Webhook]:
        """All webhooks."""
        with self._reading() as tables:
            return [Webhook(*row) for row in tables.execute(f"SELECT {_COLUMNS} FROM webhooks ORDER BY subscriber")]

    def put(self, webhook: Webhook) -> None:
        """Add a webhook, or write what has changed of it."""
        sql = f"INSERT INTO webhooks ({_COLUMNS}) VALUES ({_PLACES}) ON CONFLICT (subscriber) DO UPDATE SET {_EXCLUDED}"
        with self._writing() as tables:
            tables.execute(sql, astuple(webhook))

    def update(self, webhook: Webhook) -> None:
        """Write what has changed of a webhook, if it is still there."""
        with self._writing() as tables:
            _update(tables, webhook)

    def remove(self, subscriber: str) -> None:
        """Remove a webhook and its dead letters."""
        with self._writing() as tables:
            tables.execute("DELETE FROM webhooks WHERE subscriber = ?", (subscriber,))

    def settle(self, webhook: Webhook, replayed: Sequence[int]) -> None:
        """Write that a batch was delivered. These dead letters were in it."""
        with self._writing() as tables:
            _update(tables, webhook)
            rows = [(webhook.subscriber, each) for each in replayed]
            tables.executemany("DELETE FROM dead_letters WHERE subscriber = ? AND sequence = ?", rows)

    def bury(self, webhook: Webhook, letters: Iterable[DeadLetter]) -> int:
        """Add dead letters. A note that is a dead letter already stays one. Returns how many there are."""
        rows = [(webhook.subscriber, *letter) for letter in letters]
        with self._writing() as tables:
            _update(tables, webhook)
            tables.executemany("REPLACE INTO dead_letters VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            return _count(tables, webhook.subscriber)

    def dead_letters(self, subscriber: str, after: int, limit: int) -> list[DeadLetter]:
        """Dead letters in the order of their numbers."""
        sql = f"SELECT {_LETTER} FROM dead_letters WHERE subscriber = ? AND sequence > ? ORDER BY sequence LIMIT ?"
        return self._letters(sql, (subscriber, after, limit))

    def replays(self, subscriber: str, last: int, limit: int) -> list[DeadLetter]:
        """Dead letters that wait to be sent again, up to a number; 0: all."""
        sql = (
            f"SELECT {_LETTER} FROM dead_letters WHERE subscriber = ? AND replaying AND (? = 0 OR sequence <= ?) "
            "ORDER BY sequence LIMIT ?"
        )
        return self._letters(sql, (subscriber, last, last, limit))

    def count_dead_letters(self, subscriber: str) -> int:
        with self._reading() as tables:
            return _count(tables, subscriber)

    def count_all_dead_letters(self) -> int:
        with self._reading() as tables:
            return int(tables.execute("SELECT count(*) FROM dead_letters").fetchone()[0])

    def replay(self, subscriber: str, sequences: Sequence[int] | None) -> int:
        """Have dead letters sent again: some, or all. Returns how many."""
        sql = "UPDATE dead_letters SET replaying = 1 WHERE subscriber = ?"
        with self._writing() as tables:
            if sequences is None:
                return tables.execute(sql, (subscriber,)).rowcount
            return sum(tables.execute(f"{sql} AND sequence = ?", (subscriber, each)).rowcount for each in sequences)

    def forget(self, subscriber: str, sequences: Sequence[int] | None) -> int:
        """Delete dead letters: some, or all. Returns how many."""
        sql = "DELETE FROM dead_letters WHERE subscriber = ?"
        with self._writing() as tables:
            if sequences is None:
                return tables.execute(sql, (subscriber,)).rowcount
            return sum(tables.execute(f"{sql} AND sequence = ?", (subscriber, each)).rowcount for each in sequences)

    def _letters(self, sql: str, values: tuple[object, ...]) -> list[DeadLetter]:
        with self._reading() as tables:
            return [DeadLetter._make((*row[:-1], bool(row[-1]))) for row in tables.execute(sql, values)]

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors():
            yield self._tables

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors():
            self._tables.execute("BEGIN IMMEDIATE")
            try:
                yield self._tables
                self._tables.execute("COMMIT")
            except BaseException:
                if self._tables.in_transaction:
                    self._tables.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise BrokerError(f"{self._path} cannot be used: {error}") from None

    def close(self) -> None:
        with self._lock:
            self._tables.close()


def _update(tables: sqlite3.Connection, webhook: Webhook) -> None:
    tables.execute(f"UPDATE webhooks SET {_CHANGES} WHERE id = ?", (*astuple(webhook), webhook.id))


def _count(tables: sqlite3.Connection, subscriber: str) -> int:
    sql = "SELECT count(*) FROM dead_letters WHERE subscriber = ?"
    return int(tables.execute(sql, (subscriber,)).fetchone()[0])
