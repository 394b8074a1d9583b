"""Segments find exactly the rows that are true: random rows of many shapes, and hard shapes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine.layout.limits import LayoutLimits
from tamis.engine.layout.records import order_of
from tamis.engine.matching.owners import ALIVE, NOT_BY_SLOT
from tamis.engine.matching.results import Life, Work
from tamis.engine.matching.thread_scratch import USUAL_SIZES, ScratchSizes, ThreadScratch
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tamis.kernels.kernel import lean_kernel
from tests.engine.naive import Columns, rows_with
from tests.engine.random_rows import RandomRows, random_shape
from tests.papers.naive import Event, batch_of, matching

NOBODY_DIED = Life(np.zeros(0, np.int64), 0)


def check(
    rows: Rows,
    events: list[Event],
    sample: list[Event] | None = None,
    sizes: ScratchSizes = USUAL_SIZES,
    segment: Segment | None = None,
) -> Work:
    """Check that a segment finds exactly the rows that match. Returns how much work it took."""
    segment = segment or Segment.of(rows, None if sample is None else batch_of(sample))
    dimensions = 1 + max((d for event in events for d in event), default=0)
    dimensions = max(dimensions, 1 + int(rows.table.predicates.dimension.max(initial=0)))
    found = segment.match(batch_of(events), dimensions, NOBODY_DIED, ThreadScratch(sizes))
    columns, start = Columns(rows.table), np.append(0, np.cumsum(found.counts))
    for number, event in enumerate(events):
        expected = np.sort(rows.slot[columns.true_of(event)])
        assert np.array_equal(np.sort(found.slots[start[number] : start[number + 1]]), expected), (number, event)
    return found.work


def random_case(seed: int) -> tuple[Rows, list[Event], list[Event] | None]:
    """Rows, events, and in every second case a sample of events."""
    chance = random.Random(seed)
    made = RandomRows(seed, random_shape(chance))
    slots = np.random.default_rng(seed).permutation(made.shape.rows).astype(np.int32)
    rows = rows_with(made.clauses(), slots)
    events = [made.event() for _ in range(30)]
    return rows, events, events if seed % 2 else None


def test_random_rows(cases: Callable[[int], int], record_property: Callable[[str, object], None]) -> None:
    decisions = 0
    for seed in range(cases(60)):
        rows, events, sample = random_case(seed)
        check(rows, events, sample)
        decisions += rows.number * len(events)
    record_property("decisions", decisions)
    assert decisions > 500_000


def test_room_for_slots_grows_and_no_entry_is_visited_twice() -> None:
    for seed in (3, 4, 8):
        rows, events, sample = random_case(seed)
        narrow = check(rows, events, sample, ScratchSizes(slots=1, most_slots=1))
        assert narrow == check(rows, events, sample)


@pytest.mark.kernels
def test_the_columnar_evaluator_agrees_with_a_plain_loop() -> None:
    for seed in range(6):
        made = RandomRows(seed, random_shape(random.Random(seed))._replace(rows=40))
        clauses = made.clauses()
        events = [made.event() for _ in range(10)]
        columns = Columns(rows_with(clauses).table)
        found = {(row, int(c)) for row, event in enumerate(events) for c in np.flatnonzero(columns.true_of(event))}
        assert found == matching(dict(enumerate(clauses)), events)


@pytest.mark.kernels
def test_a_few_random_rows_uncompiled() -> None:
    for seed in range(4):
        made = RandomRows(seed, random_shape(random.Random(seed))._replace(rows=20, dimensions=3))
        check(rows_with(made.clauses()), [made.event() for _ in range(5)])


@pytest.mark.kernels
@pytest.mark.parametrize("size", [1, 2, 5])
def test_lists_whose_size_does_not_fit_in_a_word(size: int) -> None:
    made = RandomRows(5, random_shape(random.Random(5))._replace(rows=60))
    rows, events = rows_with(made.clauses()), [made.event() for _ in range(10)]
    segment = Segment.of(rows, None, limits=LayoutLimits(list_size=size))
    assert check(rows, events, segment=segment) == check(rows, events)


@pytest.mark.kernels
@pytest.mark.parametrize("count", [0, 1, 2, 10, 24, 25, 60])
def test_predicates_of_a_record_are_sorted_by_probability(count: int) -> None:
    few = np.random.default_rng(count).integers(0, max(count // 2, 1), 7 + count)  # so that some are equal
    probability = (few / 100).astype(np.float32)
    order = np.full(count + 1, -1, np.int64)
    _order_of(7, 7 + count, probability, order)
    assert order.tolist() == [*sorted(range(7, 7 + count), key=lambda p: probability[p]), -1]


@lean_kernel
def _order_of(begin: int, end: int, probability: Any, order: Any) -> None:
    order_of(begin, end, probability, order)


@pytest.mark.parametrize("slots", ["in turn", "with gaps", "backwards", "far apart"])
@pytest.mark.parametrize("twice", [False, True])
def test_rows_numbered_by_slots(slots: str, twice: bool) -> None:
    made = RandomRows(8, random_shape(random.Random(8))._replace(rows=400))
    clauses = made.clauses()
    clauses = clauses[:300] + clauses[: len(clauses) - 300] if twice else clauses
    count = len(clauses)
    numbers = {
        "in turn": 70 + np.arange(count),
        "with gaps": 5 + np.arange(count) + np.arange(count) // 8,
        "backwards": 9 + np.arange(count)[::-1],
        "far apart": 3 * np.arange(count),
    }[slots].astype(np.int32)
    rows = rows_with(clauses, numbers)
    segment = Segment.of(rows, None)
    assert bool(segment.numbering.first[0] != NOT_BY_SLOT) is (slots != "far apart")
    events = [made.event() for _ in range(40)]
    check(rows, events, segment=segment)
    again = segment.rows(NOBODY_DIED)
    assert np.array_equal(np.sort(again.slot), np.sort(numbers))
    check(again, events, segment=Segment.of(again, None))
    died = np.full(int(numbers.max()) + 1, ALIVE)
    died[numbers[::2]] = 3
    dimensions = 1 + max(int(rows.table.predicates.dimension.max()), *(d for event in events for d in event))
    found = segment.match(batch_of(events), dimensions, Life(died, 3), ThreadScratch())
    everyone = segment.match(batch_of(events), dimensions, NOBODY_DIED, ThreadScratch())
    assert sorted(found.slots) == sorted(everyone.slots[died[everyone.slots] > 3])


def points(*keys: int) -> tuple[tuple[int, int], ...]:
    return tuple((key, key) for key in keys)


def test_many_on_one_side_of_a_threshold() -> None:
    clauses = [[Leaf(0, Mode.SOME, ((key, KEY_MAX),))] for key in range(0, 120, 3)]
    clauses += [[Leaf(0, Mode.SOME, ((KEY_MIN, key),))] for key in range(0, 120, 3)]
    clauses += [[Leaf(0, Mode.SOME, ((key, KEY_MAX),)), Leaf(1, Mode.SOME, points(key % 4))] for key in range(120)]
    clauses += [[Leaf(0, Mode.SOME, ((KEY_MIN, key),)), Leaf(1, Mode.NONE, points(key % 3))] for key in range(120)]
    rows = rows_with(clauses)
    events: list[Event] = [
        {0: points_of(a), 1: points_of(b)} for a in (-1, 0, 1, 59, 60, 61, 117, 119, 200) for b in (0, 2, 9)
    ]
    events += [{0: [(10, 70)], 1: [(2, 2), (3, 3)]}, {1: [(KEY_MIN, KEY_MAX - 1)]}, {}]
    for sample in (None, events):
        check(rows, events, sample)


@pytest.mark.parametrize("rest", [False, True])
def test_runs(rest: bool) -> None:
    """16 or more entries of a list with ranges on one dimension are sorted: without other predicates, and with one more."""
    ranges = [((key, KEY_MAX),) for key in range(0, 9000, 20)] + [((KEY_MIN, key),) for key in range(0, 9000, 20)]
    ranges += [((key, key + width),) for key in range(0, 9000, 60) for width in (7, 100, 2000)]
    clauses = [
        [Leaf(0, Mode.SOME, points(i % 3)), Leaf(1, Mode.SOME, each), *([Leaf(2, Mode.NONE, points(i % 5))] * rest)]
        for i, each in enumerate(ranges)
    ]
    rows = rows_with(clauses)
    events: list[Event] = [
        {0: points_of(i % 3), 1: points_of(key), 2: points_of(i % 5)}
        for i, key in enumerate((-5, -1, 0, 1, 19, 20, 21, 4440, 4441, 8979, 8980, 8981, 9000, 12_000))
    ]
    events += [{0: points_of(0, 1), 1: [(5, 5), (700, 710)], 2: points_of(7)}, {0: points_of(2), 1: [(60, 4000)]}, {}]
    for sample in (None, events):
        check(rows, events, sample)
        assert Segment.of(rows, None if sample is None else batch_of(sample)).stats()["runs"] > 0


def points_of(*keys: int) -> list[tuple[int, int]]:
    return [(key, key) for key in keys]


@pytest.mark.parametrize("values", [20, 90])
def test_second_filters_if_many_entries_pass_the_first(values: int) -> None:
    chance = random.Random(values)

    def broad(dimension: int) -> Leaf:
        low = chance.randrange(values // 2)
        return Leaf(dimension, Mode.SOME, ((low, low + values // 2),))

    clauses = [[broad(d) for d in chance.sample(range(8), chance.randint(1, 5))] for _ in range(2000)]
    clauses += [
        [Leaf(d, Mode.NONE, points(chance.randrange(values))), broad(7 - d)] for d in range(3) for _ in range(20)
    ]
    rows = rows_with(clauses)
    segment = Segment.of(rows, None)
    assert len(segment.body.second) > 0
    events: list[Event] = [{d: [(key := chance.randrange(values), key)] for d in range(7)} for _ in range(40)]
    events += [{**event, 3: [(1, 1), (values - 1, values - 1)], 5: [(4, values // 3)]} for event in events[:20]]
    check(rows, events, segment=segment)


def test_keys_are_not_compared_if_only_the_access_attribute_has_several_values() -> None:
    tagged = [[Leaf(0, Mode.SOME, points(tag % 50)), Leaf(1, Mode.SOME, ((tag % 9, 70),))] for tag in range(200)]
    events: list[Event] = [{0: [(1, 1), (3, 3), (5, 5)], 1: [(key, key)]} for key in (4, 50, 180)]
    assert check(rows_with(tagged), events).compared == 0
    # One tag that is not excluded says nothing about the other tags.
    excluding = [[Leaf(0, Mode.NONE, points(tag % 7)), Leaf(1, Mode.SOME, ((tag, tag),))] for tag in range(200)]
    assert check(rows_with(excluding), events).compared > 0


@pytest.mark.parametrize("first", [0, 40_000])
def test_records_with_negated_predicates_only(first: int) -> None:
    """In wide dimensions, and in dimensions whose numbers do not fit in the words of sets."""
    count = 2_000 if first == 0 else 300
    clauses = [
        [Leaf(first, Mode.NONE, points(key << 20)), Leaf(first + 1, Mode.NONE, points(key))] for key in range(count)
    ]
    clauses += [[Leaf(d, Mode.SOME, points(1, 2))] * 2 for d in range(first)]
    events: list[Event] = [{first: [(key << 20, key << 20)], first + 1: [(3, 3)]} for key in (0, 3, 4, 1999)]
    events += [{first: [(7, 7)]}, {}]
    check(rows_with(clauses), events)


def test_narrow_intervals_of_keys_that_doubles_cannot_tell_apart() -> None:
    base = 1 << 62
    clauses = [
        [Leaf(0, Mode.SOME, ((base + 8 * i, base + 8 * i + 2), (base + 8 * i + 4, base + 8 * i + 6)))]
        for i in range(300)
    ]
    events: list[Event] = [{0: [(base + key, base + key)]} for key in (-1, 0, 2, 3, 4, 6, 7, 8, 2396, 2398, 2399)]
    check(rows_with(clauses), events)


def wide_leaf(chance: random.Random, dimension: int, step: int) -> Leaf:
    """A predicate of any kind that wide dimensions have, on keys that are multiples of `step`."""
    key = chance.randrange(2000) * step
    some = tuple(sorted({(k, k) for k in (chance.randrange(2000) * step for _ in range(chance.choice([2, 8, 9])))}))
    band = ((key, key + chance.randrange(900) * step),)
    kind = chance.randrange(8)
    if kind > 4:
        return Leaf(dimension, Mode.NONE, [((key, key),), some, band][kind - 5])
    choices = [((key, key),), some, ((KEY_MIN, key),), ((key + chance.randrange(2), KEY_MAX),), band]
    return Leaf(dimension, Mode.SOME, choices[kind])


@pytest.mark.parametrize("step", [1 << 40, (1 << 40) + 1])
@pytest.mark.parametrize("before", [0, 260])
def test_wide_dimensions_near_and_far(before: int, step: int) -> None:
    """A dimension behind 256 others does not fit in a test. Keys lie on the grid, or beside it."""
    chance = random.Random(before + step)
    clauses = [[Leaf(d, Mode.SOME, points(i % 3)) for d in range(i % 10, before, 10)] for i in range(1500)]
    first = before
    clauses += [
        [wide_leaf(chance, first + chance.randrange(3), step) for _ in range(chance.randint(1, 5))]
        + [Leaf(first + 3, Mode.SOME, points(*range(i % 4)))] * (i % 2)
        + [Leaf(first + 4, Mode.ABSENT, ())] * (i % 7 == 0)
        for i in range(1200)
    ]
    common: Event = {d: [(1, 1)] for d in range(before)}
    events: list[Event] = []
    for i in range(60):
        keys = [chance.randrange(2000) * step + chance.choice([-1, 0, 0, 0, 1]) for _ in range(3)]
        event = {**common, **{first + d: [(key, key)] for d, key in enumerate(keys)}, first + 3: [(i % 4, i % 4)]}
        if i % 5 == 0:
            event[first + 1] = [(keys[1], keys[1]), (keys[0], keys[0] + 3 * step)]
        if i % 9 == 0:
            event[first + 4] = [(0, 0)]
            del event[first]
        events.append(event)
    rows = rows_with(clauses)
    for sample in (None, events):
        check(rows, events, sample)


def test_too_many_keys_to_number() -> None:
    chance = random.Random(6)
    step = (1 << 40) + 1
    clauses = [[wide_leaf(chance, d, step) for d in range(2)] for _ in range(1500)]
    rows = rows_with(clauses)
    segment = Segment.of(rows, None, limits=LayoutLimits(key_numbers=1000))
    assert len(segment.body.key_numbers.key) == 0
    keys = [chance.randrange(2000) * step for _ in range(60)]
    events: list[Event] = [{0: [(key, key)], 1: [(other, other)]} for key, other in itertools.pairwise(keys)]
    assert check(rows, events, segment=segment).compared > 0


def test_keys_that_predicates_name_in_wide_dimensions_are_not_compared() -> None:
    """Numbers tell keys apart that share a code."""
    clauses = [[Leaf(d, Mode.SOME, points(key, key + 1)) for d in range(3)] for key in range(1 << 60, (1 << 60) + 2000)]
    events: list[Event] = [{d: [(key, key)] for d in range(3)} for key in range((1 << 60) - 2, (1 << 60) + 40)]
    assert check(rows_with(clauses), events).compared == 0


def test_a_record_of_three_hundred_codes() -> None:
    """Two thirds of the keys lie beside the grid."""
    rough = [[Leaf(d, Mode.SOME, ((key * 2**40 + key % 3, KEY_MAX),)) for d in range(300)] for key in range(300)]
    events: list[Event] = [{d: [(key * 2**40 + 2, key * 2**40 + 2)] for d in range(300)} for key in (-1, 0, 7, 299)]
    events.append({**events[-1], 150: [(5, 5)]})
    check(rows_with(rough), events)


def test_a_record_of_seventy_thousand_words() -> None:
    excluded = points(*range(1, 256 * 3, 3)[:255])
    clauses = [[Leaf(d, Mode.NONE, excluded) for d in range(140)], [Leaf(0, Mode.SOME, ((0, 0),))]]
    clauses += [[Leaf(d, Mode.SOME, ((7, KEY_MAX),))] for d in range(3)]
    event: Event = {d: [(0, 0)] for d in range(140)}
    check(rows_with(clauses), [event, {**event, 139: [(4, 4)]}, {**event, 0: [(8, 8)]}])


def test_twenty_thousand_thresholds() -> None:
    keys = np.random.default_rng(3).permutation(20_000).tolist()
    clauses = [[Leaf(0, Mode.SOME, ((7 * key, KEY_MAX) if key % 2 else (KEY_MIN, 7 * key),))] for key in keys]
    events: list[Event] = [{0: [(7 * key + nudge,) * 2]} for key in (0, 1, 777, 10_000, 19_999) for nudge in (-1, 0, 1)]
    check(rows_with(clauses), [*events, {0: [(100, 200), (7000, 7000)]}, {1: [(0, 0)]}])


def test_a_set_of_a_hundred_thousand_values() -> None:
    large = tuple((10 * i, 10 * i + i % 3) for i in range(100_000))
    clauses = [
        [Leaf(0, Mode.SOME, large)],
        [Leaf(0, Mode.NONE, large)],
        [Leaf(0, Mode.SOME, large), Leaf(1, Mode.SOME, points(1))],
        [Leaf(0, Mode.SOME, points(50_000))],
        *([Leaf(1, Mode.SOME, points(i))] for i in range(50)),
    ]
    keys = (-1, 0, 3, 50_000, 50_001, 50_002, 50_003, 999_990, 1_000_000)
    events: list[Event] = [{0: [(key, key)], 1: [(key % 3, key % 3)]} for key in keys]
    events += [{0: [(4, 9)]}, {0: [(4, 10)]}, {0: points_of(*range(3, 300, 10))}, {}]
    check(rows_with(clauses), events)


def test_a_thousand_predicates_in_one() -> None:
    wide = [Leaf(d, Mode.SOME, ((d, KEY_MAX),)) for d in range(1000)]
    clauses = [wide, wide[:999], [*wide[:500], Leaf(1500, Mode.ABSENT, ())], [Leaf(3, Mode.SOME, points(3))]]
    everything: Event = {d: [(d, d)] for d in range(1000)}
    events = [everything, {**everything, 999: [(998, 998)]}, {**everything, 1500: [(1, 1)]}, {**everything, 500: []}]
    check(rows_with(clauses), [{d: v for d, v in event.items() if v} for event in events])


def test_more_dimensions_than_sixteen_bits_can_number() -> None:
    count = 66_000
    clauses = [[Leaf(d, Mode.SOME, points(d % 5))] for d in range(count)]
    clauses += [[Leaf(d, Mode.SOME, points(1)), Leaf(count - 1 - d, Mode.ABSENT, ())] for d in range(0, count, 500)]
    chance = random.Random(1)
    events: list[Event] = [{chance.randrange(count): [(k % 6, k % 6)] for k in range(50)} for _ in range(20)]
    events += [{count - 1: [(0, 0)]}, {65_534: [(4, 4)], 65_535: [(0, 0)], 65_536: [(1, 1)]}, {0: [(0, 0), (1, 1)]}]
    check(rows_with(clauses), events)


def test_one_conjunction_with_five_thousand_owners() -> None:
    rows = rows_with([[Leaf(0, Mode.SOME, points(1)), Leaf(1, Mode.SOME, ((3, 9),))]] * 5000)
    segment = Segment.of(rows, None)
    assert (len(segment), segment.owned) == (1, 5000)
    check(rows, [{0: [(1, 1)], 1: [(5, 5)]}, {0: [(1, 1)], 1: [(2, 2)]}, {}], segment=segment)


@pytest.mark.parametrize("sampled", [False, True])
def test_all_share_one_predicate(sampled: bool) -> None:
    shared = Leaf(0, Mode.SOME, points(1))
    clauses = [[shared, Leaf(1 + i % 40, Mode.SOME, points(i // 40))] for i in range(4000)]
    chance = random.Random(2)
    events: list[Event] = [
        {0: [(i % 2, i % 2)], **{d: [(v, v)] for d in range(1, 41) for v in [chance.randrange(110)]}} for i in range(40)
    ]
    check(rows_with(clauses), events, events if sampled else None)


def test_conjunctions_that_match_all_some_or_no_events() -> None:
    everything, nothing = Leaf(0, Mode.SOME, ((KEY_MIN, KEY_MAX),)), Leaf(0, Mode.ABSENT, ())
    rows = rows_with([[], [everything], [nothing], [everything, nothing], []])
    check(rows, [{}, {0: [(5, 5)]}, {1: [(5, 5)]}, {0: [(KEY_MIN, KEY_MAX - 1)]}])


def test_events_of_ten_thousand_attributes() -> None:
    clauses = [
        [Leaf(d, Mode.SOME, points(d % 7)), Leaf((d * 7919) % 10_000, Mode.SOME, ((0, 4),))] for d in range(10_000)
    ]
    chance = random.Random(4)
    events: list[Event] = [{d: [(v, v)] for d in range(10_000) for v in [chance.randrange(7)]} for _ in range(3)]
    check(rows_with(clauses), [*events, {}])


def test_fifty_thousand_matches_of_an_event() -> None:
    clauses = [[Leaf(0, Mode.SOME, ((-i, KEY_MAX),)), Leaf(1, Mode.NONE, points(i))] for i in range(50_000)]
    check(rows_with(clauses), [{0: [(5, 5)], 1: [(7, 7)]}, {0: [(-25_000, -25_000)], 1: [(-1, -1)]}] * 3)


def test_a_segment_gives_back_the_rows_it_was_built_from() -> None:
    for seed in (3, 5, 8):
        rows, events, _ = random_case(seed)
        again = Segment.of(rows, None).rows(NOBODY_DIED)
        assert np.array_equal(np.sort(again.slot), np.sort(rows.slot))
        check(again, events)
        check(rows, events, segment=Segment.of(again, None))


def test_dead_rows_are_not_found_and_leave_when_a_segment_is_built_again() -> None:
    rows = rows_with([[Leaf(0, Mode.SOME, ((i % 3, KEY_MAX),))] for i in range(60)])
    died = np.full(60, np.iinfo(np.int64).max)
    died[::2] = 4
    segment = Segment.of(rows, None)
    batch = batch_of([{0: [(9, 9)]}])
    everyone, odd = list(range(60)), list(range(1, 60, 2))
    for now, expected in ((3, everyone), (4, odd), (9, odd)):
        found = segment.match(batch, 1, Life(died, now), ThreadScratch())
        assert (sorted(found.slots.tolist()), found.counts.tolist()) == (expected, [len(expected)])
        assert sorted(segment.rows(Life(died, now)).slot.tolist()) == expected
