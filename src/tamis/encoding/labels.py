"""Order-preserving integer labels for constants that have no code of their own: strings, and integers beyond 2**53.

Every constant gets an even label, larger constants larger ones, with room between them:

    constants          'apple'        'pear'        'plum'
    labels       ...     2000          4000          6000   ...
    keys          1999    |     3999    |    5999     |    6001

A value of an event is *located*: if it is a constant, its key is that label; if not, it falls in the gap between two
constants and gets the odd key just below the next one (just above the last). So ``> 'apple'`` is the interval from
2001, ``< 'plum'`` the interval up to 5999, and both stay right while constants are added in between. When a gap has no room
left, all labels are to be spread anew, and whoever stored keys must follow (`Relabelling`).

Constants often come in order: numbered names, dates. Halving a gap each time would fill it after some fifty of them. So what
comes right behind (or before) the last one of a run takes the smaller a share of the gap, the longer the run is.

Invariants: `constants` ascend strictly; `labels` ascend strictly, are even, and lie strictly inside the region.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

# Each constant of a run takes this power of 1/2 of the gap at least: there is room for a million in a gap of 2**40.
_LONGEST = 16
# So many runs are known at a time.
_MOST_RUNS = 4096
# Up to this many constants are inserted one by one; more are merged in a pass over all.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Relabelling:
    """Labels before and after, position by position; keys outside the region are not concerned.

    Nothing has moved yet: `carry_out` puts the new labels in place, with the constants for which there was no room.
    """

    labels: Labels
    constants: list[Any]
    spread: list[int]
    """The labels of all constants, and of those that have one already the old and the new one."""
    old: npt.NDArray[np.int64]
    new: npt.NDArray[np.int64]

    def carry_out(self) -> None:
        self.labels.restore(self.constants, self.spread)

    @property
    def first(self) -> int:
        return self.labels.first

    @property
    def last(self) -> int:
        return self.labels.last

    def moved(
        self, lo: npt.NDArray[np.int64], hi: npt.NDArray[np.int64], concerned: npt.NDArray[np.bool_]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The ends of intervals, of which some are concerned."""
        lo, hi = lo.copy(), hi.copy()
        lo[concerned] = self.lows(lo[concerned])
        hi[concerned] = self.highs(hi[concerned])
        return lo, hi

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

    __slots__ = ("_arrays", "_falling", "_label_of", "_rising", "_texts", "constants", "first", "labels", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.constants: list[Any] = []
        self.labels: list[int] = []
        self._label_of: dict[Any, int] = {}
        self._arrays: dict[str, npt.NDArray[np.int64]] = {}
        self._texts: pa.Array | None = None
        self._rising: dict[int, int] = {}
        """The labels at which ascending runs end -> how long these are."""
        self._falling: dict[int, int] = {}
        """The same of descending ones."""

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

    def texts(self) -> pa.Array:
        """All constants, ascending, where they are strings."""
        if self._texts is None:
            self._texts = pa.array(self.constants, pa.large_string())
        return self._texts

    def _array(self, name: str) -> npt.NDArray[np.int64]:
        if name not in self._arrays:
            self._arrays[name] = np.array(getattr(self, name), np.int64)
        return self._arrays[name]

    def keeping(self, keys: npt.NDArray[np.int64]) -> Callable[[], None]:
        """What forgets the constants on which none of these ends of intervals depends; labels stay as they are."""
        if not self.labels:
            return lambda: None  # before anything is done with millions of ends
        labels = self.label_array()
        used = np.isin(labels, keys) | np.isin(labels + 1, keys) | np.isin(labels - 1, keys)
        constants = [self.constants[at] for at in np.flatnonzero(used).tolist()]
        kept = labels[used].tolist()
        return lambda: self.restore(constants, kept)

    def restore(self, constants: list[Any], labels: list[int]) -> None:
        """Take over constants, ascending, with the labels that they had."""
        self.constants, self.labels = constants, labels
        self._label_of = dict(zip(constants, labels, strict=True))
        self._rising, self._falling = {}, {}
        self._arrays, self._texts = {}, None

    def missing(self, constants: Iterable[Any]) -> list[Any]:
        """Those that are not there, ascending, each once."""
        return sorted({constant for constant in constants if constant not in self._label_of})

    def add(self, constants: list[Any]) -> Relabelling | None:
        """Add constants that are `missing`. If there is no room for all of them, returns how labels must move for that."""
        self._arrays, self._texts = {}, None
        if len(constants) > _FEW:
            return None if self._merge(constants) else self._relabelling(constants)
        for place, constant in enumerate(constants):
            if not self._insert(constant):
                return self._relabelling(constants[place:])
        return None

    def _insert(self, constant: Any) -> bool:
        at = bisect_left(self.constants, constant)
        labels = self._spread(at, 1)
        if not labels:
            return False
        try:
            self._label_of[constant] = labels[0]
            self.constants.insert(at, constant)
            self.labels.insert(at, labels[0])
        except BaseException:
            self._align()
            raise
        return True

    def _align(self) -> None:
        """Let constants and labels be those that were noted, after an interrupt in the midst of it."""
        self.constants = sorted(self._label_of)
        self.labels = [self._label_of[constant] for constant in self.constants]

    def _merge(self, new: list[Any]) -> bool:
        """Add many constants: each run that falls in one gap is spread over it."""
        constants: list[Any] = []
        labels: list[int] = []
        added: list[int] = []
        taken = start = 0
        while start < len(new):
            at = bisect_left(self.constants, new[start], lo=taken)
            end = bisect_left(new, self.constants[at], lo=start) if at < len(self.constants) else len(new)
            spread = self._spread(at, end - start)
            if not spread:
                return False
            constants += self.constants[taken:at] + new[start:end]
            labels += self.labels[taken:at] + spread
            added += spread
            taken, start = at, end
        try:
            self._label_of.update(zip(new, added, strict=True))
            self.constants, self.labels = constants + self.constants[taken:], labels + self.labels[taken:]
        except BaseException:
            self._align()
            raise
        return True

    def _spread(self, at: int, count: int) -> list[int]:
        """Even labels, evenly apart, for `count` constants that come before place `at`; none when there is no room."""
        below = self.labels[at - 1] if at > 0 else self.first
        above = self.labels[at] if at < len(self.labels) else self.last
        gap = above - below
        rising, falling = self._rising.pop(below, 0), self._falling.pop(above, 0)
        if self.labels and at in (0, len(self.labels)):
            # Whatever comes at an end goes on there, as far as can be told.
            rising, falling = (_LONGEST, 0) if at else (0, _LONGEST)
        run = max(rising, falling)
        room = min(gap // 2, (gap >> run) * count) if run else gap
        step = ((room if room > 2 * (count + 1) else gap) // (count + 1)) & ~1
        if step < 2:
            return []
        start = above - (count + 1) * step if falling > rising else below
        labels = [start + step * (i + 1) for i in range(count)]
        self._note_run(labels, rising, falling)
        return labels

    def _note_run(self, labels: list[int], rising: int, falling: int) -> None:
        """Note that a run of so many goes on with these labels, upwards or downwards; what begins one may go on either way."""
        for runs in (self._rising, self._falling):
            if len(runs) >= _MOST_RUNS:
                runs.clear()
        if rising >= falling:
            self._rising[labels[-1]] = min(rising + 1, _LONGEST)
        if falling >= rising:
            self._falling[labels[0]] = min(falling + 1, _LONGEST)

    def _relabelling(self, new: list[Any]) -> Relabelling:
        constants = sorted(self.constants + new)
        # The room is 2**55 or more and memory ends long before that many constants.
        step = ((self.last - self.first) // (len(constants) + 1)) & ~1
        spread = [self.first + step * (i + 1) for i in range(len(constants))]
        label_of = dict(zip(constants, spread, strict=True))
        moved = np.array([label_of[constant] for constant in self.constants], np.int64)
        return Relabelling(self, constants, spread, np.array(self.labels, np.int64), moved)
