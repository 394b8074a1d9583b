"""Pairs find conjunctions by two values at once: when they are made, and that matches stay the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine.layout.costs import USUAL_COSTS, Costs
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tests.engine.naive import rows_with
from tests.engine.random_rows import RandomRows, Shape
from tests.engine.test_segment import NOBODY_DIED, check
from tests.papers.naive import Event, batch_of

ALWAYS, NEVER = Costs(caution_with_pairs=0.0), Costs(caution_with_pairs=1e9)
"""Pairs for each conjunction that they make cheaper, whatever looking for pairs costs; or for none."""


def point(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, key),))


def some_of(dimension: int, *keys: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, tuple((key, key) for key in sorted({*keys})))


def single(**values: int) -> Event:
    return {int(name[1:]): [(key, key)] for name, key in values.items()}


def shop(count: int, seed: int = 1) -> list[list[Leaf]]:
    """Conjunctions on country and category. Most also have a price or a brand."""
    chance = random.Random(seed)
    clauses = []
    for _ in range(count):
        clause = [point(0, chance.randrange(40)), point(1, chance.randrange(100))]
        if chance.random() < 0.5:
            clause.append(Leaf(2, Mode.SOME, ((0, chance.randrange(100)),)))
        if chance.random() < 0.2:
            clause[0] = some_of(0, *(chance.randrange(40) for _ in range(3)))
        if chance.random() < 0.2:
            low = chance.randrange(97)
            clause[1] = Leaf(1, Mode.SOME, ((low, low + 2),))
        if chance.random() < 0.3:
            clause.append(Leaf(3, chance.choice([Mode.SOME, Mode.NONE]), ((5, 5), (chance.randrange(6, 90),) * 2)))
        clauses.append(clause)
    return clauses


def customer(chance: random.Random, most: int = 1) -> Event:
    """An event with up to `most` values of each attribute. If `most` is above 1, some values are intervals."""
    event: Event = {}
    for dimension, values in enumerate((40, 100, 100, 90)):
        if chance.random() < 0.9:
            drawn = [chance.randrange(values) for _ in range(chance.randint(1, most))]
            event[dimension] = [(low, low + (chance.randrange(20) if most > 1 else 0)) for low in drawn]
    return event


def paired(rows: Rows, sample: list[Event], costs: Costs = USUAL_COSTS) -> Segment:
    segment = Segment.of(rows, batch_of(sample), costs)
    assert segment.body.pairs.entries > 0
    return segment


@pytest.mark.parametrize("most", [1, 3])
def test_few_attributes_of_few_values(most: int) -> None:
    chance = random.Random(2)
    rows = rows_with(shop(80_000))
    sample = [customer(chance) for _ in range(500)]
    segment = paired(rows, sample)
    assert 40_000 < segment.stats()["pairs"] < segment.stats()["entries"]
    events = [customer(chance, most) for _ in range(60)]
    events += [{}, {0: [(3, 3)]}, {1: [(7, 7)]}, {0: [(0, 39)], 1: [(0, 99)]}, {9: [(1, 1)]}]
    check(rows, events, segment=segment)
    if most == 1:
        looked = check(rows, events[:60], segment=segment).candidates
        without = Segment.of(rows, batch_of(sample), NEVER)
        assert without.body.pairs.entries == 0
        assert looked < 0.6 * check(rows, events[:60], segment=without).candidates


def test_random_rows_with_pairs(cases: Callable[[int], int], record_property: Callable[[str, object], None]) -> None:
    decisions, entries = 0, 0
    for seed in range(cases(24)):
        chance = random.Random(seed)
        shape = Shape(
            rows=chance.choice([300, 1500]),
            dimensions=chance.choice([2, 3, 10]),
            values=chance.choice([60, 120, 400]),
            longest=chance.choice([3, 6]),
            several=chance.choice([0.0, 0.3]),
            step=chance.choice([0.0, 1.0, 0.37]),
        )
        made = RandomRows(seed, shape)
        rows, events = rows_with(made.clauses()), [made.event() for _ in range(30)]
        segment = Segment.of(rows, batch_of(events) if seed % 2 else None, ALWAYS)
        check(rows, events, segment=segment)
        again = segment.rows(NOBODY_DIED)
        check(again, events, segment=Segment.of(again, None, ALWAYS))
        decisions, entries = decisions + rows.number * len(events), entries + segment.body.pairs.entries
    record_property("decisions", decisions)
    assert decisions > 100_000
    assert entries > 500


@pytest.mark.kernels
def test_a_few_pairs_uncompiled() -> None:
    chance = random.Random(4)
    rows = rows_with(shop(60))
    segment = paired(rows, [customer(chance) for _ in range(20)], ALWAYS)
    check(rows, [customer(chance, most) for most in (1, 1, 1, 2)], segment=segment)
    # The first event has so many cells that it visits all entries.
    check(rows, [{0: [(0, 39)], 1: [(0, 99)], 3: [(4, 5)]}, single(d0=3, d1=4, d2=5)], segment=segment)


def test_a_row_that_an_event_finds_by_several_pairs_is_reported_once() -> None:
    rows = rows_with([[some_of(0, 1, 2, 3), some_of(1, 1, 2, 3)]] * 3 + shop(400))
    segment = paired(rows, [customer(random.Random(5)) for _ in range(50)], ALWAYS)
    several = {0: [(1, 1), (2, 2), (3, 3)], 1: [(1, 1), (2, 3)]}
    check(rows, [several, {0: [(0, 39)], 1: [(0, 99)], 2: [(50, 50)]}], segment=segment)


def test_room_for_matches_grows() -> None:
    clauses = [[point(0, 1), point(1, number % 2)] for number in range(150_000)]
    clauses += shop(3_000)
    rows = rows_with(clauses)
    rare = [single(d0=2 + number % 30, d1=2 + number % 90) for number in range(500)]
    segment = paired(rows, rare, ALWAYS)
    check(rows, [single(d0=1, d1=0), single(d0=1, d1=1), {0: [(1, 1)], 1: [(0, 0), (1, 1)]}], segment=segment)


def test_events_of_many_attributes_do_not_try_pairs() -> None:
    chance = np.random.default_rng(6)
    clauses = [
        [point(int(dimension), int(chance.integers(100))) for dimension in chance.choice(60, 4, replace=False)]
        for _ in range(5_000)
    ]
    sample: list[Event] = [
        {dimension: [(key, key)] for dimension, key in enumerate(chance.integers(0, 100, 60).tolist())}
        for _ in range(200)
    ]
    rows = rows_with(clauses)
    assert Segment.of(rows, batch_of(sample)).body.pairs.entries == 0
    check(rows, sample[:20], sample)


def test_no_pairs_of_values_that_always_come_together() -> None:
    """The planner takes attributes to be independent. The events of the sample show that these are not."""
    clauses = [[point(0, number % 100), point(1, number % 100)] for number in range(30_000)]
    together: list[Event] = [single(d0=number % 100, d1=number % 100, d2=15_000) for number in range(500)]
    apart: list[Event] = [
        single(d0=number % 100, d1=(7 * number + number // 100) % 100, d2=15_000) for number in range(500)
    ]
    rows = rows_with([[*clause, Leaf(2, Mode.SOME, ((0, number),))] for number, clause in enumerate(clauses)])
    assert Segment.of(rows, batch_of(together)).body.pairs.entries == 0
    assert Segment.of(rows, batch_of(apart)).body.pairs.entries > 0


def test_a_matcher_reports_pairs_and_saves_them(tmp_path: Path) -> None:
    chance = random.Random(7)
    matcher = tamis.Matcher()
    texts = [
        f"country = 'c{chance.randrange(40)}' AND category = {chance.randrange(100)} AND price < {chance.randrange(99)}"
        for _ in range(20_000)
    ]
    events = [
        {"country": f"c{chance.randrange(42)}", "category": chance.randrange(102), "price": chance.randrange(100)}
        for _ in range(300)
    ]
    matcher.observe(events)
    matcher.add_many(range(len(texts)), texts)
    plan = matcher.plan(17)
    assert plan.clauses[0].way == "pair"
    country, category, price = texts[17].split(" AND ")
    assert plan.clauses[0].access in (f"{country} and {category}", f"{category} and {country}")
    assert plan.clauses[0].filter == price
    assert plan.clauses[0].rest == ()
    assert str(plan).startswith(f"found by {plan.clauses[0].access} (a list of {plan.clauses[0].entries} entr")
    (segment,) = matcher.stats()["index_stats"]["segments"]
    assert 19_000 < segment["pairs"] <= segment["conjunctions"]
    tree = [tamis.parse(text) for text in texts[:300]]
    path = tmp_path / "shop.tamis"
    matcher.save(path)
    for each in (matcher, tamis.load(path)):
        for event in events[:40]:
            found = {int(number) for number in each.match(event) if int(number) < 300}
            assert found == {number for number, wanted in enumerate(tree) if tamis.evaluate(wanted, event) is True}
    for number in range(0, 20_000, 2):
        matcher.remove(number)
    matcher.optimize()
    loaded = tamis.load(path)
    expected = [sorted(number for number in loaded.match(event) if int(number) % 2) for event in events[:40]]
    assert [sorted(matcher.match(event)) for event in events[:40]] == expected
