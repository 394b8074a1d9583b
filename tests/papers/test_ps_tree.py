"""The indexes with PS-Trees: the paper's examples, their lists, signatures and cells, options, special cases."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.interface import Index
from tamis.papers.parts.past_events import History, by_selectivity
from tamis.papers.ps_tree.bloom import BloomOptions, PSTBloom
from tamis.papers.ps_tree.forest import Forest
from tamis.papers.ps_tree.hashed import HashOptions, PSTHash
from tamis.papers.ps_tree.lists import ListOptions, PSTreeLists
from tests.papers.naive import Event, RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

LOWEST, HIGHEST = -(2**63), 2**63 - 1
INDEXES: list[type[Any]] = [PSTreeLists, PSTBloom, PSTHash]


def some(dimension: int, lo: int, hi: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((lo, hi),))


def built(kind: type[Index], clauses: list[list[Leaf]], options: Any = None) -> Any:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    index = kind(table, options)
    index.insert(numbers)
    index.check()
    return index


def found(index: Index, event: Event, dimensions: int = 8) -> list[int]:
    return sorted(index.match(batch_of([event]), dimensions).conjunction.tolist())


# -- the examples of the paper; attributes a1, a2, a3 are dimensions 1, 2, 3


FIGURE_3 = [
    [some(1, LOWEST, -6), some(2, 1, 5)],
    [some(1, -5, -1), some(2, LOWEST, 0)],
    [some(1, -5, -1), some(2, 6, HIGHEST)],
]


@pytest.mark.parametrize("one_by_one", [False, True])
def test_figure_3(one_by_one: bool) -> None:
    index = built(PSTBloom, [] if one_by_one else FIGURE_3)
    if one_by_one:
        for number in index.table.intern(rows_of(FIGURE_3)):
            index.insert(np.array([number], np.int32))
            index.check()
    # a1: [..,-5) [-5,-1] (-1,..]   a2: [..,1) [1,5] (5,..]
    first, second = index.forest.chain(1), index.forest.chain(2)
    lows = index.forest.view().trees.leaves.lo
    assert [int(lows[leaf]) for leaf in first] == [LOWEST, -5, 0]
    assert [int(lows[leaf]) for leaf in second] == [LOWEST, 1, 6]
    assert [index.list_of(leaf) for leaf in first] == [[], [1, 2], []]
    assert [index.list_of(leaf) for leaf in second] == [[], [0], []]

    def signed(leaf: int) -> list[int]:
        return [number for number in range(3) if index.signatures.contains(leaf, number)]

    if not one_by_one:  # a copied signature may have bits of the other half
        assert [signed(leaf) for leaf in first] == [[0], [], []]
        assert [signed(leaf) for leaf in second] == [[1], [], [2]]
    assert 0 in signed(first[0])
    assert 1 in signed(second[0])
    assert 2 in signed(second[2])
    assert found(index, {1: [(-3, -3)], 2: [(9, 9)]}) == [2]
    assert found(index, {1: [(-9, -9)], 2: [(5, 5)]}) == [0]
    assert found(index, {1: [(-3, -3)]}) == []


FIGURE_4 = [
    [some(1, 1, 1), some(2, -1, -1), some(3, LOWEST, -1)],
    [some(1, 1, 1), some(2, -1, -1), some(3, 1, HIGHEST)],
    [some(1, 1, 1), some(2, LOWEST, -2), some(3, 0, 0)],
    [some(1, LOWEST, 0), some(2, -1, -1), some(3, 0, 0)],
]


def space_ids(index: PSTHash) -> dict[tuple[str, ...], list[int]]:
    """Cells as in the paper: `1-2` is space 2 of dimension 1."""
    trees = index.forest.view().trees
    return {
        tuple(f"{trees.nodes.path[trees.leaves.root[leaf]]}-{trees.leaves.space[leaf]}" for leaf in key): rows
        for key, rows in index.cells.items().items()
    }


@pytest.mark.parametrize("one_by_one", [False, True])
def test_figure_4(one_by_one: bool) -> None:
    index = built(PSTHash, [] if one_by_one else FIGURE_4)
    if one_by_one:
        for number in index.table.intern(rows_of(FIGURE_4)):
            index.insert(np.array([number], np.int32))
            index.check()
    assert space_ids(index) == {("1-2", "2-2"): [0, 1], ("1-2", "3-2"): [2], ("2-2", "3-2"): [3]}
    matches = index.match(batch_of([{1: [(1, 1)], 2: [(-1, -1)], 3: [(2, 2)]}]), 4)
    assert matches.counters.candidates == 2, "S1 and S2"
    assert matches.counters.nodes == 1, "one cell of three keys"
    assert matches.conjunction.tolist() == [1], "S2 it is"


def test_a_split_copies_records_before_the_new_one_enters() -> None:
    clauses = [[some(1, 0, 9), some(2, 5, 5)], [some(1, 5, 20), some(2, 5, 5)]]
    index = built(PSTHash, clauses[:1])
    assert list(index.cells.items().values()) == [[0]]
    index.insert(index.table.intern(rows_of(clauses[1:])))
    index.check()
    assert sorted(index.cells.items().values()) == [[0], [0, 1], [1]]
    index.delete(np.array([0], np.int32))
    index.check()
    assert list(index.cells.items().values()) == [[1]], "cells of merged spaces have united"
    assert index.stats()["leaves"] == 6


def test_lists_of_leaves_are_added_and_removed() -> None:
    index = built(PSTreeLists, [[some(0, 0, 4)], [some(0, 2, 4)]])
    assert [index.list_of(leaf) for leaf in index.forest.chain(0)] == [[], [0], [0, 1], []]
    predicates = index.forest.view().trees.leaves.predicates
    assert [int(predicates[leaf]) for leaf in index.forest.chain(0)] == [0, 1, 2, 0]
    index.delete(np.array([1], np.int32))
    index.check()
    assert [index.list_of(leaf) for leaf in index.forest.chain(0)] == [[], [0], []]


# -- access predicates


def ranked(clause: list[Leaf], history: History) -> list[int]:
    """The dimensions of a clause's predicates, the most selective first."""
    table = ConjunctionTable()
    numbers = table.intern(rows_of([clause]))
    order, _ = by_selectivity(table.view(), numbers, history)
    return [int(d) for d in table.view().predicates.dimension[order]]


def test_without_a_history_operators_are_ranked() -> None:
    clause = [
        Leaf(0, Mode.ABSENT, ()),
        some(1, LOWEST, HIGHEST),
        Leaf(2, Mode.NONE, ((3, 3),)),
        Leaf(3, Mode.NONE, ((3, 3), (5, 5))),
        some(4, LOWEST, 7),
        some(5, 1, 10),
        some(6, 1, 5),
        Leaf(7, Mode.SOME, ((1, 1), (3, 3), (9, 9))),
        Leaf(8, Mode.SOME, ((1, 1), (3, 3))),
        some(9, 4, 4),
    ]
    assert ranked(clause, History()) == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]


def test_with_a_history_the_rarest_predicate_is_first() -> None:
    history = History()
    history.observe(batch_of([{0: [(4, 4)], 1: [(number, number)]} for number in range(10)]))
    assert ranked([some(0, 4, 4), some(1, 3, 4), some(2, 0, HIGHEST)], history) == [2, 1, 0]
    assert ranked([some(0, 5, 5), some(1, 3, 4)], history) == [0, 1]
    assert ranked([Leaf(0, Mode.NONE, ((4, 4),)), some(1, 3, 4)], history) == [0, 1]


def test_events_are_counted_again_when_leaves_are_cut() -> None:
    for kind in INDEXES:
        index = built(kind, [[some(0, 0, 9), some(1, 1, 1)]], None)
        index.observe(batch_of([{0: [(number, number)], 1: [(1, 1)]} for number in range(20)]), 2)
        index.check()
        index.insert(index.table.intern(rows_of([[some(0, 3, 4), some(1, 7, 7)]])))
        index.check()
        events = index.forest.view().trees.leaves.events
        assert sum(int(events[leaf]) for leaf in index.forest.chain(1)) == 20


# -- options


def test_a_predicate_that_covers_too_many_leaves_is_in_a_list_of_its_dimension() -> None:
    points = [[some(0, number, number)] for number in range(20)]
    wide = [some(0, 0, 100), Leaf(3, Mode.ABSENT, ())]
    for kind in (PSTreeLists, PSTBloom):
        options = kind.options_type.read({"most_leaves": 10}, kind.name)
        index = built(kind, [*points, wide], options)
        assert index.stats()["wide"] == 1
        assert index.stats()["leaves"] == 22, "it has cut nothing"
        assert found(index, {0: [(5, 5)]}) == [5, 20]
        assert found(index, {0: [(50, 50)]}) == [20]
        assert found(index, {0: [(50, 50)], 3: [(1, 1)]}) == []
        index.delete(np.array([20], np.int32))
        index.check()
        assert index.stats()["wide"] == 0


def test_an_index_that_grows_too_much_is_built_again() -> None:
    """Points cut the leaves that wide predicates cover. In a new index, the wide predicates cover too many leaves for lists."""
    wide = [[some(0, 0, 1000), Leaf(1 + number, Mode.ABSENT, ())] for number in range(20)]
    points = [[some(0, 5 * number, 5 * number)] for number in range(1, 21)]
    for fewest, is_built_again in ((0, True), (1 << 16, False)):
        index = built(PSTreeLists, wide, ListOptions(most_leaves=4))
        index.fewest_entries = fewest
        assert (index.stats()["entries"], index.stats()["wide"]) == (20, 0)
        index.insert(index.table.intern(rows_of(points)))
        index.check()
        cut = 20 * (2 * len(points) + 1) + len(points)
        assert (index.stats()["entries"], index.stats()["wide"]) == ((40, 20) if is_built_again else (cut, 0))
        assert found(index, {0: [(50, 50)]}, 30) == [*range(20), 29]


def test_predicates_that_cover_much_have_no_signature() -> None:
    clauses = [[some(0, number, number), some(1, 0, number)] for number in range(1, 20)]
    assert built(PSTBloom, clauses, BloomOptions(most_signed=0)).stats()["signed"] == 0
    few = built(PSTBloom, clauses, BloomOptions(most_signed=5)).stats()["signed"]
    every = built(PSTBloom, clauses).stats()["signed"]
    assert 0 < few < every == 19
    assert built(PSTBloom, clauses).stats()["signature_entries"] == sum(range(1, 20))


def test_a_predicate_that_covers_many_leaves_is_in_the_signatures_of_blocks() -> None:
    """Of 400 leaves, `number` to 2,000 covers half on average. So it is in 7 blocks of blocks, blocks and leaves or so."""
    points = [[some(0, -number, -number), some(1, 10 * number, 10 * number)] for number in range(1, 201)]
    wide = [[some(0, number, number), some(1, 10 * number, 2000)] for number in range(1, 201)]
    index = built(PSTBloom, [*points, *wide], BloomOptions(bits_per_id=16))
    assert index.stats()["signed"] == 400, "every predicate that no list decides"
    assert index.stats()["signature_entries"] < 400 * 20
    leaves = index.forest.chain(1)
    assert len(leaves) == 401
    for owner in (200, 300, 399):
        having = [leaf for leaf in leaves if index.signatures.contains(leaf, owner)]
        assert set(leaves[2 * (owner - 200) + 1 : -1]) <= set(having), "no false negatives"
        assert len(having) < 401 - 2 * (owner - 200) + 40, "few false positives"
    assert found(index, {0: [(150, 150)], 1: [(1700, 1700)]}) == [349]
    assert found(index, {0: [(150, 150)], 1: [(1400, 1400)]}) == []


def test_signatures_of_blocks_remain_true_when_leaves_are_cut_and_merged() -> None:
    keys = random.Random(1)
    clauses = []
    for number in range(150):
        low = keys.randrange(1000)
        clauses.append([some(0, number, number), some(1, low, low + keys.randrange(600))])
    index = built(PSTBloom, clauses[:100])
    assert len(index.signatures.view().blocks.up) > 0
    live = dict(enumerate(clauses[:100]))
    index.insert(index.table.intern(rows_of(clauses[100:])))
    live.update(dict(enumerate(clauses)))
    for removed in (range(40), range(40, 45), range(120, 130)):
        index.check()
        events: list[Event] = [
            {0: [(owner, owner)], 1: [(key, key)]} for owner in (50, 125, 140) for key in range(0, 1600, 90)
        ]
        matches = index.match(batch_of(events), 2)
        assert set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True)) == matching(live, events)
        index.delete(np.array(removed, np.int32))
        live = {number: clause for number, clause in live.items() if number not in removed}
    index.check()


def test_signatures_keep_out_most_of_what_lists_have() -> None:
    clauses = [[some(0, 1, 1), some(1, number, number), some(2, 0, number)] for number in range(300)]
    event: Event = {0: [(1, 1)], 1: [(200, 200)], 2: [(100, 100)]}
    past = batch_of([{1: [(number % 300, number % 300)], 2: [(number % 300, number % 300)]} for number in range(900)])
    for most, kept_out in ((0, False), (4096, True)):
        index = PSTBloom(ConjunctionTable(), BloomOptions(most_signed=most, most_leaves=1000))
        index.observe(past, 3)  # attribute 0 is the rarest: its predicates make the lists
        index.insert(index.table.intern(rows_of(clauses)))
        index.check()
        matches = index.match(batch_of([event]), 3)
        assert matches.conjunction.tolist() == [200]
        counters = matches.counters
        assert counters.candidates + counters.filtered == 300, "the list that the event meets"
        assert (counters.candidates < 30) == kept_out


@pytest.mark.parametrize("hashes", [1, 3])
def test_signatures_let_few_pass(hashes: int) -> None:
    clauses = [[some(0, 1, 1), some(1, number, number)] for number in range(400)]
    clauses = [[*clause, some(2, 0, 5)] for clause in clauses]
    index = built(PSTBloom, clauses, BloomOptions(bits_per_id=16, hashes=hashes, most_leaves=1000))
    signed = index.forest.chain(2)[1]
    assert all(index.signatures.contains(signed, number) for number in range(400))
    assert sum(index.signatures.contains(signed, number) for number in range(400, 4400)) < 600
    assert found(index, {0: [(1, 1)], 1: [(7, 7)], 2: [(3, 3)]}) == [7]


def test_stale_bits_are_cleared_when_half_are_stale() -> None:
    clauses = [[some(0, number, number), some(1, 0, 5)] for number in range(200)]
    index = built(PSTBloom, clauses)
    leaf = index.forest.chain(1)[1]
    index.delete(np.arange(10, dtype=np.int32))
    index.check()
    assert all(index.signatures.contains(leaf, number) for number in range(200)), "ten are stale, and harmless"
    index.delete(np.arange(10, 150, dtype=np.int32))
    index.check()
    assert sum(index.signatures.contains(leaf, number) for number in range(150)) < 30
    assert found(index, {0: [(160, 160)], 1: [(3, 3)]}) == [160]
    assert found(index, {0: [(60, 60)], 1: [(3, 3)]}) == []


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_number_of_access_predicates(count: int) -> None:
    keys, chance = RandomKeys(count), random.Random(count)
    clauses = keys.clauses(80)
    index = built(PSTHash, clauses[:60], HashOptions(access_predicates=count, most_cells=1000))
    assert all(len(key) == count for key in index.cells.items())
    assert index.stats()["small"] < index.stats()["conjunctions"]
    live = dict(enumerate(clauses[:60]))
    index.insert(index.table.intern(rows_of(clauses[60:])))
    live.update(dict(enumerate(clauses))), index.check()
    events = [keys.event() for _ in range(25)]
    for removed in (chance.sample(sorted(live), 30), []):
        matches = index.match(batch_of(events), keys.dimensions)
        pairs = list(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == matching(live, events)
        index.delete(np.array(removed, np.int32))
        index.check()
        live = {number: clause for number, clause in live.items() if number not in removed}


def test_pstbloom_takes_small_subscriptions_and_small_events() -> None:
    clauses = [
        [some(0, 3, 3)],
        [some(0, 1, 5), some(0, 3, 9)],
        [some(0, 3, 3), some(1, 4, 4)],
        [some(0, 3, 3), Leaf(1, Mode.ABSENT, ())],
        [],
    ]
    index = built(PSTHash, clauses)
    assert index.stats()["small"] == 4
    assert list(index.cells.items().values()) == [[2]]
    assert found(index, {0: [(3, 3)]}) == [0, 1, 3, 4]
    assert found(index, {0: [(3, 3)], 1: [(4, 4)]}) == [0, 1, 2, 4]
    assert found(index, {}) == [4]


def test_pstbloom_takes_subscriptions_with_too_many_cells() -> None:
    points = [[some(0, number, number), some(1, number, number)] for number in range(9)]
    index = built(PSTHash, [*points, [some(0, 0, 8), some(1, 0, 8)]], HashOptions(most_cells=80))
    assert index.stats()["small"] == 1
    assert index.stats()["entries"] == 9
    index = built(PSTHash, [*points, [some(0, 0, 8), some(1, 0, 8)]], HashOptions(most_cells=81))
    assert index.stats()["small"] == 0
    assert index.stats()["entries"] == 90
    assert found(index, {0: [(3, 3)], 1: [(3, 3)]}) == [3, 9]


def test_an_event_with_more_keys_than_there_are_conjunctions() -> None:
    clauses = [[some(0, number, number), some(1, number, number)] for number in range(0, 900, 2)]
    index = built(PSTHash, clauses)
    everything = {0: [(0, 899)], 1: [(4, 899)]}
    assert found(index, everything) == list(range(2, 450))


def test_records_move_after_many_removals() -> None:
    clauses = [[some(d, number, number) for d in range(8)] for number in range(600)]
    index = built(PSTHash, clauses)
    index.delete(np.arange(500, dtype=np.int32))
    index.check()
    assert found(index, {d: [(550, 550)] for d in range(8)}) == [550]


@pytest.mark.parametrize("kind", INDEXES)
def test_the_tree_and_its_flat_copy_find_the_same(kind: type[Any]) -> None:
    keys = RandomKeys(3)
    clauses = [*keys.clauses(40), [some(0, 777, 778), some(1, 777, 778)]]
    events = [keys.event() for _ in range(10)]
    expected = matching(dict(enumerate(clauses)), events)
    for few in (0, 1 << 20):
        index = built(kind, [])
        index.forest = Forest(few=few, leaves_per_event=0)
        for part in (clauses[:40], clauses[40:]):  # one conjunction does not pay for the copy
            index.insert(index.table.intern(rows_of(part)))
        matches = index.match(batch_of(events), keys.dimensions)
        assert set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True)) == expected
        forest = index.forest.view()
        assert len(forest.flat.start) == (0 if few == 0 else 1 + len(forest.roots))


@pytest.mark.parametrize("kind", INDEXES)
def test_events_walk_down_the_trees_if_asked(kind: type[Any]) -> None:
    keys = RandomKeys(4)
    clauses = keys.clauses(40)
    events = [keys.event() for _ in range(10)]
    for search in ("binary", "walk"):
        index = built(kind, clauses, kind.options_type(search=search))
        matches = index.match(batch_of(events), keys.dimensions)
        pairs = set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
        assert pairs == matching(dict(enumerate(clauses)), events)
        assert (len(index.forest.view().flat.start) == 0) == (search == "walk")


@pytest.mark.parametrize("kind", INDEXES)
def test_a_new_tree_without_cuts(kind: type[Any]) -> None:
    index = built(kind, [[some(0, 1, 1), some(1, 2, 2)]])
    assert found(index, {0: [(1, 1)], 1: [(2, 2)]}) == [0]
    index.insert(index.table.intern(rows_of([[some(5, LOWEST, HIGHEST), some(6, LOWEST, HIGHEST)]])))
    index.check()
    assert found(index, {0: [(1, 1)], 1: [(2, 2)], 5: [(0, 0)], 6: [(0, 0)]}) == [0, 1]


def test_options_of_a_matcher() -> None:
    matcher = tamis.Matcher(index="pst-hash", options={"access_predicates": 3})
    matcher.add(1, "a = 1 AND b = 2 AND c < 3 AND d > 4")
    assert list(matcher.match({"a": 1, "b": 2, "c": 0, "d": 5})) == [1]
    for wrong in (0, 4):
        with pytest.raises(tamis.OptionError):
            tamis.Matcher(index="pst-hash", options={"access_predicates": wrong})
    with pytest.raises(tamis.OptionError):
        tamis.Matcher(index="pst-bloom", options={"access_predicates": 2})
