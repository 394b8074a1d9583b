"""The steps of reading notes and of acknowledging them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tamis.broker import Note
from tamis.broker.arguments import plain_number
from tamis.client.answers import note_of
from tamis.client.exchange import Steps
from tamis.client.subscription_steps import PAGE, StepMaker
from tamis.client.writing import JSON, body_of, known_name, path_of, query_of


class NotePage(NamedTuple):
    """Some notes, and the number of the last one: the next page begins after it."""

    notes: list[Note]
    last: int


class NoteSteps(StepMaker):
    """Reading notes."""

    def first_page(self, subscriber: Any, after: Any) -> Steps[NotePage]:
        """The first notes after a number; None: after the cursor."""
        name = known_name(subscriber)
        if after is not None:
            return (yield from self.next_page(name, plain_number(after, "after")))
        found = yield from self._json("GET", path_of("subscribers", name))
        return (yield from self.next_page(name, found["cursor"]))

    def next_page(self, subscriber: str, after: int) -> Steps[NotePage]:
        query = query_of(after=after, limit=PAGE)
        found = yield from self._json("GET", path_of("subscribers", subscriber, "notifications"), query=query)
        notes = list(map(note_of, found["notifications"]))
        return NotePage(notes, notes[-1].sequence if notes else after)

    def acknowledge_many(self, sequences: Mapping[Any, Any]) -> Steps[None]:
        """Each cursor has a request of its own. All arguments are checked before the first one."""
        moves = [(known_name(name), plain_number(number, "sequence")) for name, number in sequences.items()]
        for name, number in moves:
            yield from self.acknowledge(name, number)

    def acknowledge(self, subscriber: Any, sequence: Any) -> Steps[None]:
        name, number = known_name(subscriber), plain_number(sequence, "sequence")
        path = path_of("subscribers", name, "acknowledge")
        yield from self._ask("POST", path, content=body_of({"sequence": number}), headers=JSON)
