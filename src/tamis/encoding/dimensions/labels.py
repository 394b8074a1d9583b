"""Order-preserving integer labels for constants that have no code of their own: strings, and integers beyond 2**53.

Every constant gets an even label, larger constants larger ones, with room between them:

    constants          'apple'        'pear'        'plum'
    labels       ...     2000          4000          6000   ...
    keys          1999    |     3999    |    5999     |    6001

A value of an event is *located*. If it is a constant, its key is the label of this constant. Otherwise it lies in the gap
between two constants, and gets the odd key just below the next constant, or just above the last one. So ``> 'apple'`` is the
interval from 2001 on, and ``< 'plum'`` the interval up to 5999. Both stay right while constants are added in between. When a
gap has no room left, all labels are spread again, and all stored keys must change (`Relabelling`).

Constants often come in order: numbered names, dates, ranges within ranges. Halving a gap each time would fill it after about
fifty constants. So in a gap that is not large, a label is placed by where its constant lies between its neighbours. A constant
beyond all others is expected to be followed by more.

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

from tamis.encoding.dimensions.texts import Texts
from tamis.kernels.numbers import Bools, I64s

# A constant takes at least 1 / 2**16 of its gap. So a million constants fit into a gap of 2**40.
_LEAST_SHARE = 16
# Gaps above this size are halved. Halving is quicker, and still leaves room for any number of ascending constants.
_ROOMY = 1 << 40
# The bytes after the common prefix of two constants that decide where a string lies between them.
_BYTES = 8
# Up to this many constants are inserted one by one; more are merged in a pass over all.
_FEW = 16


@dataclass(frozen=True, slots=True)
class Relabelling:
    """Labels before and after, position by position. Keys outside the region do not change.

    Nothing has moved yet: `carry_out` sets the new labels, also for the constants that had no room.
    """

    labels: Labels
    constants: list[Any]
    spread: list[int]
    """The new labels of all constants. `old` and `new` are the labels of the constants that had one."""
    old: I64s
    new: I64s

    def carry_out(self) -> None:
        self.labels.restore(self.constants, self.spread)

    @property
    def first(self) -> int:
        return self.labels.first

    @property
    def last(self) -> int:
        return self.labels.last

    def moved(self, lo: I64s, hi: I64s, concerned: Bools) -> tuple[I64s, I64s]:
        """The new ends of intervals, of which some are on this dimension."""
        lo, hi = lo.copy(), hi.copy()
        lo[concerned] = self.lows(lo[concerned])
        hi[concerned] = self.highs(hi[concerned])
        return lo, hi

    def lows(self, keys: I64s) -> I64s:
        """Lower ends of intervals: a label moves with its constant, a gap becomes its lowest key."""
        at = np.searchsorted(self.old, keys)
        below = np.concatenate(([self.first + 1], self.new + 1))[at]
        return self._moved(keys, at, below)

    def highs(self, keys: I64s) -> I64s:
        """Upper ends of intervals: a label moves with its constant, a gap becomes its highest key."""
        at = np.searchsorted(self.old, keys)
        above = np.concatenate((self.new - 1, [self.last - 1]))[at]
        return self._moved(keys, at, above)

    def _moved(self, keys: I64s, at: npt.NDArray[np.intp], gap: I64s) -> I64s:
        inside = (keys > self.first) & (keys < self.last)
        label = np.append(self.old, self.last)[at] == keys
        return np.where(inside, np.where(label, np.append(self.new, self.last)[at], gap), keys)


class Labels:
    """The labels of the constants of one dimension, in the region ``first < label < last`` (both even)."""

    __slots__ = ("_arrays", "_label_of", "_texts", "changed", "constants", "first", "labels", "last")

    def __init__(self, first: int, last: int) -> None:
        self.first = first
        self.last = last
        self.constants: list[Any] = []
        self.labels: list[int] = []
        self._label_of: dict[Any, int] = {}
        self._arrays: dict[str, I64s] = {}
        self._texts: Texts | None = None
        self.changed: Callable[[], None] = _nobody_waits
        """Called when keys of values may have changed."""

    def __len__(self) -> int:
        return len(self.constants)

    def __contains__(self, constant: object) -> bool:
        return constant in self._label_of

    def label(self, constant: Any) -> int:
        """The label of a constant that was added."""
        return self._label_of[constant]

    def constants_at(self, labels: Iterable[int]) -> list[Any]:
        """The constants that have some of these labels."""
        places = [(bisect_left(self.labels, label), label) for label in labels]
        return [self.constants[at] for at, label in places if at < len(self.labels) and self.labels[at] == label]

    def locate(self, value: Any) -> int:
        """The key of any value: its label, or the key of the gap it falls in."""
        label = self._label_of.get(value)
        if label is not None:
            return label
        at = bisect_left(self.constants, value)
        if at < len(self.labels):
            return self.labels[at] - 1
        return self.labels[-1] + 1 if self.labels else self.first + 1

    def locate_integers(self, values: I64s) -> I64s:
        """`locate` of every element, where the constants are 64-bit integers."""
        if not self.labels:
            return np.full(len(values), self.first + 1, np.int64)
        constants, labels = self._array("constants"), self.label_array()
        at = np.searchsorted(constants, values)
        inside = np.minimum(at, len(labels) - 1)
        gap = np.where(at < len(labels), labels[inside] - 1, labels[-1] + 1)
        return np.where(constants[inside] == values, labels[inside], gap)

    def label_array(self) -> I64s:
        """All labels, ascending."""
        return self._array("labels")

    def texts(self) -> Texts:
        """All constants, ascending, where they are strings."""
        if self._texts is None:
            self._texts = Texts(pa.array(self.constants, pa.large_string()))
        return self._texts

    def _array(self, name: str) -> I64s:
        if name not in self._arrays:
            self._arrays[name] = np.array(getattr(self, name), np.int64)
        return self._arrays[name]

    def keeping(self, keys: I64s) -> Callable[[], None]:
        """A function that keeps only the constants that these ends of intervals need. Labels stay as they are."""
        if not self.labels:
            return lambda: None  # without work on millions of ends
        labels = self.label_array()
        used = np.isin(labels, keys) | np.isin(labels + 1, keys) | np.isin(labels - 1, keys)
        constants = [self.constants[at] for at in np.flatnonzero(used).tolist()]
        kept = labels[used].tolist()
        return lambda: self.restore(constants, kept)

    def restore(self, constants: list[Any], labels: list[int]) -> None:
        """Take over constants, ascending, with the labels that they had."""
        self.constants, self.labels = constants, labels
        self._label_of = dict(zip(constants, labels, strict=True))
        self._arrays, self._texts = {}, None
        self.changed()

    def missing(self, constants: Iterable[Any]) -> list[Any]:
        """The constants that are not there, ascending, each once."""
        return sorted({constant for constant in constants if constant not in self._label_of})

    def add(self, constants: list[Any]) -> Relabelling | None:
        """Add constants that are `missing`. If there is no room for all of them, returns how labels must move."""
        self._arrays, self._texts = {}, None
        self.changed()
        if len(constants) > _FEW:
            return None if self._merge(constants) else self._relabelling(constants)
        for place, constant in enumerate(constants):
            if not self._insert(constant):
                return self._relabelling(constants[place:])
        return None

    def _insert(self, constant: Any) -> bool:
        at = bisect_left(self.constants, constant)
        labels = self._spread(at, [constant])
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
        """Restore constants and labels from the dictionary, after an interrupt."""
        self.constants = sorted(self._label_of)
        self.labels = [self._label_of[constant] for constant in self.constants]

    def _merge(self, new: list[Any]) -> bool:
        """Add many constants. Constants that fall into the same gap are spread evenly over it."""
        constants: list[Any] = []
        labels: list[int] = []
        added: list[int] = []
        taken = start = 0
        while start < len(new):
            at = bisect_left(self.constants, new[start], lo=taken)
            end = bisect_left(new, self.constants[at], lo=start) if at < len(self.constants) else len(new)
            spread = self._spread(at, new[start:end])
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

    def _spread(self, at: int, new: list[Any]) -> list[int]:
        """Even labels for constants that come before place `at`; none when there is no room."""
        below = self.labels[at - 1] if at > 0 else self.first
        above = self.labels[at] if at < len(self.labels) else self.last
        if 0 < at < len(self.labels):
            if above - below >= _ROOMY:
                return _evenly(below, above, len(new))
            return _placed(below, above, self.constants[at - 1], new, self.constants[at])
        gap, parts = above - below, len(new) + 1
        share = min(gap // 2, (gap >> _LEAST_SHARE) * parts) & ~1
        if not self.labels or share < 2 * parts:
            return _evenly(below, above, len(new))
        return _evenly(above - share, above, len(new)) if at == 0 else _evenly(below, below + share, len(new))

    def _relabelling(self, new: list[Any]) -> Relabelling:
        constants = sorted(self.constants + new)
        # The room is 2**55 or more and memory ends long before that many constants.
        step = ((self.last - self.first) // (len(constants) + 1)) & ~1
        spread = [self.first + step * (i + 1) for i in range(len(constants))]
        label_of = dict(zip(constants, spread, strict=True))
        moved = np.array([label_of[constant] for constant in self.constants], np.int64)
        return Relabelling(self, constants, spread, np.array(self.labels, np.int64), moved)


def _nobody_waits() -> None:
    """Instead of a listener."""


def _placed(below: int, above: int, lower: Any, new: list[Any], upper: Any) -> list[int]:
    """Labels for some constants, each where it lies between the one before it and the upper one."""
    labels: list[int] = []
    for place, constant in enumerate(new):
        room = above - below - 2 * (len(new) - place)  # The constants after this one need 2 each.
        if room < 2:
            return []
        least = room >> _LEAST_SHARE
        step = int(min(max(_fraction(lower, constant, upper) * room, least), room - least)) & ~1
        below, lower = below + max(step, 2), constant
        labels.append(below)
    return labels


def _evenly(below: int, above: int, count: int) -> list[int]:
    """`count` even labels between two others, evenly spaced; none when there is no room."""
    step = ((above - below) // (count + 1)) & ~1
    return [below + step * (i + 1) for i in range(count)] if step >= 2 else []


def _fraction(below: Any, constant: Any, above: Any) -> float:
    """Where a constant lies between two others: 0 at the first, 1 at the second."""
    if isinstance(constant, str):
        low, middle, high = (text.encode("utf-8", "surrogatepass") for text in (below, constant, above))
        same = next((at for at, (left, right) in enumerate(zip(low, high, strict=False)) if left != right), len(low))
        below, constant, above = (
            int.from_bytes(text[same : same + _BYTES].ljust(_BYTES, b"\0")) for text in (low, middle, high)
        )
    return float((constant - below) / (above - below)) if above > below else 0.5
