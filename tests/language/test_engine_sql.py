"""SQL text for DuckDB and Spark. DuckDB gives the same answers as the evaluator."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from tamis.errors import ExpressionError
from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import matches
from tamis.language.parser import parse

COLUMNS = {"s": "VARCHAR", "i": "BIGINT", "f": "DOUBLE", "b": "BOOLEAN", "t": "TIMESTAMP", "user.d": "DATE"}
ROWS: list[tuple[Any, ...]] = [
    ("abc", 1, 1.5, True, datetime(2026, 11, 14, 10, 0, 0, 500_000), date(2026, 11, 14)),
    ("a%c", -5, 0.1, False, datetime(2026, 11, 14), date(1970, 1, 1)),
    ("a_c", 2**62, 1e22, None, datetime(1, 1, 1), date(9999, 12, 31)),
    ("a\\c", 0, -0.0, True, None, None),
    ("A!C", None, 5e-324, True, None, None),
    ("x'y", 3, None, False, None, None),
    ("a\nc", 4, 3.0, None, None, None),
    ("Über", 5, 4.0, None, None, None),
    ("", -(2**63), 2.5, None, None, None),
    (None, None, None, None, None, None),
]
TEXTS = [
    "s = 'x''y'", "s = 'a\\c'", "s <> ''", "s < 'b'", "s BETWEEN 'A' AND 'b'", "s NOT BETWEEN 'A' AND 'b' AND TRUE",
    "s LIKE 'a%'", "s LIKE 'a\\%'", "s LIKE 'a\\c'", "s LIKE 'a!%c' ESCAPE '!'", "s LIKE 'a\\_c' ESCAPE '\\'", "s LIKE '%\nc'",
    "s NOT LIKE 'a_c'", "s ILIKE 'A%C'", "s ILIKE 'a!!c' ESCAPE '!'", "s ILIKE 'AX%C' ESCAPE 'X'", "s NOT ILIKE 'ü%'",
    "s RLIKE 'a.c'", "s NOT RLIKE '^a'", "s IN ('abc', 'x''y')", "s NOT IN ('abc')", "s IS NULL",
    "s IS NOT NULL AND NOT s = 'abc'",
    "i = 1", "i > -9223372036854775808", "i BETWEEN -5 AND 1", "i IN (1, -5)", "f = 0.1", "f = 1e22", "f >= 5e-324", "f = 0.0",
    "b", "NOT b", "b <> TRUE", "t = TIMESTAMP '2026-11-14 10:00:00.5'", "t <= DATE '2026-11-14'", "user.d >= DATE '2026-11-14'",
    "NOT (i = 1 OR s IS NULL)", "FALSE OR i = 3 AND s LIKE 'x%'",
    "i < ANY (SELECT i FROM history)", "i >= ALL (SELECT f FROM history)", "i <> ALL (SELECT i FROM history)",
    "EXISTS (SELECT 1 FROM history h WHERE h.i > i AND h.b = b AND h.s LIKE 'a%')",
    "NOT EXISTS (SELECT 1 FROM history h WHERE h.f = f)",
]  # fmt: skip


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    for table in ("events", "history"):
        connection.execute(f"CREATE TABLE {table} (row INTEGER, {columns})")
    for row, values in enumerate(ROWS):
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [row, *values])
    for row, values in enumerate(ROWS[:2]):
        connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", [row, *values])
    return connection


@pytest.mark.parametrize("text", TEXTS)
def test_duckdb_gives_the_same_answers(text: str, database: duckdb.DuckDBPyConnection) -> None:
    expression = parse(text)
    events = [{name: value for name, value in zip(COLUMNS, row, strict=True) if value is not None} for row in ROWS]
    ours = [row for row, event in enumerate(events) if matches(expression, event, events[:2])]
    query = f"SELECT row FROM events AS event WHERE {to_sql(expression, 'duckdb')} ORDER BY row"
    assert [row for (row,) in database.execute(query).fetchall()] == ours


@pytest.mark.parametrize(
    ("text", "duck", "spark"),
    [
        ("user.geo = 'it''s \\'", "\"user.geo\" = 'it''s \\'", r"`user.geo` = 'it\'s \\'"),
        ('"a`b""c" = 1', '"a`b""c" = 1', '`a``b"c` = 1'),
        ("a > 1.5", '"a" > 1.5e0', "`a` > 1.5e0"),
        ("a > 1e22", '"a" > 1e+22', "`a` > 1e+22"),
        ("a LIKE 'x%'", "\"a\" LIKE 'x%'", "`a` LIKE 'x%'"),
        ("a LIKE 'x\\y!'", "\"a\" LIKE 'x\\y!'", r"`a` LIKE 'x\\y!!' ESCAPE '!'"),
        ("a NOT LIKE 'x#%y' ESCAPE '#'", "\"a\" NOT LIKE 'x!%y' ESCAPE '!'", "`a` NOT LIKE 'x!%y' ESCAPE '!'"),
        ("a ILIKE 'X%'", "lower(\"a\") LIKE 'x%'", "lower(`a`) LIKE 'x%'"),
        ("a RLIKE '\\d'", "regexp_matches(\"a\", '\\d')", r"`a` RLIKE '\\d'"),
        ("a NOT RLIKE 'x'", "NOT regexp_matches(\"a\", 'x')", "`a` NOT RLIKE 'x'"),
        (
            "EXISTS (SELECT 1 FROM history h WHERE h.a = a)",
            'EXISTS (SELECT 1 FROM history h WHERE h."a" = event."a")',
            "EXISTS (SELECT 1 FROM history h WHERE h.`a` = event.`a`)",
        ),
    ],
)
def test_text(text: str, duck: str, spark: str) -> None:
    expression = parse(text)
    assert to_sql(expression, "duckdb") == duck
    assert to_sql(expression, "spark") == spark


def test_spark_has_no_quantified_comparison() -> None:
    with pytest.raises(ExpressionError, match="Spark SQL has no ANY"):
        to_sql(parse("x < ANY (SELECT y FROM history)"), "spark")
