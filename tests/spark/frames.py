"""Events and subscriptions as DataFrames, and the pairs that a matcher finds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tamis
from tamis.encoding.expressions.predicate_table import read_predicates
from tamis.language.expression import Expression
from tests.workload.shapes import SHAPES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Pairs = set[tuple[Any, Any]]

_FEW: dict[str, dict[str, Any]] = {
    "sparse": {"dimensions": 60},
    "zipf": {"dimensions": 60},
    "be-tree": {"dimensions": 60},
    "op-index": {"dimensions": 60},
    "alerts": {"symbols": 5},
}
WORKLOADS: dict[str, dict[str, Any]] = {shape: _FEW.get(shape, {}) for shape in SHAPES}
"""All shapes, with parameters that allow a column for each attribute in Spark's SQL."""


def pairs(rows: Iterable[Row]) -> Pairs:
    """The first two columns of all rows. No row may repeat."""
    listed = [(row[0], row[1]) for row in rows]
    assert len(set(listed)) == len(listed), "a pair is there twice"
    return set(listed)


def expected(subscriptions: pa.Table, events: pa.Table, ids: list[Any]) -> Pairs:
    """The pairs that a matcher finds."""
    matcher = tamis.Matcher()
    matcher.add_table(subscriptions)
    found = matcher.match_batch(events).to_pylist()
    return {(ids[match["event"]], match["subscription"]) for match in found}


def expressions_of(subscriptions: pa.Table) -> list[Expression]:
    """The expressions of a table of subscriptions."""
    if "expression" in subscriptions.column_names:
        return [tamis.parse(text) for text in subscriptions["expression"].to_pylist()]
    rows = read_predicates(subscriptions["predicates"])
    return [rows.expression(row) for row in range(len(subscriptions))]


def frame(spark: SparkSession, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    """A DataFrame of rows. Some rows may lack columns."""
    names = [part.split()[0] for part in schema.split(", ")]
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], schema)
