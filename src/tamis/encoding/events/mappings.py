"""A list of mappings as events. Most are plain dictionaries, which are read when they are encoded.

events     {..}  {..}  Series  {..}        as they were given
flattened               {..}               by row: the flat forms of events that may run code of unknown classes
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.kernels.numbers import Bools, F64s, I32s, I64s
from tamis.language.event import FlatEvent, flatten

_CONSTANT = frozenset({str, int, float, bool, type(None)})
_NUMBERS = frozenset({int, float})


class Numbers:
    """Events of numbers alone: all values, one event after another."""

    def __init__(self, names: list[str], values: list[float], doubles: F64s, start: I64s) -> None:
        self._names = names
        """The name of each value."""
        self.values = values
        """As they came, integers or not."""
        self.doubles = doubles
        self.start = start
        """The first value of each event, and the end."""
        self._distinct: tuple[list[str], I32s] | None = None

    def distinct(self) -> tuple[list[str], I32s]:
        """The distinct names of values, and the place of the name of each value."""
        if self._distinct is None:
            places: defaultdict[str, int] = defaultdict(itertools.count().__next__)
            place = np.fromiter(map(places.__getitem__, self._names), np.int32, len(self._names))
            self._distinct = list(places), place
        return self._distinct

    def numbers_of_names(self, known: Mapping[str, int], otherwise: int) -> I32s:
        """What is known of the name of each value; `otherwise` if nothing is.

        Many events may have almost as many names as values. So names are looked up value by value, which took 0.4 to 0.9 of the
        time of finding distinct names first.
        """
        if self._distinct is not None:
            names, place = self._distinct
            of_names: I32s = np.array([known.get(name, otherwise) for name in names], np.int32)[place]
            return of_names
        return np.fromiter(map(known.get, self._names, itertools.repeat(otherwise)), np.int32, len(self._names))

    def names(self, which: Bools) -> Iterator[str]:
        """The names of some values."""
        return itertools.compress(self._names, which.tobytes())

    def slice(self, first: int, end: int) -> Numbers:
        """Some of the events."""
        start = self.start[first : end + 1]
        part = slice(*start[[0, -1]].tolist())
        sliced = Numbers(self._names[part], self.values[part], self.doubles[part], start - start[0])
        if self._distinct is not None:
            sliced._distinct = self._distinct[0], self._distinct[1][part]
        return sliced


class Mappings:
    """Events in the order of a list."""

    def __init__(self, events: Iterable[Any]) -> None:
        self.events: Sequence[Any] = list(events)
        self.flattened: dict[int, FlatEvent] = {}
        self._numbers: Numbers | None = None

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, row: int) -> FlatEvent:
        """The flat form of an event.

        Raises
        ------
        EventError
        """
        flat = self.flattened.get(row)
        return flatten(self.events[row], row=row) if flat is None else flat

    def unread(self, row: int) -> Callable[[], FlatEvent] | FlatEvent:
        """A function that gives the flat form of an event as it is now; the flat form itself if its values may change."""
        event = self.events[row]
        if row in self.flattened or type(event) is not dict or set(map(type, event.values())) - _CONSTANT:
            return self[row]
        return functools.partial(flatten, event.copy())

    def flat(self) -> list[FlatEvent]:
        """The flat forms of all events.

        Raises
        ------
        EventError
        """
        return [self[row] for row in range(len(self))]

    def flatten(self, rows: Iterable[int]) -> None:
        """Keep the flat forms of some events.

        Raises
        ------
        EventError
        """
        self.flattened |= {row: self[row] for row in rows}

    def slice(self, first: int, count: int) -> Mappings:
        """At most `count` events from row `first` on."""
        part = Mappings(self.events[first : first + count])
        inside = [row for row in self.flattened if first <= row < first + count]
        part.flattened = {row - first: self.flattened[row] for row in inside}
        if self._numbers is not None:
            part._numbers = self._numbers.slice(first, first + len(part))
        return part

    def numbers(self) -> Numbers | None:
        """The values of events of numbers alone, as doubles. None if some are others, which the first event mostly shows."""
        if self._numbers is None:
            self._numbers = _numbers_of(self.events)
        return self._numbers


def _numbers_of(events: Sequence[Any]) -> Numbers | None:
    """All values are read in one pass. Event by event, that takes a fifth longer."""
    if not len(events) or type(events[0]) is not dict or set(map(type, events[0].values())) - _NUMBERS:
        return None
    if set(map(type, events)) - {dict}:
        return None
    values = list(itertools.chain.from_iterable(map(dict.values, events)))
    if set(map(type, values)) - _NUMBERS:
        return None
    names = list(itertools.chain.from_iterable(events))
    if set(map(type, names)) - {str}:
        return None
    try:
        doubles = np.fromiter(values, np.float64, len(values))
    except OverflowError:  # an integer beyond the range of doubles
        return None
    start = np.append(0, np.cumsum(list(map(len, events)), dtype=np.int64))
    if not len(names) == len(values) == start[-1]:  # Another thread changes an event.
        return None
    return Numbers(names, values, doubles, start)
