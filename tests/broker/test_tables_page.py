"""The tables are as docs/pubsub.md lists them, and other tools read them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import duckdb
import pyarrow as pa
import pytest

import tamis
from tamis.broker.schema import APPLICATION, VERSION

PAGE = Path(__file__).parents[2] / "docs" / "pubsub.md"
LATER = datetime(2999, 1, 1, tzinfo=UTC)
UNTYPED = {"value", "key", "time", "newest"}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Tables with rows in all of them."""
    folder = tmp_path_factory.mktemp("tables") / "shop"
    with tamis.open(folder, history=tamis.History(rows=3, key="genre")) as broker:
        broker.subscribe("ann", "low", "price < 10", weight=2.5)
        broker.publish_many(
            [{"genre": "crime", "price": price} for price in (5, 15, 9.5)], valid_until=LATER, keys=["a", "b", "c"]
        )
        broker.subscribe("bob", "high", "price > 10", valid_until=LATER)
        broker.publish({"genre": "crime", "price": 4})
        broker.deliver([({"genre": None}, [1, 2])], source="a job", batch=7)
    with closing(sqlite3.connect(f"file:{folder}/broker.sqlite?mode=ro", uri=True)) as connection:
        yield connection


def listed() -> dict[str, list[str]]:
    """The columns of each table on the page."""
    section = PAGE.read_text().partition("### Tables")[2].partition("```python")[0]
    rows = [re.match(r"\| `(\w+)` \| (.*) \|$", line) for line in section.splitlines()]
    # What stands in brackets describes a column.
    return {
        row[1]: re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)|:.*|\. .*", "", row[2])) for row in rows if row is not None
    }


def columns(tables: sqlite3.Connection, table: str) -> dict[str, str]:
    return {name: kind for _, name, kind, *_ in tables.execute(f"PRAGMA table_info({table})")}


def test_the_page_lists_all_columns(tables: sqlite3.Connection) -> None:
    names = [name for (name,) in tables.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {
        name: [each for each in columns(tables, name) if each not in {"checksum", "event_checksum"}] for name in names
    }
    assert listed() == found


def test_the_version_of_the_tables(tables: sqlite3.Connection) -> None:
    assert tables.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert tables.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    text = PAGE.read_text()
    assert f"is the version of the tables, now {VERSION}" in text
    assert f"0x{APPLICATION:X}" in text


def test_values_have_the_types_that_columns_declare(tables: sqlite3.Connection) -> None:
    """DuckDB refuses others."""
    for table in listed():
        for column, kind in columns(tables, table).items():
            types = {found for (found,) in tables.execute(f'SELECT DISTINCT typeof("{column}") FROM {table}')} - {
                "null"
            }
            assert (column in UNTYPED and not kind) or types <= {kind.lower()}, (table, column)


def test_checksums_are_as_the_page_says(tables: sqlite3.Connection) -> None:
    for table, names in listed().items():
        if table == "caches":
            continue
        has_text = table in {"events", "history"}
        chosen = [name for name in names if not (has_text and name == "event")]
        for *values, checksum in tables.execute(f"SELECT {', '.join(chosen)}, checksum FROM {table}"):
            assert crc32("|".join(map(str, values)).encode()) == checksum
        if has_text:
            sql = f"SELECT sequence, event, event_checksum FROM {table} WHERE event IS NOT NULL"
            for sequence, event, checksum in tables.execute(sql):
                assert crc32(f"{sequence}|{event}".encode()) == checksum


def test_duckdb_reads_every_table(tables: sqlite3.Connection) -> None:
    """DuckDB's extension for SQLite is not in its package, so the rows come through Arrow."""
    connection = duckdb.connect()
    for table, names in listed().items():
        rows = tables.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        assert rows or table == "caches", table
        texts = [
            pa.array([None if value is None else str(value) for value in column] if name in UNTYPED else column)
            for name, column in zip(names, zip(*rows, strict=True), strict=False)
        ]
        arrow = pa.table(texts, names=names) if rows else pa.table({name: pa.array([], pa.string()) for name in names})
        connection.register(f"{table}_arrow", arrow)
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM {table}_arrow")
    told = connection.execute(
        """
        SELECT sequence, subscribers.name, subscriptions.name
        FROM (
            SELECT sequence, unnest(from_json(matches, '["BIGINT"]')) AS told FROM events
            UNION ALL
            SELECT unnest(from_json(events, '["BIGINT"]')), subscription FROM meetings
        )
        JOIN subscriptions ON subscriptions.number = told
        JOIN subscribers ON subscribers.number = subscriptions.subscriber
        ORDER BY ALL
        """
    ).fetchall()
    expected = [(1, "ann", "low"), (2, "bob", "high"), (3, "ann", "low"), (4, "ann", "low")]
    assert told == [*expected, (5, "ann", "low"), (5, "bob", "high")]
    prices = connection.execute("SELECT (event ->> 'price')::DOUBLE FROM events ORDER BY sequence").fetchall()
    assert [price for (price,) in prices] == [5, 15, 9.5, 4, None]
