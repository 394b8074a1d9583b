"""The task of BE-Tree's figure 13: subscriptions of one distribution are replaced by those of another, and back again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

import tamis
from tamis.experiments.checking import check_matcher
from tamis.experiments.contenders import find_contender
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.timing import PASSES, best_of
from tamis.workload import WorkloadConfig, generate

ADJUSTING_STEPS = 4
"""Steps from one distribution to the other."""


def adjusting(point: Point, scale: Scale) -> dict[str, Any]:
    """The time of events, half of each distribution, after each step. Subscriptions go and come one by one."""
    assert isinstance(point.workload, WorkloadConfig)
    options = dict(point.index_options)
    other = replace(point.workload, alpha=options.pop("alpha"))
    count = point.workload.subscriptions
    here, there = generate(point.workload), generate(other)
    half = max(scale.events // 2, 1)
    events = pa.concat_tables([here.other_events(half), there.other_events(half)])
    contender = find_contender(point.contender)
    matcher: tamis.Matcher[int] = tamis.Matcher(index=contender.index_name, options=options)
    tables = [here.subscriptions(), _numbered(there.subscriptions(), count)]
    _insert_one_by_one(matcher, tables[0])
    parts = {"0": _figures(matcher, events, scale)}
    for step, (coming, going, first) in enumerate(_steps(tables), 1):
        stop = first + -(-count // ADJUSTING_STEPS)
        for row in range(first, min(stop, count)):
            matcher.remove(going.column("id")[row].as_py())
        _insert_one_by_one(matcher, coming.slice(first, stop - first))
        parts[str(step)] = _figures(matcher, events, scale)
    check_matcher(matcher, tables[0], events.slice(0, scale.checked))
    return {"parts": parts}


def _steps(tables: list[pa.Table]) -> Iterator[tuple[pa.Table, pa.Table, int]]:
    """The table whose subscriptions come, the one whose go, and the first row of both, for each step."""
    here, there = tables
    size = -(-len(here) // ADJUSTING_STEPS)
    for coming, going in ((there, here), (here, there)):
        for step in range(ADJUSTING_STEPS):
            yield coming, going, step * size


def _numbered(table: pa.Table, first: int) -> pa.Table:
    """The subscriptions with ids from `first` on."""
    return table.set_column(0, "id", pa.array(range(first, first + len(table)), pa.int64()))


def _insert_one_by_one(matcher: Any, table: pa.Table) -> None:
    for row in range(len(table)):
        matcher.add_table(table.slice(row, 1))


def _figures(matcher: Any, events: pa.Table, scale: Scale) -> dict[str, Any]:
    seconds = best_of(lambda: matcher.match_batch(events, 1), PASSES, scale.budget, time.process_time)
    figures = {"events": len(events), "microseconds": seconds / len(events) * 1e6}
    return {"kinds": {"other": figures}}
