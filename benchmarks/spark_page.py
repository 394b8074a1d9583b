"""The figures of the benchmark of Spark as text: lines, tables and a chart."""

from __future__ import annotations

import math
from typing import Any

from benchmarks.markdown import table
from benchmarks.svg import Group, bars, number_text

DESCRIPTION = """Spark in local mode with two cores matches events with subscriptions, both in Parquet files. Events have the
shape *dense*, with a column per attribute. The plans:

- *nested loop*: subscriptions broadcast, `crossJoin`, a condition with `forall` and `exists` over their predicates as ranges;
- *explode and count*: a row per predicate and a row per value, joined by attribute and range, pairs counted;
- *Python*: every expression compiled to a Python function, all functions called for every event, in `mapInArrow`;
- *DuckDB*: the same join as *explode and count*, outside Spark, with two cores;
- *Tamis*: `tamis.spark.build`, then `tamis.spark.match`.

Slow plans are measured with fewer events, and again with a quarter of these. A line through both times separates the *fixed*
time from the time per event, and gives the time for *all* events. *Prepare* is the work done once for the subscriptions. For
Tamis it is building the index, from Parquet to shards on disk. Each plan runs once before the measurement, so no plan compiles
anything while it is timed. The benchmark checks that all plans find the same number of matches."""

Row = dict[str, Any]


def plan_line(row: Row) -> str:
    """One plan as text. It is printed as soon as it is measured."""
    return (
        f"{row['plan']:18} {row['events']:9,} events, {row['matches']:9,} matches, prepare {row['prepare_seconds']:7.1f} s, "
        f"match {row['match_seconds']:8.2f} s, all events {row['all_seconds']:10.1f} s"
    )


def growth_line(row: Row) -> str:
    return (
        f"{row['subscriptions']:11,} in {row['shards']:3} shards: build {row['build_seconds']:7.1f} s, "
        f"{row['build_memory'] / 1e9:.1f} GB; {row['events']:,} events in {row['match_seconds']:6.1f} s, "
        f"again in {row.get('again_seconds', math.nan):6.1f} s, "
        f"{row['match_memory'] / 1e9:.1f} GB; index {row['index_bytes'] / 1e9:.2f} GB, {row['matches']:,} matches"
    )


def to_tables(result: Row) -> str:
    """All tables as Markdown."""
    sections = [plans_table(result)]
    if result["growth"]:
        sections.append(f"### Growth\n\n{growth_table(result['growth'])}")
    return "\n\n".join(sections)


def plans_table(result: Row) -> str:
    plans = result["plans"]
    own = next(row for row in plans if row["plan"] == "Tamis")
    lines = [
        [
            row["plan"],
            f"{row['events']:,}",
            number_text(row["prepare_seconds"]),
            number_text(row["match_seconds"]),
            number_text(row["fixed_seconds"]) if row["events"] < result["events"] else "",
            number_text(row["all_seconds"]),
            number_text(row["all_seconds"] / own["all_seconds"]),
        ]
        for row in plans
    ]
    heads = ["plan", "events measured", "prepare, s", "match, s", "of this: fixed, s", "all, s", "times Tamis"]
    overhead, matching, events = result["framework_seconds"], result["matching_seconds"], result["events"]
    note = (
        f"{result['subscriptions']:,} subscriptions, {events:,} events. The job of Tamis takes {matching:.2f} s. Without "
        f"matching, the same job only returns ids and takes {overhead:.2f} s; both were measured in turns. So Spark takes "
        f"{overhead / events * 1e6:.1f} of {matching / events * 1e6:.1f} us per event."
    )
    return f"{note}\n\n{table(heads, lines)}"


def growth_table(rows: list[Row]) -> str:
    lines = [
        [
            f"{row['subscriptions']:,}",
            str(row["shards"]),
            number_text(row["build_seconds"]),
            number_text(row["build_seconds"] / row["subscriptions"] * 1e6),
            f"{row['build_memory'] / 1e9:.1f}",
            number_text(row["match_seconds"]),
            number_text(row["match_seconds"] / row["events"] * 1e6),
            number_text(row["again_seconds"]) if "again_seconds" in row else "",
            f"{row['match_memory'] / 1e9:.1f}",
            f"{row['index_bytes'] / 1e9:.2f}",
            f"{row['matches']:,}",
        ]
        for row in rows
    ]
    heads = [
        "subscriptions",
        "shards",
        "build, s",
        "us each",
        "GB",
        "match, s",
        "us per event",
        "again, s",
        "GB",
        "index, GB",
        "matches",
    ]
    note = (
        f"{rows[0]['events']:,} events. *Match* is the first time, *again* the second, when the index is in memory. *GB* is "
        "the memory of the largest process, without the files that it maps."
    )
    return f"{note}\n\n{table(heads, lines)}"


def to_chart(result: Row) -> str:
    """The seconds of each plan to prepare and to match all events, as SVG."""
    groups = [
        Group(row["plan"], [row["prepare_seconds"] or None, row["all_seconds"] - row["prepare_seconds"]])
        for row in result["plans"]
    ]
    title = f"{result['subscriptions']:,} subscriptions and {result['events']:,} events, two cores"
    unit = "seconds, logarithmic; slow plans are scaled from fewer events"
    return bars(title, unit, ["prepare, once", "match all events"], groups)
