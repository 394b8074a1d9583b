"""Processor time of jobs on Spark: what it takes to bring events to a matcher, and to build an index.

Figures are processor time of all processes, Java's too, so other work on the machine hardly matters. Jobs take turns, and the
difference between two sizes leaves out what a job costs whatever its size.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import tamis
from benchmarks.markdown import table
from benchmarks.processes import family, processor_seconds
from tamis import spark as tamis_spark
from tamis.experiments.machine import machine, versions
from tamis.workload import preset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHAPE = "dense"

DESCRIPTION = """Processor time of all processes, Java's too, in local mode with two cores. Each job runs with all rows and with
a quarter of them, in turns. The difference is what each further row costs, without what a job costs whatever its size. The plain
job is a `mapInArrow` that takes the same columns and returns nothing. In the other job, one subscription for each attribute
asks about it, and none matches: this is the cost of bringing an event to a matcher and asking it. Building takes subscriptions
of the shape *dense* as lists of predicates, from Parquet to two shards on disk."""


def to_tables(result: dict[str, Any]) -> str:
    """The figures as Markdown."""
    framework, building = result["framework"], result["building"]
    lines = [
        [
            f"plain `mapInArrow`, {framework['columns']} columns",
            f"{framework['events']:,} events",
            *_told(framework["plain"]),
        ],
        [f"`match`, {framework['columns']} columns", f"{framework['events']:,} events", *_told(framework["match"])],
        ["`build`", f"{building['subscriptions']:,} subscriptions", *_told(building["build"])],
    ]
    beyond = framework["match"]["us each"] - framework["plain"]["us each"]
    heads = ["job", "rows", "processor time, s", "us per further row"]
    return f"Matching takes {beyond:.1f} us per event beyond the plain job.\n\n{table(heads, lines)}"


def _told(job: dict[str, float]) -> list[str]:
    return [f"{job['seconds']:.2f}", f"{job['us each']:.1f}"]


class Nothing:
    """What the plain job does: it takes all columns and returns no row."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column("id").slice(0, 0)
            yield pa.RecordBatch.from_arrays([ids, ids], names=["id", "subscription"])


def measure_framework(spark: SparkSession, folder: Path, events: int, turns: int) -> dict[str, Any]:
    """What `match` costs beyond a plain `mapInArrow` of the same columns. One subscription for each attribute asks about it, and
    hardly any matches, so that nearly nothing is left for the matcher to do."""
    config = preset(SHAPE, subscriptions=1000)
    made = tamis_spark.generate_events(spark, config, events, wide=True, other=True)
    made.write.parquet(str(folder / "events"))
    frame = spark.read.parquet(str(folder / "events"))
    names = [name for name in frame.columns if name != "id"]
    rows = [(number, f"{name} < -1000000000") for number, name in enumerate(names)]
    tamis_spark.build(spark.createDataFrame(rows, "id long, expression string"), folder / "few")
    jobs: dict[str, Callable[[DataFrame], Any]] = {
        "plain": lambda given: given.mapInArrow(Nothing(), "id long, subscription long"),
        "match": lambda given: tamis_spark.match(given, folder / "few"),
    }
    return {"events": events, "columns": len(names), **_slopes(frame, events, jobs, turns)}


def measure_building(spark: SparkSession, folder: Path, subscriptions: int, turns: int) -> dict[str, Any]:
    """What `build` costs for each subscription."""
    config = preset(SHAPE, subscriptions=subscriptions)
    tamis_spark.generate_subscriptions(spark, config).write.parquet(str(folder / "subscriptions"))
    frame = spark.read.parquet(str(folder / "subscriptions"))
    jobs: dict[str, Callable[[DataFrame], Any]] = {"build": lambda given: _Built(given, folder / "index")}
    return {"subscriptions": subscriptions, **_slopes(frame, subscriptions, jobs, turns)}


class _Built:
    """A build as a job that can be started."""

    def __init__(self, given: DataFrame, index: Path) -> None:
        self._given, self._index = given, index

    def count(self) -> int:
        shutil.rmtree(self._index, ignore_errors=True)
        return int(tamis_spark.build(self._given, self._index, shards=2).subscriptions)


def _slopes(
    frame: DataFrame, rows: int, jobs: dict[str, Callable[[DataFrame], Any]], turns: int
) -> dict[str, dict[str, float]]:
    """Processor seconds of each job with all rows and with a quarter of them, and the microseconds of each further row."""
    few = rows // 4
    seconds: dict[str, dict[int, list[float]]] = {name: {few: [], rows: []} for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            for size in (few, rows):
                started = job(frame.where(f"id < {size}"))
                before = processor_seconds(family(os.getpid()))
                started.count()
                if turn:  # The first turn loads everything.
                    seconds[name][size].append(processor_seconds(family(os.getpid())) - before)
    found = {}
    for name, of_size in seconds.items():
        whole, part = median(of_size[rows]), median(of_size[few])
        found[name] = {"seconds": whole, "seconds of a quarter": part, "us each": (whole - part) / (rows - few) * 1e6}
        sys.stdout.write(f"{name}: {json.dumps(found[name])}\n")
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark_costs", description="Measure the processor time of jobs on Spark."
    )
    parser.add_argument("--events", type=int, default=400_000)
    parser.add_argument("--subscriptions", type=int, default=200_000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    settings = {"spark.driver.memory": "2g", "spark.ui.enabled": "false", "spark.local.dir": str(folder / "spark")}
    spark = tamis_spark.start_session("local[2]", settings)
    try:
        results = {
            "benchmark": "spark, processor time",
            "machine": machine(),
            "versions": {**versions(), "pyspark": spark.version},
            "tamis": tamis.__version__,
            "framework": measure_framework(spark, folder, options.events, options.turns),
            "building": measure_building(spark, folder, options.subscriptions, options.turns),
        }
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
