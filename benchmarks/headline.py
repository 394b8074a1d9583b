"""The figures at the top of the README: events per second of Tamis, a scan, DuckDB and polars.

python -m benchmarks.headline [--sizes 10000 100000] [--json FILE] [--readme FILE]
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

import tamis
from benchmarks.markdown import renewed, table
from benchmarks.shapes import PLANTED_MATCHES, SHAPES, config_of
from benchmarks.svg import Group, bars, number_text
from tamis.experiments.machine import machine, versions
from tamis.experiments.peers import DuckDB, Polars
from tamis.experiments.timing import best_of_each
from tamis.workload import generate

SIZES = (10_000, 100_000)
_SYSTEMS = {"tamis": "Tamis", "scan": "scan", "duckdb": "DuckDB", "polars": "polars"}
_SHAPE = "dense"
_EVENTS = 20_000
"""Events per pass of Tamis and polars. With fewer events, both take longer per event."""
_PAIRS = 4_000_000
"""Pairs of event and subscription per pass of the scan and DuckDB. A pass then takes about a second."""
_FEWEST, _MOST = 20, 400
"""The fewest and the most events per pass of the scan and DuckDB."""
_EXPRESSIONS = 2_000
"""Subscriptions that polars is measured on. Its time is proportional to the number of expressions, so it is scaled up."""
_PASSES, _BUDGET = 5, 6.0
"""The most passes and seconds per figure."""
_WARM = 5_000
"""Subscriptions in the run before the measurements, which compiles all kernels."""

BEGIN, END = "<!-- begin of what benchmarks.headline makes -->", "<!-- end of it -->"

DESCRIPTION = f"""Events per second of one thread, the best of several passes. The systems take turns in one process.
Subscriptions have the shape *{_SHAPE}*: about 10 predicates each, on 100 attributes, of which an event has 30. No
subscription was derived from these events. *Tamis* is `match_batch` on an Arrow table of {_EVENTS:,} events. *Scan* is the same
with `Matcher(index="scan")`, which looks at every subscription. *DuckDB* runs one query that joins the values of events with the
bounds of predicates and counts. *polars* computes one expression per subscription on all {_EVENTS:,} events; it is measured on
{_EXPRESSIONS:,} subscriptions, and the time is multiplied (`tamis.experiments.peers`). Tables and expressions are made before the
clock starts. All systems must give the same pairs, also on events that {PLANTED_MATCHES:,} subscriptions each were derived
from."""


def measure(sizes: list[int], seed: int, quick: bool = False) -> dict[str, Any]:
    """All figures. Each size is printed as soon as it is measured."""
    if not quick:
        _measure_size(_WARM, seed, quick=True)  # Kernels are compiled once per machine.
    rows = []
    for size in sorted(sizes):
        rows.append(_measure_size(size, seed, quick))
        sys.stdout.write(_line(rows[-1]) + "\n")
        sys.stdout.flush()
    return {
        "benchmark": "headline",
        "machine": machine(),
        "versions": {**versions(), **{name: version(name) for name in ("duckdb", "polars")}},
        "tamis": tamis.__version__,
        "seed": seed,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "sizes": rows,
    }


def _measure_size(size: int, seed: int, quick: bool) -> dict[str, Any]:
    workload = generate(config_of(SHAPES[_SHAPE][0], size, seed))
    systems = _Systems(workload.subscriptions())
    systems.compare(workload.events(_FEWEST), workload.events(_FEWEST, wide=True))
    count = 100 if quick else _EVENTS
    few = _FEWEST if quick else min(max(_PAIRS // size, _FEWEST), _MOST)
    events, wide = workload.other_events(count), workload.other_events(count, wide=True)
    systems.compare(events.slice(0, few), wide.slice(0, few))
    systems.polars.take(wide)
    works: dict[str, Callable[[], Any]] = {
        "tamis": lambda: systems.matcher.match_batch(events, threads=1),
        "scan": lambda: systems.scan.match_batch(events.slice(0, few), threads=1),
        "duckdb": systems.duckdb.match,
        "polars": systems.polars.match,
    }
    best = best_of_each(works, 1 if quick else _PASSES, 0.0 if quick else _BUDGET)
    best["polars"] *= size / systems.expressions
    counts = {"tamis": count, "scan": few, "duckdb": few, "polars": count}
    return {
        "subscriptions": size,
        "expressions": systems.expressions,
        "events": counts,
        "matches": float(systems.matcher.count_batch(events).mean()),
        "rates": {name: counts[name] / seconds for name, seconds in best.items()},
    }


class _Systems:
    """All systems with the same subscriptions. polars has only the first `_EXPRESSIONS` of them."""

    def __init__(self, subscriptions: pa.Table) -> None:
        self.matcher, self.scan = tamis.Matcher(), tamis.Matcher(index="scan")
        self.matcher.add_table(subscriptions)
        self.scan.add_table(subscriptions)
        self.duckdb = DuckDB(subscriptions)
        self.polars = Polars(subscriptions.slice(0, _EXPRESSIONS))
        self.expressions = min(_EXPRESSIONS, len(subscriptions))

    def compare(self, events: pa.Table, wide: pa.Table) -> None:
        """Give events to DuckDB and polars. Raise an error unless all systems find the same pairs."""
        self.duckdb.take(events)
        self.polars.take(wide)
        wanted = _pairs(self.matcher.match_batch(events))
        few = {(event, number) for event, number in wanted if number < self.expressions}
        for name, answer, right in (
            ("scan", self.scan.match_batch(events), wanted),
            ("duckdb", self.duckdb.match(), wanted),
            ("polars", self.polars.match(), few),
        ):
            if _pairs(answer) != right:
                raise AssertionError(f"{_SYSTEMS[name]} finds {len(answer)} pairs, Tamis {len(right)}")


def _pairs(found: pa.Table) -> set[tuple[int, int]]:
    return set(zip(found.column("event").to_pylist(), found.column("subscription").to_pylist(), strict=True))


def _line(row: dict[str, Any]) -> str:
    rates = ", ".join(f"{_SYSTEMS[name]} {rate:,.0f}" for name, rate in row["rates"].items())
    return f"{row['subscriptions']:>9,} subscriptions, events per second: {rates}"


def to_table(results: dict[str, Any]) -> str:
    """Events per second of each system, and how many times faster Tamis is."""
    rows = results["sizes"]
    heads = ["events per second", *(f"{row['subscriptions']:,} subscriptions" for row in rows)]
    lines = [[title, *(_cell(row["rates"], name) for row in rows)] for name, title in _SYSTEMS.items()]
    return table(heads, lines)


def _cell(rates: dict[str, float], name: str) -> str:
    rate = number_text(_rounded(rates[name], 3))
    return (
        f"**{rate}**"
        if name == "tamis"
        else f"{rate} (Tamis: {number_text(_rounded(rates['tamis'] / rates[name], 2))} times)"
    )


def _rounded(value: float, digits: int) -> float:
    """A figure rounded to the digits that stay the same in the next run."""
    return float(f"{value:.{digits}g}")


def to_chart(results: dict[str, Any]) -> str:
    rows = results["sizes"]
    groups = [Group(title, [_rounded(row["rates"][name], 3) for row in rows]) for name, title in _SYSTEMS.items()]
    sizes = [f"{row['subscriptions']:,} subscriptions" for row in rows]
    return bars("Events per second, one thread", "events per second, logarithmic", sizes, groups)


def to_section(results: dict[str, Any]) -> str:
    """The section of the README: the picture and the table."""
    picture = "![Events per second of Tamis, a scan, DuckDB and polars](docs/results/headline.svg)"
    return f"{picture}\n\n{to_table(results)}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.headline", description="Measure Tamis beside a scan, DuckDB and polars."
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="numbers of subscriptions, up to 3")
    parser.add_argument("--quick", action="store_true", help="few events and one pass: to see that it runs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the workloads (default: 1)")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    parser.add_argument("--readme", type=Path, help="write the picture and the table between the marks of this page")
    options = parser.parse_args(arguments)
    results = measure(options.sizes, options.seed, options.quick)
    sys.stdout.write("\n" + to_table(results) + "\n")
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=2) + "\n")
    if options.readme is not None:
        options.readme.write_text(renewed(options.readme.read_text(), BEGIN, END, to_section(results)))


if __name__ == "__main__":
    main()
