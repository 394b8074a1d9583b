"""What a broker keeps in memory. All of it comes from the tables, and is made again from them when a folder is opened."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.checksums import checked, damaged_row
from tamis.broker.history_table import HistoryTable
from tamis.broker.join_meetings import meet_joins
from tamis.broker.last_commit import LastCommit
from tamis.broker.limits import BrokerLimits
from tamis.broker.live_history import LiveHistory
from tamis.broker.matcher_file import Stamp
from tamis.broker.matcher_files import MatcherFiles
from tamis.broker.moments import Clock, moment_of
from tamis.broker.number_lists import damaged_numbers, numbers_text, read_numbers
from tamis.broker.queue_block import Told
from tamis.broker.queues import Queues
from tamis.broker.schedule import Schedule, Turn
from tamis.broker.stored_ends import LAST_CHANGE, end_of, last_deleted, last_moment
from tamis.broker.tables import EventRow, MeetingRow, SubscriptionRow, Tables
from tamis.broker.valid_events import ValidEvents
from tamis.broker.valid_file import SavedEvents
from tamis.broker.valid_loading import load_quickly, load_valid
from tamis.errors import BrokerError, TamisError, UnknownIdError
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I32s, I64s
from tamis.language.reading import to_expression
from tamis.language.values import INT64_MAX
from tamis.matcher.engine_store import Contents, EngineStore
from tamis.matcher.history_store import HistoryStore
from tamis.matcher.matcher import Matcher, matcher_over

_log = logging.getLogger("tamis")

Progress = Callable[[int, int], None]
"""Is told how many subscriptions are done, and how many there are."""


class Meeting(NamedTuple):
    """Subscriptions that meet stored events at a moment."""

    number: int
    moment: int
    told: Mapping[int, I64s]
    """By the number of a subscription: the numbers of the events that it is told about."""


class State:
    """The matcher with the subscriptions that are valid now, the queues, the valid events, and the last numbers."""

    def __init__(self, tables: Tables, clock: Clock, queues: Queues, store: EngineStore, limits: BrokerLimits) -> None:
        self.tables = tables
        self.clock = clock
        self.queues = queues
        self.store = store
        self.matcher: Matcher[int] = matcher_over(store)
        self.history: LiveHistory | None = None
        """The earlier events; None if the broker has no history."""
        if isinstance(store, HistoryStore):
            self.history = LiveHistory(HistoryTable(tables, store.history), store)
        self.matcher_changes = 0
        """How often the matcher was changed. It counts after a change. If it is the same before a match and later, nothing has
        changed in between."""
        self.rests = 0
        """How often subscriptions have left the matcher, or were replaced in it."""
        self._limits = limits
        self.subscriber_of = GrowingArray(np.int32)
        """By subscription: the number of its subscriber."""
        self.schedule = Schedule()
        self._known = 0
        """The last subscriber whose queue is known."""
        self._valid: ValidEvents | None = None
        self.saved_valid: SavedEvents | None = None
        """The file from which valid events are read when somebody first needs them, if that has failed at opening."""
        self.subscriber, self.change = tables.last("subscribers"), tables.last("subscriptions", "change")
        self.event, self.meeting = end_of(tables)
        self.moment = last_moment(tables)
        """The time of the last call. A clock that goes back is held here."""
        self.matcher_files: MatcherFiles | None = None
        """Saves the matcher; None if nothing is kept, or if another process writes."""
        self.last_commit: LastCommit | None = None
        """Notes what was committed; None if nothing is kept, or if another process writes."""
        self.listeners: list[Callable[[I32s, I32s], None]] = []
        """Functions that are told of new notes: the numbers of their subscribers and subscriptions."""
        self.removals = 0
        """How many subscribers were removed here. Iterators look whether it has changed."""
        self.is_doubtful = False
        """Whether something interrupted a change, so that memory and tables may differ."""

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Change memory and tables inside of the block. If an interrupt comes in between, nobody may trust the memory."""
        try:
            yield
        except TamisError:
            raise  # The block has taken the change back.
        except BaseException:
            self.is_doubtful = True
            raise

    def know_numbers(self) -> None:
        """Read the subscribers, and whose each subscription is, as far as they are not known yet."""
        sql = "SELECT number, deleted FROM subscribers WHERE number > ? ORDER BY number"
        for number, deleted in self.tables.rows(sql, (self._known,)):
            self.queues.know(number, deleted)
            self._known = number
        known = len(self.subscriber_of)
        sql = "SELECT number, subscriber FROM subscriptions WHERE number >= ? ORDER BY number"
        pairs = np.array(list(self.tables.rows(sql, (known,))), np.int32).reshape(-1, 2)
        last = int(pairs[-1, 0]) if len(pairs) else known - 1
        grown = self.subscriber_of.grow(last + 1 - known, fill=0)
        grown[pairs[:, 0] - known] = pairs[:, 1]

    def load_matcher(self, told: Progress) -> None:
        """Add all subscriptions that are valid at the last moment."""
        rows = self.tables.subscriptions("removed = 0 ORDER BY number")
        total = self.tables.one("SELECT count(*) FROM subscriptions WHERE removed = 0")[0]
        done = 0
        while block := list(islice(rows, self._limits.rows_at_once)):
            self.wake(row for row in block if self.is_active(row))
            done += len(block)
            told(done, total)
        self._plan_all(self.moment)

    def matcher_contents(self) -> Contents:
        """What is saved of the matcher. Earlier events come from the tables."""
        if isinstance(self.store, HistoryStore):
            return self.store.contents_without_events()
        return self.store.contents()

    def catch_up_matcher(self, change: int, moment: int) -> None:
        """Bring a matcher that was saved after a change and at a moment up to date."""
        self.moment = max(self.moment, moment)
        rows = list(self.tables.subscriptions("change > ?", (change,)))
        self.rest(row.number for row in rows)
        self.wake(row for row in rows if self.is_active(row))
        self._plan_all(moment)

    def _plan_all(self, moment: int) -> None:
        """Note which subscriptions begin, and which end after a moment."""
        self.schedule.add_many(
            [
                *self.tables.rows("SELECT valid_from, 1, number FROM subscriptions WHERE started = 0 AND removed = 0"),
                *self.tables.rows(
                    "SELECT valid_until, 0, number FROM subscriptions WHERE valid_until > ? AND removed = 0", (moment,)
                ),
            ]
        )

    def is_active(self, row: SubscriptionRow) -> bool:
        """Whether events meet this subscription at the last moment."""
        is_over = row.valid_until is not None and row.valid_until <= self.moment
        return bool(row.started) and not row.paused and not row.removed and not is_over

    def plan(self, row: SubscriptionRow) -> None:
        """Note when a subscription begins and ends."""
        if not row.removed:
            is_over = row.valid_until is None or row.valid_until <= self.moment
            self.schedule.add(row.number, None if row.started else row.valid_from, None if is_over else row.valid_until)

    @property
    def valid(self) -> ValidEvents:
        """The valid events. If many were left without a file, they are read when somebody first needs them."""
        if self._valid is None:
            # If an event cannot be read, this raises an error, and none is taken for all.
            self._valid = load_valid(self.tables, self.saved_valid, self._next_moment(), self._limits)
            self.saved_valid = None
        return self._valid

    def begin_valid(self, saved: SavedEvents | None) -> None:
        """Let the valid events be in memory from now on, if that takes no long reading of the tables."""
        self.saved_valid = saved
        with suppress(BrokerError):  # An event cannot be read. Whoever needs it is told.
            self._valid = load_quickly(self.tables, saved, self._next_moment(), self._limits)
            self.saved_valid = None

    def _next_moment(self) -> int:
        """The earliest moment at which a subscription can still meet valid events."""
        return self.moment if self.schedule.next is None else min(self.moment, self.schedule.next)

    def add_valid(self, sequences: Sequence[int], events: Sequence[Any], ends: Sequence[int]) -> None:
        """Take in valid events, if the others are in memory."""
        if self._valid is not None:
            self._valid.add_many(sequences, events, ends)
            self._valid.forget(self.moment)

    def valid_is_due(self, *, is_last: bool) -> bool:
        """Whether enough valid events have come to save them all. `is_last` says that the broker is being closed."""
        if self._valid is None or self.is_doubtful:
            return False
        least, share = (self._limits.valid_to_save, 32) if is_last else (self._limits.valid_behind, 4)
        return self._valid.unsaved >= max(least, len(self._valid) // share)

    @property
    def known_valid(self) -> int:
        """How many valid events are in memory, with events that ended recently."""
        return 0 if self._valid is None else len(self._valid)

    @property
    def unsaved_valid(self) -> int:
        """How many valid events in memory are not in the file."""
        return 0 if self._valid is None else self._valid.unsaved

    @property
    def refused_values(self) -> int:
        """How often a subscription asked a stored event about a value outside the language."""
        return 0 if self._valid is None else self._valid.refused

    # Time

    def now(self) -> int:
        """The time of this call. What begins and ends until then has happened when this returns."""
        moment = max(self.moment, moment_of(self.clock()))
        if self.schedule.next is not None and self.schedule.next <= moment:
            self._pass(moment)
        self.moment = moment
        return moment

    def _pass(self, now: int) -> None:
        """Let subscriptions begin and end. If that cannot be stored, they are due again."""
        with self.changing():
            due = list(self.schedule.due(now))
            try:
                self._let_turn(due, now)
            except BaseException:
                self.schedule.add_many(turn for _, turns in due for turn in turns)
                raise

    def _let_turn(self, due: list[tuple[int, list[Turn]]], now: int) -> None:
        started: list[SubscriptionRow] = []
        ended: list[int] = []
        meetings: list[Meeting] = []
        for moment, turns in due:
            rows = self.rows(turn.number for turn in turns)
            starts = dict.fromkeys(turn.number for turn in turns if turn.is_start)
            begins = [rows[number] for number in starts if _begins(rows[number], moment)]
            ended += [turn.number for turn in turns if not turn.is_start and rows[turn.number].valid_until == moment]
            started += begins
            awake = {row.number: row.expression for row in begins if not row.paused}
            meetings += self.meet(awake, moment, self.meeting + len(meetings) + 1)
        if started:
            self._put_started(started, meetings, now)
        self.tell_meetings(meetings)
        self.rest(ended)

    def _put_started(self, started: list[SubscriptionRow], meetings: list[Meeting], now: int) -> None:
        """Let events meet subscriptions that have begun, and store that and what they met."""
        # Beginning counts as a change, so that a saved matcher can be brought up to date.
        changes = range(self.change + 1, self.change + 1 + len(started))
        begun = [row._replace(started=1, change=change) for row, change in zip(started, changes, strict=True)]
        awake = [row for row in begun if not row.paused]
        self.wake(awake)
        try:
            with self.changes_stored(len(begun), now):
                self.tables.put_subscriptions(begun)
                self.put_meetings(meetings)
        except BaseException:
            self.rest(row.number for row in awake)
            raise

    @contextmanager
    def changes_stored(self, count: int, now: int) -> Iterator[None]:
        """Store changes of subscriptions in the block, in one transaction, at a moment. The matcher has them already.

        If the saved matcher would be too far behind, it is saved, too. So a process that is killed at any moment leaves one that
        is nearly up to date.
        """
        change = self.change + count
        file = None
        if self.matcher_files is not None:
            file = self.matcher_files.save_before(Stamp(change, self.moment), self.matcher_contents)
        with self.tables.transaction():
            yield
            self.tables.put_setting(LAST_CHANGE, now)
            if file is not None:
                file.put()
        self.change = change
        self._note_commit()
        if file is not None:
            file.settle()

    def _note_commit(self) -> None:
        if self.last_commit is not None:
            self.last_commit.note(self.event, self.change)

    def wake(self, rows: Iterable[SubscriptionRow]) -> None:
        """Let events meet subscriptions from now on."""
        fresh = [row for row in rows if row.number not in self.matcher]
        with self._counting():
            self.matcher.add_many(*_columns_of(fresh))

    def alter(self, rows: Sequence[SubscriptionRow]) -> None:
        """Replace the expressions and weights of subscriptions that events meet now."""
        with self._counting():
            self.rests += len(rows) > 0
            self.matcher.replace_many(*_columns_of(rows))

    def rest(self, numbers: Iterable[int]) -> None:
        """Let events meet subscriptions no more."""
        present = [number for number in dict.fromkeys(numbers) if number in self.matcher]
        with self._counting():
            self.rests += len(present) > 0
            self.matcher.remove_many(present)

    @contextmanager
    def _counting(self) -> Iterator[None]:
        try:
            yield
        finally:
            self.matcher_changes += 1

    def rows(self, numbers: Iterable[int]) -> dict[int, SubscriptionRow]:
        """Rows of subscriptions by number."""
        found = {}
        for number in numbers:
            (found[number],) = self.tables.subscriptions("number = ?", (number,))
        return found

    # Meeting stored events

    def meet(self, wanted: Mapping[int, str], moment: int, number: int) -> list[Meeting]:
        """The meeting of subscriptions with the events valid at a moment that were not told yet; none if nothing is to tell."""
        if not wanted or not self.has_valid(moment):
            return []
        expressions = {each: to_expression(text) for each, text in wanted.items()}
        joined = {each: expression for each, expression in expressions.items() if expression.needs_history()}
        plain = {each: expression for each, expression in expressions.items() if each not in joined}
        found = self.valid.meet(plain, moment) if plain else {}
        if joined:
            assert self.history is not None
            found |= meet_joins(self.history.table, self.valid, joined, moment)
        told = {each: fresh for each, events in found.items() if len(fresh := self._untold(each, events))}
        return [Meeting(number, moment, told)] if told else []

    def has_valid(self, moment: int) -> bool:
        """Whether some stored event is valid at a moment."""
        if self._valid is not None:
            return len(self._valid) > 0
        return self.tables.one("SELECT 1 FROM events WHERE valid_until > ? LIMIT 1", (moment,)) is not None

    def _untold(self, number: int, events: I64s) -> I64s:
        if not len(events) or number >= len(self.subscriber_of):
            return events
        told = self.queues.told_to(int(self.subscriber_of.view()[number]), number)
        return events[~np.isin(events, told)] if len(told) else events

    def stored_event(self, sequence: int) -> EventRow:
        """A stored event.

        Raises
        ------
        UnknownIdError
            It was never stored, or has left the tables.
        """
        row = self.tables.event(sequence)
        if row is None:
            if last_deleted(self.tables)[0] < sequence <= self.event:
                raise damaged_row(sequence)
            raise UnknownIdError(sequence, "event")
        return row

    def put_meetings(self, meetings: Iterable[Meeting]) -> None:
        """Write meetings to the tables."""
        self.tables.put_meetings(
            MeetingRow(number, subscription, moment, self.event, numbers_text(events))
            for number, moment, told in meetings
            for subscription, events in told.items()
        )

    # Telling: these come after the commit.

    def tell_meetings(self, meetings: Iterable[Meeting]) -> None:
        """Put the notes of meetings into the queues."""
        for number, moment, told in meetings:
            self.meeting = number
            names = np.repeat(np.array(list(told), np.int32), [len(events) for events in told.values()])
            events = np.concatenate(list(told.values()))
            order = np.argsort(events, kind="stable")
            self._tell(events[order], names[order], np.full(len(names), moment))

    def tell_events(self, first: int, counts: Sequence[int], names: I32s, moments: I64s) -> None:
        """Put the notes of new events into the queues. `moments` has one moment for each event."""
        self.event = first + len(counts) - 1
        self._note_commit()
        events = np.repeat(np.arange(first, first + len(counts)), counts)
        self._tell(events, names, np.repeat(moments, counts))

    def tell_few_events(self, first: int, matches: Sequence[Sequence[int]], moment: int) -> None:
        """`tell_events` for few notes. For these, arrays would take several times as long."""
        if self.listeners:
            names = np.fromiter(chain.from_iterable(matches), np.int32)
            counts = list(map(len, matches))
            self.tell_events(first, counts, names, np.full(len(counts), moment))
            return
        subscriber_of = self.subscriber_of.view()
        rows = [
            (int(subscriber_of[name]), event, name, moment)
            for event, names in enumerate(matches, first)
            for name in names
        ]
        rows.sort()
        self.event = first + len(matches) - 1
        self._note_commit()
        self.queues.tell_few(rows, (self.event, self.meeting))

    def _tell(self, events: I64s, names: I32s, moments: I64s) -> None:
        subscribers = self.subscriber_of.view()[names]
        self.queues.tell(Told(subscribers, events, names, moments), (self.event, self.meeting))
        for listener in self.listeners:
            try:
                listener(subscribers, names)
            except Exception:  # The notes are stored, whatever a listener does.
                _log.exception("a listener of the broker has failed")

    def begin_queues(self) -> None:
        """Make the queues again from the tables."""
        self.queues, self._known = Queues(self._limits), 0
        self.catch_up()

    def catch_up(self) -> None:
        """Put into the queues what the tables have and the queues do not have yet."""
        self.know_numbers()
        event, meeting = self.queues.end
        later = self.tables.meetings("number > ?", (meeting,))
        self.event, self.meeting = event, meeting
        for number, rows in groupby(list(later), key=lambda row: row.number):
            met = list(rows)
            self._check_told(np.array([row.subscription for row in met]))
            self._catch_up_events(met[0].after)
            told = {row.subscription: np.array(read_numbers(row.events), np.int64) for row in met}
            self.tell_meetings([Meeting(number, met[0].moment, told)])
        self._catch_up_events(None)
        self.event, self.meeting = end_of(self.tables)
        self.queues.reach((self.event, self.meeting))

    def _catch_up_events(self, last: int | None) -> None:
        sql = (
            "SELECT sequence, published, valid_until, matches, checksum FROM events "
            "WHERE sequence > ? AND sequence <= ? ORDER BY sequence LIMIT ?"
        )
        end = INT64_MAX if last is None else last
        while rows := list(self.tables.rows(sql, (self.event, end, self._limits.rows_at_once))):
            sequences, moments, _, matches = zip(*map(checked, rows), strict=True)
            lists = [read_numbers(text) for text in matches]
            names = np.fromiter(chain.from_iterable(lists), np.int64)
            self._check_told(names)
            counts = list(map(len, lists))
            self._check_unbroken(self.event, sequences)
            self.event = sequences[-1]
            events, told_at = np.repeat(np.array(sequences), counts), np.repeat(np.array(moments), counts)
            self._tell(events, names.astype(np.int32), told_at)

    def _check_unbroken(self, before: int, sequences: Sequence[int]) -> None:
        """Refuse a gap among the events after the last one that was deleted."""
        deleted, _ = last_deleted(self.tables)
        later = [number for number in sequences if number > deleted]
        first = max(before, deleted) + 1
        for expected, number in enumerate(later, first):
            if number != expected:
                raise damaged_row(expected)

    def _check_told(self, names: I64s) -> None:
        """Refuse numbers in the tables that no subscription has."""
        known = names[(names > 0) & (names < len(self.subscriber_of))]
        if len(known) < len(names) or not self.subscriber_of.view()[known].all():
            raise damaged_numbers(names.tolist())


def _columns_of(rows: Sequence[SubscriptionRow]) -> tuple[list[int], list[str], list[float]]:
    """The numbers, expressions and weights of subscriptions."""
    return [row.number for row in rows], [row.expression for row in rows], [row.weight for row in rows]


def _begins(row: SubscriptionRow, moment: int) -> bool:
    return not row.removed and not row.started and row.valid_from == moment
