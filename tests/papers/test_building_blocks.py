"""The building blocks of the indexes: hash tables, lists, records, collecting matches."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.kernels.kernel import lean_kernel
from tamis.papers.parts import pair_map, slabs
from tamis.papers.parts.collecting import Output, collect, note_event
from tamis.papers.parts.pair_map import FREE, PairArrays, PairMap
from tamis.papers.parts.records import (
    EventKeys,
    RecordArrays,
    Records,
    event_keys,
    failing,
    load_keys,
    unload_keys,
)
from tamis.papers.parts.slabs import SlabArrays, Slabs
from tests.papers.naive import RandomKeys, batch_of, matching, rows_of

pytestmark = pytest.mark.kernels


@lean_kernel
def put(pairs: PairArrays, first: int, second: int, value: int) -> None:
    at = pair_map.pair_place(pairs, first, second)
    if pairs.value[at] == FREE:
        pair_map.enter(pairs, at, first, second, value)
    else:
        pairs.value[at] = value


@lean_kernel
def drop(pairs: PairArrays, first: int, second: int) -> None:
    pair_map.vacate(pairs, pair_map.pair_place(pairs, first, second))


def test_pairs_are_added_and_removed_like_in_a_dict() -> None:
    chance, table = random.Random(1), PairMap()
    model: dict[tuple[int, int], int] = {}
    empty = table.nbytes
    for step in range(3000):
        pair = chance.randrange(12), chance.choice([chance.randrange(12), -(2**63), 2**63 - 1])
        if pair in model and chance.random() < 0.6:
            drop(table.view(), *pair)
            del model[pair]
        else:
            table.reserve(1)
            put(table.view(), *pair, step)
            model[pair] = step
        assert len(table) == len(model)
        assert table.get(*pair) == model.get(pair, FREE)
    assert all(table.get(*pair) == value for pair, value in model.items())
    for pair in model:
        drop(table.view(), *pair)
    table.shrink()
    assert table.nbytes == empty


@lean_kernel
def take(lists: SlabArrays, number: int, value: int) -> int:
    return slabs.take_out(lists, number, value)


def test_lists_hold_the_values_that_were_added() -> None:
    chance, lists = random.Random(2), Slabs()
    model: list[list[int]] = []
    for step in range(400):
        if step % 20 == 0:
            assert lists.add(3) == len(model)
            model += [[], [], []]
        chosen = [chance.randrange(len(model)) for _ in range(chance.randrange(8))]
        lists.extend(np.array(chosen, np.int64), np.full(len(chosen), step, np.int32))
        for number in chosen:
            model[number].append(step)
        number = chance.randrange(len(model))
        if model[number]:
            value = chance.choice(model[number])
            assert take(lists.view(), number, value) >= 0
            model[number].remove(value)
        assert take(lists.view(), number, -5) == -1
    assert [sorted(lists.values(number).tolist()) for number in range(len(lists))] == [sorted(each) for each in model]


@lean_kernel
def check_records(
    records: RecordArrays,
    conjunctions: npt.NDArray[np.int32],
    batch: EventBatch,
    keys: EventKeys,
    event: int,
    output: Output,
) -> int:
    filled = 0
    for e in range(event, len(batch.start) - 1):
        plain = load_keys(batch, e, keys)
        before = filled
        for c in conjunctions:
            held = failing(records.words, records.at[c], records.size[c], plain, keys, batch)
            if held == records.size[c]:
                if filled < len(output.matches):
                    output.matches[filled] = c
                filled += 1
        unload_keys(batch, e, keys)
        if filled > len(output.matches):
            return e
        note_event(e, filled - before, len(conjunctions), 0, 0, output)
    return len(batch.start) - 1


@pytest.mark.parametrize("seed", range(3))
def test_records_agree_with_their_conjunctions(seed: int) -> None:
    keys, chance = RandomKeys(seed), random.Random(seed)
    clauses = keys.clauses(80)
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    view, records = table.view(), Records()
    live: set[int] = set()
    for _ in range(6):
        added = sorted(set(chance.sample(range(80), 20)) - live)
        order = [np.arange(view.start[c], view.start[c + 1])[::-1] for c in added]
        sizes = np.array([len(each) for each in order], np.int32)
        records.put(view, numbers[added], np.concatenate([np.zeros(0, np.int64), *order]).astype(np.int64), sizes)
        live |= set(added)
        gone = chance.sample(sorted(live), len(live) // 3)
        records.remove(numbers[gone])
        live -= set(gone)
        records.compact()
        events = [keys.event(several=chance.random() < 0.5, intervals=chance.random() < 0.5) for _ in range(8)]
        batch, laid_out = batch_of(events), event_keys(keys.dimensions)
        ours = np.array(sorted(live), np.int32)
        found = collect(batch, partial(check_records, records.view(), ours, batch, laid_out))
        expected = matching({c: clauses[c] for c in live}, events)
        assert set(zip(found.event.tolist(), found.conjunction.tolist(), strict=True)) == expected
        assert found.counters.candidates == len(live) * len(events)
    empty = Records().nbytes
    records.clear()
    assert records.nbytes == empty


def test_room_for_collected_matches_grows() -> None:
    table = ConjunctionTable()
    numbers = table.intern(rows_of([[Leaf(0, Mode.SOME, ((-number, 5),))] for number in range(3000)]))
    records = Records()
    records.put(table.view(), numbers, np.arange(3000), np.ones(3000, np.int32))
    batch, laid_out = batch_of([{0: [(0, 0)]}, {}, {0: [(9, 9)]}, {0: [(5, 5)]}]), event_keys(1)
    found = collect(batch, partial(check_records, records.view(), numbers, batch, laid_out))
    assert np.bincount(found.event).tolist() == [3000, 0, 0, 3000]
