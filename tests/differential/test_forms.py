"""Forms of SQL that are read into other predicates: an engine that has a form is given the very same text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from tamis.language.evaluate import evaluate
from tests.differential.engines import DuckDB, Engine, Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXTS = ["abc", "ABC", "Ab", "a%c", "", "x", "bc", None]
LISTS: list[Any] = [["a", "b"], ["b"], ["x", "a"], ["c"], ["a"], ["b", "c"], ["z"], ["a", "x"]]
WHOLES = [1, 2, None, -1, 0, 3, 5, 1]

BOTH = [
    "(i = 1) IS TRUE",
    "(i = 1) IS NOT TRUE",
    "(i = 1 OR s = 'x') IS FALSE",
    "NOT (i > 1) IS NOT FALSE",
    "i IS DISTINCT FROM 1",
    "i IS NOT DISTINCT FROM 1 OR s IS DISTINCT FROM 'abc'",
    "i = +1",
    "i != 1",
    "lower(s) = 'abc'",
    "upper(s) IN ('ABC', 'X')",
    "lower(s) NOT LIKE 'a%'",
    "upper(s) <> 'AB'",
    "contains(s, 'b')",
    "NOT contains(s, '%')",
]
ONLY_DUCKDB = [
    "'a' = ANY (l)",
    "'b' > ANY (l)",
    "'a' <> ANY (l)",
    "'b' <> ALL (l)",
    "'b' <= ALL (l)",
    "'a' = ALL (l)",
    "starts_with(s, 'a%')",
    "ends_with(s, 'c')",
]
ONLY_SPARK = [
    "(i = 1) IS UNKNOWN",
    "(i = 1 AND s = 'x') IS NOT UNKNOWN",
    "s LIKE ANY ('a%', '%c')",
    "s LIKE ALL ('a%', '%c')",
    "s NOT LIKE ANY ('a%', '%c')",
    "s NOT LIKE ALL ('a%', '%c')",
    "s ILIKE ANY ('A%', 'X')",
    "startswith(s, 'a%')",
    "endswith(s, 'c')",
    "s REGEXP '^a' AND NOT s REGEXP 'b'",
]


def compare(engine: Engine, texts: list[str]) -> None:
    columns = {"s": TEXTS, "l": LISTS, "i": WHOLES}
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    engine.load(pa.table({"row": range(len(rows)), **columns}))
    for text, truths in zip(texts, engine.truths(texts), strict=True):
        assert [evaluate(text, row) for row in rows] == truths, text


def test_duckdb() -> None:
    with duckdb.connect() as connection:
        compare(DuckDB(connection), BOTH + ONLY_DUCKDB)


@pytest.mark.spark
def test_spark(spark: SparkSession) -> None:
    compare(Spark(spark), BOTH + ONLY_SPARK)
