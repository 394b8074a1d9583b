"""A broker as plain Python: what docs/pubsub.md says, and nothing that makes it fast or durable.

    section of the page      here
    Subscriptions            subscribe, unsubscribe, pause, resume, remove_subscriber, changed
    Validity                 Wish.is_active, pass_time, meet, tell
    Notes                    Told, queues, cursors
    Publishing               publish: `key`, `k`
    Earlier events           Stored.earlier, retained
    On a cluster             deliver
    Retention                hidden, is_full, retain, may_be_deleted

Times are seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from tamis.language.evaluate import matches
from tamis.language.event import FlatEvent
from tests.earlier.reference import ReferenceHistory


@dataclass(frozen=True)
class Wish:
    """A subscription."""

    expression: str
    weight: float
    valid_from: int | None
    valid_until: int | None
    paused: bool
    has_begun: bool

    def is_active(self, now: int) -> bool:
        return self.has_begun and not self.paused and (self.valid_until is None or now < self.valid_until)


@dataclass(frozen=True)
class Stored:
    """An event."""

    event: dict[str, Any]
    published: int
    valid_until: int | None
    earlier: Sequence[FlatEvent]
    """Its history: the events that were retained when it was published."""
    told: int = 0
    """How many subscriptions were told when it was published."""


@dataclass(frozen=True)
class Told:
    """A note."""

    event: int
    names: tuple[str, ...]
    moment: int


Name = tuple[str, str]


@dataclass
class Model:
    now: int = 0
    wishes: dict[Name, Wish] = field(default_factory=dict)
    subscribers: set[str] = field(default_factory=set)
    events: list[Stored] = field(default_factory=list)
    queues: dict[str, list[Told]] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    """By subscriber: the number of the first note that can be read."""
    cursors: dict[str, int] = field(default_factory=dict)
    numbers: dict[Name, int] = field(default_factory=dict)
    """By subscription, also if it was removed: its number, in the order in which they first came."""
    changes: int = 0
    changed: dict[Name, int] = field(default_factory=dict)
    """By subscription, also if it was removed: the number of its last change."""
    texts: dict[Name, str] = field(default_factory=dict)
    """The same: its last expression."""
    batches: dict[str, int] = field(default_factory=dict)
    """By source: the last batch that was delivered."""
    pairs: set[tuple[Name, int]] = field(default_factory=set)
    """What was told: a subscription and the number of an event."""
    keys: dict[str, tuple[int, int]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    """Events that may have left the tables under earlier settings."""
    max_age: int | None = None
    max_notes: int | None = None
    retained: ReferenceHistory | None = None
    """The earlier events, if the broker has a history."""
    refuses: bool = False
    """Whether an event is refused if a subscriber has `max_notes` notes that it can read and has not acknowledged."""

    def hidden(self, subscriber: str) -> int:
        """How many notes of a subscriber cannot be read any more."""
        told = self.queues.get(subscriber, [])
        hidden = self.first.get(subscriber, 1) - 1
        if self.max_notes is not None:
            beyond = len(told) - self.max_notes
            hidden = max(hidden, min(beyond, self.cursors.get(subscriber, 0)) if self.refuses else beyond)
        if self.max_age is not None:
            hidden = max(hidden, sum(note.moment < self.now - self.max_age for note in told))
        return hidden

    def copied(self) -> Model:
        """A model with containers of its own. What they hold is never changed."""
        own = {name: copy(value) for name, value in vars(self).items()}
        own["queues"] = {subscriber: list(told) for subscriber, told in self.queues.items()}
        own["retained"] = None if self.retained is None else self.retained.copied()
        return Model(**own)

    def pass_time(self, now: int) -> None:
        """Subscriptions begin one after another, and meet the events that are valid then."""
        starts = {wish.valid_from for wish in self.wishes.values() if not wish.has_begun}
        for moment in sorted(start for start in starts if start is not None and start <= now):
            begin = [name for name, wish in self.wishes.items() if not wish.has_begun and wish.valid_from == moment]
            for name in sorted(begin, key=lambda name: self.numbers.get(name, 0)):
                self.wishes[name] = replace(self.wishes[name], has_begun=True)
                self.change(name)
            self.meet(begin, moment)
        self.now = now

    def meet(self, names: list[Name], moment: int) -> None:
        """Tell subscriptions about stored events that are valid at a moment."""
        active = [name for name in names if self.wishes[name].is_active(moment)]
        for number, stored in enumerate(self.events, 1):
            if stored.valid_until is not None and moment < stored.valid_until:
                self.tell(number, [name for name in active if self.wants(name, stored)], moment)

    def wants(self, name: Name, stored: Stored) -> bool:
        return matches(self.wishes[name].expression, stored.event, stored.earlier)

    def coming(self, event: dict[str, Any], valid_until: int | None = None) -> Stored:
        """An event as it would be stored now."""
        earlier = () if self.retained is None else self.retained.copied().before(event)
        return Stored(event, self.now, valid_until, earlier)

    def tell(self, event: int, names: list[Name], moment: int) -> list[Name]:
        fresh = [name for name in names if (name, event) not in self.pairs]
        self.pairs.update((name, event) for name in fresh)
        for subscriber in sorted({subscriber for subscriber, _ in fresh}):
            own = tuple(sorted(name for each, name in fresh if each == subscriber))
            self.queues.setdefault(subscriber, []).append(Told(event, own, moment))
        return fresh

    def subscribe(self, subscriber: str, name: str, given: dict[str, Any]) -> None:
        self._wish(subscriber, name, given)
        self.meet([(subscriber, name)], self.now)

    def subscribe_many(self, rows: list[tuple[str, str, str]]) -> None:
        for subscriber, name, expression in rows:
            self._wish(subscriber, name, {"expression": expression})
        self.meet([(subscriber, name) for subscriber, name, _ in rows], self.now)

    def _wish(self, subscriber: str, name: str, given: dict[str, Any]) -> None:
        old = self.wishes.get((subscriber, name), Wish("", 1.0, None, None, False, True))
        wish = replace(old, **given)
        wish = replace(wish, has_begun=wish.valid_from is None or wish.valid_from <= self.now)
        self.wishes[subscriber, name] = wish
        self.subscribers.add(subscriber)
        self.numbers.setdefault((subscriber, name), len(self.numbers) + 1)
        self.texts[subscriber, name] = wish.expression
        self.change((subscriber, name))

    def change(self, name: Name) -> None:
        """Changes count up. Only the last one of a subscription is kept."""
        self.changes += 1
        self.changed[name] = self.changes

    def unsubscribe(self, name: Name) -> None:
        del self.wishes[name]
        self.change(name)

    def pause(self, name: Name) -> None:
        if not self.wishes[name].paused:
            self.wishes[name] = replace(self.wishes[name], paused=True)
            self.change(name)

    def resume(self, name: Name) -> None:
        if self.wishes[name].paused:
            self.wishes[name] = replace(self.wishes[name], paused=False)
            self.change(name)
            self.meet([name], self.now)

    def remove_subscriber(self, subscriber: str) -> None:
        for name in sorted(name for name in self.wishes if name[0] == subscriber):
            self.change(name)
        self.wishes = {name: wish for name, wish in self.wishes.items() if name[0] != subscriber}
        self.subscribers.remove(subscriber)
        self.cursors[subscriber] = len(self.queues.get(subscriber, []))
        self.first[subscriber] = self.cursors[subscriber] + 1

    def publish(self, event: dict[str, Any], valid_until: int | None, key: str | None, k: int | None) -> int:
        """Returns the number of the event."""
        if key is not None and key in self.keys and self.now < self.keys[key][1] + DAY:
            return self.keys[key][0]
        stored = self.coming(event, valid_until)
        wanted: list[Name] = []
        if valid_until is None or self.now < valid_until:
            active = [name for name, wish in self.wishes.items() if wish.is_active(self.now)]
            wanted = [name for name in active if self.wants(name, stored)]
            wanted.sort(key=lambda name: -self.wishes[name].weight)
            wanted = wanted if k is None else wanted[:k]
        if any(self.is_full(subscriber) for subscriber, _ in wanted):
            raise FullError
        self._store(replace(stored, told=len(wanted)))
        if key is not None:
            self.keys[key] = len(self.events), self.now
        self.tell(len(self.events), wanted, self.now)
        return len(self.events)

    def _store(self, stored: Stored) -> None:
        self.events.append(stored)
        if self.retained is not None:
            self.retained.before(stored.event)
            self.retained.add(stored.event)

    def has_ties(self) -> bool:
        """Whether active subscriptions have equal weights. Nothing says which of these `k` leaves out."""
        weights = [wish.weight for wish in self.wishes.values() if wish.is_active(self.now)]
        return len(set(weights)) < len(weights)

    def deliver(self, matched: list[tuple[dict[str, Any], list[Name]]], source: str, batch: int) -> bool:
        """Events that were matched elsewhere. Who was removed or paused meanwhile, or begins later, is not told."""
        if batch <= self.batches.get(source, -1):
            return False
        for event, names in matched:
            told = [name for name in names if name in self.wishes]
            told = [name for name in told if self.wishes[name].has_begun and not self.wishes[name].paused]
            if any(self.is_full(subscriber) for subscriber, _ in told):
                raise FullError
            self._store(replace(self.coming(event), told=len(told)))
            self.tell(len(self.events), told, self.now)
        self.batches[source] = batch
        return True

    def figures(self, subscriber: str) -> tuple[int, int, int, int]:
        """The cursor, the first note that can be read, the last note, and how many wait."""
        cursor, last = self.cursors.get(subscriber, 0), len(self.queues.get(subscriber, []))
        hidden = self.hidden(subscriber)
        return cursor, hidden + 1, last, last - max(cursor, hidden)

    def is_full(self, subscriber: str) -> bool:
        done = max(self.cursors.get(subscriber, 0), self.hidden(subscriber))
        waiting = len(self.queues.get(subscriber, [])) - done
        return self.refuses and self.max_notes is not None and waiting >= self.max_notes

    def retain(self, max_age: int | None, max_notes: int | None, refuses: bool) -> None:
        """Change the settings. What is gone does not come back."""
        self.first = {subscriber: self.hidden(subscriber) + 1 for subscriber in self.queues}
        self.gone |= {number for number in range(1, len(self.events) + 1) if self.may_be_deleted(number)}
        self.max_age, self.max_notes, self.refuses = max_age, max_notes, refuses

    def may_be_deleted(self, number: int) -> bool:
        """Whether an event may have left the tables: it is so old, or none of its notes can be read any more."""
        stored = self.events[number - 1]
        last = max(stored.published, stored.valid_until or 0)
        is_old = self.max_age is not None and last < self.now - self.max_age
        return number in self.gone or is_old or self.is_unreadable(number)

    def is_unreadable(self, number: int) -> bool:
        """Whether an event has notes, none of them can be read, and nobody can meet it any more."""
        until = self.events[number - 1].valid_until
        notes = [
            (subscriber, place)
            for subscriber, told in self.queues.items()
            for place, note in enumerate(told, 1)
            if note.event == number
        ]
        is_hidden = all(place <= self.hidden(subscriber) for subscriber, place in notes)
        return bool(notes) and is_hidden and (until is None or until <= self.now)


class FullError(Exception):
    """An event is refused."""


DAY = 24 * 3600
