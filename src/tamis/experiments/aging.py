"""The task of Fabret's aging experiment: subscriptions live for a while, and new ones are drawn from another workload.

round      0        1 2 3 4          5 6 7 ... 16
new ones   all      as before        as the change says
events     timed after each round; with a skew, they change too
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

import tamis
from tamis.encoding.events.event_table import encode_table
from tamis.errors import ExperimentError
from tamis.experiments.checking import check_matcher
from tamis.experiments.contenders import find_contender
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.timing import PASSES, best_of
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tamis.matcher.paper_store import PaperStore
from tamis.papers.options import MOST
from tamis.workload import FabretConfig, Workload, generate, preset

Figures = dict[str, Any]

AGING_ROUNDS = 16
AGING_BEFORE = 4
"""Rounds before the change."""
_SHARE = 10
"""In each round, one of so many subscriptions is replaced."""

_NEVER_SWEPT = StoreLimits(fewest_to_sweep=2**31)
"""A sweep builds an index again from the living subscriptions: all its tables would be chosen anew, frozen or not."""


def aging(point: Point, scale: Scale) -> Figures:
    """The time of events after each round."""
    change, frozen = (dict(point.options)[name] for name in ("change", "frozen"))
    before = point.workload
    assert isinstance(before, FabretConfig)
    after = _changed(before, change)
    store = aging_store(replace(point, options=()))
    matcher: tamis.Matcher[int] = matcher_over(store)
    matcher.match_batch(generate(before).other_events(scale.observed + 1), 1)  # what an index learns its tables from
    living = generate(before).subscriptions()
    matcher.add_table(living)
    if frozen:
        _freeze(store)
    parts = {"0": _figures(matcher, store, generate(before), scale)}
    size, oldest, newest = max(before.subscriptions // _SHARE, 1), 0, before.subscriptions
    for number in range(1, AGING_ROUNDS + 1):
        config = after if number > AGING_BEFORE else before
        # Other subscriptions of the same workload: another seed.
        coming = generate(replace(config, subscriptions=size, seed=before.seed + number)).subscriptions()
        for subscription in range(oldest, oldest + size):
            matcher.remove(subscription)
        coming = coming.set_column(0, "id", [np.arange(newest, newest + size)])
        matcher.add_table(coming)
        living = pa.concat_tables([living.slice(size), coming])
        oldest, newest = oldest + size, newest + size
        parts[str(number)] = _figures(matcher, store, generate(config), scale)
    check_matcher(matcher, living, generate(config).events(scale.checked))
    return {"parts": parts}


def aging_store(point: Point) -> PaperStore | EngineStore:
    """The empty store of a point's contender. It is never swept, as its index would be built again."""
    return new_store(find_contender(point.contender).index_name, options=point.index_options, limits=_NEVER_SWEPT)


def _changed(config: FabretConfig, change: str) -> FabretConfig:
    """The workload after the change."""
    if change == "steady":
        return config
    if change == "schema":
        return replace(config, focus_start=config.focus_names)
    if change == "skew":
        few = preset("fabret-few-values")
        assert isinstance(few, FabretConfig)
        return replace(config, few_values=few.few_values)
    raise ExperimentError(f"no change {change!r}; the changes are: steady, schema, skew")


def _freeze(store: object) -> None:
    """Let dynamic clustering create and drop no more tables."""
    assert isinstance(store, PaperStore)
    index = store.index
    index.options = replace(index.options, max_margin=float(MOST), min_benefit=0, min_power=float(MOST))


def _figures(matcher: tamis.Matcher[int], store: PaperStore | EngineStore, workload: Workload, scale: Scale) -> Figures:
    """The time of the index alone: events are encoded before, and matches are not named."""
    events = workload.events(scale.events)
    matches = len(matcher.match_batch(events, 1))
    batch, dimensions = encode_table(events, store.dimensions).batch, len(store.dimensions)

    def match() -> int:
        """Match the events, and tell the candidates."""
        if isinstance(store, PaperStore):
            return store.index.match(batch, dimensions).counters.candidates
        return int(store.engine.match(store.engine.version, batch, dimensions).work.candidates)

    # The engine builds segments in threads of its own meanwhile, which are not the time of an event.
    seconds = best_of(match, PASSES, scale.budget, time.thread_time)
    figures = {
        "events": len(events),
        "microseconds": seconds / len(events) * 1e6,
        "matches": matches / len(events),
        "candidates": match() / len(events),
    }
    return {"kinds": {"planted": figures, "other": figures}}
