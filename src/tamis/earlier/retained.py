"""The retained events of all keys.

An event has a *place*: a key, which names its shelf, and a time. Without `key`, all events share one history. Without `order`,
all times are equal, and the order of arrival decides.

- An event that lacks the key, or has several values of it, equals no other event: its history is empty, and it is not retained.
- An event without a usable time is compared with the history, but is not retained. A usable time is one finite number or
  timestamp. Its kind is that of `age`, or else that of the first time seen.
- Times may come out of order. The history of an event is what arrived before it, also if its time is later. `age` counts from the
  largest time seen, that of the event itself included. An event that is already too old is not retained.

`left_out` counts the events that have no place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import NamedTuple

import numpy as np

from tamis.earlier.block_summary import BLOCK
from tamis.earlier.chunks import Chunk, LogEvent
from tamis.earlier.event_log import WAITING, EventLog
from tamis.earlier.history import History
from tamis.earlier.leaving import Due, Leaving, Time
from tamis.earlier.places import ShelfKey, Stamp, shelf_key, shelf_keys, stamp, stamps, times_of
from tamis.earlier.shelf import FEW, Events, KeyedEvents, Shelf, Window
from tamis.kernels.numbers import I64s
from tamis.language.event import FlatEvent, Refused
from tamis.language.values import Kind

_MICROSECOND = timedelta(microseconds=1)
_SPARE = 1024
"""Events that are gone, but still wait to become too old, which are not worth a new order."""
_TIMELESS = Stamp(0, None)


class Place(NamedTuple):
    """Where an event belongs among the retained ones. A part that the event lacks is None."""

    shelf: ShelfKey | None
    time: Time | None


class RetainedContents(NamedTuple):
    """What makes the same retained events again."""

    events: Sequence[FlatEvent]
    """In order of arrival, without values outside the language."""
    newest: Time | None
    """The largest time seen, also if its event was not retained."""
    kind: Kind | None
    """The kind of times, if it is known."""
    left_out: int


class Retained:
    """Retained events. One thread uses them at a time."""

    def __init__(self, history: History, *, few: int = FEW, block: int = BLOCK) -> None:
        self.history = history
        self._few, self._block = few, block
        self._age = history.age // _MICROSECOND if isinstance(history.age, timedelta) else history.age
        self._kind = None if history.age is None else Kind.NUMBER
        if isinstance(history.age, timedelta):
            self._kind = Kind.TIMESTAMP
        self._newest: Time | None = None
        self._has_turns = self._age is not None or (history.key is None and history.order is not None)
        self._is_plain = history.key is None and history.order is None
        """Whether events have no places: they leave as they came."""
        self._most = math.inf if history.rows is None else history.rows
        self.left_out = 0
        self._begin_empty()

    def _begin_empty(self) -> None:
        self.log = EventLog()
        self._window = Window(self.log, self._block) if self.history.key is None else None
        """The only history, if there is no key."""
        self._shelves: dict[ShelfKey, Shelf] = {}
        self._nothing = KeyedEvents(self.log, None, self._few, self._block)
        self._leaving: Leaving[ShelfKey] = Leaving()
        """The order in which events leave, unless that is known otherwise. Some may have left already."""
        self._count = 0
        self.coming: int | None = None
        """While a batch is matched: the number of its first event that has not come."""

    def __len__(self) -> int:
        window = self._window
        if window is None or not self._is_plain or self.coming is not None:
            return self._count
        return int(min(self._count + self.log.next - window.end, self._most))

    @property
    def keys(self) -> int:
        """The number of histories that have events."""
        return len(self._shelves) if self._window is None else int(len(self) > 0)

    @property
    def has_one_history(self) -> bool:
        """Whether all events share a history."""
        return self._window is not None

    @property
    def leaves_in_order(self) -> bool:
        """Whether events leave as they came, without a note in the log."""
        return self._window is not None and self._is_plain

    @property
    def came(self) -> int:
        """The number behind the last event that came. A batch may have more events in the log, which come one by one."""
        return self.log.next if self.coming is None else self.coming

    @property
    def waiting(self) -> int:
        """The number of events that wait to become too old, also if they have left already."""
        return len(self._leaving)

    def names(self) -> set[str]:
        """The attributes that the history itself asks about."""
        return {name for name in (self.history.order, self.history.key) if name is not None}

    def begin(self, event: LogEvent) -> Events:
        """Drop the events that are too old once this event has come; returns its history."""
        if self.history.order is not None:
            self._come(stamp(event.get(self.history.order)))
        self._follow()
        return self._events_of(self._key_of(event)) if self._window is None else self._window

    def keep(self, event: LogEvent) -> None:
        """`begin` and `add` for an event that no join compares."""
        waiting = self.log.waiting
        if self._is_plain and len(waiting) + 1 < WAITING:
            waiting.append(event)
            return
        self.begin(event)
        self.add(event)

    def add(self, event: LogEvent) -> None:
        """Retain an event for which `begin` was called, if it has a place."""
        log, window = self.log, self._window
        if self._is_plain:
            waiting = log.waiting
            waiting.append(event)
            if len(waiting) < WAITING:
                return
            log.pack()
        else:
            came, key = self._stamp_of(event), self._key_of(event)
            time = self._usable(came)
            if time is None or (key is None and window is None):
                self.left_out += 1
                return
            if self._is_old(time, self._newest):
                return
            self._enter(log.append(event), time, key)
        if not log.waiting:
            self._tidy()

    def _follow(self) -> None:
        """Let the events that came one by one into the window, unless they have places: `add` leaves that for later."""
        window = self._window
        if self._is_plain and window is not None and self.coming is None:
            end = self.log.next
            if window.end != end:
                self.enter_next(window.end, end)

    @contextmanager
    def taking(self, chunk: Chunk) -> Iterator[Intake]:
        """Retain the events of a batch one by one."""
        self._follow()
        intake = Intake(self, chunk)
        try:
            yield intake
        finally:
            intake.close()

    def enter_next(self, first: int, end: int) -> None:
        """Retain events of the log that need no place, with the numbers from `first` to `end`, without `end`."""
        window, rows = self._window, self.history.rows
        assert window is not None
        if not window.count:
            window.first = first
        window.end = end
        gone = 0 if rows is None else max(window.count + end - first - rows, 0)
        window.first += gone
        self._count = window.count = window.count + end - first - gone

    def enter(self, number: int, came: Stamp | None, key: ShelfKey | None) -> None:
        """Retain an event of the log, if it has a place. `come` was called for it."""
        time = self._usable(came)
        if time is None or (key is None and self._window is None):
            self.left_out += 1
        elif not self._is_old(time, self._newest):
            self._enter(number, time, key)
            return
        self.log.leave(number)
        self.log.gaps += 1

    def come(self, came: Stamp | None, key: ShelfKey | None) -> Events:
        """`begin` for an event of the log."""
        if self.history.order is not None:
            self._come(came)
        return self._events_of(key)

    def firsts(self, base: int, stamps: Sequence[Stamp | None]) -> I64s | None:
        """The position of the first earlier event of each event of a batch, which lies in the log from position `base` on.

        None if histories have gaps: with a key, or if times do not ascend.
        """
        window, history = self._window, self.history
        if window is None or window.has_gaps():
            return None
        first = self.log.position(window.first) if window.count else base
        rows = np.arange(base, base + len(stamps))
        if history.order is None:
            if history.rows is None:
                return np.full(len(rows), first)
            most = min(history.rows, base + len(rows))  # A limit that no array holds is no limit.
            return np.maximum(rows - most, first)
        times: list[Time] = []
        before = -math.inf if self._newest is None else self._newest
        if self._leaving.has_late() or len({came.kind for came in stamps if came is not None}) > 1:
            return None
        for came in stamps:
            time = self._usable(came)
            if time is None or time < before:
                return None
            times.append(time)
            before = time
        found, age = [], math.inf if self._age is None else self._age
        of_all = chain(self._leaving.times(), times, [0])
        lowest = next(of_all)
        for row, time in zip(rows.tolist(), times, strict=True):
            while first < row and (time - lowest > age or row - first > self._most):
                lowest = next(of_all)
                first += 1
            found.append(first)
        return np.array(found, np.int64)

    @property
    def window(self) -> Window:
        """The only history."""
        assert self._window is not None
        self._follow()
        return self._window

    def settle(self) -> None:
        """Take over the events that came in a batch."""
        self._tidy()
        self.log.settle()

    def earlier(self, event: FlatEvent) -> list[FlatEvent]:
        """The history that an event would have now. Values outside the language are left out, and nothing changes."""
        self._follow()
        numbers = self._events_of(self._key_of(event)).numbers()
        newest, time = self._newest, self._usable(self._stamp_of(event))
        if time is not None and (newest is None or time > newest):
            newest = time
        if self._age is not None:
            young = [not self._is_old(each, newest) for each in self._times(numbers)]
            numbers = numbers[young]
        return list(map(_known, self.log.events(self.log.positions(numbers))))

    def place(self, event: LogEvent) -> Place:
        """The place of an event for which `begin` was called."""
        return Place(self._key_of(event), self._usable(self._stamp_of(event)))

    @property
    def newest(self) -> Time | None:
        """The largest time seen."""
        return self._newest

    @property
    def kind(self) -> Kind | None:
        """The kind of times, if it is known."""
        return self._kind

    def contents(self) -> RetainedContents:
        """The retained events of this moment."""
        self._follow()
        if self._window is None:
            listed = [shelf.listed[shelf.first :] for shelf in self._shelves.values()]
            numbers = np.sort(np.array(list(chain.from_iterable(listed)), np.int64))
        else:
            numbers = self._window.numbers()
        events = list(map(_known, self.log.events(self.log.positions(numbers))))
        return RetainedContents(events, self._newest, self._kind, self.left_out)

    def restore(self, contents: RetainedContents) -> None:
        """Retain what was retained elsewhere, with the same options, and nothing else."""
        self._begin_empty()
        self._newest, self._kind = contents.newest, contents.kind
        for event in contents.events:
            self.add(event)
        self.left_out = contents.left_out

    def keep_indexes(self, attributes: Collection[str]) -> None:
        """Drop the indexes of all other attributes."""
        known = set(self.log.columns)
        self.log.keep_columns(attributes)
        if self._window is not None:
            self._window.keep_indexes(attributes)
        elif known != set(self.log.columns):
            for shelf in self._shelves.values():
                shelf.gathered = None

    # -- places

    def _events_of(self, key: ShelfKey | None) -> Events:
        if self._window is not None:
            return self._window
        shelf = None if key is None else self._shelves.get(key)
        return self._nothing if shelf is None else KeyedEvents(self.log, shelf, self._few, self._block)

    def _key_of(self, event: LogEvent) -> ShelfKey | None:
        """The key of an event's shelf; None if the event equals no other."""
        return None if self.history.key is None else shelf_key(event.get(self.history.key))

    def _stamp_of(self, event: LogEvent) -> Stamp | None:
        return _TIMELESS if self.history.order is None else stamp(event.get(self.history.order))

    def _usable(self, came: Stamp | None) -> Time | None:
        """The time of an event, if it is of the right kind."""
        if came is None or (came.kind is not self._kind and self._kind is not None and self.history.order is not None):
            return None
        return came.time

    def _is_old(self, time: Time, newest: Time | None) -> bool:
        return self._age is not None and newest is not None and newest - time > self._age

    def _times(self, numbers: I64s) -> list[Time]:
        """The times of retained events."""
        assert self.history.order is not None
        return times_of(self.log.column(self.history.order), self.log.positions(numbers))

    # -- coming and leaving

    def _come(self, came: Stamp | None) -> None:
        time = self._usable(came)
        if time is None or came is None:
            return
        if self._kind is None:
            self._kind = came.kind
        if self._newest is None or time > self._newest:
            self._newest = time
            while self._age is not None and self._leaving and self._is_old(self._leaving.first().time, self._newest):
                self._leave(self._leaving.pop())

    def _enter(self, number: int, time: Time, key: ShelfKey | None) -> None:
        self._count += 1
        window = self._window
        if self._has_turns:
            self._leaving.add(time, number, key or "")
        if window is None:
            assert key is not None
            self._put_on_shelf(number, time, key)
            if len(self._leaving) > 2 * self._count + _SPARE:
                self._leaving.keep(self._is_there)
            return
        if not window.count:
            window.first = number
        window.end = number + 1
        window.count += 1
        if self.history.rows is not None and window.count > self.history.rows:
            self._leave(self._leaving.pop())

    def _put_on_shelf(self, number: int, time: Time, key: ShelfKey) -> None:
        shelf = self._shelves.get(key)
        if shelf is None:
            shelf = self._shelves[key] = Shelf()
        rows = self.history.rows
        if shelf.late is None and shelf.last is not None and time < shelf.last and rows is not None:
            numbers = np.array(shelf.listed[shelf.first :], np.int64)
            shelf.late = list(zip(self._times(numbers), numbers.tolist(), strict=True))
            heapify(shelf.late)
        shelf.listed.append(number)
        shelf.last = time if shelf.last is None else max(time, shelf.last)
        if shelf.late is not None:
            heappush(shelf.late, (time, number))
        if rows is None or len(shelf) <= rows:
            return
        lowest = shelf.listed[shelf.first]
        if shelf.late is not None:
            lowest = heappop(shelf.late)[1]
            while not shelf.has(lowest):  # It left because of its age.
                lowest = heappop(shelf.late)[1]
        self._leave_shelf(shelf, key, lowest)

    def _is_there(self, due: Due[ShelfKey]) -> bool:
        shelf = self._shelves.get(due.shelf)
        return shelf is not None and shelf.has(due.number)

    def _leave(self, due: Due[ShelfKey]) -> None:
        """Let an event leave, if it is there."""
        window = self._window
        if window is None:
            if self._is_there(due):
                self._leave_shelf(self._shelves[due.shelf], due.shelf, due.number)
            return
        position = self.log.leave(due.number)
        self._count -= 1
        window.count -= 1
        if due.number == window.first:
            window.first = self.log.next_alive(position, window.end)
        else:
            window.left_early(position)

    def _leave_shelf(self, shelf: Shelf, key: ShelfKey, number: int) -> None:
        self._count -= 1
        self.log.leave(number)
        shelf.leave(number)
        if not shelf:
            del self._shelves[key]

    def _tidy(self) -> None:
        """Write the log again, if many of its events are dead."""
        self._follow()
        window = self._window
        if window is not None and self._is_plain:
            position = self.log.position(window.first) if window.count else len(self.log)
            self.log.release_before(position)
            if self.log.is_worth(position):
                position -= self.log.drop_left(self._block)
            if self.log.is_worth(position):
                self.log.leave_before(position)
        if self.log.is_due():
            self.log.rewrite()


class Intake:
    """The events of a batch, each of which is retained before the next one is matched."""

    def __init__(self, retained: Retained, chunk: Chunk) -> None:
        self._retained, self._count = retained, len(chunk)
        self._done = 0
        order, key = retained.history.order, retained.history.key
        self._has_places = order is not None or key is not None
        self._stamps: Sequence[Stamp | None] = [_TIMELESS] * len(chunk) if order is None else stamps(chunk, order)
        self._keys: Sequence[ShelfKey | None] = [None] * len(chunk) if key is None else shelf_keys(chunk, key)
        self._first = retained.log.extend(chunk)
        retained.coming = self._first
        self.base = retained.log.position(self._first)
        """The position of the first event."""

    @property
    def end(self) -> int:
        """The number behind the last event."""
        return self._first + self._count

    def firsts(self) -> I64s | None:
        """The position of the first earlier event of each row, if no history has gaps and no row was taken."""
        return self._retained.firsts(self.base, self._stamps)

    def history(self, row: int) -> Events:
        """The history of the event in a row. The events before it are retained first."""
        self._take(row)
        return self._retained.come(self._stamps[row], self._keys[row])

    def _take(self, end: int) -> None:
        retained, first = self._retained, self._first
        if not self._has_places:
            if end > self._done:
                retained.enter_next(first + self._done, first + end)
                self._done = end
                retained.coming = first + end
            return
        while self._done < end:
            row = self._done
            came, key = self._stamps[row], self._keys[row]
            retained.come(came, key)
            retained.enter(first + row, came, key)
            self._done = row + 1
            retained.coming = first + row + 1

    def retain_all(self) -> None:
        """Retain the events that are left."""
        self._take(self._count)

    def close(self) -> None:
        """End. Events that were not taken are not there any more."""
        if self._done < self._count:
            self._retained.log.cut(self._first + self._done)
        self._retained.coming = None
        self._retained.settle()


def _known(event: FlatEvent) -> FlatEvent:
    """An event without values outside the language."""
    if all(event.values()):  # Only values outside the language are empty.
        return event
    return {name: values for name, values in event.items() if not isinstance(values, Refused)}
