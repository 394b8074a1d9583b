"""Tasks: the ways to measure a point. Each takes the point and the scale, and returns figures.

    matching   the time of events, planted and other, the time to build, and the bytes of the index
    normal-forms  expressions of several clauses, see `normal_forms`
    aging      the time of events while the oldest subscriptions are replaced, see `aging`
    adjusting  the time of events while subscriptions of one distribution are replaced by those of another
    joining    the time of events whose subscriptions have joins, see `joining`

All times are processor time of one thread. Compiling is apart: before the clock starts, each task runs once on a few
subscriptions.
"""

from __future__ import annotations

import gc
import resource
import time
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np

from tamis.errors import ExperimentError
from tamis.experiments.adjusting import adjusting
from tamis.experiments.aging import aging
from tamis.experiments.contenders import LIBRARIES, find_contender
from tamis.experiments.filling import Filled, Observed, TableRows, filled
from tamis.experiments.joining import joining
from tamis.experiments.normal_forms import normal_forms
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.timing import PASSES, best_of_each
from tamis.workload import AlertsConfig, Workload, generate

Figures = dict[str, Any]


def measured(point: Point, scale: Scale) -> Figures:
    """The figures of a point. Raises an error if the contender gives a wrong answer."""
    return {**TASKS[point.task](point, scale), "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _matching(point: Point, scale: Scale) -> Figures:
    rows = TableRows(generate(point.workload))
    contender = find_contender(point.contender)
    one = filled(rows, contender.index_name, point.index_options, Observed(scale.events, scale.observed))
    gc.collect()
    figures: Figures = {"build_seconds": one.build_seconds, "index_bytes": one.index_bytes(), "kinds": {}}
    checker = None if contender.index_name == "scan" else rows
    events = scale.events if contender.index_name not in LIBRARIES else min(scale.events, 20)
    for kind in _kinds(rows.workload):
        figures["kinds"][kind] = _timed(one, checker, kind, events, scale)
    return figures


def _kinds(workload: Workload) -> tuple[str, ...]:
    return ("other",) if isinstance(workload.config, AlertsConfig) else ("planted", "other")


def _timed(one: Filled, checker: TableRows | None, kind: str, count: int, scale: Scale) -> Figures:
    """The microseconds of a contender for each event of a kind, and how much work it was."""
    table = one.workload.events(count) if kind == "planted" else one.workload.other_events(count)
    if checker is not None:
        _check(one, checker, table.slice(0, scale.checked))
    events = one.take(table)
    found = one.match(events)
    best = best_of_each({"match": partial(one.match, events)}, PASSES, scale.budget, time.process_time)["match"]
    return {
        "events": count,
        "microseconds": best / count * 1e6,
        "matches": len(one.pairs(found)) / count,
        **{name: number / count for name, number in one.counters(found).items()},
    }


def _check(one: Filled, checker: TableRows, events: Any) -> None:
    """Compare the answers of a contender with those of a scan."""
    if len(events) == 0:
        return
    answers = one.pairs(one.match(one.take(events)))
    right = checker.scanned(events)
    if not np.array_equal(answers, right):
        raise ExperimentError(f"{len(answers)} matches, but a scan finds {len(right)}: the answers are not equal")


TASKS: Mapping[str, Callable[[Point, Scale], Figures]] = MappingProxyType(
    {
        "matching": _matching,
        "adjusting": adjusting,
        "aging": aging,
        "normal-forms": normal_forms,
        "joining": joining,
    }
)
"""Name -> function."""
