"""The delta finds what `Columns` finds, in chains and in rows apart, also while another thread adds rows."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import canonical, conjunctions_taken
from tamis.engine.delta import Delta, DeltaView, match_delta
from tamis.engine.matching.results import Found, Life
from tamis.engine.matching.thread_scratch import DeltaScratch
from tamis.kernels.kernel import COMPILED
from tests.engine.naive import Columns, rows_of_table, rows_with
from tests.engine.random_rows import RandomRows, Shape, random_shape
from tests.papers.naive import Event, batch_of, rows_of

IMMORTAL = Life(np.zeros(0, np.int64), 0)


def found_in(view: DeltaView, batch: EventBatch, dimensions: int) -> Found:
    return match_delta(view, batch, dimensions, IMMORTAL, DeltaScratch())


def slots_in(view: DeltaView, events: list[Event], dimensions: int) -> list[list[int]]:
    found = found_in(view, batch_of(events), dimensions)
    return [sorted(part.tolist()) for part in np.split(found.slots, np.cumsum(found.counts)[:-1])]


@pytest.mark.kernels
def test_random_rows(cases: Callable[[int], int]) -> None:
    chance = random.Random(3)
    for seed in range(cases(60)):
        shape = random_shape(chance)
        made = RandomRows(seed, shape if COMPILED else shape._replace(rows=min(shape.rows, 70)))
        clauses, dimensions = made.clauses(), made.shape.dimensions + 2
        table = canonical(rows_of(clauses))
        events = [made.event() for _ in range(20)]
        expected = [np.flatnonzero(Columns(table).true_of(event)) for event in events]
        delta = Delta()
        views: list[DeltaView] = []
        while len(delta) < len(clauses):
            first = len(delta)
            rows = np.arange(first, min(first + chance.choice([1, 3, 200]), len(clauses)))
            delta.add(rows_of_table(conjunctions_taken(table, rows), rows.astype(np.int32)))
            views.append(delta.view())
        assert 0 <= delta.apart <= len(delta)
        # A view does not change when later rows are added to the same columns.
        for view in {*chance.sample(views, min(3, len(views))), views[-1]}:
            assert slots_in(view, events, dimensions) == [each[each < view.number].tolist() for each in expected]


def points(values: list[tuple[int, int]]) -> list[Leaf]:
    return [Leaf(dimension, Mode.SOME, ((key, key),)) for dimension, key in values]


def test_an_event_visits_the_rows_of_its_values_and_the_rows_apart() -> None:
    delta = Delta()
    # All rows have the same first value, but different second values. The shortest chain is chosen, so chains stay short.
    clauses = [points([(0, 7), (1, row)]) for row in range(100)]
    clauses += [[Leaf(2, Mode.SOME, ((KEY_MIN, row),))] for row in range(10)]
    clauses += [[Leaf(2, Mode.NONE, ((row, row),))] for row in range(5)]
    delta.add(rows_with(clauses))
    assert delta.apart == 15
    found = found_in(delta.view(), batch_of([{0: [(7, 7)], 1: [(5, 5)]}]), 3)
    assert found.slots.tolist() == [5]
    assert found.work.candidates <= 15 + 10
    interval = found_in(delta.view(), batch_of([{0: [(7, 7)], 1: [(5, 6)]}]), 3)
    assert sorted(interval.slots.tolist()) == [5, 6]
    again = found_in(delta.view(), batch_of([{0: [(7, 7), (7, 7)], 1: [(5, 5), (5, 5), (4, 4)]}]), 3)
    assert sorted(again.slots.tolist()) == [4, 5]


def test_a_row_linked_by_an_interrupted_call_is_forgotten() -> None:
    """As after an interrupt between linking and counting. Otherwise the row would be in two chains, and cut one of them off."""
    delta = Delta()
    delta.add(rows_with([points([(0, 1)]), points([(0, 2)])]))
    old = delta.view()
    for key in (1, 2):
        delta.add(rows_with([points([(0, key)])], np.array([7], np.int32)))
        delta.number = 2  # the interrupt
    delta.add(rows_with([points([(0, 3)])], np.array([5], np.int32)))
    events: list[Event] = [{0: [(key, key)]} for key in (1, 2, 3)]
    assert slots_in(delta.view(), events, 1) == [[0], [1], [5]]
    assert slots_in(old, events, 1) == [[0], [1], []]


def test_rows_added_while_other_threads_read() -> None:
    """The rows of a view are found while another thread links new rows to the same chains."""
    made = RandomRows(1, Shape(rows=4000, dimensions=4, values=20, longest=3, several=0.0, step=1.0))
    clauses = made.clauses()
    table = canonical(rows_of(clauses))
    events = [made.event() for _ in range(200)]
    batch, expected = batch_of(events), [np.flatnonzero(Columns(table).true_of(event)) for event in events]
    delta = Delta()
    done = threading.Event()
    wrong: list[int] = []
    reads = 0

    def right(view: DeltaView, found: Found) -> bool:
        parts: list[npt.NDArray[np.int32]] = np.split(found.slots, np.cumsum(found.counts)[:-1])
        return all(
            sorted(part.tolist()) == each[each < view.number].tolist()
            for part, each in zip(parts, expected, strict=True)
        )

    def read() -> None:
        nonlocal reads
        while not done.is_set() or not reads:
            view = delta.view()
            found = found_in(view, batch, 6)
            reads += 1
            if view.number and not right(view, found):
                wrong.append(view.number)

    reader = threading.Thread(target=read)
    reader.start()
    for row in range(len(clauses)):
        delta.add(rows_of_table(conjunctions_taken(table, np.array([row])), np.array([row], np.int32)))
    done.set()
    reader.join()
    assert not wrong
    assert right(delta.view(), found_in(delta.view(), batch, 6))


def test_the_narrowest_predicate_of_a_row_apart_is_tested_first() -> None:
    delta = Delta()
    wide, narrow = Leaf(0, Mode.SOME, ((0, KEY_MAX),)), Leaf(1, Mode.SOME, ((5, 6),))
    delta.add(rows_with([[wide, narrow]] * 50))
    met = found_in(delta.view(), batch_of([{0: [(3, 3)], 1: [(9, 9)]}]), 2)
    assert (met.work.candidates, met.work.survivors) == (50, 0)
    assert len(found_in(delta.view(), batch_of([{0: [(3, 3)], 1: [(5, 5)]}]), 2).slots) == 50
