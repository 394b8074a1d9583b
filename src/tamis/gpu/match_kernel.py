"""Matching events against a segment on a card: a block of threads for each event.

    values   one thread each: key -> space, and the lists, runs and cells that it leads to     `_load_value`
    items    the lists and runs of the event, in pieces; warps take one after another          `_scan_items`
    entries  a thread each, by filter words; survivors wait in the queue of their warp         `_scan_list`, `_scan_run`
    records  one for each thread of a warp, so that no thread waits                            `_queue`, `record_checks`
    rows     settled slots from the front of the block's scratch, open rows from its back      `_add`

A row is *settled* if it has one owner and nothing is left to decide: its slot is the result. All other rows are *open*: the
processor names their owners, as for rows that it found itself. An event is *odd* if it has several values in a dimension, an
interval, or too many lists: the processor matches it. For all other events, a card finds what `tamis.engine.matching` finds, with
the same small functions (`engine_functions`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.engine.layout.aspects import ASPECTS, NEAR
from tamis.engine.layout.guards import BLOCK
from tamis.engine.layout.lookup import (
    ABOUT,
    AT,
    BEGIN,
    BLOCKS,
    CELL,
    HAS_RUNS,
    NUMBERED,
    PRESENCE,
    SHIFT_AT,
    SHIFTS,
    SIDES,
)
from tamis.engine.layout.plan import RANKED
from tamis.engine.layout.runs import BAND_RUN
from tamis.engine.layout.scale import MISSING
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.results import CANDIDATES
from tamis.gpu import engine_functions as engine
from tamis.gpu.card_arrays import NO_ROOM, ODD, Block, CardEvents, CardOwners, EventArrays, Results
from tamis.gpu.device_code import SIMULATED, cuda, device
from tamis.gpu.record_checks import GONE, OPEN_ROW, owner_of, record_holds
from tamis.gpu.warp import WARP, before, count, from_first, meet, votes
from tamis.kernels.numbers import I32, I64, U8, U32, UP, I32s, I64s

THREADS = 4 if SIMULATED else 64
"""Threads of a block."""
MOST_THREADS = 4 if SIMULATED else 192
"""Threads of a block whose event takes much shared memory, so that few blocks run at the same time."""
_ITEMS, _RUNS_MET, _CELLS_MET = 512, 128, 128
"""The most items, runs and cells of an event that is not odd."""
_WAITING = 2 * MOST_THREADS
"""The most survivors that wait in the queues of a block."""
_PIECE = 2048
"""The most entries of an item: a multiple of BLOCK, so that guards fit."""
_NO_RUN = -1
_NOTED, _TAKEN, _RUNS, _CELLS, _ODD, _SETTLED, _OPEN = range(7)
_COUNTS = 7
_INT64, _INT32, _UINT32, _UINT8 = (np.dtype(kind) for kind in ("i8", "i4", "u4", "u1"))


# -- values


@device
def _note_item(begin: int, end: int, run: int, block: Block) -> None:
    while begin < end:
        at = cuda.atomic.add(block.counts, _NOTED, 1)
        stop = min(begin + _PIECE, end)
        if at < _ITEMS:
            block.begin[at], block.end[at], block.run[at] = U32(begin), U32(stop), I32(run)
        begin = stop


@device
def _note_runs(run_lists: I64s, number: int, block: Block) -> None:
    """Note the runs of a list."""
    r = engine.first_above(run_lists, 0, len(run_lists), number - 1)
    while r < len(run_lists) and run_lists[UP(r)] == number:
        at = cuda.atomic.add(block.counts, _RUNS, 1)
        if at < _RUNS_MET:
            block.met[at] = I32(r)
        r += 1


@device
def _note_list(body: Body, number: int, block: Block) -> None:
    begin, end, has_runs = engine.list_at(body.directory.begin, number)
    _note_item(begin, end, _NO_RUN, block)
    if has_runs:
        _note_runs(body.runs.list, number, block)


@device
def _load_value(batch: CardEvents, v: int, first: int, body: Body, block: Block) -> None:
    """Load one value of an event whose values begin at `first`, and note what it leads to."""
    of_matcher, key = batch.dimension[UP(v)], batch.lo[UP(v)]
    if batch.hi[UP(v)] != key or (v > first and batch.dimension[UP(v - 1)] == of_matcher):
        block.counts[_ODD] = 1
    dimension = engine.local_dimension(body.lookup, of_matcher)
    if dimension < 0:
        return
    about, line = body.lookup.about, ABOUT * dimension
    space = engine.space_at(body.lookup, dimension, key)
    if dimension < RANKED:
        block.space[UP(dimension)] = U8(space)
    _note_list(body, about[UP(line + CELL)] + space, block)
    presence = about[UP(line + PRESENCE)]
    _note_item(engine.first_half(presence) & BEGIN, engine.second_half(presence), _NO_RUN, block)
    if engine.first_half(presence) & HAS_RUNS:
        _note_runs(body.runs.list, body.cells + dimension, block)
    sides, bounds = about[UP(line + SIDES)], body.directory.bounds
    if sides != 0:
        for at in (engine.first_half(sides), engine.second_half(sides)):
            _note_item(I64(bounds[UP(at)]), I64(bounds[UP(at + 1 + space)]), _NO_RUN, block)
    if len(body.pairs.start) > 0 and body.pairs.cell[UP(dimension)] >= 0:
        noted = cuda.atomic.add(block.counts, _CELLS, 1)
        if noted < _CELLS_MET:
            block.cell[noted] = U32(body.pairs.cell[UP(dimension)] + space)
    if len(body.lookup.shift) > 0:
        _show_value(dimension, space, key, body, block)


@device
def _show_value(dimension: int, space: int, key: int, body: Body, block: Block) -> None:
    """Load the aspects of a value, and note the list of its key."""
    lookup, numbers, points, line = body.lookup, body.key_numbers, body.points, ABOUT * dimension
    shifts = lookup.about[UP(line + SHIFT_AT)]
    if shifts < 0:
        if dimension < NEAR:
            code = engine.code_of_space(space)
            engine.show(dimension, code, code, block.seen)
        return
    at, blocks = lookup.about[UP(line + AT)], lookup.about[UP(line + BLOCKS)]
    code = engine.code_of(lookup.cuts, at, blocks, lookup.shift, shifts & SHIFTS, space, key)
    number = code
    if shifts & NUMBERED:
        begin, end = numbers.start[UP(dimension)], numbers.start[UP(dimension + 1)]
        number = engine.number_of_key(key, begin, end, numbers.mark, numbers.key)
    if len(block.key) > 0:
        block.key[UP(dimension)] = key
    if dimension < RANKED:
        engine.show(dimension, code, number, block.seen)
    if len(points.key) > 0 and points.start[UP(dimension)] < points.start[UP(dimension + 1)]:
        point = engine.find_point(dimension, key, engine.home_of(dimension, key, points.table), points)
        if point >= 0:
            _note_list(body, body.cells + body.dimensions + 1 + point, block)


@device
def _forget_value(batch: CardEvents, v: int, body: Body, block: Block) -> None:
    """Undo `_load_value`."""
    dimension = engine.local_dimension(body.lookup, batch.dimension[UP(v)])
    if 0 <= dimension < RANKED:
        block.space[UP(dimension)] = U8(MISSING)
        if len(block.seen) > 0:
            engine.hide(dimension, block.seen)


@device
def _bound_run(r: int, body: Body, block: Block) -> None:
    """Note the entries of a run whose condition may hold."""
    runs, dimension = body.runs, I64(body.runs.dimension[UP(r)])
    if block.space[UP(dimension)] != U8(MISSING):
        key = block.key[UP(dimension)]
        begin, end = engine.bounds_in_run(runs, r, key, key)
        _note_item(begin, end, r, block)


# -- entries and records


@device
def _add(holds: bool, word: Any, owners: CardOwners, block: Block, results: Results) -> None:
    """Add the rows that the threads of a warp have found. All of them call this."""
    slot = owner_of(word, owners) if holds else I64(GONE)
    settled = votes(slot >= 0)
    if settled != U32(0):
        at = I32(0)
        if block.lane == 0:
            at = cuda.atomic.add(block.counts, _SETTLED, count(settled))
        at = from_first(at) + before(settled, block.lane)
        if slot >= 0 and at < results.room:
            results.scratch[UP(block.base + at)] = U32(slot)
    opened = votes(slot == OPEN_ROW)
    if opened != U32(0):
        at = I32(0)
        if block.lane == 0:
            at = cuda.atomic.add(block.counts, _OPEN, count(opened))
        at = from_first(at) + before(opened, block.lane)
        if slot == OPEN_ROW and at < results.room:
            results.scratch[UP(block.base + results.room - 1 - at)] = word


@device
def _check_waiting(waiting: int, body: Body, owners: CardOwners, block: Block, results: Results) -> None:
    """Check the last survivors of the queue, at most one for each thread."""
    holds, word = False, U32(0)
    if block.lane < waiting:
        holds, word = record_holds(block.queue[UP(block.mine + block.lane)], body, block)
    _add(holds, word, owners, block, results)


@device
def _queue(
    survives: bool, reference: Any, waiting: int, body: Body, owners: CardOwners, block: Block, results: Results
) -> int:
    """Queue the survivors of a warp, which has some in its queue already, and check records if there are enough for all threads.

    Returns how many are in the queue then.
    """
    survivors = votes(survives)
    if survives:
        block.queue[UP(block.mine + waiting + before(survivors, block.lane))] = reference
    waiting += count(survivors)
    meet()
    if waiting >= WARP:
        waiting -= WARP
        holds, word = record_holds(block.queue[UP(block.mine + waiting + block.lane)], body, block)
        _add(holds, word, owners, block, results)
        meet()
    return waiting


@device
def _scan_list(
    begin: int, end: int, waiting: int, body: Body, owners: CardOwners, block: Block, results: Results
) -> int:
    """Scan a part of a list; returns how many survivors wait."""
    guarded = engine.is_guarded(body.guard, begin, end)
    has_second = len(body.second) > 0
    for first in range(begin, end, WARP):
        q = first + block.lane
        survives, reference = False, U32(0)
        if q < end and not (guarded and block.space[UP(body.guard[UP(q // BLOCK)])] == U8(MISSING)):
            reference = engine.entry_reference(body.entry, q)
            survives = engine.range_holds(engine.entry_word(body.entry, q), block.space)
            if has_second:
                survives = survives and engine.range_holds(body.second[UP(q)], block.space)
        waiting = _queue(survives, reference, waiting, body, owners, block, results)
    return waiting


@device
def _scan_run(item: int, waiting: int, body: Body, owners: CardOwners, block: Block, results: Results) -> int:
    """Scan a part of a run, likewise. The entries of a complete run are rows, which need no check."""
    begin, end, r = I64(block.begin[UP(item)]), I64(block.end[UP(item)]), I64(block.run[UP(item)])
    runs, entry = body.runs, body.run_entry
    band, complete = runs.side[UP(r)] >= BAND_RUN, runs.complete[UP(r)]
    key, shift = block.key[UP(runs.dimension[UP(r)])], runs.end_shift[UP(r)]
    for first in range(begin, end, WARP):
        q = first + block.lane
        holds, reference = False, U32(0)
        if q < end:
            reference = engine.entry_reference(entry, q)
            holds = not band or runs.end[UP(q + shift)] >= key
            if not complete:
                holds = holds and engine.range_holds(engine.entry_word(entry, q), block.space)
        if complete:
            _add(holds, reference, owners, block, results)
        else:
            waiting = _queue(holds, reference, waiting, body, owners, block, results)
    return waiting


@device
def _scan_items(body: Body, owners: CardOwners, block: Block, results: Results) -> tuple[int, int]:
    """Scan items until none is left; returns how many entries the warp visited."""
    waiting, visited, noted = I32(0), I64(0), block.counts[_NOTED]
    while True:
        item = I32(0)
        if block.lane == 0:
            item = cuda.atomic.add(block.counts, _TAKEN, 1)
        item = from_first(item)
        if item >= noted:
            break
        begin, end = I64(block.begin[UP(item)]), I64(block.end[UP(item)])
        visited += end - begin
        if block.run[UP(item)] == _NO_RUN:
            waiting = I32(_scan_list(begin, end, waiting, body, owners, block, results))
        else:
            waiting = I32(_scan_run(item, waiting, body, owners, block, results))
    _check_waiting(waiting, body, owners, block, results)
    return visited


@device
def _try_pairs(thread: int, body: Body, owners: CardOwners, block: Block, results: Results) -> None:
    """Add the rows that are found by two cells of the event. Each thread tries some of the pairs."""
    pairs, cells = body.pairs, block.counts[_CELLS]
    places = engine.bits_of(len(pairs.mark))
    for i in range(1, cells):
        for j in range(thread, i, cuda.blockDim.x):
            one, other = block.cell[UP(i)], block.cell[UP(j)]
            mixed = engine.mixed_cell(one) ^ engine.mixed_cell(other)
            bucket = engine.bucket_of(mixed, places)
            if (pairs.mark[UP(bucket)] & engine.part_of(mixed, places)) == U8(0):
                continue
            low, high = min(one, other), max(one, other)
            for q in range(I64(pairs.start[UP(bucket)]), I64(pairs.start[UP(bucket + 1)])):
                if engine.is_of_cells(pairs.entry, q, low, high) and engine.range_holds(
                    engine.pair_word(pairs.entry, q), block.space
                ):
                    _add_alone(engine.pair_reference(pairs.entry, q), body, owners, block, results)


@device
def _add_alone(reference: Any, body: Body, owners: CardOwners, block: Block, results: Results) -> None:
    """Check a record and add its row, in one thread."""
    holds, word = record_holds(reference, body, block)
    if not holds:
        return
    slot = owner_of(word, owners)
    if slot == GONE:
        return
    at = cuda.atomic.add(block.counts, _SETTLED if slot >= 0 else _OPEN, 1)
    if at < results.room:
        if slot >= 0:
            results.scratch[UP(block.base + at)] = U32(slot)
        else:
            results.scratch[UP(block.base + results.room - 1 - at)] = word


# -- events


@device
def _is_odd(counts: I32s) -> bool:
    return counts[_ODD] != 0 or counts[_NOTED] > _ITEMS or counts[_RUNS] > _RUNS_MET or counts[_CELLS] > _CELLS_MET


@device
def _reserve(event: int, block: Block, results: Results) -> None:
    """Reserve places for the rows of an event. One thread calls this. Without room, the event has no rows then."""
    settled, opened = block.counts[_SETTLED], block.counts[_OPEN]
    fits = settled + opened <= results.room
    slot_at, row_at = I64(0), I64(0)
    if fits and settled > 0:
        slot_at = cuda.atomic.add(results.filled, 0, I64(settled))
        fits = slot_at + settled <= len(results.slot)
    if fits and opened > 0:
        row_at = cuda.atomic.add(results.filled, 1, I64(opened))
        fits = row_at + opened <= len(results.row)
    if fits:
        results.settled[UP(event)], results.open[UP(event)] = settled, opened
        results.slot_at[UP(event)], results.row_at[UP(event)] = slot_at, row_at
    else:
        results.settled[UP(event)], results.open[UP(event)] = NO_ROOM, settled + opened
        block.counts[_SETTLED], block.counts[_OPEN] = 0, 0
    block.place[0], block.place[1] = slot_at, row_at


@device
def _hand_over(thread: int, block: Block, results: Results) -> None:
    """Copy the rows of an event from the scratch of its block to their places."""
    slot_at, row_at = block.place[0], block.place[1]
    for i in range(thread, block.counts[_SETTLED], cuda.blockDim.x):
        results.slot[UP(slot_at + i)] = I32(results.scratch[UP(block.base + i)])
    for i in range(thread, block.counts[_OPEN], cuda.blockDim.x):
        results.row[UP(row_at + i)] = results.scratch[UP(block.base + results.room - 1 - i)]


@device
def _find_more(thread: int, body: Body, owners: CardOwners, block: Block, results: Results) -> None:
    """Note the entries of runs, and add what pairs find."""
    for i in range(thread, block.counts[_RUNS], cuda.blockDim.x):
        _bound_run(I64(block.met[UP(i)]), body, block)
    if len(body.pairs.start) > 0:
        _try_pairs(thread, body, owners, block, results)


@device
def _match_event(
    event: int,
    thread: int,
    batch: CardEvents,
    body: Body,
    owners: CardOwners,
    block: Block,
    results: Results,
) -> int:
    """Match one event in all threads of a block; returns how many entries the thread's warp visited.

    Threads wait for each other as seldom as possible: with short lists, that is a large part of the time.
    """
    begin, end = batch.begin[UP(event)], batch.end[UP(event)]
    for v in range(begin + thread, end, cuda.blockDim.x):
        _load_value(batch, v, begin, body, block)
    if thread == 0:
        _note_list(body, body.cells + body.dimensions, block)
    cuda.syncthreads()
    odd, visited = _is_odd(block.counts), I64(0)
    if block.counts[_RUNS] > 0 or len(body.pairs.start) > 0:
        if not odd:
            _find_more(thread, body, owners, block, results)
        cuda.syncthreads()
        odd = _is_odd(block.counts)
    if not odd:
        visited = _scan_items(body, owners, block, results)
    cuda.syncthreads()
    for i in range(thread, _SETTLED, cuda.blockDim.x):
        block.counts[UP(i)] = 0  # For the next event. From here on, only the counts of rows are read.
    if odd or block.counts[_SETTLED] + block.counts[_OPEN] == 0:
        if thread == 0:
            results.settled[UP(event)], results.open[UP(event)] = ODD if odd else 0, 0
    else:
        cuda.syncthreads()
        if thread == 0:
            _reserve(event, block, results)
        cuda.syncthreads()
        _hand_over(thread, block, results)
    for v in range(begin + thread, end, cuda.blockDim.x):
        _forget_value(batch, v, body, block)
    return visited


# With more registers, fewer blocks run at the same time, and dense subscriptions take 15 % longer.
@cuda.jit(**({} if SIMULATED else {"max_registers": 64}))
def match_events(
    batch: CardEvents, todo: I32s, body: Body, owners: CardOwners, arrays: EventArrays, results: Results
) -> None:
    """Match the events of a batch whose rows `todo` has, block by block."""
    thread, at = cuda.threadIdx.x, cuda.blockIdx.x
    keys, words = cuda.shared.array(0, _INT64), cuda.shared.array(0, _UINT32)
    bytes_ = cuda.shared.array(0, _UINT8)
    key = keys[arrays.key_at : arrays.key_at + arrays.dimensions]
    if arrays.key_at < 0:
        key = arrays.key[at * arrays.dimensions : (at + 1) * arrays.dimensions]
    seen = words[arrays.seen_at : arrays.seen_at + arrays.aspects]
    if arrays.seen_at < 0:
        seen = arrays.seen[at * arrays.aspects : (at + 1) * arrays.aspects]
    space = bytes_[arrays.space_at : arrays.space_at + arrays.spaces]
    if arrays.space_at < 0:
        space = arrays.space[at * arrays.spaces : (at + 1) * arrays.spaces]
    block = Block(
        space,
        seen,
        key,
        cuda.shared.array(_ITEMS, _UINT32),
        cuda.shared.array(_ITEMS, _UINT32),
        cuda.shared.array(_ITEMS, _INT32),
        cuda.shared.array(_RUNS_MET, _INT32),
        cuda.shared.array(_CELLS_MET, _UINT32),
        cuda.shared.array(_WAITING, _UINT32),
        cuda.shared.array(2, _INT64),
        cuda.shared.array(_COUNTS, _INT32),
        thread % WARP,
        2 * WARP * (thread // WARP),
        at * results.room,
    )
    for i in range(thread, arrays.spaces, cuda.blockDim.x):
        space[i] = U8(MISSING if i + 1 < arrays.spaces else 0)
    for dimension in range(thread, arrays.aspects // ASPECTS, cuda.blockDim.x):
        engine.hide(dimension, seen)
    for i in range(thread, _COUNTS, cuda.blockDim.x):
        block.counts[i] = 0
    cuda.syncthreads()
    visited = I64(0)
    while at < len(todo):
        visited += _match_event(todo[at], thread, batch, body, owners, block, results)
        cuda.syncthreads()
        if thread == 0:
            block.counts[_SETTLED], block.counts[_OPEN] = 0, 0
        at += cuda.gridDim.x
    if block.lane == 0:
        cuda.atomic.add(results.work, CANDIDATES, visited)
