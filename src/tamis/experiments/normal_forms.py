"""The task of OpIndex's figure 13: subscriptions of several clauses, in disjunctive or conjunctive normal form.

subscriptions of the workload    a = 1 AND b <= 5        c >= 7       ...
two together, DNF                (a = 1 AND b <= 5) OR (c >= 7)
two together, CNF                (a = 1 OR b <= 5) AND (c >= 7)
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.experiments.checking import check_matcher
from tamis.experiments.contenders import find_contender
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.timing import PASSES, best_of, seconds_of
from tamis.workload import Workload, generate

_WORDS = {"dnf": (" AND ", " OR "), "cnf": (" OR ", " AND ")}
"""Form -> the words within a clause and between clauses."""


def normal_forms(point: Point, scale: Scale) -> dict[str, Any]:
    """The time of events, and to build, for subscriptions of 1 to `clauses` clauses in a form."""
    options = point.index_options
    form, clauses = options.pop("form"), options.pop("clauses")
    contender = find_contender(point.contender)
    if contender.index_name == "op-index":
        options["cnf"] = form == "cnf"
    workload = generate(point.workload)
    table = pa.table(dict(zip(("id", "expression"), _expressions(workload, form, clauses), strict=True)))
    matcher: tamis.Matcher[int] = tamis.Matcher(index=contender.index_name, options=options)
    building = seconds_of(lambda: matcher.add_table(table), time.process_time)
    events = workload.events(scale.events)
    check_matcher(matcher, table, events.slice(0, scale.checked))
    found = matcher.match_batch(events, 1)
    seconds = best_of(lambda: matcher.match_batch(events, 1), PASSES, scale.budget, time.process_time)
    figures = {
        "events": len(events),
        "microseconds": seconds / len(events) * 1e6,
        "matches": len(found) / len(events),
    }
    return {"build_seconds": building, "kinds": {"planted": figures, "other": figures}}


def _expressions(workload: Workload, form: str, clauses: int) -> tuple[list[int], list[str]]:
    """Ids and expressions. The subscriptions of the workload are their clauses."""
    within, between = _WORDS[form]
    parts = [
        "(" + within.join(_predicate(each) for each in predicates) + ")"
        for predicates in workload.subscriptions().column("predicates").to_pylist()
    ]
    sizes = np.random.default_rng(workload.config.seed).integers(1, clauses + 1, len(parts))
    stops = np.minimum(np.cumsum(sizes), len(parts))
    stops = stops[: np.searchsorted(stops, len(parts)) + 1]
    starts = np.concatenate(([0], stops[:-1]))
    texts = [between.join(parts[start:stop]) for start, stop in zip(starts, stops, strict=True)]
    return list(range(len(texts))), texts


def _predicate(predicate: dict[str, Any]) -> str:
    return f"{predicate['attribute']} {predicate['operator']} {predicate['values'][0]}"
