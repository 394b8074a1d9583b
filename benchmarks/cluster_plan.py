"""A cluster computed from measured rates: the cores, machines and bytes that some subscriptions and events need.

    core seconds of an event = shards x match + groups x frame + matches x pair

match   time of one event and one shard of a million, with all cores busy; from the engine's benchmark
frame   time of Spark to send an event to Python and back, once for each group of shards; from the benchmark of Spark
pair    remaining time of a job on Spark, divided by its matches; includes the start of the job, so it is an upper bound

python -m benchmarks.cluster_plan RESULTS_FOLDER PAGE
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.markdown import renewed, table

SHARD = 1_000_000
_SHAPE = "dense"
BEGIN, END = "<!-- begin of what benchmarks.cluster_plan makes -->", "<!-- end of it -->"


class Measured(NamedTuple):
    """Rates of one core, in seconds and bytes, of the shape *dense*."""

    match: dict[int, float]
    """Size of a shard -> seconds per event."""
    frame: float
    pair: float
    build: float
    build_memory: int
    subscription_bytes: float
    matches: float
    """Matches of an event in a shard of a million."""
    attributes: float


def measured(engine: dict[str, Any], spark: dict[str, Any]) -> Measured:
    """The rates from the result files of both benchmarks."""
    rows = [row for row in engine["matching"] if row["shape"] == _SHAPE]
    figures = {row["subscriptions"]: row["kinds"]["other"] for row in rows}
    cores = spark["machine"]["cores"]
    job = next(row for row in spark["growth"] if row["subscriptions"] == SHARD and row["shards"] == 1)
    match = {size: busy_seconds(each) for size, each in figures.items()}
    frame = spark["framework_seconds"] * cores / spark["events"]
    beyond = job["match_seconds"] * cores - job["events"] * (match[SHARD] + frame)
    return Measured(
        match=match,
        frame=frame,
        pair=max(beyond, 0.0) / job["matches"],
        build=job["build_seconds"] / job["subscriptions"],
        build_memory=job["build_memory"],
        subscription_bytes=job["index_bytes"] / job["subscriptions"],
        matches=job["matches"] / job["events"],
        attributes=figures[SHARD]["attributes"],
    )


def busy_seconds(figures: dict[str, float]) -> float:
    """Core seconds per event while the other core matches too. Both share caches and memory."""
    return 2 * figures["batch_two_threads"] / 1e6


@dataclass(frozen=True)
class Demand:
    """What the cluster must do, and the machines that it has."""

    subscriptions: int = 1_000_000_000
    events: int = 1_000_000
    """Events per second."""
    matches: float = 100.0
    """Matches of an event in all subscriptions."""
    attributes: float = 30.0
    shard: int = SHARD
    cores: int = 64
    memory: int = 512 * 10**9
    busy: float = 0.7
    """The share of its cores that a machine should use. The rest is for failures, peaks and new versions."""
    value_bytes: int = 8
    pair_bytes: int = 16
    disk_rate: int = 10**9
    """Bytes per second that a machine reads from the storage of the index."""
    changes: int = 1_000
    """Subscriptions that are replaced per second."""
    update_seconds: int = 60
    """How often changes are published."""


class Plan(NamedTuple):
    """A cluster. Rates are per second."""

    shards: int
    groups: int
    replicas: int
    machines: int
    core_seconds: float
    """Core seconds per event."""
    core_count: float
    index_bytes: float
    group_bytes: float
    event_bytes: float
    input_bytes: float
    output_bytes: float
    build_core_seconds: float
    warm_seconds: float
    start_bytes: float
    """What the store sends if all machines are new."""
    rewrites: float
    """Rows that are written for a subscription that is replaced."""
    change_bytes: float
    """What each machine fetches because of changes."""


def planned(rates: Measured, demand: Demand) -> Plan:
    """The smallest cluster of equal machines that meets the demand."""
    shards = math.ceil(demand.subscriptions / demand.shard)
    index_bytes = demand.subscriptions * rates.subscription_bytes
    # Half of a machine's memory is for the index. The other half is for Spark, Python, and files of the next version.
    groups = max(1, math.ceil(index_bytes / (demand.memory / 2)))
    wider = demand.attributes / rates.attributes
    core_seconds = shards * rates.match[demand.shard] + groups * rates.frame * wider + demand.matches * rates.pair
    core_count = demand.events * core_seconds / demand.busy
    replicas = max(2, math.ceil(core_count / demand.cores / groups))
    event_bytes = (demand.attributes + 1) * demand.value_bytes
    group_bytes = index_bytes / groups
    return Plan(
        shards=shards,
        groups=groups,
        replicas=replicas,
        machines=groups * replicas,
        core_seconds=core_seconds,
        core_count=core_count,
        index_bytes=index_bytes,
        group_bytes=group_bytes,
        event_bytes=event_bytes,
        input_bytes=demand.events * event_bytes * groups,
        output_bytes=demand.events * demand.matches * demand.pair_bytes,
        build_core_seconds=demand.subscriptions * rates.build,
        warm_seconds=group_bytes / demand.disk_rate,
        start_bytes=group_bytes * groups * replicas,
        rewrites=(rewrites := _rewrites(demand)),
        change_bytes=demand.changes * rewrites * rates.subscription_bytes / groups,
    )


_GONE, _GROWS = 0.2, 3
"""A segment is written again when this share of its rows is gone, and when additions are half as large, so that it triples."""


def _rewrites(demand: Demand) -> float:
    """How many rows are written for a row that is replaced. It moves to ever larger segments, and its old segment is written
    again sooner. Steps of three agree within a tenth with segments merged one update after another."""
    at_once = max(1.0, demand.changes * demand.update_seconds * demand.shard / demand.subscriptions)
    return 1 + max(0.0, math.log(demand.shard / at_once, _GROWS)) + (1 - _GONE) / _GONE


def to_section(engine: dict[str, Any], spark: dict[str, Any]) -> str:
    """The computed tables as Markdown."""
    rates, demand = measured(engine, spark), Demand()
    asked = (
        f"The plan for {demand.subscriptions:,} subscriptions and {demand.events:,} events per second. An event has "
        f"{demand.attributes:.0f} attributes and {demand.matches:,.0f} matches. A machine has {demand.cores} cores and "
        f"{_bytes(demand.memory)}, and is {demand.busy:.0%} busy. The index lies in a store. {demand.changes:,} subscriptions "
        f"are replaced per second, and changes are published every {demand.update_seconds} seconds:"
    )
    sections = [
        f"Measured rates of one core, shape *{_SHAPE}*:",
        _rates_table(rates),
        asked,
        _plan_table(rates, demand, planned(rates, demand)),
        "Other sizes of shards, everything else as above:",
        _shards_table(rates, demand),
        _larger_shards(rates),
        "The plan with other assumptions:",
        _sensitivity_table(rates, demand),
        "Other shapes of subscriptions and events, from the engine's time with a million subscriptions alone:",
        _shapes_table(engine, demand),
    ]
    return "\n\n".join(sections)


def _rates_table(rates: Measured) -> str:
    lines = [
        ["matching an event with a shard of 1,000,000, all cores busy", f"{rates.match[SHARD] * 1e6:.1f} us"],
        ["sending an event through Spark to Python, per group", f"{rates.frame * 1e6:.1f} us"],
        ["returning a pair, at most", f"{rates.pair * 1e6:.2f} us"],
        ["building a subscription into the index", f"{rates.build * 1e6:.1f} us"],
        ["a subscription on disk and mapped, at most", f"{rates.subscription_bytes:,.0f} bytes"],
        ["memory of a task that builds 1,000,000 subscriptions", _bytes(rates.build_memory)],
        ["matches of an event with 1,000,000 subscriptions", f"{rates.matches:.1f}"],
    ]
    return table(["what", "measured"], lines)


def _plan_table(rates: Measured, demand: Demand, plan: Plan) -> str:
    at_once = plan.machines * max(1, int(demand.memory / 2 / rates.build_memory))
    lines = [
        ["shards", "subscriptions / 1,000,000", f"{plan.shards:,}"],
        ["index", "subscriptions x bytes per subscription", _bytes(plan.index_bytes)],
        ["groups of shards", "index / half of a machine's memory", f"{plan.groups}"],
        [
            "core time of an event",
            "shards x match + groups x frame + matches x pair",
            f"{plan.core_seconds * 1e3:.1f} ms",
        ],
        ["cores", "events x core time / busy", f"{plan.core_count:,.0f}"],
        ["replicas of each group", "cores / cores of a machine / groups", f"{plan.replicas}"],
        ["machines", "groups x replicas", f"{plan.machines:,}"],
        ["index on each machine", "index / groups", _bytes(plan.group_bytes)],
        ["events in, all machines", "events x bytes x groups", f"{_bytes(plan.input_bytes)} per second"],
        [
            "events in, each machine",
            "all events in / machines",
            f"{_bytes(plan.input_bytes / plan.machines)} per second",
        ],
        ["pairs out, all machines", "events x matches x 16 bytes", f"{_bytes(plan.output_bytes)} per second"],
        ["shuffle", "none: each group reads all events itself", "0"],
        ["building everything again", "subscriptions x build", f"{plan.build_core_seconds / 3600:,.1f} core hours"],
        [
            "the same on these machines",
            "tasks of 1,000,000, as many at once as memory and cores allow",
            f"{math.ceil(plan.shards / min(at_once, plan.machines * demand.cores)) * rates.build * SHARD:.0f} s, plus reading",
        ],
        ["a new machine reads its group", "bytes of the group / 1 GB per second", f"{plan.warm_seconds:.0f} s"],
        ["the store sends, if all machines are new", "machines x index on each machine", _bytes(plan.start_bytes)],
        ["cache on the disk of each machine", "an old and a new version of its group", _bytes(2 * plan.group_bytes)],
        [
            "rows written for a row that is replaced",
            f"1 + log3(shard / its changes in {demand.update_seconds} s) + 4 for its old segment",
            f"{plan.rewrites:.1f}",
        ],
        [
            "each machine fetches, for changes",
            "changes x rows written x bytes per subscription / groups",
            f"{_bytes(plan.change_bytes)} per second",
        ],
        ["loss of a machine", "1 / replicas of one group", f"{1 / plan.replicas:.1%} of its group's cores"],
    ]
    return table(["what", "how", "result"], lines)


def _shards_table(rates: Measured, demand: Demand) -> str:
    lines = []
    for size, seconds in sorted(rates.match.items()):
        plan = planned(rates, replace(demand, shard=size))
        each = f"{seconds / size * 1e12:,.1f} ps"
        lines.append([f"{size:,}", f"{seconds * 1e6:.1f} us", each, f"{plan.shards:,}", f"{plan.core_count:,.0f}"])
    return table(
        ["subscriptions per shard", "time per event and shard", "per event and subscription", "shards", "cores"], lines
    )


def _larger_shards(rates: Measured) -> str:
    """What larger shards could save, if each further subscription costs as much as between the two largest sizes."""
    (small, less), (large, more) = sorted(rates.match.items())[-2:]
    further = (more - less) / (large - small)
    return (
        f"From {small:,} to {large:,}, a further subscription costs {further * 1e12:.1f} ps; the mean is "
        f"{more / large * 1e12:.1f} ps. If this continues, larger shards save at most {1 - further / (more / large):.0%}. This "
        "was not measured."
    )


def _sensitivity_table(rates: Measured, demand: Demand) -> str:
    scaled = rates.matches * demand.subscriptions / SHARD
    cases = {
        "as above": demand,
        "10 times fewer matches": replace(demand, matches=demand.matches / 10),
        "10 times more matches": replace(demand, matches=demand.matches * 10),
        f"as many matches as in *{_SHAPE}*, {scaled:,.0f}": replace(demand, matches=scaled),
        "10 times more attributes of events": replace(demand, attributes=demand.attributes * 10),
        "10 times fewer subscriptions": replace(demand, subscriptions=demand.subscriptions // 10),
        "10 times fewer events": replace(demand, events=demand.events // 10),
        "machines with a quarter of the memory": replace(demand, memory=demand.memory // 4),
        "machines with 4 times the memory": replace(demand, memory=demand.memory * 4),
    }
    lines = []
    for name, case in cases.items():
        plan = planned(rates, case)
        lines.append(
            [
                name,
                f"{plan.groups}",
                f"{plan.core_seconds * 1e3:.1f} ms",
                f"{plan.core_count:,.0f}",
                f"{plan.machines:,}",
                _bytes(plan.input_bytes),
                _bytes(plan.output_bytes),
            ]
        )
    return table(
        ["case", "groups", "core time of an event", "cores", "machines", "in, per second", "out, per second"], lines
    )


def _shapes_table(engine: dict[str, Any], demand: Demand) -> str:
    lines = []
    for row in engine["matching"]:
        if row["subscriptions"] == SHARD:
            figures = row["kinds"]["other"]
            seconds = busy_seconds(figures)
            cores = demand.events * demand.subscriptions / SHARD * seconds / demand.busy
            lines.append([row["shape"], f"{figures['matches']:,.1f}", f"{seconds * 1e6:,.1f} us", f"{cores:,.0f}"])
    return table(["shape", "matches of an event with 1,000,000", "time per event and shard", "cores"], lines)


_UNITS = {10**12: "TB", 10**9: "GB", 10**6: "MB"}


def _bytes(count: float) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS.items() if count >= size), (10**3, "kB"))
    return f"{count / size:.3g} {unit}"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cluster_plan", description="Renew the plan of a cluster on a page."
    )
    parser.add_argument("results", type=Path, help="the folder with the result files")
    parser.add_argument("page", type=Path, help="the page with the marks")
    options = parser.parse_args(arguments)
    engine, spark = (json.loads((options.results / f"{name}.json").read_text()) for name in ("engine", "spark"))
    options.page.write_text(renewed(options.page.read_text(), BEGIN, END, to_section(engine, spark)))


if __name__ == "__main__":
    main()
