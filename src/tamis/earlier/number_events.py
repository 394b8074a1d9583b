"""Events of numbers alone, whatever attributes each has: a `Chunk` of flat arrays.

    names      "a0"  "a1"  "a7"
    name        0   2 | 0   1   2 | 1          place of the name of each value, event after event
    doubles     5   8 | 1   9   9 | 4

The engine reads the events of a batch in the same way, so that this is done once for both. A value takes 13 bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence

import numpy as np

from tamis.earlier.column import NONE, Column, Given
from tamis.earlier.key_ranges import MISSING, NUMBER
from tamis.encoding.dimensions.keys import INT_EXACT, code_of_bits
from tamis.encoding.events.mappings import Numbers
from tamis.kernels.kernel import brief_kernel
from tamis.kernels.numbers import Bools, F64s, I8s, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.language.event import FlatEvent
from tamis.language.values import is_well_formed

_IS_INTEGER = {int: True, float: False}


class NumberEvents:
    """Some events of the log, in order."""

    def __init__(self, names: list[str], name: I32s, doubles: F64s, integers: Bools, start: I64s) -> None:
        self._names, self._name, self._doubles, self._integers, self._start = names, name, doubles, integers, start
        self.nbytes = sum(each.nbytes for each in (name, doubles, integers, start))

    @classmethod
    def of(cls, numbers: Numbers) -> NumberEvents | None:
        """The events; None if a double is not exactly its number, or is NaN."""
        doubles, (names, name) = numbers.doubles, numbers.distinct()
        if not (np.abs(doubles) < INT_EXACT).all() or not all(map(is_well_formed, names)):
            return None
        types = set(map(type, numbers.values))
        if len(types) > 1:
            integers = np.fromiter(map(_IS_INTEGER.get, map(type, numbers.values)), np.bool_, len(doubles))
        else:
            integers = np.full(len(doubles), int in types)
        return cls(names, name, doubles, integers, numbers.start)

    def __len__(self) -> int:
        return len(self._start) - 1

    def events(self, rows: Sequence[int], among: Collection[str] | None = None) -> list[FlatEvent]:
        """Some events in their normal form."""
        return list(map(self._event, rows))

    def _event(self, row: int) -> FlatEvent:
        part = slice(self._start[row], self._start[row + 1])
        names, values = self._name[part].tolist(), self._doubles[part].tolist()
        integers = self._integers[part].tolist()
        return {
            self._names[name]: (int(value) if is_integer else value,)
            for name, value, is_integer in zip(names, values, integers, strict=True)
        }

    def values(self, attribute: str) -> list[Given]:
        """The values of an attribute in all events."""
        found: list[Given] = [None] * len(self)
        at = np.flatnonzero(self._name == self._place(attribute))
        rows = np.searchsorted(self._start, at, "right") - 1
        for row, value, is_integer in zip(
            rows.tolist(), self._doubles[at].tolist(), self._integers[at].tolist(), strict=True
        ):
            found[row] = int(value) if is_integer else value
        return found

    def _place(self, attribute: str) -> int:
        return self._names.index(attribute) if attribute in self._names else len(self._names)

    def fill(self, column: Column, numbers: I64s) -> None:
        """Append the values of all events to a column."""
        place = self._place(column.attribute)
        bits = self._doubles.view(np.int64)
        column.append_by(len(self), functools.partial(write_numbers, self._name, bits, self._start, place))

    def keep(self, rows: I64s) -> NumberEvents:
        """A chunk with only some events."""
        if len(rows) == len(self):
            return self
        sizes = self._start[rows + 1] - self._start[rows]
        kept = span_indices(self._start[rows], sizes)
        start = np.append(0, np.cumsum(sizes))
        return NumberEvents(self._names, self._name[kept], self._doubles[kept], self._integers[kept], start)


@brief_kernel
def write_numbers(name: I32s, bits: I64s, start: I64s, place: int, domains: I8s, keys: I64s) -> bool:
    """Write the domains and keys of the values with one name. Returns True: all are small."""
    for row in range(len(start) - 1):
        domains[row], keys[row] = MISSING, NONE
        for value in range(start[row], start[row + 1]):
            if name[value] == place:
                domains[row], keys[row] = NUMBER, code_of_bits(bits[value])
    return True
