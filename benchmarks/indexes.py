"""The papers' indexes beside a scan: how fast they match, and how long they take to build. Each has its own process.

python -m benchmarks.indexes [--indexes be-tree pst-hash] [--shapes dense] [--sizes 100000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tamis
from benchmarks import indexes_page
from benchmarks.matching import events_of
from benchmarks.shapes import Variant, config_of
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import encode_table
from tamis.experiments.machine import machine, versions
from tamis.experiments.timing import best_of_each
from tamis.matcher.matcher import matcher_over, new_store
from tamis.matcher.paper_store import PaperStore
from tamis.papers.interface import Index, Matches
from tamis.papers.registry import all_indexes, find_index
from tamis.workload import generate

SHAPES = {
    "dense": Variant("dense", "dense", {}),
    "sparse": Variant("sparse", "sparse", {}),
    "zipf": Variant("zipf", "zipf", {}),
    "range": Variant("range", "range", {}),
    "equality": Variant("equality", "dense", {"equality_ratio": 1.0, "operator_class": "min"}),
    "ads": Variant("ads", "ads", {}),
}
SIZES = (100_000, 1_000_000)
CONTENDERS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in all_indexes()},
    # The paper calls this OpIndex-BS: OpIndex without segments and their signatures.
    "op-index-bs": ("op-index", {"signatures": False}),
}
"""Name in the tables -> index and options."""
_LARGE = 500_000
_GOOD = (
    "scan",
    "counting",
    "propagation",
    "k-index",
    "be-tree",
    "op-index",
    "op-index-bs",
    "ps-tree",
    "pst-bloom",
    "pst-hash",
)
"""Indexes measured with at least `_LARGE` subscriptions by default: the papers make claims about their order."""
_KINDS = ("planted", "other")
_REPEATS = 8
"""How many times in a row each event is matched, to measure the time with all data in the caches."""
_OBSERVED = 1_000
"""Events that an index observes before it is built."""
_MOST_SECONDS = 900
"""The most seconds for building and matching. A longer run is stopped and reported as a failure."""


def measure_all(options: argparse.Namespace) -> dict[str, Any]:
    """All figures for the given options. Each is printed as soon as it is measured."""
    rows = []
    for size in options.sizes:
        for shape in options.shapes:
            for name in options.indexes or (_GOOD if size >= _LARGE else CONTENDERS):
                rows += _measured_apart(name, shape, size, options)
    return {
        "benchmark": "indexes",
        "machine": machine(),
        "versions": versions(),
        "tamis": tamis.__version__,
        "seed": options.seed,
        "peak_bytes": max((row.get("peak_bytes", 0) for row in rows), default=0),
        "rows": rows,
    }


def _measured_apart(name: str, shape: str, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """The figures of one index, measured in a separate process."""
    command = [sys.executable, "-m", "benchmarks.indexes", "--one", name, "--shapes", shape, "--sizes", str(size)]
    command += ["--seed", str(options.seed), "--events", str(options.events), "--passes", str(options.passes)]
    about = {"index": name, "shape": shape, "subscriptions": size}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.seconds, check=False)
    except subprocess.TimeoutExpired:
        return _said([{**about, "failure": f"more than {options.seconds:.0f} s"}])
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"ended by signal {-done.returncode}"])[-1]
        return _said([{**about, "failure": reason}])
    return _said([{**about, **json.loads(line)} for line in done.stdout.splitlines()])


def _said(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for row in rows:
        sys.stdout.write(indexes_page.line_of(row) + "\n")
    sys.stdout.flush()
    return rows


class Bench:
    """One workload, and a scan of its subscriptions."""

    def __init__(self, shape: str, size: int, seed: int) -> None:
        self._workload = generate(config_of(SHAPES[shape], size, seed))
        store = new_store("scan")
        assert isinstance(store, PaperStore)
        matcher_over(store).add_table(self._workload.subscriptions())
        self._store = store
        self.rows = np.flatnonzero(store.owners.view().owners > 0).astype(np.int32)
        self.dimensions = len(store.dimensions)
        self.scan, _ = self.built("scan")

    def events(self, kind: str, count: int, repeats: int = 1) -> EventBatch:
        table = events_of(self._workload, kind, count)
        return encode_table(table.take(np.repeat(np.arange(count), repeats)), self._store.dimensions).batch

    def built(self, name: str) -> tuple[Index, float]:
        """An index over all rows, and the seconds to build it."""
        index_name, options = CONTENDERS[name]
        kind = find_index(index_name)
        assert kind is not None
        index = kind(self._store.table, kind.options_type.read(options, index_name), self._store.index.kind_of)
        # The index observes half of the events of each kind. None of these are timed.
        for each in _KINDS:
            batch = self.events(each, _OBSERVED)
            index.observe(batch._replace(start=batch.start[_OBSERVED // 2 :]), self.dimensions)
        index.refuse(self.rows)
        begun = time.perf_counter()
        index.insert(self.rows)
        index.match(self.events("other", 1), self.dimensions)  # static indexes are built now
        return index, time.perf_counter() - begun


def measure_one(name: str, shape: str, size: int, options: argparse.Namespace) -> None:
    """Print the figures of one index, one line of JSON for each kind of events."""
    Bench(shape, 500, options.seed).built(name)[0].match(Bench(shape, 500, options.seed).events("planted", 3), 1 << 17)
    bench = Bench(shape, size, options.seed)
    index, build = bench.built(name)
    for kind in _KINDS:
        batch = bench.events(kind, options.events)
        found, truth = index.match(batch, bench.dimensions), bench.scan.match(batch, bench.dimensions)
        if _pairs(found) != _pairs(truth):
            raise AssertionError(
                f"{name}, {shape}, {kind}: {len(found.event)} matches, a scan finds {len(truth.event)}"
            )
        works: dict[str, Callable[[], Any]] = {
            "index": partial(index.match, batch, bench.dimensions),
            "repeated": partial(index.match, bench.events(kind, options.events, _REPEATS), bench.dimensions),
            "scan": partial(bench.scan.match, batch, bench.dimensions),
        }
        times = best_of_each(works, options.passes, 2.0)
        events = options.events
        again = (times["repeated"] - times["index"]) / (_REPEATS - 1)
        figures = {
            "kind": kind,
            "matches": len(found.event) / events,
            "candidates": found.counters.candidates / events,
            "predicates": found.counters.predicates / events,
            "nodes": found.counters.nodes / events,
            "microseconds": times["index"] / events * 1e6,
            "again_microseconds": again / events * 1e6,
            "scan_microseconds": times["scan"] / events * 1e6,
            "build_seconds": build,
            "bytes_each": index.stats()["bytes"] / len(bench.rows),
            "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        }
        sys.stdout.write(json.dumps(figures) + "\n")


def _pairs(matches: Matches) -> set[tuple[int, int]]:
    return set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))


def main(arguments: list[str] | None = None) -> None:
    known = list(CONTENDERS)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.indexes", description="Measure the papers' indexes beside a scan."
    )
    parser.add_argument(
        "--indexes",
        nargs="+",
        choices=known,
        metavar="INDEX",
        help="indexes to measure (default: all, or the fast ones of a million)",
    )
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), metavar="SHAPE")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of subscriptions")
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=_MOST_SECONDS, help="time limit for one index on one shape")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="add the figures to this file")
    parser.add_argument("--one", choices=known, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one is not None:
        measure_one(options.one, options.shapes[0], options.sizes[0], options)
        return
    results = measure_all(options)
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        if options.json.exists():
            results = with_those_before(results, json.loads(options.json.read_text()))
        options.json.write_text(json.dumps(results, indent=1) + "\n")


def with_those_before(results: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Add the figures of an earlier run to the results, if the machine and all versions are the same.

    Every index is measured beside a scan in its own process. So one index can be measured without the others.
    """
    if any(results[name] != before[name] for name in ("machine", "versions", "tamis", "seed")):
        return results
    measured = {_place(row) for row in results["rows"]}
    rows = [*(row for row in before["rows"] if _place(row) not in measured), *results["rows"]]
    peak = max(results["peak_bytes"], before["peak_bytes"])
    order = [
        (size, shape, name)
        for size in sorted({row["subscriptions"] for row in rows})
        for shape in SHAPES
        for name in CONTENDERS
    ]
    rows.sort(key=lambda row: order.index(_place(row)))
    return {**results, "peak_bytes": peak, "rows": rows}


def _place(row: dict[str, Any]) -> tuple[int, str, str]:
    return row["subscriptions"], row["shape"], row["index"]


if __name__ == "__main__":
    main()
