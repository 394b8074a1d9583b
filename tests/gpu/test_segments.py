"""A card finds what the processor finds: random rows of all shapes, with as many runs, pairs and guards as possible.

In the simulator, a case has few events. On a card (TAMIS_GPU=1), the same cases have a thousand events each, and there are more.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.costs import USUAL_COSTS, Costs
from tamis.engine.matching.owners import ALIVE
from tamis.engine.matching.results import Found, Life
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tests.engine.naive import rows_with
from tests.engine.random_rows import RandomRows, Shape, random_shape
from tests.papers.naive import batch_of

NOBODY_DIED = Life(np.zeros(0, np.int64), 0)
PAIRS, RUNS = Costs(caution_with_pairs=0.0), Costs(run=-1e9)
KINDS = {"usual": USUAL_COSTS, "pairs": PAIRS, "runs": RUNS, "second": Costs(second_space=-1e9)}


def slots_by_event(found: Found) -> list[list[int]]:
    slots = np.asarray(found.slots)
    assert found.counts.sum() == len(slots)
    return [sorted(part.tolist()) for part in np.split(slots, np.cumsum(found.counts)[:-1])]


def check(
    segment: Segment, batch: EventBatch, dimensions: int, life: Life = NOBODY_DIED, matching: Any = None
) -> list[list[int]]:
    """Check that a card finds what the processor finds. Returns that."""
    from tamis.gpu.card import SegmentsOnCard, card_of
    from tamis.gpu.matching import CardMatching

    matching = matching or CardMatching(SegmentsOnCard(card_of(0)))
    (found,) = matching.for_batch().match([segment], batch, dimensions, life, ThreadScratch())
    expected = slots_by_event(segment.match(batch, dimensions, life, ThreadScratch()))
    assert slots_by_event(found) == expected
    return expected


def shape_of(kind: str, seed: int) -> Shape:
    chance = random.Random(seed)
    if kind == "usual":
        return random_shape(chance)
    return Shape(
        rows=chance.choice([300, 1500]),
        dimensions=chance.choice([2, 3, 10]),
        values=chance.choice([60, 400, 3000]),
        longest=chance.choice([2, 3, 6]),
        several=chance.choice([0.0, 0.0, 0.3]),
        step=chance.choice([0.0, 1.0, 0.37]),
    )


def dimensions_of(rows: Rows, batch: EventBatch) -> int:
    return 1 + max(int(rows.table.predicates.dimension.max(initial=0)), int(batch.dimension.max(initial=0)))


@pytest.mark.compiled
@pytest.mark.parametrize("kind", list(KINDS))
def test_random_rows(
    kind: str, on_card: bool, cases: Callable[[int], int], record_property: Callable[[str, object], None]
) -> None:
    decisions = 0
    for seed in range(cases(200 if on_card else 6)):
        made = RandomRows(seed, shape_of(kind, seed))
        rows = rows_with(made.clauses(), np.random.default_rng(seed).permutation(made.shape.rows).astype(np.int32))
        events = [made.event() for _ in range(400 if on_card else 8)]
        batch = batch_of(events)
        segment = Segment.of(rows, batch if seed % 2 else None, KINDS[kind])
        check(segment, batch, dimensions_of(rows, batch))
        decisions += rows.number * len(events)
    record_property("decisions", decisions)


@pytest.mark.compiled
def test_dead_slots_are_left_out() -> None:
    made = RandomRows(5, Shape(300, 3, 20, 2, 0.0, 0.0))
    rows = rows_with(made.clauses())
    died = np.full(300, ALIVE)
    died[::2] = 3
    batch = batch_of([made.event() for _ in range(8)])
    for now in (2, 3):
        found = check(Segment.of(rows, None), batch, 3, Life(died, now))
        assert any(slot % 2 == 0 for slots in found for slot in slots) is (now == 2)


@pytest.mark.compiled
def test_a_batch_that_begins_within_another() -> None:
    made = RandomRows(7, Shape(100, 3, 10, 2, 0.0, 0.0))
    rows, batch = rows_with(made.clauses()), batch_of([made.event() for _ in range(12)])
    segment = Segment.of(rows, None)
    whole = check(segment, batch, 3)
    assert check(segment, batch._replace(start=batch.start[5:9]), 3) == whole[5:8]


@pytest.mark.compiled
def test_room_for_rows_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    from tamis.gpu.buffers import BufferLimits
    from tamis.gpu.card import SegmentsOnCard, card_of
    from tamis.gpu.matching import CardMatching

    made = RandomRows(9, Shape(300, 2, 3, 1, 0.0, 0.0))
    rows, batch = rows_with(made.clauses()), batch_of([made.event() for _ in range(10)])
    matching = CardMatching(SegmentsOnCard(card_of(0)), BufferLimits(room=4, rows=16))
    for _ in range(2):
        found = check(Segment.of(rows, None), batch, 2, matching=matching)
        assert max(map(len, found)) > 16


@pytest.mark.compiled
def test_segments_take_turns_on_a_small_card() -> None:
    from tamis.gpu.card import SegmentsOnCard, card_of
    from tamis.gpu.matching import CardMatching

    made = [RandomRows(seed, Shape(100, 3, 10, 2, 0.0, 0.0)) for seed in (1, 2)]
    rows = [rows_with(each.clauses()) for each in made]
    one, other = segments = [Segment.of(each, None) for each in rows]
    batch = batch_of([made[0].event() for _ in range(4)])
    for most, there, uploads in ((1 << 30, 2, 2), (int(1.5 * one.nbytes), 1, 4), (10, 0, 0)):
        matching = CardMatching(SegmentsOnCard(card_of(0), most))
        for segment in (one, other, one, other):
            check(segment, batch, 3, matching=matching)
        stats = matching.segments.stats(tuple(segments))
        assert (stats["segments"], stats["segments_elsewhere"], stats["uploads"]) == (there, 2 - there, uploads)
        assert stats["bytes"] <= most
