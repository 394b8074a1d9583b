"""The pre-filter: subscriptions that no event can satisfy, as the retained events are, are skipped.

A subscription has a *need* (`needs`): a condition on the retained events alone, such as "some price is below 10". While it is not
satisfied, the joins of the subscription are not decided. When events come or leave, it is found again by itself, since needs are
looked up for each event (`tally`).

    slots   --need of each-->   needs   --row of each-->   rows of the tally   --satisfied-->   slots whose joins are decided

The tally is made when there are enough needs, and again when a part of them is new. A new need counts as satisfied until then. An
event with several values or an Interval of an attribute that joins compare is not filtered: table 2 does not hold for it. While
nothing is skipped, most single events do not ask.

Reference: N. Tatbul, section 4.3.2. Departures:

- The pre-filter comes after the index of constants, not before it: our engine reads the lists of the event's values, and a
  smaller set of subscriptions would not make them shorter.
- The bits of subscriptions are not stored. Those of the candidates are computed, see `tally`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tamis.earlier.chunks import Chunk, ListedEvents, LogEvent, TableEvents
from tamis.earlier.following import Following
from tamis.earlier.needs import NOTHING, Constraint, Need, compared, need_of
from tamis.earlier.retained import Retained
from tamis.earlier.tally import UNPLANNED, Tally
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, I32s
from tamis.language.expression import TRUE, Expression
from tamis.language.values import Interval

NO_NEED = -1
UNREAD = -2
"""The need of a slot whose constant part was not at hand when it came, as in a file."""
_FRESH = 8
"""The tally is made again when the new and the dropped needs are this part of those that it has."""
FROM = 256
"""Needs that make a tally worth its upkeep. The time without it, divided by that with it, if half of the needs lack something and
one event in ten asks (`benchmarks.history_parts`, needs):

    needs            4       16      64      256     1,024
    batches          1.23    1.21    1.27    1.34    1.58
    single events    0.81    0.72    0.72    1.01    1.29
"""
PATIENCE = 16
"""Single events in vain, after which the pre-filter pauses for as many, then for twice as many."""
_LONGEST = 1024
"""The longest pause, in events."""
_WORTH = 2
"""Asking for a subscription takes about as long as deciding its joins. If every third time is worth it, asking goes on."""
_BATCHES, _LONGEST_OF_BATCHES = 2, 16
"""The same for batches."""
NEVER = 2**62
"""Instead of FROM: no pre-filter."""


class _Patience:
    """When to ask, if asking is often in vain.

    Asking is in vain unless it skips half of what is asked for. A time that was not in vain makes up for `_WORTH` others. After
    some more in vain, there is a pause, and then one twice as long, until asking has paid for as many.
    """

    def __init__(self, times: int, longest: int) -> None:
        self._times, self._longest = times, longest
        self._gain, self._left, self._pause = 0, 0, times

    def is_pausing(self) -> bool:
        """Whether not to ask this time."""
        if self._left:
            self._left -= 1
        return self._left > 0

    def note(self, is_vain: bool) -> None:
        """Note whether asking was in vain."""
        self._gain += -1 if is_vain else _WORTH
        if self._gain >= self._times:
            self._gain, self._pause = self._times, self._times
        elif self._gain <= -self._times:
            self._gain, self._left = 0, self._pause + 1
            self._pause = min(2 * self._pause, self._longest)


class State(NamedTuple):
    """What the pre-filter says of a subscription at present."""

    is_skipped: bool
    constraints: tuple[tuple[str, bool | None], ...]
    """Each clause of the need in words, and whether it holds; None if it is not known."""


class PreFilter:
    """The needs of slots. One thread changes it at a time, while another one asks."""

    def __init__(self, *, one_history: bool = True, fewest: int = FROM, patience: int = PATIENCE) -> None:
        self._one_history, self._fewest = one_history, fewest
        self._of_events = _Patience(patience, _LONGEST)
        self._of_batches = _Patience(_BATCHES, _LONGEST_OF_BATCHES)
        self._lock = threading.RLock()
        self._needs: dict[int, Need] = {}
        self._numbers: dict[Need, int] = {}
        self._owners: dict[int, int] = {}
        """The number of slots that have a need."""
        self._next = 0
        self._of_slot = GrowingArray(np.int32)
        self.unread: set[int] = set()
        """The slots whose need is UNREAD."""
        self._compared: set[str] = set()
        """The attributes of new events that needs count on. They only grow."""
        self._following: Following | None = None
        self._fresh = 0
        """Needs that came or went since the tally was made."""
        self.skips = 0
        """How often a subscription was skipped, for all events."""

    def __len__(self) -> int:
        """The number of distinct needs."""
        return len(self._needs)

    # -- needs come and go

    def put(self, slot: int, rest: Expression, constant: Expression) -> None:
        """Note the need of a slot that has none. A constant part that is TRUE is not at hand."""
        if self._fewest == NEVER:
            return
        with self._lock:
            if constant == TRUE:
                self.unread.add(slot)
                self._set(slot, UNREAD)
            else:
                self._set(slot, self.number(rest, constant))

    def read(self, slot: int, rest: Expression, constant: Expression) -> None:
        """Note the need of a slot that is UNREAD."""
        with self._lock:
            if slot in self.unread:
                self.unread.remove(slot)
                self._set(slot, self.number(rest, constant))

    def drop(self, slot: int) -> None:
        """Forget the need of a slot."""
        if slot >= len(self._of_slot):
            return
        with self._lock:
            number = int(self._of_slot.view()[slot])
            self.unread.discard(slot)
            self._of_slot.view()[slot] = NO_NEED
            self.disown(number)

    def number(self, expression: Expression, beside: Expression | None = None) -> int:
        """The number of what an expression needs, which gets one more owner; NO_NEED if it needs nothing."""
        if self._fewest == NEVER:
            return NO_NEED
        need = need_of(expression, beside, one_history=self._one_history)
        if need == NOTHING:
            return NO_NEED
        with self._lock:
            number = self._numbers.get(need)
            if number is None:
                number, self._next = self._next, self._next + 1
                self._needs[number] = need
                self._numbers[need] = number
                self._owners[number] = 0
                self._fresh += 1
            self._owners[number] += 1
            self._compared |= compared(expression)
        return number

    def disown(self, number: int) -> None:
        """Let a need have one owner less."""
        if number < 0:
            return
        with self._lock:
            self._owners[number] -= 1
            if not self._owners[number]:
                del self._owners[number], self._numbers[self._needs.pop(number)]
                self._fresh += 1

    def keep(self, attributes: Collection[str]) -> None:
        """Forget the tally if it asks about other attributes: nobody needs their columns."""
        following = self._following
        if following is not None and not set(following.tally.attributes) <= set(attributes):
            self._following = None

    def _set(self, slot: int, number: int) -> None:
        self._grow(slot + 1)
        self._of_slot.view()[slot] = number

    def _grow(self, slots: int) -> None:
        self._of_slot.grow(max(slots - len(self._of_slot), 0), fill=NO_NEED)

    # -- asking

    def needs_of(self, slots: I32s) -> I32s:
        """The number of the need of each slot."""
        try:
            return self._of_slot.view().take(slots)
        except IndexError:
            with self._lock:
                self._grow(int(slots.max()) + 1)
            return self._of_slot.view().take(slots)

    def is_asked(self, *, of_batch: bool) -> bool:
        """Whether to ask for the needs of an event or of a batch. Each event or batch calls this once."""
        return bool(self._needs) and not (self._of_batches if of_batch else self._of_events).is_pausing()

    def passing(
        self, needs: I32s, retained: Retained, is_plain: Callable[[Collection[str]], bool], until: int | None = None
    ) -> Bools | None:
        """Which of some needs are satisfied; None if nothing is skipped.

        `is_plain` says whether new events have at most one value of some attributes. With `until`, events of a batch up to this
        number count as retained, and only what no row of the batch can satisfy is skipped.
        """
        while True:
            following = self._planned(retained)
            if following is None:
                return None
            rows = following.tally.rows(needs)
            if (rows == UNPLANNED).all() or not is_plain(self._compared):
                return None
            if following.catch_up(until, following.tally.places_of(rows)):
                break
            self._following = None  # Keys of strings moved.
        found = following.tally.satisfied(rows, only_some=until is not None)
        skipped = len(found) - int(np.count_nonzero(found))
        (self._of_events if until is None else self._of_batches).note(2 * skipped < len(found))
        return found if skipped else None

    def _planned(self, retained: Retained) -> Following | None:
        """The tally that follows the events; None if it is not worth it."""
        following = self._following
        if following is None and len(self._needs) < self._fewest:
            return None
        if following is not None and self._fresh <= len(following.tally) // _FRESH and following.is_valid():
            return following
        with self._lock:
            if len(self._needs) < max(self._fewest, 1):
                self._following = None
            else:
                self._following = Following(retained, Tally(self._needs, retained.log))
            self._fresh = 0 if self._following is not None else self._fresh
            return self._following

    def _caught_up(self, retained: Retained) -> Following | None:
        """The same, with all events counted."""
        while True:
            following = self._planned(retained)
            if following is None or following.catch_up():
                return following
            self._following = None

    # -- figures

    def present(self, needs: I32s, retained: Retained) -> Bools:
        """Which of some needs are satisfied at present, as far as they are followed."""
        following = self._caught_up(retained)
        if following is None:
            return np.ones(len(needs), np.bool_)
        return following.tally.satisfied(following.tally.rows(needs))

    def state(self, number: int, retained: Retained) -> State:
        """What the pre-filter says of a need at present."""
        need = self._needs.get(number, NOTHING)
        following = self._caught_up(retained) if need else None
        if following is None:
            return State(False, tuple((_said(clause), None) for clause in need))
        truths = [_either([following.tally.holds(each) for each in clause]) for clause in need]
        said = tuple((_said(clause), truth) for clause, truth in zip(need, truths, strict=True))
        return State(False in truths, said)


def is_plain(event: LogEvent, names: Collection[str]) -> bool:
    """Whether an event of the log has at most one value, and no Interval, of each of some attributes."""
    for name in names:
        values = event.get(name)
        if isinstance(values, tuple) and (len(values) > 1 or (values and type(values[0]) is Interval)):
            return False
    return True


def odd_rows(chunk: Chunk, names: Collection[str]) -> Bools:
    """Which events of a batch are not plain in this sense."""
    odd = np.zeros(len(chunk), np.bool_)
    if isinstance(chunk, ListedEvents):
        odd[:] = [not is_plain(event, names) for event in chunk.listed]
    elif isinstance(chunk, TableEvents) and chunk.has_several():
        for name in names:
            times = np.zeros(len(chunk), np.int64)
            for column in chunk.columns(name):
                times += np.bincount(column.rows, minlength=len(chunk))
            odd |= times > 1
    return odd


def _said(clause: Iterable[Constraint]) -> str:
    return ", or ".join(sorted(map(str, clause)))


def _either(truths: Sequence[bool | None]) -> bool | None:
    if True in truths:
        return True
    return None if None in truths else False
