"""Matching by lists of leaves: MatchEvent (Alg. 5), with signatures or without."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import UP, I32s, I64s
from tamis.kernels.prefetch import prefetch
from tamis.papers.parts.collecting import Output, note_event, note_filtered
from tamis.papers.parts.records import RecordArrays, dimension_in, fetch, following
from tamis.papers.parts.slabs import SlabArrays
from tamis.papers.ps_tree.covering import ForestArrays
from tamis.papers.ps_tree.nodes import NONE
from tamis.papers.ps_tree.signatures import SignatureArrays, hash_of, is_signed
from tamis.papers.ps_tree.verifying import (
    BLOCK,
    Block,
    RowArrays,
    Scratch,
    begin_event,
    end_event,
    meet_leaves,
    verify,
)

EVERYWHERE = 0
"""The list of conjunctions that every event evaluates."""
FIRST_WIDE = 1
"""The list of wide predicates of dimension 0. That of dimension d is FIRST_WIDE + d."""

_Number = TypeVar("_Number", int, I64s)


@inlined
def unsigned(second: _Number) -> _Number:
    """In a list entry, a dimension whose predicate has no signature; also the other way round."""
    return -2 - second


class SignedLists(NamedTuple):
    """Lists and signatures of leaves. If `hashes` is 0, signatures are not read."""

    lists: SlabArrays
    """Leaf -> its list."""
    wide: SlabArrays
    """The other lists."""
    signatures: SignatureArrays
    signed: I32s
    """Conjunction -> how many predicates with a signature begin its record."""


class _Place(NamedTuple):
    """Where to go on: the next list that the event meets, and what is left of the one before."""

    list: int
    at: int
    stop: int


@lean_kernel
def match_lists(
    forest: ForestArrays,
    lists: SignedLists,
    rows: RowArrays,
    batch: EventBatch,
    scratch: Scratch,
    event: int,
    output: Output,
) -> int:
    """A `collecting.Kernel`."""
    filled = 0
    while event < len(batch.start) - 1:
        single_valued = begin_event(batch, event, scratch)
        many = _lists_met(event, single_valued, forest, lists.wide.size, batch, scratch)
        kept, listed, candidates, tested = filled, 0, 0, 0
        count, place = BLOCK, _Place(0, 0, 0)
        while count == BLOCK and filled >= 0:
            count, some, place = _next_block(place, many, single_valued, lists, scratch)
            listed += some
            passed = count
            if single_valued:
                _locate(count, rows.records, scratch.block)
                passed = _in_all_signatures(count, rows.records, lists, scratch.leaf_of, scratch.block)
            candidates += passed
            filled, evaluated = verify(passed, single_valued, rows, batch, scratch, output.matches, filled)
            tested += evaluated
        end_event(batch, event, scratch)
        if filled < 0:
            break
        note_event(event, filled - kept, candidates, tested, many, output)
        note_filtered(listed - candidates, output)
        event += 1
    return event


@merged
def _lists_met(
    event: int, single_valued: bool, forest: ForestArrays, sizes: I32s, batch: EventBatch, scratch: Scratch
) -> int:
    """Note the lists that an event meets; returns how many. The list of a leaf has its number, number n of the others is ~n."""
    met, many = scratch.met, 0
    if len(sizes) > EVERYWHERE and sizes[EVERYWHERE] > 0:
        met[0] = ~EVERYWHERE
        many = 1
    for v in range(batch.start[event], batch.start[event + 1]):
        d = batch.dimension[v]
        wide = FIRST_WIDE + d
        if scratch.event.places.first[d] == v and wide < len(sizes) and sizes[wide] > 0:
            met[many] = ~wide
            many += 1
        many = meet_leaves(v, single_valued, forest, batch, scratch, many)
    return many


@merged
def _next_block(
    place: _Place, many: int, single_valued: bool, lists: SignedLists, scratch: Scratch
) -> tuple[int, int, _Place]:
    """Fill the block with candidates from the lists that an event meets. If it is single-valued, they pass the first signature.

    Returns how many there are, fewer than BLOCK if they are the last, how many were visited, and where to go on.
    """
    met, key, seen, stamp = scratch.met, scratch.event.key, scratch.seen, scratch.stamp[0]
    i, at, stop = place.list, place.at, place.stop
    data = lists.lists.data if i == 0 or met[UP(i - 1)] >= 0 else lists.wide.data
    count, looked = 0, 0
    while count < BLOCK:
        if at == stop:
            if i == many:
                break
            number = met[UP(i)]
            if number >= 0:
                data, at = lists.lists.data, lists.lists.begin[UP(number)]
                stop = at + lists.lists.size[UP(number)]
            else:
                data, at = lists.wide.data, lists.wide.begin[UP(~number)]
                stop = at + lists.wide.size[UP(~number)]
            i += 1
            continue
        c, second = data[UP(at)], data[UP(at + 1)]
        at += 2
        if single_valued:
            looked += 1
            if second >= 0:
                if not _has_leaf_signed(lists.signatures, scratch.leaf_of[UP(second)], hash_of(c)):
                    continue
            elif second != NONE and key[UP(unsigned(second))] == KEY_MIN:
                continue
        else:
            if seen[c] == stamp:
                continue
            seen[c] = stamp
            looked += 1
        scratch.block.conjunction[UP(count)] = c
        count += 1
    return count, looked, _Place(i, at, stop)


@inlined
def _has_leaf_signed(signatures: SignatureArrays, leaf: int, mixed: np.uint64) -> bool:
    """Whether an event has a leaf in some dimension, and this leaf's signature may have the conjunction with this hash."""
    return leaf != NONE and is_signed(signatures, leaf, mixed)


@merged
def _locate(count: int, records: RecordArrays, block: Block) -> None:
    """Write the places of the candidates' records, and fetch the records."""
    for i in range(count):
        prefetch(records.at, block.conjunction[UP(i)])
        prefetch(records.size, block.conjunction[UP(i)])
    for i in range(count):
        c = block.conjunction[UP(i)]
        block.place[UP(i)], block.size[UP(i)] = records.at[UP(c)], records.size[UP(c)]
    for i in range(count):
        fetch(records.words, block.place[UP(i)])


@merged
def _in_all_signatures(count: int, records: RecordArrays, lists: SignedLists, leaf_of: I32s, block: Block) -> int:
    """Keep the candidates of a block that also pass their other signatures; returns how many are left."""
    if lists.signatures.hashes == 0:
        return count
    words, kept = records.words, 0
    for j in range(count):
        c, place = block.conjunction[UP(j)], block.place[UP(j)]
        mixed, passed = hash_of(c), True
        for _ in range(1, lists.signed[UP(c)]):
            place = following(words, place)
            if not _has_leaf_signed(lists.signatures, leaf_of[UP(dimension_in(words[UP(place)]))], mixed):
                passed = False
                break
        if passed:
            block.conjunction[UP(kept)] = c
            block.place[UP(kept)], block.size[UP(kept)] = block.place[UP(j)], block.size[UP(j)]
            kept += 1
    return kept
