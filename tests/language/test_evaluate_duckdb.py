"""The reference evaluator and DuckDB give the same truths, including UNKNOWN, for the features that both have."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import evaluate
from tamis.language.expression import FALSE, TRUE, Expression, Not, Predicate, all_of, any_of
from tamis.language.joins import Exists, Join, Quantified

# Attribute: type in DuckDB, values. Two attributes of each kind, for joins with earlier events.
NUMBERS: list[Any] = [-1, 0, 1, 1.5, 2, 3]
STRINGS: list[Any] = ["", "a", "ab", "abc", "B", "a%", "a_c", "é"]
TIMES: list[Any] = [datetime(2026, 11, 14), datetime(2026, 11, 14, 10, 0, 0, 1), datetime(2027, 1, 1)]
COLUMNS: dict[str, tuple[str, list[Any]]] = {
    "n": ("DOUBLE", NUMBERS),
    "m.x": ("DOUBLE", NUMBERS),
    "s": ("VARCHAR", STRINGS),
    "f": ("BOOLEAN", [True, False]),
    "t": ("TIMESTAMP", TIMES),
}
LITERALS: dict[str, list[Any]] = {name: values for name, (_, values) in COLUMNS.items()} | {
    "t": [*TIMES, date(2026, 11, 14)]
}
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
PATTERNS = ["", "a", "a%", "%", "%b%", "%c", "_", "a_c", "A%", "%B"]


def random_events(draw: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {name: draw.choice(values) for name, (_, values) in COLUMNS.items() if draw.random() < 0.7}
        for _ in range(count)
    ]


def random_predicate(draw: random.Random) -> Predicate:
    name = draw.choice(list(COLUMNS))
    literals = LITERALS[name]
    operators = ["in", "not in", "is null", "is not null", "=", "<>"]
    if name != "f":
        operators += ["between", "not between", *COMPARISONS]
    if name == "s":
        operators += ["like", "not like", "ilike", "not ilike", "rlike", "not rlike"]
    operator = draw.choice(operators)
    if operator.endswith("rlike"):
        return Predicate(name, operator, [draw.choice(["a", "^a", "b$", "^$", "(?i)B|é"])])
    if operator.endswith("like"):
        escaped = draw.random() < 0.2
        return Predicate(name, operator, ["a!%" if escaped else draw.choice(PATTERNS)], escape="!" if escaped else None)
    counts = {"between": 2, "not between": 2, "in": 3, "not in": 3, "is null": 0, "is not null": 0}
    return Predicate(name, operator, [draw.choice(literals) for _ in range(counts.get(operator, 1))])


def random_join(draw: random.Random) -> tuple[str, str, str]:
    name = draw.choice(list(COLUMNS))
    other = draw.choice(["n", "m.x"]) if name in ("n", "m.x") else name
    return name, draw.choice(["=", "<>"] if name == "f" else COMPARISONS), other


def random_leaf(draw: random.Random) -> Expression:
    kind = draw.random()
    if kind < 0.7:
        return random_predicate(draw)
    if kind < 0.75:
        return draw.choice([TRUE, FALSE])
    if kind < 0.9:
        name, operator, earlier = random_join(draw)
        return Quantified(name, operator, draw.choice(["any", "all"]), earlier)
    joins = [Join(*random_join(draw)) for _ in range(draw.randint(0, 2))]
    return Exists(joins, [random_predicate(draw) for _ in range(draw.randint(0, 2))])


def random_expression(draw: random.Random, depth: int) -> Expression:
    kind = draw.random()
    if depth == 0 or kind < 0.2:
        return random_leaf(draw)
    if kind < 0.4:
        return Not(random_expression(draw, depth - 1))
    operands = [random_expression(draw, depth - 1) for _ in range(draw.randint(2, 3))]
    return all_of(*operands) if kind < 0.7 else any_of(*operands)


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")
        columns = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        for table in ("events", "history"):
            connection.execute(f"CREATE TABLE {table} (place INTEGER, {columns})")
        yield connection


def fill(database: duckdb.DuckDBPyConnection, table: str, events: list[dict[str, Any]]) -> None:
    database.execute(f"DELETE FROM {table}")
    marks = ", ".join("?" * (1 + len(COLUMNS)))
    for place, event in enumerate(events):
        database.execute(f"INSERT INTO {table} VALUES ({marks})", [place, *map(event.get, COLUMNS)])


def truths(database: duckdb.DuckDBPyConnection, expression: Expression) -> list[bool | None]:
    text = to_sql(expression, "duckdb")
    rows = database.execute(f"SELECT {text} FROM events AS event ORDER BY place").fetchall()
    return [row[0] for row in rows]


@pytest.mark.parametrize("earlier", [0, 1, 5])
def test_the_same_truths(database: duckdb.DuckDBPyConnection, cases: Callable[[int], int], earlier: int) -> None:
    draw = random.Random(earlier)
    events, history = random_events(draw, 40), random_events(draw, earlier)
    fill(database, "events", events)
    fill(database, "history", history)
    for _ in range(cases(60)):
        expression = random_expression(draw, 3)
        ours = [evaluate(expression, event, history) for event in events]
        assert ours == truths(database, expression), to_sql(expression, "duckdb")


def test_the_same_comparisons(database: duckdb.DuckDBPyConnection) -> None:
    values = ["", "a", "A", "ab", "é", "e\u0301", "\uffff", "\U00010000", " a", "a ", None]
    events: list[dict[str, Any]] = [{"s": value} for value in values]
    fill(database, "events", events)
    for operator, literal in itertools.product(COMPARISONS, values[:-1]):
        expression = Predicate("s", operator, [literal])
        assert [evaluate(expression, event) for event in events] == truths(database, expression), str(expression)
