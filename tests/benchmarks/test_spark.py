"""The benchmark on Spark, on little data: all plans find the same, and the page shows what was measured."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import pytest

from benchmarks import spark as bench
from benchmarks import spark_costs, spark_page
from benchmarks.processes import family, processor_seconds
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


def test_processor_time(spark: SparkSession, tmp_path: Path) -> None:
    framework = spark_costs.measure_framework(spark, tmp_path, 80, turns=1)
    assert (framework["events"], framework["columns"]) == (80, 100)
    assert min(framework[job]["seconds"] for job in ("plain", "match")) > 0
    tables = spark_costs.to_tables(
        {
            "framework": {
                "events": 400,
                "columns": 100,
                "plain": {"seconds": 1.0, "us each": 5.0},
                "match": {"seconds": 2.0, "us each": 7.5},
            },
            "building": {"subscriptions": 200, "build": {"seconds": 3.0, "us each": 10.0}},
        }
    )
    assert tables.startswith("Matching takes 2.5 us per event beyond the plain job.")
    assert "| `build` | 200 subscriptions | 3.00 | 10.0 |" in tables


def test_the_processor_time_of_a_family() -> None:
    program = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'sum(range(10**7))']); print(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert family(os.getpid())[0] == os.getpid()
        assert process.pid in family(os.getpid())
        assert processor_seconds([process.pid]) > 0.05  # That of its child, which has ended, is part of it.
        process.communicate("\n")
    assert processor_seconds([process.pid]) == 0  # It has ended.
    assert family(process.pid) == [process.pid]
