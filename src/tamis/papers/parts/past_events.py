"""Past events, and how selective predicates are (PS-Tree, section 3.3).

    dimension   0          1     2
    start       0          3     4    4          values of a dimension: start[d] .. start[d + 1]
    keys        3  7  7    40                    ascending

A leaf's event counter is the number of these values in its space. So the number of events that a predicate matches is the sum
over the leaves that it covers. Before its cuts are made, two searches here find the same number.

For equal numbers, and without a history, the paper's ranking of operators decides, then the width of the value set:

    =   >   in   >   between   >   <, <=, >, >=   >   not in   >   !=   >   IS NOT NULL
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.kernels.sorting import first_at_least

_SOME, _NONE, _ABSENT = int(Mode.SOME), int(Mode.NONE), int(Mode.ABSENT)
_MOST_VALUES = 1 << 18
"""Most values kept. Beyond this, the oldest are dropped."""
_EQUAL, _IN, _BETWEEN, _ONE_SIDED, _NOT_IN, _UNEQUAL, _ANY = range(7)
UNUSABLE = 7
"""The rank of a predicate that no tree can hold: the absence of a value."""


class HistoryArrays(NamedTuple):
    """The values as kernels search them."""

    start: I64s
    keys: I64s


class History:
    """The values of the newest events."""

    def __init__(self) -> None:
        self._dimension = np.zeros(0, np.int32)
        self._key = np.zeros(0, np.int64)
        self._arrays = HistoryArrays(np.zeros(1, np.int64), np.zeros(0, np.int64))

    def __len__(self) -> int:
        return len(self._key)

    @property
    def nbytes(self) -> int:
        return self._dimension.nbytes + self._key.nbytes + sum(array.nbytes for array in self._arrays)

    def view(self) -> HistoryArrays:
        return self._arrays

    def observe(self, batch: EventBatch) -> None:
        """Add the values of events. An interval counts with its lower end."""
        begin, end = int(batch.start[0]), int(batch.start[-1])
        self._dimension = np.concatenate([self._dimension, batch.dimension[begin:end]])[-_MOST_VALUES:]
        self._key = np.concatenate([self._key, batch.lo[begin:end]])[-_MOST_VALUES:]
        counts = np.bincount(self._dimension) if len(self._key) else np.zeros(0, np.int64)
        order = np.lexsort((self._key, self._dimension))
        self._arrays = HistoryArrays(np.append(0, np.cumsum(counts)).astype(np.int64), self._key[order])


@inlined
def count_between(history: HistoryArrays, dimension: int, lo: int, hi: int) -> int:
    """How many values of a dimension lie in an interval."""
    if dimension >= len(history.start) - 1:
        return 0
    begin, end = history.start[dimension], history.start[dimension + 1]
    above = end if hi == KEY_MAX else first_at_least(history.keys, begin, end, hi + 1)
    return int(above - first_at_least(history.keys, begin, end, lo))


@inlined
def matching_events(history: HistoryArrays, predicates: Predicates, p: int) -> int:
    """How many values match a predicate."""
    d, count = predicates.dimension[p], 0
    for i in range(predicates.start[p], predicates.start[p + 1]):
        count += count_between(history, d, predicates.lo[i], predicates.hi[i])
    if predicates.mode[p] == _NONE:
        return count_between(history, d, KEY_MIN, KEY_MAX) - count
    return count


@inlined
def rank_of(predicates: Predicates, p: int) -> float:
    """The rank of a predicate's operator; the fraction says how wide its value set is."""
    mode, begin, end = predicates.mode[p], predicates.start[p], predicates.start[p + 1]
    if mode == _ABSENT:
        return float(UNUSABLE)
    width, points = 0.0, True
    for i in range(begin, end):
        width += np.float64(predicates.hi[i]) - np.float64(predicates.lo[i]) + 1.0
        points &= predicates.lo[i] == predicates.hi[i]
    share = np.log2(width + 1.0) / 128.0
    if mode == _NONE:
        return (_UNEQUAL if end - begin == 1 and points else _NOT_IN) + 0.75 - share
    low, high = predicates.lo[begin] <= KEY_MIN + 1, predicates.hi[end - 1] == KEY_MAX
    if points:
        return (_EQUAL if end - begin == 1 else _IN) + share
    if low and high:
        return _ANY + share
    return (_ONE_SIDED if low or high else _BETWEEN) + share


def by_selectivity(table: Conjunctions, conjunctions: I32s, history: History) -> tuple[I64s, I64s]:
    """Order the predicates of each conjunction: the most selective first, predicates that no tree can hold last.

    Returns the numbers of predicates, and the place where those of each conjunction begin.
    """
    sizes = table.start[conjunctions + 1] - table.start[conjunctions]
    start = np.append(0, np.cumsum(sizes)).astype(np.int64)
    order = np.empty(int(start[-1]), np.int64)
    most = int(sizes.max(initial=0))
    _order(table, conjunctions, history.view(), start, order, np.empty(most), np.empty(most))
    return order, start


@lean_kernel
def _order(
    table: Conjunctions, conjunctions: I32s, history: HistoryArrays, start: I64s, order: I64s, events: F64s, rank: F64s
) -> None:
    predicates = table.predicates
    for i in range(len(conjunctions)):
        begin, first = start[i], table.start[conjunctions[i]]
        count = start[i + 1] - begin
        for j in range(count):
            p = first + j
            order[begin + j] = p
            rank[j] = rank_of(predicates, p)
            events[j] = np.inf if rank[j] == UNUSABLE else np.float64(matching_events(history, predicates, p))
        gap = count // 2
        while gap > 0:  # Shell sort: conjunctions are short, but some have thousands of predicates.
            for j in range(gap, count):
                p, many, place, k = order[begin + j], events[j], rank[j], j
                while k >= gap and (events[k - gap] > many or (events[k - gap] == many and rank[k - gap] > place)):
                    order[begin + k], events[k], rank[k] = order[begin + k - gap], events[k - gap], rank[k - gap]
                    k -= gap
                order[begin + k], events[k], rank[k] = p, many, place
            gap //= 2
