"""Lists of objects against `list_transform` of DuckDB and `transform` of Spark SQL."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

import tamis
from tamis.language.evaluate import Truth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREDICATES = [
    *((name, operator, number) for name in ("port", "more.nr") for operator in ("=", "<", ">=") for number in (1, 3)),
    ("host", "=", "'a'"),
    ("host", ">", "'b'"),
    ("host", "LIKE", "'%a%'"),
]
EVENT = pa.struct(
    [
        ("port", pa.int64()),
        ("host", pa.string()),
        ("more", pa.list_(pa.struct([("nr", pa.int64())]))),
    ]
)


def events(count: int) -> list[dict[str, Any]]:
    rng = random.Random(3)

    def element() -> dict[str, Any] | None:
        return rng.choice(
            [
                None,
                {
                    "port": rng.choice([None, 0, 1, 2, 3]),
                    "host": rng.choice([None, "a", "b", "ca"]),
                    "more": rng.choice([None, [], [{"nr": rng.randint(0, 4)}, None], [{"nr": 1}, {"nr": None}]]),
                },
            ]
        )

    lists = ([element() for _ in range(rng.randint(0, 3))] for _ in range(count))
    return [{"connections": rng.choice([None, each, each])} for each in lists]


def questions() -> list[str]:
    plain = [f"connections.{name} {operator} {literal}" for name, operator, literal in PREDICATES]
    both = [f"{one} AND {other}" for one, other in zip(plain, plain[3:], strict=False)]
    return [*plain, *(f"NOT ({each})" for each in plain), *both, "connections IS NULL", "connections.port IS NULL"]


def translated(template: str, field: str, nested: str) -> list[str]:
    """The same in SQL: `template` makes of a list, an operator and a literal whether some element satisfies it."""

    def values(name: str) -> str:
        return nested if name == "more.nr" else field.format(name)

    plain = [
        template.format(list=values(name), test=f"v {operator} {literal}") for name, operator, literal in PREDICATES
    ]
    both = [f"({one}) AND ({other})" for one, other in zip(plain, plain[3:], strict=False)]
    present = template.format(list=values("port"), test="TRUE")
    return [*plain, *(f"NOT ({each})" for each in plain), *both, "TRUE", f"({present}) IS NULL"]


def expected(given: list[dict[str, Any]]) -> list[list[Truth]]:
    found = [[tamis.evaluate(tamis.parse(text), event) for event in given] for text in questions()]
    counts = [sum(truths.count(truth) for truths in found) for truth in (True, False, None)]
    assert min(counts) > sum(counts) / 10
    return found


def test_duckdb() -> None:
    given = events(200)
    table = pa.table({"row": range(len(given)), "connections": [each["connections"] for each in given]})
    table = table.cast(pa.schema([("row", pa.int64()), ("connections", pa.list_(EVENT))]))
    some = (
        "CASE WHEN len(list_filter({list}, lambda v: v IS NOT NULL)) > 0 "
        "THEN len(list_filter({list}, lambda v: v IS NOT NULL AND {test})) > 0 END"
    )
    nested = "flatten(list_transform(connections, lambda c: list_transform(coalesce(c.more, []), lambda m: m.nr)))"
    texts = translated(some, "list_transform(connections, lambda c: c.{})", nested)
    with duckdb.connect() as connection:
        connection.register("events", table)
        rows = connection.execute(f"SELECT {', '.join(texts)} FROM events ORDER BY row").fetchall()
    assert [list(column) for column in zip(*rows, strict=True)] == expected(given)
    matcher = tamis.Matcher()
    matcher.add_many(range(len(texts)), questions())
    pairs = {(row, at) for at, truths in enumerate(expected(given)) for row, truth in enumerate(truths) if truth}
    for batch in (table, given):
        found = matcher.match_batch(batch)
        assert set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == pairs


def test_spark(spark: SparkSession) -> None:
    import tamis.spark

    given = events(100)
    kind = "array<struct<port: bigint, host: string, more: array<struct<nr: bigint>>>>"
    rows = [(row, each["connections"]) for row, each in enumerate(given)]
    frame = spark.createDataFrame(rows, f"id bigint, connections {kind}").coalesce(1)
    some = (
        "CASE WHEN exists({list}, v -> v IS NOT NULL) THEN exists(filter({list}, v -> v IS NOT NULL), v -> {test}) END"
    )
    nested = "flatten(transform(connections, c -> transform(coalesce(c.more, array()), m -> m.nr)))"
    texts = translated(some, "transform(connections, c -> c.{})", nested)
    found = frame.orderBy("id").selectExpr(*(f"{text} AS t{at}" for at, text in enumerate(texts))).collect()
    assert [list(column) for column in zip(*found, strict=True)] == expected(given)
    subscriptions = spark.createDataFrame(list(enumerate(questions())), "id bigint, expression string")
    pairs = {(row, at) for at, truths in enumerate(expected(given)) for row, truth in enumerate(truths) if truth}
    assert {tuple(row) for row in tamis.spark.match(frame, subscriptions).collect()} == pairs
