"""Predicates in columns.

    predicate      p0      p1          p2
    dimension      7       7           12
    mode           SOME    NONE        SOME
    start          0       1           3         4
                   |       |           |
    lo             10      20   30     MIN
    hi             10      20   35     99

The intervals of predicate p are ``lo[i], hi[i]`` for ``start[p] <= i < start[p + 1]``: sorted, disjoint, closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.leaf import Leaf
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I32s, I64s, U8s
from tamis.kernels.ranges import grouped, span_indices

Ends = I64s


class Predicates(NamedTuple):
    """Columns of predicates, as kernels read them."""

    dimension: I32s
    mode: U8s
    start: I64s
    lo: I64s
    hi: I64s


class GrowingPredicates:
    """Columns of predicates that grow at their end."""

    def __init__(self) -> None:
        self._dimension = GrowingArray(np.int32)
        self._mode = GrowingArray(np.uint8)
        self._start = GrowingArray(np.int64)
        self._lo = GrowingArray(np.int64)
        self._hi = GrowingArray(np.int64)
        self._start.append(0)

    def __len__(self) -> int:
        return len(self._dimension)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in (self._dimension, self._mode, self._start, self._lo, self._hi))

    def view(self) -> Predicates:
        return Predicates(
            self._dimension.view(), self._mode.view(), self._start.view(), self._lo.view(), self._hi.view()
        )

    def extend(self, added: Predicates) -> None:
        shift = len(self._lo)
        self._dimension.extend(added.dimension)
        self._mode.extend(added.mode)
        self._start.extend(added.start[1:] + (shift - added.start[0]))
        self._lo.extend(added.lo[added.start[0] : added.start[-1]])
        self._hi.extend(added.hi[added.start[0] : added.start[-1]])

    def relabel(self, dimension: int, relabelling: Relabelling) -> None:
        """Change the keys of a dimension to its new labels, in place."""
        columns = self.view()
        moved = relabelled(columns, dimension, relabelling)
        columns.lo[:], columns.hi[:] = moved.lo, moved.hi


def relabelled(columns: Predicates, dimension: int, relabelling: Relabelling) -> Predicates:
    """The same predicates, with the keys of a dimension changed to its new labels."""
    concerned = np.repeat(columns.dimension == dimension, np.diff(columns.start))
    lo, hi = relabelling.moved(columns.lo, columns.hi, concerned)
    return columns._replace(lo=lo, hi=hi)


def predicates_of(leaves: Iterable[Leaf]) -> Predicates:
    """Leaves laid out in columns."""
    dimension, mode, start, lo, hi = [], [], [0], [], []
    for leaf in leaves:
        dimension.append(leaf.dimension)
        mode.append(int(leaf.mode))
        for low, high in leaf.intervals:
            lo.append(low)
            hi.append(high)
        start.append(len(lo))
    return Predicates(
        np.array(dimension, np.int32),
        np.array(mode, np.uint8),
        np.array(start, np.int64),
        np.array(lo, np.int64),
        np.array(hi, np.int64),
    )


def taken(columns: Predicates, chosen: npt.NDArray[Any]) -> Predicates:
    """The chosen predicates, in the order of `chosen`."""
    counts = np.diff(columns.start)[chosen]
    intervals = span_indices(columns.start[:-1][chosen], counts)
    start = np.append(0, np.cumsum(counts))
    return Predicates(
        columns.dimension[chosen], columns.mode[chosen], start, columns.lo[intervals], columns.hi[intervals]
    )


def joined_predicates(parts: Sequence[Predicates]) -> Predicates:
    """The predicates of all parts, one after another."""
    return Predicates(
        np.concatenate([part.dimension for part in parts]),
        np.concatenate([part.mode for part in parts]),
        joined_starts([part.start for part in parts]),
        np.concatenate([part.lo for part in parts]),
        np.concatenate([part.hi for part in parts]),
    )


def joined_starts(parts: Sequence[I64s]) -> I64s:
    """Places in parts as places in all of them together."""
    before = np.cumsum([0, *(int(part[-1]) for part in parts)])
    return np.concatenate([part[:-1] + shift for part, shift in zip(parts, before[:-1], strict=True)] + [before[-1:]])


def ends_by_dimension(parts: Sequence[Predicates]) -> Iterator[tuple[int, Ends, Ends]]:
    """Every dimension that occurs, with the lower and the upper ends of all its intervals."""
    dimension = np.concatenate([np.repeat(part.dimension, np.diff(part.start)) for part in parts])
    order = grouped(dimension)
    lows = np.concatenate([part.lo for part in parts])[order]
    highs = np.concatenate([part.hi for part in parts])[order]
    numbers = np.unique(np.concatenate([part.dimension for part in parts]))
    starts = np.searchsorted(dimension[order], numbers)
    ends = np.searchsorted(dimension[order], numbers, side="right")
    for number, start, end in zip(numbers.tolist(), starts, ends, strict=True):
        yield number, lows[start:end], highs[start:end]
