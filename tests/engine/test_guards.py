"""Guards: which blocks of a list events skip, when lists have blocks, and that matches stay the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

import tamis
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine.layout.costs import USUAL_COSTS, Costs
from tamis.engine.layout.guards import BLOCK, GUARDED, count_entries
from tamis.engine.layout.scale import locate
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tests.engine.naive import rows_with
from tests.engine.random_rows import RandomRows, Shape
from tests.engine.test_segment import NOBODY_DIED, check
from tests.papers.naive import Event, batch_of

DIMENSIONS = 40
ALWAYS, NEVER = Costs(most_with_guards=1e9), Costs(most_with_guards=0.0)
"""All long lists are laid out in blocks, even if that does not pay; or none of them is."""


def point(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, key),))


def wishes(count: int, seed: int = 1) -> list[list[Leaf]]:
    """Conjunctions of six predicates, on some of forty attributes."""
    chance = random.Random(seed)
    kinds = [Mode.SOME, Mode.SOME, Mode.NONE]
    return [
        [
            Leaf(dimension, chance.choice(kinds), ((low, low + chance.randrange(3)),))
            for dimension in chance.sample(range(DIMENSIONS), 6)
            for low in [chance.randrange(5)]
        ]
        for _ in range(count)
    ]


def offers(count: int, has: int, seed: int = 2, most: int = 1) -> list[Event]:
    """Events with `has` of the attributes, and up to `most` values of each."""
    chance = random.Random(seed)
    return [
        {
            dimension: [(key, key) for key in {chance.randrange(6) for _ in range(chance.randint(1, most))}]
            for dimension in chance.sample(range(DIMENSIONS), has)
        }
        for _ in range(count)
    ]


def guarded(rows: Rows, sample: list[Event], costs: Costs = USUAL_COSTS) -> Segment:
    segment = Segment.of(rows, batch_of(sample), costs)
    assert segment.stats()["guards"] > 0
    return segment


@pytest.mark.parametrize("most", [1, 3])
def test_events_skip_blocks_on_attributes_that_they_lack(most: int) -> None:
    rows, sample, events = rows_with(wishes(20_000)), offers(300, 12), offers(60, 12, seed=3, most=most)
    segment = guarded(rows, sample)
    extreme: list[Event] = [{}, {0: [(3, 3)]}, {d: [(2, 2)] for d in range(DIMENSIONS)}, {99: [(1, 1)]}]
    check(rows, events + extreme, segment=segment)
    looked = check(rows, events, segment=segment).candidates
    unguarded = Segment.of(rows, batch_of(sample), NEVER)
    assert looked < 0.7 * check(rows, events, segment=unguarded).candidates


@pytest.mark.parametrize("most", [1, 3])
def test_the_forecast_takes_guards_into_account(most: int) -> None:
    rows, sample = rows_with(wishes(20_000)), offers(1_000, 12, most=most)
    drifts = []
    for costs in (Costs(most_with_guards=0.85), NEVER):
        segment = Segment.of(rows, batch_of(sample), costs)
        check(rows, sample[:300], segment=segment)
        assert segment.watch.drift is not None
        drifts.append(segment.watch.drift)
    assert 0.85 < drifts[0] / drifts[1] < 1.15


def test_no_guards_if_events_have_most_attributes() -> None:
    rows = rows_with(wishes(5_000))
    segment = Segment.of(rows, batch_of(offers(300, 36)))
    assert len(segment.body.guard) == 0
    check(rows, offers(20, 36, seed=4), segment=segment)


@pytest.mark.parametrize("second", [False, True])
def test_random_rows_with_guards(
    second: bool,
    cases: Callable[[int], int],
    record_property: Callable[[str, object], None],
) -> None:
    costs = ALWAYS._replace(second_space=-1e9) if second else ALWAYS
    decisions, blocks = 0, 0
    for seed in range(cases(8)):
        chance = random.Random(seed)
        shape = Shape(
            rows=1500,
            dimensions=chance.choice([5, 10, 40]),
            values=chance.choice([3, 6, 20, 400]),
            longest=chance.choice([4, 8]),
            several=chance.choice([0.0, 0.3]),
            step=chance.choice([0.0, 1.0, 0.37]),
        )
        made = RandomRows(seed, shape)
        rows, events = rows_with(made.clauses()), [made.event() for _ in range(30)]
        segment = Segment.of(rows, batch_of(events) if seed % 2 else None, costs)
        assert len(segment.body.second) or not second
        check(rows, events, segment=segment)
        again = segment.rows(NOBODY_DIED)
        check(again, events, segment=Segment.of(again, None, costs))
        decisions, blocks = decisions + rows.number * len(events), blocks + segment.body.guards
    record_property("decisions", decisions)
    assert decisions > 200_000
    assert blocks > 150


@pytest.mark.kernels
def test_lists_of_all_lengths() -> None:
    """Lists that are too short for blocks lie between longer ones, and start anywhere."""
    lengths = [1, 24, 25, 3, 31, 32, 33, 7, 256, 2, 257, 24, 24, 40]
    clauses = [
        [
            point(0, key),
            Leaf(1 + number % 9, Mode.SOME, ((0, 5),)),
            Leaf(10 + number % 3, Mode.SOME, ((0, number // 3),)),
        ]
        for key, length in enumerate(lengths)
        for number in range(length)
    ]
    rows = rows_with(clauses)
    events: list[Event] = [
        {0: [(key, key)], **{d: [(d % 7, d % 7)] for d in range(1, 10, 1 + key % 3)}, 10 + key % 3: [(key, key)]}
        for key in range(len(lengths))
    ]
    sample: list[Event] = [
        {0: [(key % 14, key % 14)], 1 + key % 9: [(3, 3)], **{d: [(0, 0)] for d in (10, 11, 12)}} for key in range(900)
    ]
    segment = guarded(rows, sample, ALWAYS)
    check(rows, events, segment=segment)
    begins = segment.body.directory.begin.astype(int)
    assert segment.body.entries == len(clauses)
    for key, length in enumerate(lengths):
        space = locate(key, 0, segment.forecast.scales)
        begin, end = begins[space : space + 2]
        assert count_entries(segment.body.entry[2 * begin : 2 * end : 2], segment.body.dimensions) == length
        if length >= 25:
            assert begin % BLOCK == end % BLOCK == 0
            assert end - begin >= GUARDED
        else:
            assert end - begin < GUARDED


@pytest.mark.kernels
def test_entries_begin_at_a_cache_line() -> None:
    for count in (1, 5, 40):
        address, _ = Segment.of(rows_with(wishes(count)), None).body.entry.__array_interface__["data"]
        assert address % 64 == 0


def test_a_list_of_thousands_of_blocks() -> None:
    chance = random.Random(5)
    clauses = [
        [point(0, 1), point(chance.randrange(1, 30), chance.randrange(9)), Leaf(31, Mode.ABSENT, ())]
        for _ in range(30_000)
    ]
    rows = rows_with([[*clause, Leaf(32, Mode.SOME, ((0, number),))] for number, clause in enumerate(clauses)])
    sample: list[Event] = [{0: [(number % 50, number % 50)], 1 + number % 29: [(1, 1)]} for number in range(500)]
    segment = guarded(rows, sample, ALWAYS)
    everything: Event = {0: [(1, 1)], 32: [(9_000, 9_000)], **{d: [(d % 9, d % 9)] for d in range(1, 30)}}
    few: Event = {0: [(1, 1)], 32: [(4, 4)], 7: [(3, 3)]}
    check(rows, [everything, few, {**few, 31: [(0, 0)]}, {0: [(1, 1)]}], segment=segment)


def test_a_matcher_reports_guards_and_saves_them(tmp_path: Path) -> None:
    chance = random.Random(6)
    names = [f"a{number}" for number in range(DIMENSIONS)]
    texts = [" AND ".join(f"{name} = {chance.randrange(4)}" for name in chance.sample(names, 4)) for _ in range(20_000)]
    events = [{name: chance.randrange(5) for name in chance.sample(names, 10)} for _ in range(300)]
    matcher = tamis.Matcher()
    matcher.observe(events)
    matcher.add_many(range(len(texts)), texts)
    (segment,) = matcher.stats()["index_stats"]["segments"]
    assert segment["guards"] > 500
    assert segment["entries"] == segment["conjunctions"]
    assert matcher.plan(17).clauses[0].entries < 400
    path = tmp_path / "offers.tamis"
    matcher.save(path)
    trees = [tamis.parse(text) for text in texts[:300]]
    for each in (matcher, tamis.load(path)):
        for event in events[:40]:
            found = {int(number) for number in each.match(event) if int(number) < 300}
            assert found == {number for number, wanted in enumerate(trees) if tamis.evaluate(wanted, event) is True}
