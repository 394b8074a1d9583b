"""Order-preserving integer labels for constants that have no code of their own: strings, and integers beyond 2**53.

Every constant gets an even label, larger constants larger ones, with room between them:

    constants          'apple'        'pear'        'plum'
    labels       ...     2000          4000          6000   ...
    keys          1999    |     3999    |    5999     |    6001

A value of an event is *located*: if it is a constant, its key is that label; if not, it falls in the gap between two
constants and gets the odd key just below the next one (just above the last). So ``> 'apple'`` is the interval from
2001, ``< 'plum'`` the interval up to 5999, and both stay right while constants are added in between. When a gap has no room
left, all labels are spread anew and whoever stored keys is told (`Relabelling`).

Invariants: `constants` ascend strictly; `labels` ascend strictly, are even, and lie strictly inside the region.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# The share of the free room that an addition at either end takes: constants that come in ascending order then find
# room for millions before a relabelling, and 2**39 places remain between two neighbours.
_END_SHARE = 1 << 16
# Up to this many constants are inserted one by one; more are merged in a pass over all.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Relabelling:
    """Labels before and after, position by position; keys outside the region are not concerned."""

    first: int
    last: int
    old: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64]

    def lows(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Lower ends of intervals: a label moves with its constant, a gap becomes its lowest key."""
        at = np.searchsorted(self.old, keys)
        below = np.concatenate(([self.first + 1], self.new + 1))[at]
        return self._moved(keys, at, below)

    def highs(self, keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Upper ends of intervals: a label moves with its constant, a gap becomes its highest key."""
        at = np.searchsorted(self.old, keys)
        above = np.concatenate((self.new - 1, [self.last - 1]))[at]
        return self._moved(keys, at, above)

    def _moved(
        self, keys: npt.NDArray[np.int64], at: npt.NDArray[np.intp], gap: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        inside = (keys > self.first) & (keys < self.last)
        label = np.append(self.old, self.last)[at] == keys
        return np.where(inside, np.where(label, np.append(self.new, self.last)[at], gap), keys)


class Labels:
    """The labels of the constants of one dimension, in the region ``first < label < last`` (both even)."""

    __slots__ = ("_arrays", "_label_of", "constants", "first", "labels", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.constants: list[Any] = []
        self.labels: list[int] = []
        self._label_of: dict[Any, int] = {}
        self._arrays: dict[str, npt.NDArray[np.int64]] = {}

    def __len__(self) -> int:
        return len(self.constants)

    def __contains__(self, constant: object) -> bool:
        return constant in self._label_of

    def label(self, constant: Any) -> int:
        """The label of a constant that was added."""
        return self._label_of[constant]

    def locate(self, value: Any) -> int:
        """The key of any value: its label, or the key of the gap it falls in."""
        label = self._label_of.get(value)
        if label is not None:
            return label
        at = bisect_left(self.constants, value)
        if at < len(self.labels):
            return self.labels[at] - 1
        return self.labels[-1] + 1 if self.labels else self.first + 1

    def locate_integers(self, values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """`locate` of every element, where the constants are 64-bit integers."""
        if not self.labels:
            return np.full(len(values), self.first + 1, np.int64)
        constants, labels = self._array("constants"), self.label_array()
        at = np.searchsorted(constants, values)
        inside = np.minimum(at, len(labels) - 1)
        gap = np.where(at < len(labels), labels[inside] - 1, labels[-1] + 1)
        return np.where(constants[inside] == values, labels[inside], gap)

    def label_array(self) -> npt.NDArray[np.int64]:
        """All labels, ascending."""
        return self._array("labels")

    def _array(self, name: str) -> npt.NDArray[np.int64]:
        if name not in self._arrays:
            self._arrays[name] = np.array(getattr(self, name), np.int64)
        return self._arrays[name]

    def keep(self, keys: npt.NDArray[np.int64]) -> None:
        """Forget the constants on which none of these ends of intervals depends; labels stay as they are."""
        if not self.labels:
            return  # before anything is done with millions of ends
        labels = self.label_array()
        used = np.isin(labels, keys) | np.isin(labels + 1, keys) | np.isin(labels - 1, keys)
        self.constants = [self.constants[at] for at in np.flatnonzero(used).tolist()]
        self.labels = labels[used].tolist()
        self._label_of = dict(zip(self.constants, self.labels, strict=True))
        self._arrays = {}

    def restore(self, constants: list[Any], labels: list[int]) -> None:
        """Take over constants, ascending, with the labels that they had."""
        self.constants, self.labels = constants, labels
        self._label_of = dict(zip(constants, labels, strict=True))
        self._arrays = {}

    def add(self, constants: Iterable[Any]) -> list[Relabelling]:
        """Add constants; those that are there are passed over. Returns the changes, in their order, if labels moved."""
        new = sorted({constant for constant in constants if constant not in self._label_of})
        if new:
            self._arrays = {}
        if len(new) > _FEW:
            moved = self._merge(new)
            return [moved] if moved is not None else []
        return [moved for constant in new if (moved := self._insert(constant)) is not None]

    def _insert(self, constant: Any) -> Relabelling | None:
        at = bisect_left(self.constants, constant)
        labels = self._spread(at, 1)
        if labels is None:
            return self._relabel([constant])
        self.constants.insert(at, constant)
        self.labels.insert(at, labels[0])
        self._label_of[constant] = labels[0]
        return None

    def _merge(self, new: list[Any]) -> Relabelling | None:
        """Add many constants: each run that falls in one gap is spread over it."""
        constants: list[Any] = []
        labels: list[int] = []
        added: list[int] = []
        taken = start = 0
        while start < len(new):
            at = bisect_left(self.constants, new[start], lo=taken)
            end = bisect_left(new, self.constants[at], lo=start) if at < len(self.constants) else len(new)
            spread = self._spread(at, end - start)
            if spread is None:
                return self._relabel(new)
            constants += self.constants[taken:at] + new[start:end]
            labels += self.labels[taken:at] + spread
            added += spread
            taken, start = at, end
        self.constants = constants + self.constants[taken:]
        self.labels = labels + self.labels[taken:]
        self._label_of.update(zip(new, added, strict=True))
        return None

    def _spread(self, at: int, count: int) -> list[int] | None:
        """Even labels, evenly apart, for `count` constants that come before place `at`; None when there is no room."""
        below = self.labels[at - 1] if at > 0 else self.first
        above = self.labels[at] if at < len(self.labels) else self.last
        step = (above - below) // (count + 1)
        at_end = at in (0, len(self.labels)) and len(self.labels) > 0
        if at_end and above - below > 2 * _END_SHARE:
            step = min(step, (above - below) // _END_SHARE)
        step &= ~1
        if step < 2:
            return None
        start = above - (count + 1) * step if at_end and at == 0 else below
        return [start + step * (i + 1) for i in range(count)]

    def _relabel(self, new: list[Any]) -> Relabelling:
        old = np.array(self.labels, np.int64)
        kept = self.constants
        self.constants = sorted(kept + new)
        # The room is 2**55 or more and memory ends long before that many constants.
        step = ((self.last - self.first) // (len(self.constants) + 1)) & ~1
        self.labels = [self.first + step * (i + 1) for i in range(len(self.constants))]
        self._label_of = dict(zip(self.constants, self.labels, strict=True))
        moved = np.array([self._label_of[constant] for constant in kept], np.int64)
        return Relabelling(self.first, self.last, old, moved)
