"""A list of mappings as events. Most are plain dictionaries, which are read when they are encoded.

events     {..}  {..}  Series  {..}        as they were given
flattened               {..}               by row: the flat forms of events that may run code of unknown classes
"""

from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.language.event import FlatEvent, flatten

_CONSTANT = frozenset({str, int, float, bool, type(None)})
_NUMBERS = frozenset({int, float})


class Numbers(NamedTuple):
    """Events of numbers alone: all values, one event after another."""

    names: list[str]
    """The distinct names of values."""
    name: I32s
    """The place of the name of each value."""
    values: list[float]
    """As they came, integers or not."""
    doubles: F64s
    start: I64s
    """The first value of each event, and the end."""

    def slice(self, first: int, end: int) -> Numbers:
        """Some of the events."""
        start = self.start[first : end + 1]
        part = slice(*start[[0, -1]].tolist())
        return Numbers(self.names, self.name[part], self.values[part], self.doubles[part], start - start[0])


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
    """All names are looked up in one pass. Event by event, that takes a fifth longer."""
    if not len(events) or type(events[0]) is not dict or set(map(type, events[0].values())) - _NUMBERS:
        return None
    if set(map(type, events)) - {dict}:
        return None
    names = list(itertools.chain.from_iterable(events))
    values = list(itertools.chain.from_iterable(map(dict.values, events)))
    if set(map(type, names)) - {str} or set(map(type, values)) - _NUMBERS:
        return None
    places: defaultdict[str, int] = defaultdict(itertools.count().__next__)
    name = np.fromiter(map(places.__getitem__, names), np.int32, len(names))
    try:
        doubles = np.fromiter(values, np.float64, len(values))
    except OverflowError:  # an integer beyond the range of doubles
        return None
    start = np.append(0, np.cumsum(list(map(len, events)), dtype=np.int64))
    if not len(names) == len(values) == start[-1]:  # Another thread changes an event.
        return None
    return Numbers(list(places), name, values, doubles, start)
