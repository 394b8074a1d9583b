"""The benchmark on Spark, on little data: all plans find the same, and the page shows what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from benchmarks import spark as bench
from benchmarks import spark_page
from tamis.language.operators import Operator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_plans_and_growth(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = bench.Bench(spark, tmp_path / "plans", 300, 20, planted=True, dimensions=35)
    result: dict[str, Any] = {
        "subscriptions": 300,
        "events": 20,
        "plans": bench.measure_plans(small, {"Python": 8}),
        **bench.measure_framework(small, rounds=1),
        "growth": [bench.measure_growth(spark, tmp_path / "growth", 500, 20)],
    }
    assert [row["plan"] for row in result["plans"]] == ["nested loop", "explode and count", "Python", "DuckDB", "Tamis"]
    printed = capsys.readouterr().out
    for row in result["plans"]:
        assert spark_page.plan_line(row) in printed
        assert row["events"] == (8 if row["plan"] == "Python" else 20)
        assert row["matches"] >= row["events"]
        assert row["all_seconds"] >= row["prepare_seconds"] + row["fixed_seconds"] > 0
    assert spark_page.growth_line(result["growth"][0]) in printed
    tables = spark_page.to_tables(result)
    assert "| Tamis | 20 |" in tables
    assert "### Growth" in tables
    ElementTree.fromstring(spark_page.to_chart(result))


@pytest.mark.parametrize(
    ("operator", "values", "ranges"),
    [
        (Operator.EQ, (5,), [(5, 5)]),
        (Operator.IN, (5, 7), [(5, 5), (7, 7)]),
        (Operator.LT, (5,), [(bench.LOWEST, 4)]),
        (Operator.GE, (5,), [(5, bench.HIGHEST)]),
        (Operator.BETWEEN, (3, 5), [(3, 5)]),
        (Operator.NOT_BETWEEN, (3, 5), [(bench.LOWEST, 2), (6, bench.HIGHEST)]),
        (Operator.NOT_IN, (3, 4, 6), [(bench.LOWEST, 2), (5, 5), (7, bench.HIGHEST)]),
    ],
)
def test_predicates_as_ranges(operator: Operator, values: tuple[int, ...], ranges: list[tuple[int, int]]) -> None:
    assert bench.int_ranges(operator, values) == ranges
