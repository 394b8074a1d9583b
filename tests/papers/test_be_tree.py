"""The BE-Tree's structure: the paper's example, its rules, its options, and keys that are not small integers."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.keys import KeyKind, double_code
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.errors import OptionError
from tamis.kernels.bits import second_half
from tamis.matcher.matcher import matcher_over
from tamis.papers.be_tree import BETree
from tamis.papers.be_tree.nodes import CAP, LEAF
from tests.papers.naive import Event, RandomKeys, batch_of, matching, rows_of
from tests.papers.stores import store_over

pytestmark = pytest.mark.kernels

A, B, C, D = range(4)
MIN, MAX = -(2**63), 2**63 - 1


def some(dimension: int, lo: int, hi: int | None = None) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((lo, lo if hi is None else hi),))


def tree_of(
    clauses: list[list[Leaf]], one_by_one: bool = True, kind: KeyKind = KeyKind.INTEGER, **options: Any
) -> BETree:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    tree = BETree(table, BETree.options_type.read(options, "be-tree"), lambda dimension: kind)
    for part in np.array_split(numbers, len(numbers)) if one_by_one else [numbers]:
        tree.insert(part)
        tree.check()
    return tree


def drawn(tree: BETree) -> list[str]:
    return tree.draw().splitlines()


def pairs(tree: BETree, events: list[Event], dimensions: int = 6) -> set[tuple[int, int]]:
    matches = tree.match(batch_of(events), dimensions)
    return set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))


def agrees(tree: BETree, clauses: list[list[Leaf]], events: list[Event], live: Iterable[int] | None = None) -> None:
    there = range(len(clauses)) if live is None else live
    assert pairs(tree, events) == matching({number: clauses[number] for number in there}, events)


# Section 6: S1 to S9. Their figure is lost. These subscriptions agree with the text.
PAPER = [
    [some(A, 1, 8), some(B, 1)],
    [some(C, 1)],
    [some(D, 1)],
    [some(A, 2, 7)],
    [some(D, 2)],
    [some(D, 3)],
    [some(A, 3, 6), some(B, 3)],
    [some(A, 1)],
    [some(A, 4, 5), some(B, 4)],
]
SMALL: dict[str, Any] = {"max_cap": 3, "min_size": 2, "domain_lo": 1, "domain_hi": 8}


def test_the_example_of_section_6_step_by_step() -> None:
    def after(count: int) -> list[str]:
        return drawn(tree_of(PAPER[:count], **SMALL))

    assert after(3) == ["root [0, 1, 2]"]
    assert after(4) == ["root [1, 2]", "  p-node 0", "    [1, 8] [0, 3]"]
    assert after(6) == ["root [1]", "  p-node 0", "    [1, 8] [0, 3]", "  p-node 3", "    [1, 8] [2, 4, 5]"]
    assert after(8) == [
        "root [1]",
        "  p-node 0",
        "    [1, 8] [0, 3, 6]",
        "        [1, 4] [7]",
        "  p-node 3",
        "    [1, 8] [2, 4, 5]",
    ]
    assert after(9) == [
        "root [1]",
        "  p-node 0",
        "    [1, 8] [3]",
        "      p-node 1",
        "        [1, 8] [0, 6, 8]",
        "        [1, 4] [7]",
        "  p-node 3",
        "    [1, 8] [2, 4, 5]",
    ]


def test_the_example_matches_and_prunes() -> None:
    tree = tree_of(PAPER, **SMALL)
    events: list[Event] = [
        {A: [(4, 4)], B: [(4, 4)]},
        {A: [(1, 1)], D: [(3, 3)]},
        {C: [(1, 1)]},
        {A: [(1, 1), (5, 5)], B: [(1, 3)]},
        {},
    ]
    agrees(tree, PAPER, events)
    # Only the root's S2 is a candidate: 9 is outside the bounds of p-node d.
    counters = tree.match(batch_of([{D: [(9, 9)]}]), 4).counters
    assert (counters.candidates, counters.nodes) == (1, 2)


def test_the_example_of_the_introduction() -> None:
    matcher = tamis.Matcher(index="be-tree")
    matcher.add(
        "shopper",
        "genre = 'classics' AND era IN ('1920s', '1940s') AND price BETWEEN 20 AND 40 AND ranking < 5 "
        "AND format NOT IN ('paperback')",
    )
    item = {
        "genre": "classics",
        "title": "The Sun Also Rises",
        "author": "Hemingway",
        "era": "1920s",
        "price": 26,
        "ranking": 2,
        "format": "hardcover",
    }
    assert matcher.match(item) == ["shopper"]
    assert matcher.match({**item, "format": "paperback"}) == []
    assert matcher.match({**item, "ranking": 5}) == []


GENRE, ERA, PRICE, RANKING, FORMAT = range(5)
SHOPPER = [
    some(GENRE, 7),
    Leaf(ERA, Mode.SOME, ((0, 0), (2, 2))),
    some(PRICE, 2, 5),
    some(RANKING, MIN, 3),
    Leaf(FORMAT, Mode.NONE, ((1, 1),)),
]
"""The same subscription with keys, for values from 0 to 7."""


def test_the_place_of_the_example_of_the_introduction() -> None:
    assert drawn(tree_of([SHOPPER])) == ["root [0]"], "a root that does not overflow is one l-node"
    clauses = [SHOPPER, [some(PRICE, 0, 7)], [some(PRICE, 4)], [some(PRICE, 1)]]
    tree = tree_of(clauses, max_cap=3, min_size=2, domain_lo=0, domain_hi=7)
    # The price is the most frequent attribute, and 2 to 5 lies in neither half of its domain.
    assert drawn(tree) == ["root []", "  p-node 2", "    [0, 7] [0, 1]", "        [0, 3] [3]", "        [4, 7] [2]"]


@pytest.mark.parametrize(
    ("attribute", "bucket"),
    [(GENRE, "[7, 7]"), (ERA, "[0, 3]"), (PRICE, "[0, 7]"), (RANKING, "[0, 3]"), (FORMAT, "[0, 7]")],
)
def test_the_intervals_of_the_example_of_the_introduction(attribute: int, bucket: str) -> None:
    """Table 1: `=` is [v, v], IN from its least to its greatest value, BETWEEN, `<` from the lowest value, NOT IN everything."""
    clauses = [SHOPPER, *([some(attribute, value)] for value in range(8))]
    tree = tree_of(clauses, one_by_one=False, max_cap=1, min_size=2, domain_lo=0, domain_hi=7)
    lines = [line.strip() for line in drawn(tree)]
    assert lines[1] == f"p-node {attribute}"
    (place,) = (line for line in lines if line.endswith(("[0]", "[0, 8]")))
    assert place.startswith(bucket)


def test_subscriptions_inserted_at_once_are_partitioned_together() -> None:
    tree = tree_of(PAPER, one_by_one=False, **SMALL)
    # Attribute a (S1, S4, S7, S8, S9) is the most frequent, then d, then b below a. c is not frequent enough.
    assert drawn(tree) == drawn(tree_of(PAPER, **SMALL))
    assert tree.stats()["partitions"] == 3
    assert drawn(tree_of(PAPER, one_by_one=False, batch=False, **SMALL)) == drawn(tree_of(PAPER, **SMALL))


def test_the_capacity_is_extended_where_no_attribute_is_frequent() -> None:
    clauses = [[some(d, 1)] for d in range(8)]
    tree = tree_of(clauses, max_cap=3, min_size=2)
    assert drawn(tree) == ["root [0, 1, 2, 3, 4, 5, 6, 7]"]
    arrays = tree.nodes.view()
    assert arrays.cold[0, CAP] == 9
    tree = tree_of([*clauses, [some(0, 2)], [some(0, 3)]], max_cap=3, min_size=2)
    # The tenth overflows the capacity of nine. A p-node takes three, and the capacity is what the remaining ones need.
    assert drawn(tree) == ["root [1, 2, 3, 4, 5, 6, 7]", "  p-node 0", "    [1, 3] [0, 8, 9]"]
    assert tree.nodes.view().cold[0, CAP] == 9


def test_large_l_nodes_grow_by_an_eighth() -> None:
    """Otherwise every third conjunction would look for attributes among all before it."""
    tree = tree_of([[some(each, 1)] for each in range(500)], max_cap=3, min_size=2)
    grown = [3 * number for number in range(1, 27)]
    while grown[-1] < 500:
        needed = grown[-1] + 1
        grown.append(-(-(needed + (needed // 8 if needed > 80 else 0)) // 3) * 3)
    assert tree.nodes.view().cold[0, CAP] == grown[-1] > 502
    assert len(grown) < 45


def test_a_large_root_is_partitioned_when_attributes_become_frequent() -> None:
    """At first no attribute of 400 has three expressions, and the root grows. Its capacity must not stay ahead of them."""
    chance = random.Random(5)
    clauses = [[some(each, 1) for each in sorted(chance.sample(range(400), 4))] for _ in range(900)]
    left = []
    for batch in (False, True):
        tree = tree_of(clauses, one_by_one=False, batch=batch, max_cap=3, min_size=3)
        left.append(second_half(tree.nodes.view().hot[0, LEAF]))
    assert left[1] < 100
    assert left[0] < 2 * left[1]


@pytest.mark.parametrize("seed", range(3))
def test_buckets_do_not_depend_on_the_order_of_expressions(seed: int) -> None:
    # With one attribute, the buckets are the paper's grid, whatever the order.
    chance = random.Random(seed)
    clauses = [[some(A, lo, chance.randint(lo, 64))] for lo in range(1, 60)]
    shuffled = clauses.copy()
    chance.shuffle(shuffled)
    one = tree_of(clauses, domain_lo=1, domain_hi=64)
    other = tree_of(shuffled, one_by_one=seed > 0, domain_lo=1, domain_hi=64)
    buckets = [line.split("]")[0] for line in drawn(one)]
    assert buckets == [line.split("]")[0] for line in drawn(other)]
    assert one.stats()["splits"] >= 4


@pytest.mark.parametrize("start", [715729539, 8643700, 285081776])
def test_strangers_to_two_buckets_do_not_drive_each_other_out_for_ever(start: int) -> None:
    chance = random.Random(start)
    dimensions, count, values = chance.choice([2, 3, 4]), chance.choice([12, 16, 24, 40]), chance.choice([2, 3])
    max_cap, min_size = chance.choice([2, 3]), chance.choice([2, 3])
    clauses = []
    for _ in range(count):
        attributes = sorted(chance.sample(range(dimensions), chance.randint(1, dimensions)))
        clauses.append(tuple(some(each, chance.randint(1, values)) for each in attributes))
    different = [list(clause) for clause in dict.fromkeys(clauses)]
    tree = tree_of(different, one_by_one=False, batch=False, max_cap=max_cap, min_size=min_size)
    tree.check()
    events: list[Event] = [{each: [(value, value)] for each in range(dimensions)} for value in range(1, 4)]
    agrees(tree, different, events)


def test_equal_intervals_are_not_cut_apart_but_partitioned() -> None:
    clauses = [[some(A, 5), some(B, number)] for number in range(1, 7)] + [[some(A, 60)], [some(B, 3)]]
    tree = tree_of(clauses[:6], max_cap=3, domain_lo=1, domain_hi=64)
    assert drawn(tree)[:5] == [
        "root []",
        "  p-node 0",
        "    [1, 64] []",
        "      p-node 1",
        "        [1, 64] []",
    ]
    # With another interval, the bucket can be cut.
    tree = tree_of(clauses, max_cap=3, domain_lo=1, domain_hi=64)
    text = tree.draw()
    assert "    [1, 64] []\n        [1, 32] []\n          p-node 1" in text
    assert "        [33, 64] [6]" in text
    agrees(tree, clauses, [{A: [(5, 5)], B: [(3, 3)]}, {A: [(60, 60)]}, {A: [(1, 64)], B: [(0, 99)]}])


def test_open_ends_and_values_outside_the_domain() -> None:
    clauses = [[some(A, MIN, number)] for number in range(10, 20)]
    clauses += [[some(A, number, MAX)] for number in range(10, 20)]
    clauses += [[some(A, number)] for number in range(10, 20)]
    clauses += [[Leaf(A, Mode.NONE, ((number, number),))] for number in range(10, 16)]
    given: dict[str, Any] = {"domain_lo": 12, "domain_hi": 15}
    for tree in (tree_of(clauses), tree_of(clauses, **given)):
        agrees(tree, clauses, [{A: [(value, value)]} for value in (-9, 9, 10, 11, 14, 19, 20, 99)])
        agrees(tree, clauses, [{A: [(-5, 12)]}, {A: [(11, 11), (19, 30)]}, {B: [(10, 10)]}])


def test_numbers_are_cut_at_the_middle_of_their_values() -> None:
    def code(value: float) -> int:
        return double_code(float(value))

    clauses = [[some(A, code(value))] for value in range(1, 101)]
    tree = tree_of(clauses, one_by_one=False, kind=KeyKind.NUMBER)
    text = tree.draw()
    assert f"[{code(1)}, {code(50)}]" in text
    assert f"[{code(51)}, {code(100)}]" in text
    assert f"[{code(26)}, {code(50)}]" in text
    agrees(tree, clauses, [{A: [(code(value), code(value))]} for value in (1, 49, 50.5, 100, -3, 1e300)])
    # Fractions, such as prices, with a few frequent values. The number of values decides, not their distance.
    prices = [[some(A, code(0.99 + number % 7)), some(B, code(number))] for number in range(70)]
    tree = tree_of(prices, kind=KeyKind.NUMBER)
    agrees(tree, prices, [{A: [(code(2.99),) * 2], B: [(code(number),) * 2]} for number in range(70)])
    assert tree.stats()["nodes"] < 120


@pytest.mark.parametrize("step", [1, 0.5])
@pytest.mark.parametrize("sign", [1, -1])
def test_a_domain_that_begins_next_to_zero_is_cut_at_the_middle_of_its_values(step: float, sign: int) -> None:
    def code(value: float) -> int:
        return double_code(sign * value)

    # `> 0` begins at the first key above that of 0. The domain ends at the lowest and highest keys that predicates name.
    lowest, highest = sorted((double_code(0.0) + sign, code(80 * step)))
    clauses = [[some(A, lowest, highest)]]
    clauses += [[some(A, code(step * number))] for number in range(1, 81)]
    tree = tree_of(clauses, one_by_one=False, kind=KeyKind.NUMBER)
    assert f"[{lowest}, {code(40 * step)}]" in tree.draw()


def test_a_split_gives_up_the_room_that_was_added() -> None:
    same = [[some(A, 1, 2), some(attribute, number)] for attribute in (B, C, D) for number in (1, 2)]
    options = {**SMALL, "min_size": 3}

    def capacities(tree: BETree) -> list[int]:
        cold = tree.nodes.view().cold
        return [int(cold[x, CAP]) for x in range(len(drawn(tree)) - 1)]

    assert drawn(tree_of(same, **options)) == ["root []", "  p-node 0", "    [1, 8] [0, 1, 2, 3, 4, 5]"]
    assert capacities(tree_of(same, **options)) == [3, 6]
    tree = tree_of([*same, [some(A, 7)]], **options)
    assert drawn(tree)[2:] == ["    [1, 8] []", "        [1, 4] [0, 1, 2, 3, 4, 5]", "        [5, 8] [6]"]
    assert sorted(capacities(tree)) == [3, 3, 3, 6]


def test_domains_that_grow_are_cut_again() -> None:
    clauses = [[some(A, number)] for number in range(1, 400)]
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    tree = BETree(table)
    for part in np.array_split(numbers, 60):
        tree.insert(part)
        tree.check()
        if part[0] == 0:
            assert drawn(tree)[2] == "    [1, 7] []"
    top = drawn(tree)[2].strip().split("]")[0]
    lo, hi = (int(end) for end in top.strip("[").split(", "))
    assert lo == 1
    assert 350 <= hi < 800
    events: list[Event] = [{A: [(number, number)]} for number in range(1, 400, 7)]
    matches = tree.match(batch_of(events), 1)
    assert matches.counters.candidates < 8 * len(events)
    assert len(matches.event) == len(events)


def test_conjunctions_without_a_usable_predicate_stay_in_the_root() -> None:
    clauses = [[], [Leaf(A, Mode.ABSENT, ())], [Leaf(A, Mode.ABSENT, ()), some(B, 1)]]
    clauses += [[some(B, number)] for number in range(2, 9)]
    tree = tree_of(clauses)
    assert drawn(tree)[0] == "root [0, 1]"
    agrees(tree, clauses, [{}, {A: [(1, 1)]}, {B: [(1, 1)]}, {A: [(1, 1)], B: [(1, 1)]}])


def test_several_predicates_on_one_attribute() -> None:
    clauses = [[some(A, 0, 10 + number), some(A, number, 30), Leaf(A, Mode.NONE, ((5, 5),))] for number in range(20)]
    tree = tree_of(clauses)
    agrees(tree, clauses, [{A: [(5, 5)]}, {A: [(7, 7)]}, {A: [(1, 1), (25, 25)]}, {A: [(28, 40)]}])


# -- deletion


def test_halves_are_merged_into_an_open_bucket() -> None:
    clauses = [[some(A, 1, 8)], [some(A, 2, 7)], [some(A, 1)], [some(A, 8)], [some(A, 2)]]
    tree = tree_of(clauses, **{**SMALL, "max_cap": 4})
    assert drawn(tree) == ["root []", "  p-node 0", "    [1, 8] [0, 1]", "        [1, 4] [2, 4]", "        [5, 8] [3]"]
    tree.delete(np.array([4], np.int32))
    tree.check()
    assert drawn(tree) == ["root []", "  p-node 0", "    [1, 8] [0, 1, 2, 3]"]


def test_halves_of_a_partitioned_bucket_are_not_merged() -> None:
    tree = tree_of([*PAPER, [some(A, 2)]], **SMALL)
    tree.delete(np.array([9], np.int32))
    tree.check()
    assert "        [1, 4] [7]" in drawn(tree)


def test_empty_nodes_are_removed_up_to_the_root() -> None:
    tree = tree_of(PAPER, **SMALL)
    tree.delete(np.array([0, 6, 8], np.int32))
    tree.check()
    # The p-node of b is removed, and the rest of a's bucket is merged.
    assert drawn(tree) == ["root [1]", "  p-node 0", "    [1, 8] [3, 7]", "  p-node 3", "    [1, 8] [2, 4, 5]"]
    tree.delete(np.array([3], np.int32))
    tree.check()
    # One subscription is too few for a p-node, so it was inserted again into the root.
    assert drawn(tree) == ["root [1, 7]", "  p-node 3", "    [1, 8] [2, 4, 5]"]
    tree.delete(np.array([2, 4, 5, 7], np.int32))
    assert drawn(tree) == ["root [1]"]


@pytest.mark.parametrize("options", [{}, {"max_cap": 1, "min_size": 1}, {"loss": "histogram"}, {"max_cap": 40}])
def test_it_stays_correct_during_many_changes(options: dict[str, Any]) -> None:
    keys, chance = RandomKeys(21, keys=40), random.Random(21)
    clauses = keys.clauses(250)
    table = ConjunctionTable()
    table.intern(rows_of(clauses))
    tree = BETree(table, BETree.options_type.read({"least_window": 2, **options}, "be-tree"))
    live: set[int] = set()
    for _ in range(12):
        added = set(chance.sample(sorted(set(range(250)) - live), chance.randint(0, 250 - len(live))))
        tree.insert(np.array(sorted(added), np.int32))
        tree.check()
        live |= added
        removed = set(chance.sample(sorted(live), chance.randint(0, len(live) - 1)))
        tree.delete(np.array(sorted(removed), np.int32))
        tree.check()
        live -= removed
        agrees(tree, clauses, [keys.event() for _ in range(6)], live)
        tree.check()


@pytest.mark.parametrize(
    "options", [{"max_cap": 0}, {"min_size": 0}, {"loss": "pessimistic"}, {"rank_window": -1}, {"window": 3}]
)
def test_wrong_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        tamis.Matcher(index="be-tree", options=options)


def test_it_visits_few_candidates() -> None:
    chance = random.Random(5)
    clauses = [
        [some(d, chance.randint(1, 100)) for d in chance.sample(range(20), 3)] + [some(20, chance.randint(1, 50), 80)]
        for _ in range(600)
    ]
    tree = tree_of(clauses, one_by_one=False)
    events: list[Event] = [{d: [(chance.randint(1, 100),) * 2] for d in range(21)} for _ in range(20)]
    matches = tree.match(batch_of(events), 21)
    assert matches.counters.candidates < 0.25 * 600 * 20
    agrees(tree, clauses, events)


def test_events_with_fewer_attributes_than_there_are_p_nodes() -> None:
    clauses = [[some(d, value)] for d in range(40) for value in range(1, 5)]
    tree = tree_of(clauses, one_by_one=False)
    assert tree.stats()["p_nodes"] == 39  # the root holds one attribute
    events: list[Event] = [{3: [(2, 2)]}, {39: [(4, 4)], 7: [(1, 1), (3, 3)]}, {50: [(1, 1)]}]
    assert pairs(tree, events, 51) == matching(dict(enumerate(clauses)), events)
    assert tree.match(batch_of([{3: [(2, 2)]}]), 51).counters.candidates <= 8


def test_different_intervals_are_known_from_present_subscriptions_only() -> None:
    clauses = [[some(A, 5), some(B, number)] for number in range(1, 5)]
    clauses += [[some(A, 5, 7)], [some(A, 5, 7), some(B, 9)]]
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    tree = BETree(table, BETree.options_type.read({"max_cap": 4, "domain_lo": 1, "domain_hi": 64}, "be-tree"))
    tree.insert(numbers[[0, 1, 4]])
    tree.delete(numbers[4:5])
    for number in (2, 3, 5, 4):
        tree.insert(numbers[number : number + 1])
        tree.check()
    agrees(tree, clauses, [{A: [(6, 6)], B: [(9, 9)]}, {A: [(5, 5)], B: [(2, 2)]}])


def test_names_are_cut_at_the_middle_key() -> None:
    names = [1 << 40, 3 << 40, 9 << 40, 10 << 40, 11 << 40, 12 << 40]
    clauses = [[some(A, name), some(B, number)] for number, name in enumerate(names)]
    tree = tree_of(clauses, one_by_one=False, kind=KeyKind.NAME, domain_lo=0, domain_hi=8)
    assert f"    [{names[0]}, {names[-1]}] []" in drawn(tree)
    assert f"        [{names[0]}, {(names[0] + names[-1]) // 2}] [0, 1]" in drawn(tree)
    agrees(tree, clauses, [{A: [(name, name)], B: [(number, number)]} for number, name in enumerate(names)])


@pytest.mark.parametrize("far", ["9e307", "1.797e308", "1e300", "-1e300"])
def test_numbers_that_are_very_far_apart(far: str) -> None:
    matcher = tamis.Matcher(index="be-tree")
    expressions = {f"a{number}": f"x = {number} AND z = {number}" for number in range(8)}
    matcher.add_many(expressions, expressions.values())
    assert matcher.match({"x": 3, "z": 3}) == ["a3"]
    for number in range(12):
        more = {f"b{number}": f"x >= {far}", f"c{number}": f"x = {far}", f"d{number}": f"x > {number}"}
        for name, condition in more.items():
            expressions[name] = f"{condition} AND y = {number}"
            matcher.add(name, expressions[name])
    for x in (0.5, 3, float(far), 2 * 10.0**17):
        event = {"x": x, "y": 4, "z": 3}
        wanted = [name for name, text in expressions.items() if tamis.evaluate(tamis.parse(text), event)]
        assert sorted(matcher.match(event)) == sorted(wanted)


@pytest.mark.parametrize("far", [1e300, 1.7e308, -1e300, 2.0**60])
@pytest.mark.parametrize("step", [1, 0.25])
def test_one_distant_value_does_not_make_a_chain(far: float, step: float) -> None:
    store = store_over("be-tree")
    matcher = matcher_over(store)
    values = [*(step * number for number in range(40)), far]
    matcher.add_many(range(len(values)), [f"x = {value!r}" for value in values])
    assert [matcher.match({"x": value}) for value in values] == [[number] for number in range(len(values))]
    store.index.check()
    assert matcher.stats()["index_stats"]["nodes"] < 200
