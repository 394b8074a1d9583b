"""Runs: when they are made, and that matches stay the same."""

from __future__ import annotations

import random
from collections.abc import Callable

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine.layout.costs import Costs
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.segment import Segment
from tests.engine.naive import rows_with
from tests.engine.random_rows import RandomRows, Shape
from tests.engine.test_segment import NOBODY_DIED, check
from tests.papers.naive import Event, batch_of

DIMENSIONS = 30


def above(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, KEY_MAX),))


def thresholds(count: int, others: int) -> list[list[Leaf]]:
    """A bound on one of thirty attributes, and `others` predicates that any value satisfies."""
    chance = random.Random(count)
    chosen = [chance.sample(range(DIMENSIONS), 1 + others) for _ in range(count)]
    return [
        [above(first, 3 * number), *(Leaf(d, Mode.SOME, ((KEY_MIN, KEY_MAX),)) for d in rest)]
        for number, (first, *rest) in enumerate(chosen)
    ]


def quotes(count: int, has: int) -> list[Event]:
    chance = random.Random(count)
    return [
        {d: [(key, key)] for d in chance.sample(range(DIMENSIONS), has) for key in [chance.randrange(100_000)]}
        for _ in range(count)
    ]


def test_random_rows_with_as_many_runs_as_possible(
    cases: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    costs = Costs(run=-1e9)
    decisions, made_runs = 0, 0
    for seed in range(cases(20)):
        chance = random.Random(seed)
        shape = Shape(
            rows=2500,
            dimensions=chance.choice([2, 3]),
            values=chance.choice([400, 3000]),
            longest=chance.choice([2, 3, 4]),
            several=chance.choice([0.0, 0.0, 0.3]),
            step=chance.choice([0.0, 1.0, 0.37]),
        )
        made = RandomRows(seed, shape)
        rows, events = rows_with(made.clauses()), [made.event() for _ in range(30)]
        segment = Segment.of(rows, batch_of(events) if seed % 2 else None, costs)
        check(rows, events, segment=segment)
        again = segment.rows(NOBODY_DIED)
        check(again, events, segment=Segment.of(again, None, costs))
        decisions, made_runs = decisions + rows.number * len(events), made_runs + len(segment.body.runs.list)
    record_property("decisions", decisions)
    assert decisions > 500_000
    assert made_runs > 100


def test_events_visit_only_entries_that_they_satisfy() -> None:
    rows, events = rows_with(thresholds(30_000, 0)), quotes(40, 3)
    segment = Segment.of(rows, batch_of(quotes(500, 3)))
    assert len(segment.body.runs.list) == DIMENSIONS
    work = check(rows, events, segment=segment)
    assert work.survivors == 0
    found = segment.match(batch_of(events), DIMENSIONS, NOBODY_DIED, ThreadScratch())
    assert work.candidates == len(found.slots) > 0


def test_no_runs_if_events_skip_most_of_a_list_anyway() -> None:
    rows, sample, events = rows_with(thresholds(30_000, 6)), quotes(500, 5), quotes(40, 5)
    segment = Segment.of(rows, batch_of(sample))
    assert (len(segment.body.runs.list), segment.body.guards > 300) == (0, True)
    check(rows, events, segment=segment)


def test_no_runs_if_they_would_be_too_short() -> None:
    """An event satisfies one bound in a hundred. Finding a run of 16 bounds costs more than visiting its entries."""
    clauses = [
        [Leaf(0, Mode.SOME, ((symbol, symbol),)), above(1, 100_000 - place)]
        for symbol in range(1000)
        for place in range(16)
    ]
    rows = rows_with(clauses)
    sample: list[Event] = [{0: [(n % 1000, n % 1000)], 1: [(n * 99, n * 99)]} for n in range(1000)]
    segment = Segment.of(rows, batch_of(sample))
    assert len(segment.body.runs.list) == 0
    check(rows, [*sample[:20], {0: [(7, 7)], 1: [(99_992, 99_992)]}], segment=segment)
