"""Matching with Spark: Tamis beside the usual plans without it, and how its time grows with the number of subscriptions.

python -m benchmarks.spark [--subscriptions 100000] [--events 100000] [--growth 1000000 3000000] [--json FILE]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

import tamis
from benchmarks import spark_page
from benchmarks.processes import family
from tamis import spark as tamis_spark
from tamis.encoding.expressions.predicate_table import read_predicates
from tamis.experiments.machine import machine, versions
from tamis.language.expression import Predicate
from tamis.language.operators import Operator
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import new_name
from tamis.spark.seals import sealed_bytes
from tamis.workload import generate, preset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SHAPE = "dense"
SLOW_EVENTS = {"nested loop": 40, "explode and count": 100, "Python": 4_000, "DuckDB": 1_000}
"""Events for plans that would take hours. These plans are also measured with a quarter of the events. A line through both times
gives the time for all events."""
_MEMORY_PAUSE = 0.25


class Bench:
    """One workload in files, which all plans read."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        subscriptions: int,
        events: int,
        *,
        planted: bool = False,
        **changes: Any,
    ) -> None:
        self.spark, self.folder = spark, folder
        self.config = preset(SHAPE, subscriptions=subscriptions, **changes)
        self.events = events
        tamis_spark.generate_subscriptions(spark, self.config).write.parquet(self.path("subscriptions"))
        made = tamis_spark.generate_events(spark, self.config, events, wide=True, other=not planted)
        made.write.parquet(self.path("events"))

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def frame(self, name: str) -> DataFrame:
        return self.spark.read.parquet(self.path(name))

    def some_events(self, count: int) -> DataFrame:
        return self.frame("events").where(f"id < {count}")


class Plan(NamedTuple):
    """A way to match: the seconds of its preparation, and a function that matches some events and returns how many match."""

    prepare_seconds: float
    match: Callable[[int], int]


def measure_plans(bench: Bench, slow_events: Mapping[str, int] = SLOW_EVENTS) -> list[dict[str, Any]]:
    """The figures of every plan. Each must find as many matches as Tamis."""
    plans: dict[str, Callable[[Bench], Plan]] = {
        "nested loop": nested_loop,
        "explode and count": explode_and_count,
        "Python": python_loop,
        "DuckDB": duckdb_join,
        "Tamis": with_tamis,
    }
    index = bench.path("index-to-check")
    tamis_spark.build(bench.frame("subscriptions"), index)
    rows = []
    for name, prepare in plans.items():
        events = min(slow_events.get(name, bench.events), bench.events)
        row = {"plan": name, **_measured(bench, prepare(bench), events)}
        truth = tamis_spark.match(bench.some_events(row["events"]), index).count()
        if row["matches"] != truth:
            raise AssertionError(f"{name}: {row['matches']} matches, Tamis finds {truth}")
        sys.stdout.write(spark_page.plan_line(row) + "\n")
        rows.append(row)
    return rows


def _measured(bench: Bench, plan: Plan, events: int) -> dict[str, Any]:
    """The figures of a plan. If it is not measured with all events, its fixed time is separated from the time per event."""
    few = max(1, events // 4)
    plan.match(few)  # warm up
    matches, seconds = _timed(lambda: plan.match(events))
    each, fixed = 0.0, seconds
    if events < bench.events:
        _, of_few = _timed(lambda: plan.match(few))
        each = max(0.0, (seconds - of_few) / (events - few))
        fixed = max(0.0, seconds - each * events)
    return {
        "events": events,
        "matches": matches,
        "prepare_seconds": plan.prepare_seconds,
        "match_seconds": seconds,
        "fixed_seconds": fixed,
        "all_seconds": plan.prepare_seconds + fixed + each * bench.events,
    }


def with_tamis(bench: Bench) -> Plan:
    index = bench.path("index")
    _, prepared = _timed(lambda: tamis_spark.build(bench.frame("subscriptions"), index))
    return Plan(prepared, lambda events: tamis_spark.match(bench.some_events(events), index).count())


def measure_framework(bench: Bench, rounds: int = 3) -> dict[str, float]:
    """The seconds to match all events with the index that `with_tamis` built, and the seconds of the same job without matching.
    Both take turns, and the best time of each counts."""
    index = bench.path("index")
    times = [
        (
            _timed(lambda: _without_matching(bench))[1],
            _timed(lambda: tamis_spark.match(bench.frame("events"), index).count())[1],
        )
        for _ in range(rounds)
    ]
    without, matching = (min(each) for each in zip(*times, strict=True))
    return {"framework_seconds": without, "matching_seconds": matching}


def _without_matching(bench: Bench) -> int:
    return bench.frame("events").mapInArrow(_IdsOnly(), "id long, subscription long").count()


@dataclass(frozen=True)
class _IdsOnly:
    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column("id")
            yield pa.RecordBatch.from_arrays([ids, ids], names=["id", "subscription"])


def nested_loop(bench: Bench) -> Plan:
    """Join every event with every subscription, with a condition over the predicates. We know no faster form of this plan."""
    from pyspark.sql import functions as F  # noqa: N812

    _, prepared = _timed(lambda: _write_ranges(bench))
    nested = F.broadcast(bench.frame("ranges"))
    names = [name for name in bench.frame("events").columns if name != "id"]
    pairs = [part for name in names for part in (F.lit(name), F.col(name))]
    condition = "forall(p, x -> exists(x.ranges, r -> v[x.attribute] >= r.low AND v[x.attribute] <= r.high))"

    def match(events: int) -> int:
        mapped = bench.some_events(events).select("id", F.create_map(*pairs).alias("v"))
        return mapped.crossJoin(nested).where(condition).count()

    return Plan(prepared, match)


def explode_and_count(bench: Bench) -> Plan:
    """Join a row per predicate with a row per value, by attribute and range. Keep the pairs that satisfy all predicates."""
    from pyspark.sql import functions as F  # noqa: N812

    if not Path(bench.path("ranges")).exists():
        _write_ranges(bench)
    subscriptions = bench.frame("ranges").select("subscription", F.size("p").alias("size"), F.explode("p").alias("x"))
    long = subscriptions.select("subscription", "size", "x.attribute", F.explode("x.ranges").alias("r"))
    names = [name for name in bench.frame("events").columns if name != "id"]
    values = F.array(*(F.struct(F.lit(name).alias("attribute"), F.col(name).alias("value")) for name in names))

    def match(events: int) -> int:
        exploded = bench.some_events(events).select("id", F.explode(values).alias("e")).select("id", "e.*")
        joined = exploded.join(long, "attribute").where("value BETWEEN r.low AND r.high")
        found = joined.groupBy("id", "subscription").agg(F.count("*").alias("satisfied"), F.first("size").alias("size"))
        return found.where("satisfied = size").count()

    return Plan(0.0, match)


def python_loop(bench: Bench) -> Plan:
    """Compile every expression to Python, and evaluate it for every event."""

    def prepare() -> list[str]:
        return [_python_text(predicates) for _, predicates in _ranges(bench)]

    texts, prepared = _timed(prepare)
    held = bench.folder / "expressions.json"
    held.write_text(json.dumps(texts))

    def match(events: int) -> int:
        frame = bench.some_events(events).repartition(2).mapInArrow(_PythonLoop(str(held)), "matches long")
        (row,) = frame.selectExpr("sum(matches) AS matches").collect()
        return int(row.matches)

    return Plan(prepared, match)


@dataclass(frozen=True)
class _PythonLoop:
    path: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        texts = json.loads(Path(self.path).read_text())
        functions = [eval(f"lambda e: {text}") for text in texts]
        for batch in batches:
            found = sum(function(event) for event in batch.to_pylist() for function in functions)
            yield pa.RecordBatch.from_pydict({"matches": [found]})


def _python_text(predicates: list[tuple[str, list[tuple[int, int]]]]) -> str:
    """A conjunction as Python. A missing value is None and satisfies no range."""
    parts = []
    for attribute, ranges in predicates:
        value = f"e[{attribute!r}]"
        some = " or ".join(f"{low} <= {value} <= {high}" for low, high in ranges) or "False"
        parts.append(f"{value} is not None and ({some})")
    return f"bool({' and '.join(parts)})"


def duckdb_join(bench: Bench) -> Plan:
    """The join of `explode_and_count`, in DuckDB with all cores."""
    import duckdb

    if not Path(bench.path("ranges")).exists():
        _write_ranges(bench)
    names = [name for name in bench.frame("events").columns if name != "id"]
    query = f"""
        WITH long AS (
            SELECT subscription, size, x.attribute AS attribute, unnest(x.ranges) AS r
            FROM (SELECT subscription, len(p) AS size, unnest(p) AS x FROM '{bench.path("ranges")}/*.parquet')
        ), exploded AS (
            UNPIVOT (SELECT * FROM '{bench.path("events")}/*.parquet' WHERE id < ?)
            ON {", ".join(names)} INTO NAME attribute VALUE value
        )
        SELECT count(*) FROM (
            SELECT id, subscription FROM exploded JOIN long
            ON exploded.attribute = long.attribute AND value BETWEEN r.low AND r.high
            GROUP BY id, subscription HAVING count(*) = first(size)
        )
    """

    def match(events: int) -> int:
        with duckdb.connect() as connection:
            (found,) = connection.execute(query.replace("?", str(events))).fetchall()
        return int(found[0])

    return Plan(0.0, match)


LOWEST, HIGHEST = -(2**31), 2**31 - 1


def _ranges(bench: Bench) -> Iterator[tuple[int, list[tuple[str, list[tuple[int, int]]]]]]:
    """Every subscription as attributes with ranges of whole numbers."""
    workload = generate(bench.config)
    for block in workload.subscription_blocks():
        rows = read_predicates(pa.chunked_array([block.column("predicates")]))
        for place, identifier in enumerate(block.column("id").to_pylist()):
            nodes = rows.expression(place).walk()
            predicates = [node for node in nodes if isinstance(node, Predicate)]
            yield identifier, [(node.attribute, int_ranges(node.operator, node.values)) for node in predicates]


def int_ranges(operator: Operator, values: tuple[Any, ...]) -> list[tuple[int, int]]:
    """The whole numbers that satisfy a predicate."""
    first = values[0]
    match operator:
        case Operator.EQ | Operator.IN:
            return [(value, value) for value in values]
        case Operator.LT:
            return [(LOWEST, first - 1)]
        case Operator.LE:
            return [(LOWEST, first)]
        case Operator.GT:
            return [(first + 1, HIGHEST)]
        case Operator.GE:
            return [(first, HIGHEST)]
        case Operator.BETWEEN:
            return [(first, values[1])]
        case Operator.NOT_BETWEEN:
            return [(LOWEST, first - 1), (values[1] + 1, HIGHEST)]
        case Operator.NE | Operator.NOT_IN:
            bounds = [LOWEST - 1, *sorted(set(values)), HIGHEST + 1]
            gaps = itertools.pairwise(bounds)
            return [(low + 1, high - 1) for low, high in gaps if low + 1 <= high - 1]
    raise ValueError(f"no ranges for {operator}")


def _write_ranges(bench: Bench) -> None:
    """Write subscriptions for plain Spark: the attributes of each subscription, with ranges."""
    kind = pa.list_(
        pa.struct(
            [("attribute", pa.string()), ("ranges", pa.list_(pa.struct([("low", pa.int64()), ("high", pa.int64())])))]
        )
    )
    rows = list(_ranges(bench))
    table = pa.table(
        {
            "subscription": pa.array([identifier for identifier, _ in rows], pa.int64()),
            "p": pa.array(
                [
                    [
                        {"attribute": name, "ranges": [{"low": low, "high": high} for low, high in ranges]}
                        for name, ranges in predicates
                    ]
                    for _, predicates in rows
                ],
                kind,
            ),
        }
    )
    bench.spark.createDataFrame(table).write.mode("overwrite").parquet(bench.path("ranges"))


def measure_growth(
    spark: SparkSession, folder: Path, size: int, events: int, store: str | None = None
) -> dict[str, Any]:
    """Build an index of `size` subscriptions, and match events with it twice: at first no file is in memory, or in the cache if
    the index lies in a store. Returns seconds and the memory of the largest process."""
    bench = Bench(spark, folder, size, events)
    index = bench.path("index") if store is None else f"{store.rstrip('/')}/{new_name()}"
    with Memory() as building:
        report, build_seconds = _timed(lambda: tamis_spark.build(bench.frame("subscriptions"), index))
    _forget_pages(folder)
    with Memory() as matching:
        matches, match_seconds = _timed(lambda: tamis_spark.match(bench.frame("events"), index).count())
        _, again_seconds = _timed(lambda: tamis_spark.match(bench.frame("events"), index).count())
    files = IndexFolder(index)
    row = {
        "subscriptions": report.subscriptions,
        "shards": report.shards,
        "events": events,
        "matches": matches,
        "build_seconds": build_seconds,
        "match_seconds": match_seconds,
        "again_seconds": again_seconds,
        "index_bytes": sum(
            sealed_bytes(seal) for segment in files.manifest().segments for seal in segment.seals.values()
        ),
        "build_memory": building.most,
        "match_memory": matching.most,
    }
    if store is not None:
        files.remove()
    sys.stdout.write(spark_page.growth_line(row) + "\n")
    return row


def _forget_pages(folder: Path) -> None:
    """Let the system drop the files of a folder from memory."""
    for file in folder.rglob("*"):
        if file.is_file():
            with open(file, "rb") as stream:
                os.fsync(stream.fileno())
                os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Memory:
    """The most private memory of this process or any of its children, while the block runs."""

    def __init__(self) -> None:
        self.most = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_MEMORY_PAUSE):
            self.most = max([self.most, *map(_own_bytes, family(os.getpid()))])


def _own_bytes(process: int) -> int:
    """The memory of a process without mapped files. All processes share the mapped files."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    found = [line.split()[1] for line in status.splitlines() if line.startswith("RssAnon")]
    return int(found[0]) * 1024 if found else 0


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spark", description="Measure matching with Spark, beside plain plans."
    )
    parser.add_argument("--subscriptions", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--growth", type=int, nargs="*", default=[1_000_000, 3_000_000, 10_000_000])
    parser.add_argument(
        "--store", help="an address such as s3://bucket/bench for the indexes of --growth; else a folder on disk"
    )
    parser.add_argument("--only-growth", action="store_true", help="leave out the plans, and print only")
    parser.add_argument("--memory", default="4g", help="memory of the JVM")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args(arguments)
    folder = Path(tempfile.mkdtemp(prefix="tamis-bench-"))
    settings = {
        "spark.driver.memory": options.memory,
        "spark.ui.enabled": "false",
        "spark.local.dir": str(folder / "spark"),
        "spark.tamis.cache.folder": str(folder / "cache"),
    }
    spark = tamis_spark.start_session("local[2]", settings)
    try:
        if options.only_growth:
            for size in options.growth:
                measure_growth(spark, folder / str(size), size, options.events, options.store)
                shutil.rmtree(folder / str(size))
            return
        bench = Bench(spark, folder / "plans", options.subscriptions, options.events)
        results = {
            "benchmark": "spark",
            "machine": machine(),
            "versions": {**versions(), "pyspark": spark.version},
            "tamis": tamis.__version__,
            "subscriptions": options.subscriptions,
            "events": options.events,
            "plans": measure_plans(bench),
            **measure_framework(bench),
            "growth": [],
        }
        for size in options.growth:
            results["growth"].append(measure_growth(spark, folder / str(size), size, options.events, options.store))
            shutil.rmtree(folder / str(size))
        results["peak_bytes"] = max([row["build_memory"] for row in results["growth"]], default=0)
    finally:
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
