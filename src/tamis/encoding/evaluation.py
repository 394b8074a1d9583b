"""Whether predicates in keys are true of an event in keys: for kernels, predicate by predicate.

    dimension   3    7    12          one event, loaded: where its values lie in the batch
    first       -    20   22
    values      0    2    1           0 for every dimension between events

An index may test most conjunctions in a faster way of its own. It tests the remaining ones here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import UP, I64s
from tamis.kernels.sorting import first_at_least

_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)


class EventPlaces(NamedTuple):
    """Where the values of one event begin, and how many there are, by dimension."""

    first: I64s
    values: I64s


def event_places(dimensions: int) -> EventPlaces:
    """Room for events whose dimensions have numbers below `dimensions`."""
    return EventPlaces(*np.zeros((2, dimensions), np.int64))


@inlined
def load_event(batch: EventBatch, event: int, places: EventPlaces) -> None:
    """Note where the values of an event lie."""
    for v in range(batch.start[event], batch.start[event + 1]):
        d = batch.dimension[UP(v)]
        if places.values[UP(d)] == 0:
            places.first[UP(d)] = v
        places.values[UP(d)] += 1


@inlined
def unload_event(batch: EventBatch, event: int, places: EventPlaces) -> None:
    """Forget the event."""
    for v in range(batch.start[event], batch.start[event + 1]):
        places.values[UP(batch.dimension[UP(v)])] = 0


@inlined
def predicate_holds(p: int, predicates: Predicates, batch: EventBatch, places: EventPlaces) -> bool:
    """Whether a predicate is true of the loaded event."""
    d = UP(predicates.dimension[p])
    mode, first, count = predicates.mode[p], places.first[d], places.values[d]
    if mode == _ABSENT:
        return count == 0
    if count == 0:
        return False
    begin, end = predicates.start[p], predicates.start[p + 1]
    found = False
    for v in range(first, first + count):
        at = first_at_least(predicates.hi, begin, end, batch.lo[v])  # The first interval that ends at or behind lo.
        if at < end and predicates.lo[at] <= batch.hi[v]:
            found = True
            break
    return found == (mode == _SOME)


@inlined
def count_holding(c: int, table: Conjunctions, batch: EventBatch, places: EventPlaces) -> int:
    """How many predicates of a conjunction are true of the loaded event, up to the first that is not."""
    begin, end = table.start[c], table.start[c + 1]
    for p in range(begin, end):
        if not predicate_holds(p, table.predicates, batch, places):
            return p - begin
    return end - begin


@inlined
def conjunction_holds(c: int, table: Conjunctions, batch: EventBatch, places: EventPlaces) -> bool:
    """Whether all predicates of a conjunction are true of the loaded event."""
    return count_holding(c, table, batch, places) == table.start[c + 1] - table.start[c]


@inlined
def accepts(step: int, programs: Programs, batch: EventBatch, places: EventPlaces) -> bool:
    """Whether a program accepts the loaded event."""
    while step >= 0:
        held = predicate_holds(step, programs.predicates, batch, places)
        step = programs.then[step] if held else programs.otherwise[step]
    return step == ACCEPT
