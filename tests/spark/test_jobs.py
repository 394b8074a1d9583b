"""Workloads, statistics and the pipeline as jobs."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

import tamis
import tamis.spark
from tamis.cli.main import main
from tamis.workload import EVENT_BLOCK, generate, preset
from tests.spark.frames import frame

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("shape", ["dense", "alerts", "detection"])
def test_generated_subscriptions_are_those_of_the_generator(spark: SparkSession, shape: str) -> None:
    config = preset(shape, subscriptions=25_000 if shape == "dense" else 500)
    made = tamis.spark.generate_subscriptions(spark, config, partitions=2).toArrow().sort_by("id")
    assert made.to_pydict() == generate(config).subscriptions().to_pydict()


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("other", [True, False])
def test_generated_events_are_those_of_the_generator(spark: SparkSession, wide: bool, other: bool) -> None:
    config = preset("dense", subscriptions=100, dimensions=40)
    count = EVENT_BLOCK + 7
    made = tamis.spark.generate_events(spark, config, count, wide=wide, other=other).toArrow().sort_by("id")
    workload = generate(config)
    events = workload.other_events(count, wide=wide) if other else workload.events(count, wide=wide)
    assert made["id"].to_pylist() == list(range(count))
    assert made.drop_columns(["id"]).to_pydict() == events.to_pydict()


def test_statistics(spark: SparkSession) -> None:
    rows = [
        (number, number % 4, "x" if number % 5 else None, [1.5, 2.5], datetime(2026, 1, 1 + number % 3))
        for number in range(100)
    ]
    events = spark.createDataFrame(rows, "id int, a int, `b.c` string, d array<double>, e timestamp_ntz")
    found = {row.attribute: row for row in tamis.spark.statistics(events, ["a", "b.c", "d", "e"]).collect()}
    assert set(found) == {"a", "b.c", "d", "e"}
    a, b, d = found["a"], found["b.c"], found["d"]
    assert (a.kind, a.events, a.presence, a.distinct) == ("number", 100, 1.0, 4)
    assert (a.quantiles[0], a.quantiles[10], a.quantiles[-1]) == (0.0, 1.0, 3.0)
    assert [(each.value, each["count"]) for each in a.frequent] == [(str(value), 25) for value in range(4)]
    assert (b.kind, b.events, b.presence, b.quantiles) == ("string", 80, 0.8, None)
    assert (d.events, [each["count"] for each in d.frequent]) == (100, [100, 100])
    assert found["e"].kind == "timestamp"
    assert found["e"].frequent[0].value.startswith("2026-01-01")


def test_statistics_of_maps_and_of_nothing(spark: SparkSession) -> None:
    events = spark.createDataFrame([({"a": 1, "b": 2},), ({"a": 3},), (None,)], "event map<string, int>")
    found = {row.attribute: (row.events, row.presence) for row in tamis.spark.statistics(events).collect()}
    assert found == {"a": (2, 2 / 3), "b": (1, 1 / 3)}
    assert tamis.spark.statistics(events.where("false")).collect() == []


def test_the_subscriptions_of_an_index(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"id": f"s{number}", "expression": "a = 1" if number else "a =", "tag": f"t{number}"} for number in range(6)
    ]
    tamis.spark.build(frame(spark, rows, "id string, expression string, tag string"), tmp_path, shards=2)
    gone = spark.createDataFrame([("removed", "s2")], "change string, id string")
    tamis.spark.update(tmp_path, gone)
    there = tamis.spark.subscriptions(spark, tmp_path)
    assert sorted(map(tuple, there.collect())) == [("s1", "t1"), ("s3", "t3"), ("s4", "t4"), ("s5", "t5")]
    assert tamis.spark.subscriptions(spark, tmp_path, version=1).count() == 5
    assert [row.id for row in tamis.spark.rejections(spark, tmp_path, version=1).collect()] == ["s0"]
    assert tamis.spark.rejections(spark, tmp_path).collect() == []


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    """Raw files: subscriptions as CSV, events as JSON lines, something wrong in each."""
    (tmp_path / "rules.csv").write_text(
        "id,expression,owner\nr1,price < 20,ann\nr2,\"price > 10 AND shop = 'x'\",bob\nr3,price >,cid\nr4,price > 999,dan\n"
    )
    events: list[dict[str, Any]] = [{"id": number, "price": number, "shop": "xy"[number % 2]} for number in range(30)]
    lines = [json.dumps(event) for event in events] + ["{broken"]
    (tmp_path / "events.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_pipeline(spark: SparkSession, raw: Path) -> None:
    out = raw / "out"
    summary = tamis.spark.run_pipeline(
        spark, raw / "rules.csv", raw / "events.jsonl", out, keep=["price"], carry=["owner"]
    )
    matches = spark.read.parquet(str(out / "matches"))
    assert matches.columns == ["id", "subscription", "price", "owner"]
    expected = {(n, "r1") for n in range(20)} | {(n, "r2") for n in range(12, 30, 2)}
    assert {(row.id, row.subscription) for row in matches.collect()} == expected
    counts = spark.read.parquet(str(out / "counts"))
    assert {tuple(row) for row in counts.collect()} == {("r1", 20, "ann"), ("r2", 9, "bob"), ("r4", 0, "dan")}
    assert [row.id for row in spark.read.parquet(str(out / "rejected")).collect()] == ["r3"]
    assert [row.line for row in spark.read.parquet(str(out / "bad_events")).collect()] == ["{broken"]
    figures = json.loads((out / "summary.json").read_text())
    assert figures == summary.figures
    wanted = {
        "subscriptions": 3,
        "events": 30,
        "matches": 29,
        "rejected subscriptions": 1,
        "bad events": 1,
        "subscriptions without a match": 1,
    }
    assert {name: figures[name] for name in wanted} == wanted
    page = (out / "summary.html").read_text()
    assert "<b>29</b><span>matches</span>" in page
    assert summary.sizes == [("none", 1), ("1 to 9", 1), ("10 to 99", 1)]
    with pytest.raises(tamis.FileError, match="an earlier run has written to it"):
        tamis.spark.run_pipeline(spark, raw / "rules.csv", raw / "events.jsonl", out)
    again = tamis.spark.run_pipeline(spark, raw / "rules.csv", raw / "events.jsonl", out, overwrite=True)
    assert again.figures["matches"] == 29


def test_what_the_pipeline_cannot_read(spark: SparkSession, raw: Path) -> None:
    def refused(message: str, subscriptions: Path, events: Path, **options: Any) -> None:
        with pytest.raises((tamis.FileError, tamis.OptionError, tamis.FrameError), match=message):
            tamis.spark.run_pipeline(spark, subscriptions, events, raw / "out", overwrite=True, **options)

    refused("is not there", raw / "none.csv", raw / "events.jsonl")
    (raw / "notes.txt").touch()
    refused("no format that we know", raw / "notes.txt", raw / "events.jsonl")
    refused(
        "the format is one of parquet, json, csv, not 'xml'",
        raw / "rules.csv",
        raw / "events.jsonl",
        event_format="xml",
    )
    refused("events have no column 'uuid'", raw / "rules.csv", raw / "events.jsonl", event_id="uuid")


@pytest.mark.spark
def test_the_command(raw: Path) -> None:
    wrong = CliRunner().invoke(main, ["pipeline", "a", "b", "c", "--conf", "nothing"])
    assert wrong.exit_code == 2
    assert "'nothing' is not NAME=VALUE" in wrong.output
