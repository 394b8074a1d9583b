"""A list of mappings as events. Most are plain dictionaries, which are read when they are encoded.

events     {..}  {..}  Series  {..}        as they were given
flattened               {..}               by row: the flat forms of events that may run code of unknown classes
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tamis.language.event import FlatEvent, flatten

_CONSTANT = frozenset({str, int, float, bool, type(None)})


class Mappings:
    """Events in the order of a list."""

    def __init__(self, events: Iterable[Any]) -> None:
        self.events: Sequence[Any] = list(events)
        self.flattened: dict[int, FlatEvent] = {}

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
        return part
