"""What a process said before it was killed, and what must hold in the folder that it left.

Lines have positions. A call that is "done" before another one begins came before it. Of two calls that overlap, either may be
the first. So for some pairs of a subscription and an event it is certain that the event was told, or that it was not.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.broker import Broker
from tamis.language.evaluate import matches
from tamis.language.event import FlatEvent
from tests.broker.crash_load import START
from tests.earlier.reference import ReferenceHistory

if TYPE_CHECKING:
    from tamis.client.client import Client

_START = round(START.timestamp() * 1000)
NEVER = 2**62
Name = tuple[str, str]


@dataclass
class Event:
    """An event that was published, or was about to be."""

    event: dict[str, Any]
    kind: str
    run: int
    begin: int
    done: int = NEVER
    earlier: Sequence[FlatEvent] = ()
    """Its history, if the broker has one."""
    published: int = 0
    """Milliseconds since the start of the clock."""
    last_run: int = NEVER
    """The last run in which a "long" one is valid."""
    is_over: bool = False
    """Whether it was not valid any more when it came, so that it meets nobody."""


@dataclass(frozen=True)
class State:
    """A subscription: what it wants, and whether it sleeps."""

    text: str
    paused: bool = False


@dataclass
class Version:
    """A subscription after one call, until the next one. `state` is None when it is removed."""

    state: State | None
    run: int
    begin: int
    done: int = NEVER
    start: int = -NEVER
    end: int = NEVER
    is_sure: bool = True
    """Whether it was stored before it ended."""
    next_begin: int = NEVER
    next_done: int = NEVER

    def wants(self, event: Event) -> bool:
        if self.state is None or self.state.paused or self.run > event.last_run or event.is_over:
            return False
        if "history" in self.state.text:
            return matches(self.state.text, event.event, event.earlier)
        return _matches(self.state.text, event.event["price"], event.event["genre"])

    def must_tell(self, event: Event) -> bool:
        if not self.wants(event) or event.done > self.next_begin or not self.is_sure:
            return False
        if event.kind == "long":
            return event.published < self.end
        return event.begin > self.done and self.start <= event.published < self.end

    def may_tell(self, event: Event) -> bool:
        if not self.wants(event) or self.next_done < event.begin or event.published >= self.end:
            return False
        return event.kind != "moment" or (self.begin < event.done and self.start <= event.published)


@cache
def _matches(text: str, price: int, genre: str) -> bool:
    return matches(text, {"price": price, "genre": genre})


@dataclass
class History:
    """All runs until now."""

    retained: ReferenceHistory | None = None
    """What the broker retains after the last run."""
    long_runs: int = 1
    """How many runs after its own a "long" event is valid."""
    placed: int = 0
    """The last event that is in it."""

    versions: dict[Name, list[Version]] = field(default_factory=lambda: defaultdict(list))
    events: dict[int, Event] = field(default_factory=dict)
    """By number."""
    receipts: dict[int, set[Name]] = field(default_factory=dict)
    notes: dict[str, list[tuple[int, tuple[str, ...]]]] = field(default_factory=lambda: defaultdict(list))
    """By subscriber: the number of the event and the names of each note that was seen at the last opening."""
    cursors: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    position: int = 0
    run: int = 0

    def add_run(self, lines: list[str], broker: Broker | Client, folder: Path, is_whole: bool) -> None:
        """Check a run that was killed, with the broker or the service that was opened after it.

        `is_whole`: also pairs of old events.
        """
        first = min([number for number, event in self.events.items() if event.run == self.run], default=1)
        self.run += 1
        seen, begun = self._read(lines)
        self.position += 1
        self._check_stored(begun, folder)
        self._settle_subscriptions(begun, broker)
        self._check_notes(seen, broker)
        self._check_cursors(begun, broker)
        self._check_pairs(1 if is_whole else first)

    def _read(self, lines: list[str]) -> tuple[list[Any], dict[int, list[Any]]]:
        """Take in the lines. Returns the notes that the process saw, and the calls that were not done."""
        begun: dict[int, list[Any]] = {}
        seen = []
        for line in lines:
            self.position += 1
            kind, *words = json.loads(line)
            if kind == "note":
                seen.append(words)
            elif kind == "begin":
                number, call, *words = words
                begun[number] = [self.position, call, *words]
            else:
                self._done(begun.pop(words[0]), words[1:])
        return seen, begun

    def _done(self, begun: list[Any], answer: list[Any]) -> None:
        position, call, *words = begun
        if call == "publish":
            events, kind = words
            assert len(events) == len(answer[0])
            for event, (sequence, told) in zip(events, answer[0], strict=True):
                assert sequence not in self.events
                self._add_event(sequence, event, kind, position)
                self.receipts[sequence] = {(subscriber, name) for subscriber, name in told}
        elif call == "acknowledge":
            self.cursors[words[0]] = max(words[1], self.cursors[words[0]])
        else:
            end = words[4] if len(words) > 3 else NEVER
            self._add_version(begun, is_sure=not answer or answer[0] < end)

    def _add_event(self, sequence: int, event: dict[str, Any], kind: str, begin: int) -> None:
        last = self.run + self.long_runs
        self.events[sequence] = Event(event, kind, self.run, begin, self.position, last_run=last)

    def _add_version(self, begun: list[Any], *, is_sure: bool) -> None:
        position, call, subscriber, name, *words = begun
        versions = self.versions[subscriber, name]
        for version in versions[-1:]:
            version.next_begin, version.next_done = position, self.position
        start, end = words[1:] or (-NEVER, NEVER)
        state = _after(call, self._state(subscriber, name), *words[:1])
        versions.append(Version(state, self.run, position, self.position, start, end, is_sure))

    def _state(self, subscriber: str, name: str) -> State | None:
        versions = self.versions[subscriber, name]
        return versions[-1].state if versions else None

    def _check_stored(self, begun: dict[int, list[Any]], folder: Path) -> None:
        """What was acknowledged is stored, and of the other calls all or nothing."""
        stored = _stored(folder)
        assert list(stored) == list(range(1, len(stored) + 1))
        numbers = {event["id"]: sequence for sequence, (event, _, _) in stored.items()}
        assert len(numbers) == len(stored)
        for position, call, *words in begun.values():
            if call == "publish" and any(event["id"] in numbers for event in words[0]):
                for event in words[0]:
                    self._add_event(numbers[event["id"]], event, words[1], position)
        assert sorted(self.events) == list(stored)
        for sequence, (event, published, until) in stored.items():
            assert self.events[sequence].event == event
            if self.retained is not None and sequence > self.placed:
                self.placed = sequence
                self.events[sequence].earlier = self.retained.before(event)
                self.retained.add(event)
            self.events[sequence].published = published // 1000 - _START
            self.events[sequence].is_over = until is not None and until <= published

    def _settle_subscriptions(self, begun: dict[int, list[Any]], broker: Broker | Client) -> None:
        """Each subscription is as the last call left it, also if that one was not acknowledged."""
        standing = {(each.subscriber, each.name): State(each.text, each.paused) for each in broker.subscriptions()}
        for call in begun.values():
            if call[1] not in ("publish", "acknowledge"):
                _, kind, subscriber, name, *words = call
                if standing.get((subscriber, name)) == _after(kind, self._state(subscriber, name), *words[:1]):
                    self._add_version(call, is_sure=len(words) == 1)
        assert standing == {name: state for name in self.versions if (state := self._state(*name)) is not None}

    def _check_cursors(self, begun: dict[int, list[Any]], broker: Broker | Client) -> None:
        later = {words[0]: words[1] for _, call, *words in begun.values() if call == "acknowledge"}
        for subscriber in {subscriber for subscriber, _ in self.versions}:
            unread = next(broker.notifications(subscriber), None)
            cursor = len(self.notes[subscriber]) if unread is None else unread.sequence - 1
            assert cursor in (self.cursors[subscriber], later.get(subscriber))
            self.cursors[subscriber] = cursor

    def _check_notes(self, seen: list[Any], broker: Broker | Client) -> None:
        """Notes have all numbers from 1 on, and a note that somebody saw is the same."""
        for subscriber in {subscriber for subscriber, _ in self.versions}:
            read = list(broker.notifications(subscriber, after=0))
            assert [note.sequence for note in read] == list(range(1, len(read) + 1))
            assert all(note.event == self.events[note.event_sequence].event for note in read)
            notes = [(note.event_sequence, note.subscriptions) for note in read]
            assert notes[: len(self.notes[subscriber])] == self.notes[subscriber]
            self.notes[subscriber] = notes
        for subscriber, sequence, event, names in seen:
            assert self.notes[subscriber][sequence - 1] == (event, tuple(names))

    def _check_pairs(self, first: int) -> None:
        """Each pair of a subscription and an event is told once if it must be, and at most once if it may be."""
        told = [
            ((subscriber, name), event)
            for subscriber, notes in self.notes.items()
            for event, names in notes
            for name in names
        ]
        pairs = set(told)
        assert len(pairs) == len(told)
        for number, names in self.receipts.items():
            assert all((name, number) in pairs for name in names)
        for number in range(first, len(self.events) + 1):
            event = self.events[number]
            for name, versions in self.versions.items():
                if (name, number) in pairs:
                    assert any(version.may_tell(event) for version in versions), (name, event, versions)
                else:
                    assert not any(version.must_tell(event) for version in versions), (name, event, versions)


def _after(call: str, state: State | None, text: str = "") -> State | None:
    """A subscription after a call."""
    if call == "unsubscribe":
        return None
    if call == "subscribe":
        return State(text, state is not None and state.paused)
    assert state is not None
    return State(state.text, call == "pause")


def _stored(folder: Path) -> dict[int, tuple[dict[str, Any], int, int | None]]:
    """The events in the tables, with the moments in microseconds at which they were published and until which they are valid."""
    connection = sqlite3.connect(folder / "broker.sqlite")
    try:
        rows = connection.execute(
            "SELECT sequence, event, published, valid_until FROM events ORDER BY sequence"
        ).fetchall()
    finally:
        connection.close()
    return {sequence: (json.loads(text), published, until) for sequence, text, published, until in rows}
