"""The tables of a broker: the truth, in one SQLite file. `docs/pubsub.md` describes them for people who open the file themselves.

    subscribers      who is told; numbers are never given twice
    subscriptions    what they want, also the removed ones: a pair of a subscription and an event is told once, for ever
    events           what was published, each with the numbers of the subscriptions that it satisfied
    meetings         subscriptions that met stored events later, each with the numbers of these events
    keys             the keys that publishers gave, so that they can try again
    batches          the batches of streams that were delivered
    history          where events belong among the earlier ones, if the broker has a history; see `history_table`
    caches           the names of the files beside the tables that belong to them
    settings         what the user has set, and what has left the tables

`schema` has the columns. Each row has a checksum, which is compared when the row is read; see `checksums`.

Times are microseconds since 1970 in UTC. Lists of numbers are JSON text, which `json_each` of SQLite and DuckDB read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tamis.broker.checksums import (
    DAMAGED,
    checked,
    checksum,
    damaged_row,
    keys_with_checksums,
    with_checksum,
    with_checksums,
)
from tamis.broker.limits import USUAL_BROKER_LIMITS
from tamis.broker.number_lists import read_numbers
from tamis.broker.schema import APPLICATION, MAKING, STEPS
from tamis.errors import BrokerError
from tamis.storage.replacing import flush_folder

MEMORY = ":memory:"

Synchronous = Literal["full", "normal", "off"]

_PUT_EVENTS = "INSERT INTO events (sequence, published, valid_until, event, matches, event_checksum, checksum) VALUES"
_MARKS = "(?, ?, ?, ?, ?, ?, ?)"
_KEYS_AT_ONCE = 500
"""Keys that one statement looks up."""
_PATIENCE = 10.0
"""Seconds to wait while another process writes."""
FEW_EVENTS = 64
"""Events that one statement may write."""
_SIGNS_OF_DAMAGE = ("decode to UTF-8", "no such table", "no such column", "has no column named")
"""Words of errors that have no code of their own."""


NewEvent = tuple[int, int, int | None, str, str]
"""The columns of `events` but the checksums."""


class SubscriptionRow(NamedTuple):
    """A row of `subscriptions`."""

    number: int
    subscriber: int
    name: str
    expression: str
    weight: float
    valid_from: int | None
    valid_until: int | None
    started: int
    paused: int
    removed: int
    change: int


class SubscriberRow(NamedTuple):
    """A row of `subscribers`."""

    number: int
    name: str
    cursor: int
    dropped: int
    deleted: int
    removed: int


class EventRow(NamedTuple):
    """A row of `events`."""

    sequence: int
    published: int
    valid_until: int | None
    event: str
    matches: str
    event_checksum: int
    checksum: int

    def checked(self) -> EventRow:
        """The row itself.

        Raises
        ------
        BrokerError
            The row is damaged.
        """
        checked((self.sequence, self.event, self.event_checksum))
        checked((self.sequence, self.published, self.valid_until, self.matches, self.checksum))
        return self

    def match_numbers(self) -> list[int]:
        return read_numbers(self.matches)


class MeetingRow(NamedTuple):
    """A row of `meetings`."""

    number: int
    subscription: int
    moment: int
    after: int
    events: str


class Tables:
    """A connection to the tables. One thread at a time may use it. Older tables are brought up to date by `steps`."""

    def __init__(
        self,
        path: str,
        *,
        read_only: bool = False,
        synchronous: Synchronous = "full",
        steps: Sequence[str] = STEPS,
        log_pages: int = USUAL_BROKER_LIMITS.log_pages,
    ) -> None:
        self.path = path
        self.after_failure: Callable[[], None] = lambda: None
        """Is called when a commit has failed."""
        with sqlite_errors(path):
            if path == MEMORY:
                self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
                self._connection.executescript(MAKING)
                self._connection.create_function("checksum", -1, checksum, deterministic=True)
                return
            if not read_only and not Path(path).exists():
                _make(Path(path))
            self._connection = _connected(path, read_only)
            try:
                version = _checked_version(self._connection, path, 1 + len(steps))
                _set_up(self._connection, read_only, synchronous, log_pages)
                if version <= len(steps):
                    _renew(self._connection, path, steps[version - 1 :], read_only)
            except BaseException:
                self._connection.close()
                raise

    @property
    def in_memory(self) -> bool:
        return self.path == MEMORY

    def close(self) -> None:
        with sqlite_errors(self.path):
            self._connection.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit what the block writes, or nothing if it raises an error."""
        with sqlite_errors(self.path):
            try:  # An interrupt may come as soon as the transaction has begun.
                self._connection.execute("BEGIN IMMEDIATE")
                yield
                self._commit()
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _commit(self) -> None:
        try:
            self._connection.execute("COMMIT")
        except sqlite3.Error:
            self.after_failure()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let all queries of the block see the same state of the tables."""
        with sqlite_errors(self.path):
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.execute("COMMIT")

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Iterator[Any]:
        """Run a statement. The rows of its result are read when they are asked for."""
        with sqlite_errors(self.path):
            try:
                cursor = self._connection.execute(sql, values)
            except sqlite3.Error:
                if not self._connection.in_transaction:  # A statement that writes was a commit of its own.
                    self.after_failure()
                raise
        return chain.from_iterable(iter(lambda: self._some(cursor), []))

    def _some(self, cursor: sqlite3.Cursor) -> list[Any]:
        with sqlite_errors(self.path):
            return cursor.fetchmany(1000)

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first row of a result; None if it is empty."""
        with sqlite_errors(self.path):
            return self._connection.execute(sql, values).fetchone()

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """Run a statement for many rows of values."""
        with sqlite_errors(self.path):
            self._connection.executemany(sql, values)

    # Subscribers and subscriptions

    def subscriber(self, name: str) -> SubscriberRow | None:
        row = self.one(f"SELECT {_names(SubscriberRow)}, checksum FROM subscribers WHERE name = ?", (name,))
        return None if row is None else SubscriberRow(*checked(row))

    def subscriber_numbered(self, number: int) -> SubscriberRow:
        """The row of a subscriber that exists."""
        row = self.one(f"SELECT {_names(SubscriberRow)}, checksum FROM subscribers WHERE number = ?", (number,))
        if row is None:
            raise damaged_row(number)
        return SubscriberRow(*checked(row))

    def subscription(self, subscriber: int, name: str) -> SubscriptionRow | None:
        sql = f"SELECT {_names(SubscriptionRow)}, checksum FROM subscriptions WHERE subscriber = ? AND name = ?"
        row = self.one(sql, (subscriber, name))
        return None if row is None else SubscriptionRow(*checked(row))

    def subscriptions(self, condition: str, values: Sequence[Any] = ()) -> Iterator[SubscriptionRow]:
        """The subscriptions that a condition in SQL chooses. It may end with ORDER BY."""
        sql = f"SELECT {_names(SubscriptionRow)}, checksum FROM subscriptions WHERE {condition}"
        return map(SubscriptionRow._make, map(checked, self.rows(sql, values)))

    def meetings(self, condition: str, values: Sequence[Any] = ()) -> Iterator[MeetingRow]:
        """The meetings that a condition in SQL chooses, by number."""
        sql = f"SELECT {_names(MeetingRow)}, checksum FROM meetings WHERE {condition} ORDER BY number"
        return map(MeetingRow._make, map(checked, self.rows(sql, values)))

    def put_subscriptions(self, rows: Iterable[SubscriptionRow]) -> None:
        self._put("subscriptions", SubscriptionRow, rows)

    def put_subscribers(self, rows: Iterable[SubscriberRow]) -> None:
        self._put("subscribers", SubscriberRow, rows)

    def _put(self, table: str, row: type[NamedTuple], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows, or change the rows that have the same number."""
        columns = (*row._fields, "checksum")
        changes = ", ".join(f"{name} = excluded.{name}" for name in columns[1:])
        into = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
        self.many(f"{into} ON CONFLICT (number) DO UPDATE SET {changes}", map(with_checksum, rows))

    def change_subscribers(self, column: str, value: str, rows: Iterable[tuple[int, int]]) -> None:
        """Set a column of subscribers to a value in SQL. `rows` has what ?1 stands for, and the number of the subscriber."""
        self.many(f"{_subscriber_change(column, value)} WHERE number = ?2", rows)

    def move_cursor(self, subscriber: int, note: int) -> None:
        """Move a cursor forward."""
        sql = f"{_subscriber_change('cursor', '?1')} WHERE number = ?2 AND cursor < ?1 AND removed = 0"
        self.rows(sql, (note, subscriber))

    def names_of(self, subscription: int) -> tuple[str, str]:
        """The names of a subscription's subscriber and of the subscription."""
        sql = (
            "SELECT subscribers.name, subscriptions.name FROM subscriptions "
            "JOIN subscribers ON subscribers.number = subscriber WHERE subscriptions.number = ?"
        )
        names: tuple[str, str] | None = self.one(sql, (subscription,))
        if names is None:
            raise damaged_row(subscription)
        return names

    # Events

    def put_events(self, rows: Iterable[NewEvent]) -> None:
        self.many(f"{_PUT_EVENTS} {_MARKS}", with_checksums(rows))

    def put_few_events(self, rows: Sequence[NewEvent]) -> None:
        """Write at most `FEW_EVENTS` events by one statement, which is a transaction of its own.

        Python lets other threads run at every row of `many`, at BEGIN and at COMMIT, and then waits for its turn. When 16 threads
        publish, this takes several times as long as SQLite does.
        """
        self.rows(f"{_PUT_EVENTS} {', '.join([_MARKS] * len(rows))}", list(chain.from_iterable(with_checksums(rows))))

    def event(self, sequence: int) -> EventRow | None:
        row = self.one(f"SELECT {_names(EventRow)} FROM events WHERE sequence = ?", (sequence,))
        return None if row is None else EventRow(*row).checked()

    def event_texts(self, sequences: Sequence[int]) -> dict[int, tuple[str, int | None]]:
        """The JSON and `valid_until` of some hundred events, by number."""
        marks = ", ".join("?" * len(sequences))
        sql = f"SELECT sequence, event, event_checksum, valid_until FROM events WHERE sequence IN ({marks})"
        return {row[0]: (checked(row[:3])[1], row[3]) for row in self.rows(sql, sequences)}

    def put_meetings(self, rows: Iterable[MeetingRow]) -> None:
        self.many("INSERT INTO meetings VALUES (?, ?, ?, ?, ?, ?)", map(with_checksum, rows))

    def put_keys(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Store new keys of publishers, with the moments and the numbers of their events."""
        self.many(
            "INSERT INTO keys (key, published, sequence, checksum) VALUES (?, ?, ?, ?)", keys_with_checksums(rows)
        )

    def keyed(self, keys: Sequence[str], after: int) -> Iterator[tuple[str, int]]:
        """Those of some keys that were published after a moment, with the numbers of their events."""
        for start in range(0, len(keys), _KEYS_AT_ONCE):
            some = keys[start : start + _KEYS_AT_ONCE]
            marks = ", ".join("?" * len(some))
            # With the plus, SQLite never goes through all keys of the last day.
            sql = f"SELECT key, published, sequence, checksum FROM keys WHERE +published > ? AND key IN ({marks})"
            for row in self.rows(sql, (after, *some)):
                key, _, sequence = checked(row)
                yield key, sequence

    def put_batch(self, source: str, batch: int) -> None:
        """Store the last batch of a stream."""
        self.rows("REPLACE INTO batches (source, batch, checksum) VALUES (?, ?, ?)", with_checksum((source, batch)))

    def last_batch(self, source: str) -> int | None:
        """The last batch of a stream that was delivered; None if there is none."""
        row = self.one("SELECT source, batch, checksum FROM batches WHERE source = ?", (source,))
        return None if row is None else int(checked(row)[1])

    # Numbers

    def last(self, table: str, column: str = "number") -> int:
        """The highest number of a table; 0 if it is empty."""
        return int(self.one(f"SELECT coalesce(max({column}), 0) FROM {table}")[0])

    def setting(self, name: str) -> Any:
        row = self.one("SELECT name, value, checksum FROM settings WHERE name = ?", (name,))
        return None if row is None else checked(row)[1]

    def put_setting(self, name: str, value: Any) -> None:
        self.rows("REPLACE INTO settings (name, value, checksum) VALUES (?, ?, ?)", with_checksum((name, value)))

    def caches(self) -> frozenset[str]:
        """The names of the files that belong to these tables. All others are foreign: somebody may have replaced the tables by a
        backup, and the files of the old tables are still there."""
        return frozenset(name for (name,) in self.rows("SELECT name FROM caches"))

    def put_cache(self, name: str, gone: Iterable[str]) -> None:
        """Note a new file, and that others are gone. The caller has begun a transaction."""
        self.rows("INSERT INTO caches (name) VALUES (?)", (name,))
        self.many("DELETE FROM caches WHERE name = ?", ((each,) for each in gone))

    def data_version(self) -> int:
        """A number that changes when another connection has committed."""
        return int(self.one("PRAGMA data_version")[0])

    def shorten_log(self) -> bool:
        """Copy the log to the tables, and empty it if nobody reads at the moment. Nobody waits for readers. Returns whether it is
        empty."""
        self.rows("PRAGMA busy_timeout = 0")
        try:
            return not self.one("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        finally:
            self.rows(f"PRAGMA busy_timeout = {int(1000 * _PATIENCE)}")

    def backup(self, path: str) -> None:
        """Copy the tables of this moment to a new file, while others write."""
        with sqlite_errors(path), sqlite3.connect(path) as target:
            # In one step: between steps, a commit of another process would start it again.
            self._connection.backup(target)
            target.execute("PRAGMA journal_mode = WAL")
        target.close()


def _subscriber_change(column: str, value: str) -> str:
    """The beginning of a statement that sets a column of subscribers to a value in SQL."""
    columns = ", ".join(value if name == column else name for name in SubscriberRow._fields)
    return f"UPDATE subscribers SET {column} = {value}, checksum = checksum({columns})"


def _names(row: type[NamedTuple]) -> str:
    return ", ".join(row._fields)


def _make(path: Path) -> None:
    """Make a file with empty tables.

    It is made under another name first. So a file with the right name always has tables: one without them is damaged.
    """
    new = path.with_name(f"{path.name}-new")
    for left in (new, new.with_name(f"{new.name}-journal")):
        left.unlink(missing_ok=True)
    connection = sqlite3.connect(new, isolation_level=None)
    try:
        connection.executescript(MAKING)
    finally:
        connection.close()
    new.replace(path)
    flush_folder(path.parent)


def _connected(path: str, read_only: bool) -> sqlite3.Connection:
    address = f"{Path(path).absolute().as_uri()}?mode={'ro' if read_only else 'rw'}"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=_PATIENCE)
    connection.create_function("checksum", -1, checksum, deterministic=True)
    return connection


def _set_up(connection: sqlite3.Connection, read_only: bool, synchronous: Synchronous, log_pages: int) -> None:
    if not read_only:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {log_pages}")
    connection.execute("PRAGMA cache_size = -65536")
    connection.execute("PRAGMA mmap_size = 1073741824")


def _checked_version(connection: sqlite3.Connection, path: str, newest: int) -> int:
    """The version of the tables. A file of another program or of a newer version is refused. Nothing is written to it."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application == 0 and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
        raise BrokerError(f"{path} is empty.{DAMAGED}")
    # SQLite fills up a page that is cut off in the middle. The log may have what the file does not have yet.
    pages, size = (connection.execute(f"PRAGMA page_{each}").fetchone()[0] for each in ("count", "size"))
    log = Path(f"{path}-wal")
    if Path(path).stat().st_size < pages * size and not (log.exists() and log.stat().st_size):
        raise BrokerError(f"{path} is cut off.{DAMAGED}")
    if application != APPLICATION or version < 1:
        raise BrokerError(f"{path} is an SQLite file of another program. Hint: name another folder")
    if version > newest:
        raise BrokerError(
            f"{path} has tables of version {version}, but this Tamis reads versions up to {newest}. Hint: use a newer Tamis"
        )
    return int(version)


def _renew(connection: sqlite3.Connection, path: str, steps: Sequence[str], read_only: bool) -> None:
    """Bring older tables up to date, all at once or not at all."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if read_only:
        raise BrokerError(
            f"{path} has tables of version {version}, and this Tamis reads version {version + len(steps)}. "
            "Hint: open the folder once without read_only, which brings them up to date"
        )
    try:
        connection.executescript(
            f"BEGIN IMMEDIATE; {' '.join(steps)} PRAGMA user_version = {version + len(steps)}; COMMIT;"
        )
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_errors(path: str) -> Iterator[None]:
    """Raise errors of SQLite as errors of the broker that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(error, sqlite3.ProgrammingError) and "closed database" in str(error):
            raise BrokerError("the broker is closed. Hint: open the folder again") from None
        raise BrokerError(f"{path}: {error}.{_hint(error)}") from error


def _hint(error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or any(words in str(error) for words in _SIGNS_OF_DAMAGE):
        return DAMAGED
    if code.startswith("SQLITE_FULL"):
        return " Hint: the disk is full. Nothing of this call was stored; free some space and try again"
    if code.startswith("SQLITE_IOERR"):
        return " Hint: the disk reported an error. Check the disk, and open the folder again to see whether this call was stored"
    if code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
        return " Hint: check that the folder exists and that you may write to it"
    return ""
