"""`propagation`: the bit vector, the predicate index, access predicates, clusters."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.kernels.bits import WORD
from tamis.papers.fabret.propagation import Propagation, PropagationOptions
from tamis.papers.fabret.statistics import EventStatistics
from tamis.papers.interface import Counters
from tests.papers.naive import Event, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels

A, B, C, D = range(4)
KEY_MIN, KEY_MAX = -(2**63), 2**63 - 1


def equal(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key, key),))


def below(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((KEY_MIN, key - 1),))


def above(dimension: int, key: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((key + 1, KEY_MAX),))


def unlike(dimension: int, *keys: int) -> Leaf:
    return Leaf(dimension, Mode.NONE, tuple((key, key) for key in keys))


def built(clauses: list[list[Leaf]], **options: Any) -> Propagation:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    index = Propagation(table, PropagationOptions(**options))
    index.insert(numbers)
    index.check()
    return index


def found(index: Propagation, events: list[Event], dimensions: int = 4) -> set[tuple[int, int]]:
    matches = index.match(batch_of(events), dimensions)
    index.check()
    pairs = list(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
    assert len(set(pairs)) == len(pairs)
    return set(pairs)


def clusters(index: Propagation) -> dict[tuple[str, int], list[tuple[list[str], int]]]:
    """Access predicate and number of columns -> the columns and the number of each subscription."""
    view, core = index.table.view(), index.core
    bits, arrays = core.predicates.bits.view(), core.clusters.view()

    def said(number: int) -> str:
        p = bits.exemplar[number]
        lo, hi = view.predicates.lo[view.predicates.start[p]], view.predicates.hi[view.predicates.start[p]]
        name = "abcd"[view.predicates.dimension[p]]
        return f"{name}={lo}" if lo == hi else f"{name}<{hi + 1}" if lo == KEY_MIN else f"{name}>{lo - 1}"

    shown = {}
    for cluster in np.flatnonzero(arrays.size).tolist():
        block = core.clusters.rows(cluster).T
        access = "&".join(said(number) for number in core.accesses.equalities(int(arrays.access[cluster])))
        shown[access, int(arrays.columns[cluster])] = [
            ([said(number) for number in row[:-1]], int(row[-1])) for row in block
        ]
    return shown


def test_clusters_of_the_example() -> None:
    """The module's drawing: subscriptions behind a = 3, grouped by the number of other predicates, equalities first."""
    index = built(
        [
            [equal(A, 3), below(B, 9)],
            [equal(A, 3), equal(C, 2), below(B, 9)],
            [equal(A, 3), equal(C, 2), above(D, 1)],
            # More subscriptions share c = 2 than a = 3.
            [equal(C, 2)],
            [equal(C, 2), above(D, 5)],
            [below(B, 9)],
        ]
    )
    assert clusters(index) == {
        ("a=3", 1): [(["b<9"], 0)],
        ("a=3", 2): [(["c=2", "b<9"], 1), (["c=2", "d>1"], 2)],
        ("c=2", 0): [([], 3)],
        ("c=2", 1): [(["d>5"], 4)],
        ("", 1): [(["b<9"], 5)],
    }
    assert index.stats()["predicates"] == 5
    assert index.stats()["without_equality"] == 1
    event: list[Event] = [{A: [(3, 3)], B: [(7, 7)]}]
    matches = index.match(batch_of(event), 4)
    assert matches.conjunction.tolist() == [5, 0]
    # In the cluster of two columns, only the first column is read: c = 2 is not satisfied.
    assert matches.counters == Counters(4, 4, 3)
    assert index.stats()["last_match"] == {
        "events": 1,
        "phase_1": {"satisfied": 2, "lookups": 0},
        "phase_2": {"lists": 2, "clusters": 3},
    }


def test_every_distinct_predicate_owns_one_bit() -> None:
    index = built([[equal(A, n), below(B, 5)] for n in range(6)] + [[below(B, 5)]])
    bits = index.core.predicates.bits
    assert len(bits) == 7
    assert sorted(bits.view().references[bits.view().references > 0].tolist()) == [1, 1, 1, 1, 1, 1, 7]
    index.delete(np.arange(5, dtype=np.int32))
    index.check()
    assert len(bits) == 2
    index.insert(np.arange(5, dtype=np.int32))
    index.check()
    assert len(bits) == 7
    assert bits.capacity == 2 * WORD, "ids are used again"


def test_the_access_predicate_is_the_one_that_events_seldom_satisfy() -> None:
    clause = [[equal(A, 1), equal(B, 1), above(C, 0)]]
    frequent = {A: [{A: [(1, 1)], B: [(9, 9)]}] * 9, B: [{A: [(9, 9)], B: [(1, 1)]}] * 9}
    for often, seldom in ((A, "b=1"), (B, "a=1")):
        table = ConjunctionTable()
        index = Propagation(table)
        index.observe(batch_of(frequent[often]), 4)
        index.insert(table.intern(rows_of(clause)))
        assert list(clusters(index)) == [(seldom, 2)]
    # Without events, it is the predicate that the fewest subscriptions share.
    assert list(clusters(built([*clause, [equal(A, 1), above(C, 2)]]))) == [("b=1", 2), ("a=1", 1)]


def test_event_statistics() -> None:
    statistics = EventStatistics()
    assert (statistics.mu((A, B)), statistics.dependence((A, B))) == (1.0, 1.0)
    events: list[Event] = [{A: [(1, 1)], B: [(1, 1)]}] * 2 + [{A: [(2, 2), (2, 2)]}] + [{C: [(1, 5)]}]
    statistics.observe(batch_of(events[:3]), 3)
    statistics.observe(batch_of(events[3:]), 3)
    assert statistics.events == 4
    assert (statistics.mu((A,)), statistics.mu((A, B)), statistics.mu((A, C)), statistics.mu((C,))) == (
        0.75,
        0.5,
        0,
        0.25,
    )
    assert statistics.dependence((A, B)) == pytest.approx(0.5 / (0.75 * 0.5))
    assert statistics.view().distinct.tolist() == [2, 1, 0]
    seen = statistics.seen
    assert (seen.get(A, 1), seen.get(A, 2), seen.get(B, 1), seen.get(C, 1)) == (2, 1, 2, -1)
    for _ in range(3):
        statistics.observe(batch_of([{B: [(1, 1)]}] * 512), 3)
    assert statistics.events == 1024
    assert statistics.mu((A,)) == 0.0, "only the latest events count"


@pytest.mark.parametrize("prefetch", [False, True])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 33])
def test_clusters_of_every_width_and_size(size: int, prefetch: bool) -> None:
    """The methods for few columns and the generic one find the same, also in an incomplete last cache line."""
    clauses = []
    for columns in range(7):
        for number in range(size):
            others = [above(B + k, -1 - (number + k) % 3) for k in range(columns)]
            clauses.append([equal(A, columns), *others, unlike(B + columns, -1 - number)])
    index = built(clauses, prefetch=prefetch)
    assert {columns for _, columns in clusters_by_width(index)} == set(range(1, 8))
    events: list[Event] = [
        {A: [(columns, columns)], **{B + k: [(value, value)] for k in range(8)}}
        for columns in range(7)
        for value in (0, -1, -2, -3, -9)
    ]
    assert found(index, events, 10) == matching(dict(enumerate(clauses)), events)


def clusters_by_width(index: Propagation) -> list[tuple[int, int]]:
    view = index.core.clusters.view()
    return [(int(view.access[c]), int(view.columns[c])) for c in np.flatnonzero(view.size)]


def test_a_prefetch_changes_only_the_time() -> None:
    clauses = [[equal(A, n % 3), above(B, n)] for n in range(100)]
    events: list[Event] = [{A: [(n, n)], B: [(50, 50)]} for n in range(3)]
    plain, ahead = (built(clauses, prefetch=prefetch).match(batch_of(events), 4) for prefetch in (False, True))
    assert plain.counters == ahead.counters
    assert plain.conjunction.tolist() == ahead.conjunction.tolist()
    with pytest.raises(tamis.OptionError, match="'prefetch' of the index 'propagation' must be True or False"):
        tamis.Matcher(index="propagation", options={"prefetch": 1})


def test_many_predicates_that_most_values_satisfy() -> None:
    """<>, NOT IN and IS NOT NULL have blocks of 64 bits. Blocks are added and removed."""
    clauses = [[unlike(A, n)] for n in range(150)] + [[unlike(A, n, n + 1)] for n in range(150)]
    clauses += [[Leaf(A, Mode.SOME, ((KEY_MIN, KEY_MAX),))], [Leaf(A, Mode.ABSENT, ())], [unlike(B, 7)]]
    index = built(clauses)
    bits = index.core.predicates.bits.view()
    assert np.count_nonzero(bits.fill) == -(-301 // WORD) + 1
    events: list[Event] = [
        {A: [(5, 5)]},
        {},
        {A: [(5, 5), (6, 6)]},
        {A: [(3, 9)]},
        {A: [(5, 5), (5, 5)], B: [(7, 7)]},
        {B: [(8, 8)]},
    ]
    live = dict(enumerate(clauses))
    assert found(index, events) == matching(live, events)
    for gone in (range(0, 300, 2), range(1, 100, 2), [300, 301]):
        index.delete(np.array(gone, np.int32))
        live = {number: clause for number, clause in live.items() if number not in set(gone)}
        assert found(index, events) == matching(live, events)
    index.insert(np.arange(0, 100, 2, dtype=np.int32))
    live |= {number: clauses[number] for number in range(0, 100, 2)}
    assert found(index, events) == matching(live, events)


@pytest.mark.parametrize("seed", range(2))
def test_ranges_are_added_and_removed(seed: int) -> None:
    """Trees are built again after many additions or removals. A removed range sets no bit of another predicate."""
    chance = random.Random(seed)
    clauses: list[list[Leaf]] = []
    while len(clauses) < 400:
        ends = sorted(chance.sample(range(60), 2))
        kind = chance.choice([below(A, ends[0]), above(B, ends[1]), Leaf(A, Mode.SOME, ((ends[0], ends[1]),))])
        two = Leaf(B, chance.choice([Mode.SOME, Mode.NONE]), ((ends[0], ends[0] + 3), (ends[0] + 9, ends[0] + 12)))
        clause = [kind, two] if chance.random() < 0.5 else [kind]
        if clause not in clauses:
            clauses.append(clause)
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    index = Propagation(table)
    live: set[int] = set()
    for _ in range(14):
        added = set(chance.sample(sorted(set(range(400)) - live), min(400 - len(live), chance.choice([1, 5, 100]))))
        index.insert(numbers[sorted(added)])
        live |= added
        gone = set(chance.sample(sorted(live), chance.choice([0, 1, max(len(live) - 5, 0)])))
        index.delete(numbers[sorted(gone)])
        live -= gone
        events: list[Event] = [{A: [(key, key)], B: [(59 - key, 59 - key)]} for key in range(0, 60, 7)]
        expected = matching({number: clauses[number] for number in live}, events)
        assert found(index, events, 2) == expected


def test_values_that_are_repeated_or_unknown() -> None:
    clauses = [[equal(A, 1)], [equal(A, 1), equal(A, 2)], [equal(A, 1), unlike(A, 3)]]
    index = built(clauses)
    events: list[Event] = [
        {A: [(1, 1), (1, 1), (2, 2)]},
        {A: [(1, 1), (3, 3)]},
        {A: [(0, 2)], 9: [(1, 1)]},
        {A: [(1, 1), (0, 2), (1, 1)]},
    ]
    assert found(index, events, 10) == matching(dict(enumerate(clauses)), events)


def test_one_by_one_is_the_same_as_all_at_once() -> None:
    clauses = [[equal(A, n % 5), below(B, n % 7), unlike(C, n % 3), above(D, n)] for n in range(120)]
    together = built(clauses)
    alone = Propagation(together.table)
    for number in range(120):
        alone.insert(np.array([number], np.int32))
    alone.check()
    events: list[Event] = [{A: [(n, n)], B: [(n, n)], C: [(n, n)], D: [(50, 50)]} for n in range(6)]
    assert found(alone, events) == found(together, events)
    assert len(alone.core.clusters) == len(together.core.clusters)
    nothing: EventBatch = batch_of([])
    assert len(alone.match(nothing, 4).event) == 0
