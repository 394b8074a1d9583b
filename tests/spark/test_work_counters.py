"""Counters of jobs: what a job borrows it gives back, and builds say how far they are."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tamis.spark
from tamis.spark.build_progress import Progress
from tamis.spark.work_counters import Accumulated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_later_job_takes_the_accumulator_of_one_that_has_ended(spark: SparkSession) -> None:
    with Accumulated(spark) as first, Accumulated(spark) as second:
        assert first.accumulator is not second.accumulator
        first.accumulator.add({"events": 3})
        assert first.sums() == {**second.sums(), "events": 3}
        assert set(second.sums().values()) == {0}
    both = {id(first.accumulator), id(second.accumulator)}
    with Accumulated(spark) as third:
        assert id(third.accumulator) in both
        assert set(third.sums().values()) == {0}


def test_a_function_that_fails_does_not_end_the_thread_that_adds_up(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    def watch(sums: dict[str, float]) -> None:
        raise RuntimeError("no")

    with Accumulated(spark, watch) as counters:
        counters.accumulator.add({"events": 3})
        assert counters.sums()["events"] == 3
    assert [record.message for record in caplog.records] == ["the progress of a job cannot be told"]


def test_the_progress_of_a_build(spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tamis")
    rows = [(f"s{number}", f"a = {number}") for number in range(40)]
    tamis.spark.build(spark.createDataFrame(rows, "id string, expression string"), tmp_path, shards=3)
    said = [record.message for record in caplog.records if "shards" in record.message]
    assert said == [f"{done} of 3 shards are done" for done in (1, 2, 3)]


def test_many_shards_have_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tamis")
    progress = Progress(1000)
    for done in range(1, 1001):
        progress.reached(done)
    said = [record.message for record in caplog.records]
    assert len(said) == 20
    assert (said[0], said[-1]) == ("50 of 1,000 shards are done", "1,000 of 1,000 shards are done")


def test_columns_that_nobody_asks_about_do_not_leave_the_jvm(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [(1, 5, "x", {"b": 2}, 7)]
    given = spark.createDataFrame(rows, "id int, a int, text string, map map<string, int>, kept int")
    given.write.parquet(str(tmp_path / "events"))
    events = spark.read.parquet(str(tmp_path / "events"))
    wanted = spark.createDataFrame([("s", "a = 5")], "id string, expression string")
    tamis.spark.build(wanted, tmp_path / "index")
    found = tamis.spark.match(events, tmp_path / "index", keep=["kept"])
    assert [tuple(row) for row in found.collect()] == [(1, "s", 7)]
    capsys.readouterr()
    found.explain("formatted")
    plan = capsys.readouterr().out
    assert "ReadSchema: struct<id:int,a:int,kept:int>" in plan
    (handed,) = [line for line in plan.split("MapInArrow\n")[1].splitlines() if line.startswith("Input")]
    assert handed.count("#") == 3
