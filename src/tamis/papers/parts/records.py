"""Records: the predicates of each conjunction, side by side, to be checked against one event.

    words      | 7 SOME 1 | 10 | 10 | 12 NONE 2 | 3 | 5 | 8 | 8 | 9 ABSENT 0 | ...
                 head       lo   hi   head        lo  hi  lo  hi  head

A head is ``dimension << 32 | intervals << 2 | mode``, see `head_of`. Conjunction c begins at ``at[c]`` and has ``size[c]``
predicates. The index chooses which predicates are in the record, and their order.

An event is *single-valued* if it has at most one value in each dimension and no interval. It is laid out by dimension: `key` is
its value, or KEY_MIN if it has none; no interval of a record contains KEY_MIN. For any event, `places` says where its values are.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import EventPlaces, event_places, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, UP, I32s, I64s
from tamis.kernels.prefetch import prefetch
from tamis.kernels.sorting import middle_of

_SOME, _ABSENT = int(Mode.SOME), int(Mode.ABSENT)
_MODE_BITS = 2
ONE_INTERVAL = 1 << _MODE_BITS | _SOME
"""The lower half of a head for a predicate with one interval that must contain the value: nearly all predicates."""
_FEWEST_DEAD = 1 << 12


_Head = TypeVar("_Head", int, I64s)
Words = I64s
Rows = I32s


class RecordArrays(NamedTuple):
    """Records as kernels read them."""

    at: I64s
    size: I32s
    words: Words


class Records:
    """The records of the conjunctions in an index. Words of removed records stay until they are half of all words."""

    def __init__(self) -> None:
        self._at = GrowingArray(np.int64)
        self._size = GrowingArray(np.int32)
        self._words = GrowingArray(np.int64)
        self._dead = 0

    @property
    def nbytes(self) -> int:
        return self._at.nbytes + self._size.nbytes + self._words.nbytes

    def view(self) -> RecordArrays:
        return RecordArrays(self._at.view(), self._size.view(), self._words.view())

    def put(self, table: Conjunctions, conjunctions: I32s, predicates: I64s, sizes: I32s) -> None:
        """Write a record of each conjunction. The i-th has the next `sizes[i]` of `predicates`, which are table numbers."""
        missing = len(table.start) - 1 - len(self._at)
        if missing > 0:
            self._at.grow(missing, fill=-1)
            self._size.grow(missing, fill=0)
        needed = len(predicates) + 2 * int(
            (table.predicates.start[predicates + 1] - table.predicates.start[predicates]).sum()
        )
        begin = len(self._words)
        self._words.grow(needed)
        _put(table.predicates, conjunctions, predicates, sizes, self.view(), begin)

    def remove(self, conjunctions: I32s) -> None:
        """Forget the records of some conjunctions."""
        self._dead += _remove(self.view(), conjunctions)
        if self._dead > max(len(self._words) // 2, _FEWEST_DEAD):
            self.compact()

    def compact(self) -> None:
        """Give up the room of records that were removed."""
        kept = np.empty(len(self._words) - self._dead, np.int64)
        _compact(self.view(), kept)
        self._words = GrowingArray(np.int64)
        self._words.extend(kept)
        self._dead = 0

    def clear(self) -> None:
        """Forget all records."""
        self.__init__()  # type: ignore[misc]


@inlined
def head_of(dimension: int, intervals: int, mode: int) -> int:
    return halves(I64(dimension), I64(intervals) << _MODE_BITS | I64(mode))


@inlined
def dimension_in(head: _Head) -> _Head:
    return first_half(head)


@inlined
def mode_in(head: _Head) -> _Head:
    return head & ((1 << _MODE_BITS) - 1)


@inlined
def intervals_in(head: int) -> int:
    """How many intervals follow a head."""
    return second_half(head) >> _MODE_BITS


@inlined
def has_one_interval(head: int) -> bool:
    """Whether a predicate has one interval, which must contain the value."""
    return second_half(head) == ONE_INTERVAL


@inlined
def following(words: Words, at: int) -> int:
    """Where the next predicate of a record is."""
    return at + 1 + 2 * intervals_in(words[UP(at)])


@inlined
def _length(words: Words, at: int, size: int) -> int:
    """How many words a record of `size` predicates has."""
    begin = at
    for _ in range(size):
        at = following(words, at)
    return at - begin


@lean_kernel
def _put(
    predicates: Predicates, conjunctions: Rows, chosen: Words, sizes: Rows, records: RecordArrays, place: int
) -> None:
    words, p = records.words, 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        records.at[c], records.size[c] = place, sizes[i]
        for _ in range(sizes[i]):
            number = chosen[p]
            p += 1
            first, last = predicates.start[number], predicates.start[number + 1]
            words[place] = head_of(predicates.dimension[number], last - first, predicates.mode[number])
            place += 1
            for interval in range(first, last):
                words[place] = max(predicates.lo[interval], KEY_MIN + 1)
                words[place + 1] = predicates.hi[interval]
                place += 2


@lean_kernel
def _remove(records: RecordArrays, conjunctions: Rows) -> int:
    """Mark the records as removed; returns how many words they had."""
    dead = 0
    for c in conjunctions:
        if records.at[c] >= 0:
            dead += _length(records.words, records.at[c], records.size[c])
            records.at[c], records.size[c] = -1, 0
    return dead


@lean_kernel
def _compact(records: RecordArrays, kept: Words) -> None:
    at, words, place = records.at, records.words, 0
    for c in range(len(at)):
        if at[c] >= 0:
            length = _length(words, at[c], records.size[c])
            for i in range(length):
                kept[place + i] = words[at[c] + i]
            at[c] = place
            place += length


# -- one event


class EventKeys(NamedTuple):
    """One event by dimension."""

    key: I64s
    """KEY_MIN for every dimension between events."""
    places: EventPlaces


def event_keys(dimensions: int) -> EventKeys:
    """Room for events whose dimensions have numbers below `dimensions`."""
    return EventKeys(np.full(dimensions, KEY_MIN, np.int64), event_places(dimensions))


@inlined
def load_keys(batch: EventBatch, event: int, keys: EventKeys) -> bool:
    """Lay out an event; returns whether it is single-valued."""
    load_event(batch, event, keys.places)
    single_valued = True
    for v in range(batch.start[event], batch.start[event + 1]):
        d = batch.dimension[v]
        keys.key[d] = batch.lo[v]
        single_valued &= keys.places.values[d] == 1 and batch.lo[v] == batch.hi[v]
    return single_valued


@inlined
def fetch(words: Words, place: int) -> None:
    """Prefetch a record: most have at most four cache lines."""
    prefetch(words, place)
    prefetch(words, place + 8)
    prefetch(words, place + 16)
    prefetch(words, place + 24)


@inlined
def unload_keys(batch: EventBatch, event: int, keys: EventKeys) -> None:
    """Clear the layout of an event."""
    for v in range(batch.start[event], batch.start[event + 1]):
        keys.key[batch.dimension[v]] = KEY_MIN
    unload_event(batch, event, keys.places)


@inlined
def failing(words: Words, at: int, size: int, single_valued: bool, keys: EventKeys, batch: EventBatch) -> int:
    """How many predicates of a record are true of the event before the first that is not; `size` if all are."""
    if single_valued:
        return failing_keys(words, at, size, keys.key)
    for i in range(size):
        head = words[UP(at)]
        d, intervals = UP(dimension_in(head)), intervals_in(head)
        if not _holds(mode_in(head), words, at + 1, intervals, keys.places.first[d], keys.places.values[d], batch):
            return i
        at += 1 + 2 * intervals
    return size


@inlined
def failing_keys(words: Words, at: int, size: int, key: Words) -> int:
    """The same for a single-valued event. With only two arrays it costs a third: each array is passed by value, seven words."""
    for i in range(size):
        head = words[UP(at)]
        value = key[UP(dimension_in(head))]
        if has_one_interval(head):
            if not words[UP(at + 1)] <= value <= words[UP(at + 2)]:
                return i
            at += 3
        else:
            intervals, mode = intervals_in(head), mode_in(head)
            found = _is_within(words, at + 1, intervals, value, value)
            held = found if mode == _SOME else not found and (value == KEY_MIN) == (mode == _ABSENT)
            if not held:
                return i
            at += 1 + 2 * intervals
    return size


# `encoding.evaluation` makes the same test of a predicate whose ends of intervals lie in two arrays, not side by side.
# One function for both layouts would take more arguments, and arrays are passed by value: see `failing_keys`.
@inlined
def _holds(mode: int, words: Words, at: int, intervals: int, first: int, count: int, batch: EventBatch) -> bool:
    """Whether one predicate is true of the values of an event in its dimension."""
    if mode == _ABSENT:
        return count == 0
    if count == 0:
        return False
    found = False
    for v in range(first, first + count):
        if _is_within(words, at, intervals, batch.lo[v], batch.hi[v]):
            found = True
            break
    return found == (mode == _SOME)


@inlined
def _is_within(words: Words, at: int, intervals: int, lo: int, hi: int) -> bool:
    """Whether a value, or an interval, meets one of the intervals at a place."""
    low, high = 0, intervals
    while low < high:  # find the first interval that ends at or behind lo
        middle = middle_of(low, high)
        if words[UP(at + 2 * middle + 1)] < lo:
            low = middle + 1
        else:
            high = middle
    return low < intervals and words[UP(at + 2 * low)] <= hi
