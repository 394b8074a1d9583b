"""The task of Tatbul's joins: profiles of the workload, each with a join over the earlier documents.

profile of the workload    a0 BETWEEN 142 AND 152 AND a1 BETWEEN 217 AND 227
few joins                  ... AND a0 < ALL (SELECT a0 FROM history)             one of six, by turns
a join of its own          ... AND EXISTS (SELECT 1 FROM history h WHERE h.a0 = a0 AND h.a1 < 7)
a rare document            ... AND EXISTS (SELECT 1 FROM history h WHERE h.a0 = -7 AND h.a1 > a1)      no document has it

The thesis describes the join table and the pre-filter, and measures neither. There are as many earlier documents as profiles.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import tamis
from tamis.earlier.chunks import TableEvents
from tamis.earlier.join_table import EventJoins, JoinTable, split
from tamis.earlier.prefilter import NEVER, PreFilter
from tamis.earlier.retained import Retained
from tamis.errors import ExperimentError
from tamis.experiments.point import Point
from tamis.experiments.scales import Scale
from tamis.experiments.timing import PASSES, best_of, seconds_of
from tamis.kernels.numbers import I32s
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tamis.workload import Workload, generate

_CHECKED = 3
"""Profiles that the reference evaluator decides for each checked event."""
_MOST_EARLIER = 100_000

_FEW = (
    "a0 < ALL (SELECT a0 FROM history)",
    "a1 = ANY (SELECT a1 FROM history)",
    "EXISTS (SELECT 1 FROM history h WHERE h.a0 = a0 AND h.a1 > a1)",
    "NOT EXISTS (SELECT 1 FROM history h WHERE h.a1 = a1 AND h.a0 = a0)",
    "a1 >= ALL (SELECT a1 FROM history) OR a0 > ANY (SELECT a0 FROM history)",
    "NOT (a0 <> ALL (SELECT a0 FROM history))",
)
JOINS: dict[str, Callable[[int], str]] = {
    "few joins": lambda place: f"({_FEW[place % len(_FEW)]})",
    "a join of its own": lambda place: (
        f"EXISTS (SELECT 1 FROM history h WHERE h.a0 = a0 AND h.a1 < {place % 4_999 / 16})"
    ),
    "a rare document": lambda place: (
        f"EXISTS (SELECT 1 FROM history h WHERE h.a0 = {-1 - place % 1_000} AND h.a1 > a1)"
    ),
}
"""Name -> the join of a profile, by its place."""


class Joined(NamedTuple):
    """Profiles, divided into constants and joins, and retained documents."""

    table: JoinTable
    constants: tamis.Matcher[int]
    """The constant parts."""
    retained: Retained

    @classmethod
    def of(cls, texts: Sequence[str], earlier: pa.Table) -> Joined:
        """Profiles with these texts. All earlier documents are retained."""
        parts = [split(tamis.parse(text)) for text in texts]
        table, constants = JoinTable(PreFilter(fewest=NEVER)), tamis.Matcher[int]()
        table.put(np.arange(len(parts), dtype=np.int32), dict(enumerate(parts)))
        constants.add_many(range(len(parts)), [each.constant for each in parts])
        retained = Retained(tamis.History(rows=len(earlier)))
        with retained.taking(TableEvents(earlier)) as intake:
            intake.retain_all()
        return cls(table, constants, retained)

    def candidates(self, event: dict[str, Any]) -> I32s:
        """The profiles whose constants an event satisfies."""
        return np.array(self.constants.match(event), np.int32)

    def satisfied(self, flat: FlatEvent, candidates: I32s) -> list[int]:
        """The candidates that an event satisfies: each distinct join is decided once."""
        slots = self.table.satisfied(candidates, flat, self.retained.begin(flat))
        return list(map(int, slots))

    def satisfied_one_by_one(self, flat: FlatEvent, candidates: I32s) -> list[int]:
        """The same, but the joins of each candidate are decided anew."""
        rests = [self.table.rest(number) for number in self.table.numbers(candidates).tolist()]
        return [
            slot
            for slot, rest in zip(candidates.tolist(), rests, strict=True)
            if EventJoins(flat, self.retained.begin(flat)).truth(rest) is True
        ]


def filtered_matcher(history: tamis.History, filtered: bool) -> tamis.Matcher[int]:
    """A matcher that uses the pre-filter always, or never."""
    return matcher_over(new_store(history=history, limits=StoreLimits(prefilter_from=0 if filtered else NEVER)))


def joining(point: Point, scale: Scale) -> dict[str, Any]:
    """The time of events whose profiles have joins, with and without a part of the matcher."""
    ways = {
        "join table": partial(_decided, Joined.satisfied),
        "no join table": partial(_decided, Joined.satisfied_one_by_one),
        "pre-filter": partial(_matched, True),
        "no pre-filter": partial(_matched, False),
    }
    workload = generate(point.workload)
    texts = _texts(workload, point.index_options["joins"])
    earlier = workload.other_events(min(len(texts), _MOST_EARLIER), wide=True)
    return ways[point.index_options["way"]](texts, earlier, workload.events(scale.events, wide=True), scale)


def _decided(
    decide: Callable[[Joined, FlatEvent, I32s], list[int]],
    texts: Sequence[str],
    earlier: pa.Table,
    table: pa.Table,
    scale: Scale,
) -> dict[str, Any]:
    """With or without the join table. The joins are timed, the constants are not."""
    joined = Joined.of(texts, earlier)
    events = [(flatten(event), joined.candidates(event)) for event in table.to_pylist()]
    before = list(map(flatten, earlier.to_pylist()))
    for flat, candidates in events[: scale.checked]:
        few = candidates[:_CHECKED]
        right = {slot for slot in few.tolist() if _is_true(texts[slot], flat, before)}
        _check(set(decide(joined, flat, few)), right)

    def decide_all() -> list[list[int]]:
        return [decide(joined, flat, candidates) for flat, candidates in events]

    seconds = best_of(decide_all, PASSES, scale.budget, time.process_time)
    return _figures(
        seconds, len(events), sum(map(len, decide_all())), candidates=sum(len(slots) for _, slots in events)
    )


def _matched(filtered: bool, texts: Sequence[str], earlier: pa.Table, table: pa.Table, scale: Scale) -> dict[str, Any]:
    """A matcher with or without the pre-filter. Events that were timed are earlier events later."""
    matcher = filtered_matcher(tamis.History(rows=len(earlier)), filtered)
    matcher.match_batch(earlier, threads=1)  # Before there are profiles that match.
    building = seconds_of(lambda: matcher.add_many(range(len(texts)), texts), time.process_time)
    before = deque(map(flatten, earlier.to_pylist()), maxlen=len(earlier))
    for event in table.slice(0, scale.checked).to_pylist():
        flat, found = flatten(event), matcher.match(event)
        drawn = {*found[:_CHECKED], *range(_CHECKED)}
        _check(drawn.intersection(found), {slot for slot in drawn if _is_true(texts[slot], flat, before)})
        before.append(flat)
    matches = len(matcher.match_batch(table, threads=1))
    seconds = best_of(lambda: matcher.match_batch(table, threads=1), PASSES, scale.budget, time.process_time)
    return {**_figures(seconds, len(table), matches), "build_seconds": building}


def _texts(workload: Workload, joins: str) -> list[str]:
    """The profiles of a workload as expressions, each with its join."""
    join = JOINS[joins]
    return [
        " AND ".join([*map(_interval, predicates), join(place)])
        for place, predicates in enumerate(workload.subscriptions().column("predicates").to_pylist())
    ]


def _interval(predicate: dict[str, Any]) -> str:
    low, high = predicate["values"]
    return f"{predicate['attribute']} BETWEEN {low} AND {high}"


def _is_true(text: str, flat: FlatEvent, earlier: Sequence[FlatEvent]) -> bool:
    return evaluate_flat(tamis.parse(text), flat, earlier) is True


def _check(found: set[int], right: set[int]) -> None:
    if found != right:
        raise ExperimentError(f"matches {sorted(found)}, but the reference evaluator finds {sorted(right)}")


def _figures(seconds: float, events: int, matches: int, **work: int) -> dict[str, Any]:
    figures = {
        "events": events,
        "microseconds": seconds / events * 1e6,
        "matches": matches / events,
        **{name: number / events for name, number in work.items()},
    }
    return {"build_seconds": 0.0, "index_bytes": None, "kinds": {"planted": figures, "other": figures}}
