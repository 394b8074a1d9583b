"""The checks that every index of the registry and the engine must pass."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.kernel import COMPILED
from tamis.papers.interface import Index, Matches
from tamis.papers.op_index.cnf import CnfOpIndex
from tamis.papers.parts.size import held_bytes
from tamis.papers.registry import all_indexes
from tests.papers.engine_index import EngineDeltas, EngineSegments
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of

INDEXES: dict[str, type[Index]] = {
    **all_indexes(),
    **{index.name: index for index in (EngineDeltas, EngineSegments)},
    "op-index, cnf": CnfOpIndex,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "counting, enumeration": {"method": "enumeration", "highest": 63},
    "counting, key": {"method": "key"},
    "counting, tree": {"method": "tree"},
    "op-index, bs": {"signatures": False},
    "pst-hash, 1": {"access_predicates": 1},
    "pst-hash, 3": {"access_predicates": 3},
}
"""Variants of the papers, chosen by options."""
pytestmark = pytest.mark.parametrize("name", sorted([*INDEXES, *OPTIONS]))


def made(name: str, table: Any = None) -> Index:
    """An empty index, with a new table if none is given."""
    if name in OPTIONS and not COMPILED:
        pytest.skip("its kernels are tested elsewhere")
    kind = INDEXES.get(name) or INDEXES[name.split(",", maxsplit=1)[0]]
    options = kind.options_type.read(OPTIONS[name], kind.name) if name in OPTIONS else None
    return kind(kind.table_type() if table is None else table, options)


def built(name: str, clauses: list[list[Leaf]]) -> Index:
    index = made(name)
    numbers = index.table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    index.insert(numbers)
    return index


def pairs(matches: Matches) -> set[tuple[int, int]]:
    """The pairs, after checking what every index promises about them."""
    assert (np.diff(matches.event) >= 0).all(), "grouped by event, ascending"
    found = list(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))
    assert len(set(found)) == len(found), "each pair once"
    assert matches.counters.candidates >= len(found)
    assert matches.counters.predicates >= 0
    return set(found)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(6))
def test_it_finds_exactly_the_conjunctions_that_match(name: str, seed: int) -> None:
    keys = RandomKeys(seed)
    clauses = keys.clauses(60)
    index = built(name, clauses)
    several, intervals = index.capabilities.several_values, index.capabilities.interval_values
    events = [keys.event(several=several, intervals=intervals) for _ in range(25)]
    assert pairs(index.match(batch_of(events), keys.dimensions)) == matching(dict(enumerate(clauses)), events)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(3))
def test_inserting_and_deleting_between_matches(name: str, seed: int) -> None:
    keys, chance = RandomKeys(seed), random.Random(seed)
    clauses = keys.clauses(60)
    index = made(name)
    index.table.intern(rows_of(clauses))
    live: set[int] = set()
    events = [keys.event(several=False, intervals=False) for _ in range(8)]
    for step in range(30):
        absent = sorted(set(range(len(clauses))) - live)
        added = set(chance.sample(absent, min(len(absent), chance.randint(0, 8))))
        removed = set(chance.sample(sorted(live), min(len(live), chance.randint(0, 6))))
        index.insert(np.array(sorted(added), np.int32))
        index.check()
        index.delete(np.array(sorted(removed), np.int32))
        index.check()
        if step % 10 == 9:
            index.observe(batch_of(events), keys.dimensions)
            index.check()
        live = (live | added) - removed
        expected = matching({number: clauses[number] for number in live}, events)
        assert pairs(index.match(batch_of(events), keys.dimensions)) == expected
        index.check()
        assert index.stats()["conjunctions"] == len(live)


@pytest.mark.parametrize("seed", range(2))
def test_the_order_of_insertion_does_not_matter(name: str, seed: int) -> None:
    keys, chance = RandomKeys(seed), random.Random(seed)
    clauses = keys.clauses(50)
    events = [keys.event(several=False, intervals=False) for _ in range(15)]
    expected = matching(dict(enumerate(clauses)), events)
    for _ in range(3):
        index = made(name)
        order = index.table.intern(rows_of(clauses)).tolist()
        chance.shuffle(order)
        while order:
            index.insert(np.array(order[:7], np.int32))
            order = order[7:]
        index.check()
        assert pairs(index.match(batch_of(events), keys.dimensions)) == expected


def test_a_batch_is_its_events_one_by_one(name: str) -> None:
    keys = RandomKeys(4)
    index = built(name, keys.clauses(60))
    capabilities = index.capabilities
    events = [
        keys.event(several=capabilities.several_values, intervals=capabilities.interval_values) for _ in range(20)
    ]
    alone = {
        (row, conjunction)
        for row, event in enumerate(events)
        for _, conjunction in pairs(index.match(batch_of([event]), keys.dimensions))
    }
    assert pairs(index.match(batch_of(events), keys.dimensions)) == alone


def test_deleting_everything_returns_the_memory(name: str) -> None:
    keys = RandomKeys(5)
    clauses = keys.clauses(300)
    events = batch_of([keys.event(several=False, intervals=False) for _ in range(20)])
    index = made(name)
    numbers = index.table.intern(rows_of(clauses))
    empty = index.stats()["bytes"]
    for _ in range(2):
        index.insert(numbers)
        index.match(events, keys.dimensions)
        for part in np.array_split(np.random.default_rng(0).permutation(numbers), 7):
            index.delete(part)
        index.check()
        assert index.stats() == {**index.stats(), "conjunctions": 0, "bytes": empty}
        assert pairs(index.match(events, keys.dimensions)) == set()


def test_memory_does_not_grow_with_additions_and_removals(name: str) -> None:
    """Some conjunctions stay: an empty index might simply start again."""
    if name.startswith("engine"):
        pytest.skip("the engine keeps the dead until a delta of thousands is full")
    keys = RandomKeys(8)
    index = made(name)
    numbers = index.table.intern(rows_of(keys.clauses(200)))
    events = batch_of([keys.event(several=False, intervals=False) for _ in range(5)])
    index.insert(numbers[:3])
    held = []
    for _ in range(9):
        index.insert(numbers[3:])
        index.match(events, keys.dimensions)
        index.delete(numbers[3:])
        held.append(index.stats()["bytes"])
    index.check()
    assert held[-1] <= 1.1 * max(held[:3])


def test_it_can_be_pickled(name: str) -> None:
    if name.startswith("engine"):
        pytest.skip("the engine has files of its own")
    keys, chance = RandomKeys(6), random.Random(6)
    clauses = keys.clauses(90)
    index = built(name, clauses[:40])
    events = [keys.event(several=False, intervals=False) for _ in range(20)]
    batch = batch_of(events)
    index.observe(batch, keys.dimensions)
    index.match(batch, keys.dimensions)
    copied = pickle.loads(pickle.dumps(index))
    live = set(range(40))
    for first in range(40, 90, 10):
        removed = chance.sample(sorted(live), 8)
        for each in (index, copied):
            each.delete(np.array(sorted(removed), np.int32))
            each.insert(each.table.intern(rows_of(clauses[first : first + 10])))
        live = (live - set(removed)) | set(range(first, first + 10))
        found, expected = index.match(batch, keys.dimensions), copied.match(batch, keys.dimensions)
        assert pairs(found) == pairs(expected) == matching({number: clauses[number] for number in live}, events)
        assert found.counters == expected.counters, "the copy works as the original does"
        copied.check()
        copied = pickle.loads(pickle.dumps(copied))
    before = pairs(index.match(batch, keys.dimensions))
    copied.delete(np.array(sorted(live), np.int32))
    assert pairs(index.match(batch, keys.dimensions)) == before, "they share nothing"


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("intervals", [False, True])
def test_it_visits_no_more_candidates_than_a_scan(name: str, several: bool, intervals: bool) -> None:
    capabilities = made(name).capabilities
    if several > capabilities.several_values or intervals > capabilities.interval_values:
        pytest.skip("it cannot match such events")
    keys = RandomKeys(7)
    clauses = keys.clauses(200)
    events = batch_of([keys.event(several=several, intervals=intervals) for _ in range(20)])
    matches = built(name, clauses).match(events, keys.dimensions)
    scanned = built("scan", clauses).match(events, keys.dimensions)
    assert matches.counters.candidates <= scanned.counters.candidates


def test_a_table_that_grows_after_the_index_was_made(name: str) -> None:
    keys = RandomKeys(9)
    clauses = keys.clauses(40)
    index = built(name, clauses[:10])
    index.insert(index.table.intern(rows_of(clauses[10:])))
    events = [keys.event(several=False, intervals=False) for _ in range(10)]
    assert pairs(index.match(batch_of(events), keys.dimensions)) == matching(dict(enumerate(clauses)), events)


def test_room_for_matches_grows(name: str) -> None:
    clauses = [[Leaf(0, Mode.SOME, ((-number, 5),))] for number in range(1, 1500)] + [[]]
    index = built(name, clauses)
    events = [{0: [(3, 3)]}] * 3
    assert len(pairs(index.match(batch_of(events), 1))) == 3 * 1500


def test_calls_without_conjunctions_or_events(name: str) -> None:
    empty = made(name)
    none = EventBatch(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert pairs(empty.match(none, 0)) == set()
    assert pairs(empty.match(batch_of([{}, {0: [(1, 1)]}]), 1)) == set()
    index = built(name, [[]])
    assert pairs(index.match(none, 0)) == set()
    assert pairs(index.match(batch_of([{}, {0: [(1, 1)]}]), 1)) == {(0, 0), (1, 0)}


def test_stats_tell_the_size_of_all_arrays(name: str) -> None:
    if name.startswith("engine"):
        pytest.skip("the engine has figures of its own")
    keys = RandomKeys(1)
    index = built(name, keys.clauses(1000))
    capabilities = index.capabilities
    several, intervals = capabilities.several_values, capabilities.interval_values
    events = batch_of([keys.event(several=several, intervals=intervals) for _ in range(50)])
    index.observe(events, keys.dimensions)
    index.match(events, keys.dimensions)
    assert index.stats()["conjunctions"] == 1000
    held, told = held_bytes(index, index.table), index.stats()["bytes"]
    assert told >= 0.99 * held
    assert told <= 1.01 * held
