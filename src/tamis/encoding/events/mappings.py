"""A list of mappings as events. Most are plain dictionaries, which are read when they are encoded.

events     {..}  {..}  Series  {..}        as they were given
flattened               {..}               by row: the flat forms of events that may run code of unknown classes
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tamis.language.event import FlatEvent, flatten


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
