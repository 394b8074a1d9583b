"""A machine that calls a broker and the plain model alike, and compares what they say. `machine_calls` has more calls."""

from __future__ import annotations

import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tamis
from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits
from tamis.errors import HistoryError, OptionError, QueueFullError, RetentionError, UnknownIdError
from tamis.language.evaluate import evaluate, matches
from tests.broker.folders import copy_folder
from tests.broker.model import DAY, FullError, Model
from tests.earlier.reference import ReferenceHistory

START = datetime(2026, 11, 18, tzinfo=UTC)
SUBSCRIBERS = st.sampled_from(["ann", "bob"])
NAMES = st.sampled_from(["a", "b"])
TEXTS = [
    "price < 20",
    "price >= 20",
    "genre = 'crime'",
    "genre = 'crime' AND price < 10",
    "genre LIKE 'c%' OR price = 5",
    "tags = 'new' AND NOT genre = 'poetry'",
    "genre IS NULL",
    "price BETWEEN 5 AND 15 AND tags IS NOT NULL",
    "FALSE",
]
JOINED = [
    "price < ALL (SELECT price FROM history)",
    "genre = ANY (SELECT genre FROM history) AND price < 20",
    "NOT EXISTS (SELECT 1 FROM history h WHERE h.genre = genre)",
    "price = 5 OR EXISTS (SELECT 1 FROM history h WHERE h.tags = tags AND h.price >= price)",
    "genre = 'crime' AND NOT (price >= ANY (SELECT price FROM history) AND tags = 'new')",
]
"""Some of them need earlier events, and some hold for many of those."""
EXPRESSIONS = st.sampled_from([*TEXTS, *JOINED])
HISTORIES = [
    None,
    tamis.History(rows=3),
    tamis.History(rows=2, key="genre"),
    tamis.History(age=6, order="at"),
    tamis.History(rows=2, age=10, order="at", key="genre"),
    tamis.History(rows=3, order="at"),
]
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "price": st.sampled_from([0, 5, 9.5, 15, 20, 30, 2**60, tamis.Interval(8, 12), "free"]),
        "genre": st.sampled_from(["crime", "classics", "poetry"]),
        "tags": st.sampled_from(["new", ["new", "used"], []]),
        "at": st.sampled_from([*range(0, 20, 2), 3.5, "noon"]),
    },
)
SECONDS = st.sampled_from([1, 2, 5, 10, 20, DAY])
BOUNDS = st.sampled_from([None, 10, 30, 5, 1, 0, -5])


def moment(seconds: int | None) -> datetime | None:
    return None if seconds is None else START + timedelta(seconds=seconds)


class Recorded:
    """A broker, and the names of its methods that were called."""

    def __init__(self, broker: Broker, called: set[str]) -> None:
        self._broker = broker
        self._called = called

    def __getattr__(self, name: str) -> Any:
        self._called.add(name)
        return getattr(self._broker, name)


class BrokerMachine(RuleBasedStateMachine):
    """Calls a broker and the model alike."""

    @initialize(
        max_age=st.sampled_from([None, 10, 40]),
        max_notes=st.sampled_from([None, 3, 10]),
        refuses=st.booleans(),
        history=st.sampled_from(HISTORIES),
    )
    def begin(
        self, max_age: int | None, max_notes: int | None, refuses: bool, history: tamis.History | None = None
    ) -> None:
        self.folder = tempfile.mkdtemp()
        self.called: set[str] = set()
        self.count = 0
        self.history = history
        retained = None if history is None else ReferenceHistory(history)
        self.model = Model(max_age=max_age, max_notes=max_notes, refuses=refuses, retained=retained)
        self.broker: Any = Recorded(self._opened(Path(self.folder, "0"), history=history), self.called)
        self._retain()

    @rule(max_age=st.sampled_from([None, 10, 40]), max_notes=st.sampled_from([None, 3, 10]), refuses=st.booleans())
    def retain(self, max_age: int | None, max_notes: int | None, refuses: bool) -> None:
        self.model.retain(max_age, max_notes, refuses)
        self._retain()

    def _retain(self) -> None:
        max_age = self.model.max_age
        self.broker.retain(
            max_age=None if max_age is None else timedelta(seconds=max_age),
            max_notes=self.model.max_notes,
            when_full="refuse publish" if self.model.refuses else "drop oldest",
        )

    def _opened(self, path: Path, *, read_only: bool = False, history: tamis.History | None = None) -> Broker:
        # Tiny limits: blocks of queues are made and merged, and tables are read in parts.
        limits = BrokerLimits(
            notes_in_tail=4,
            changes_behind=3,
            changes_to_save=2,
            valid_behind=3,
            valid_to_save=1,
            strings_to_know=1,
            events_between_sweeps=7,
            rows_at_once=3,
            notes_at_once=3,
        )
        return Broker(
            path,
            read_only=read_only,
            clock=lambda: START + timedelta(seconds=self.model.now),
            synchronous="off",
            history=history,
            limits=limits,
        )

    def teardown(self) -> None:
        if hasattr(self, "broker"):
            if getattr(self, "reader", None) is not None:
                assert self.reader is not None
                self.reader.close()
            self.broker.close()
            shutil.rmtree(self.folder)

    @rule(seconds=SECONDS)
    def wait(self, seconds: int) -> None:
        self.model.pass_time(self.model.now + seconds)

    @rule(
        subscriber=SUBSCRIBERS,
        name=NAMES,
        expression=EXPRESSIONS,
        weight=st.none() | st.integers(0, 1000),
        bounds=st.none() | st.tuples(BOUNDS, BOUNDS),
    )
    def subscribe(self, subscriber: str, name: str, expression: str, weight: int | None, bounds: Any) -> None:
        given: dict[str, Any] = {"expression": expression}
        if weight is not None:
            given["weight"] = float(weight)
        if bounds is not None:
            given["valid_from"], given["valid_until"] = (
                None if bound is None else self.model.now + bound for bound in bounds
            )
        self._subscribe(subscriber, name, given)

    @rule(subscriber=SUBSCRIBERS, name=NAMES, until=BOUNDS)
    def prolong(self, subscriber: str, name: str, until: int | None) -> None:
        given = {"valid_until": None if until is None else self.model.now + until}
        if (subscriber, name) in self.model.wishes:
            self._subscribe(subscriber, name, given)
        else:
            with pytest.raises(UnknownIdError):
                self.broker.subscribe(subscriber, name, valid_until=moment(given["valid_until"]))

    def _subscribe(self, subscriber: str, name: str, given: dict[str, Any]) -> None:
        words: dict[str, Any] = {
            word: moment(value) if word.startswith("valid") else value for word, value in given.items()
        }
        old = self.model.wishes.get((subscriber, name))
        start = given.get("valid_from", old and old.valid_from)
        end = given.get("valid_until", old and old.valid_until)
        if start is not None and end is not None and start >= end:
            with pytest.raises(OptionError, match="before `valid_until`"):
                self.broker.subscribe(subscriber, name, **words)
        elif self.history is None and given.get("expression") in JOINED:
            with pytest.raises(HistoryError):
                self.broker.subscribe(subscriber, name, **words)
        else:
            self.broker.subscribe(subscriber, name, **words)
            self.model.subscribe(subscriber, name, given)

    @rule(subscriber=SUBSCRIBERS, name=NAMES, call=st.sampled_from(["unsubscribe", "pause", "resume"]))
    def change(self, subscriber: str, name: str, call: str) -> None:
        if (subscriber, name) not in self.model.wishes:
            with pytest.raises(UnknownIdError):
                getattr(self.broker, call)(subscriber, name)
            return
        getattr(self.broker, call)(subscriber, name)
        getattr(self.model, call)((subscriber, name))

    @rule(seconds=SECONDS, subscriber=SUBSCRIBERS, name=NAMES, call=st.sampled_from(["unsubscribe", "pause", "resume"]))
    def change_later(self, seconds: int, subscriber: str, name: str, call: str) -> None:
        """Nothing else is called between the two: the change itself meets the time that has passed."""
        self.wait(seconds)
        self.change(subscriber, name, call)

    @rule(subscriber=SUBSCRIBERS)
    def remove_subscriber(self, subscriber: str) -> None:
        if subscriber in self.model.subscribers:
            self.broker.remove_subscriber(subscriber)
            self.model.remove_subscriber(subscriber)
        else:
            with pytest.raises(UnknownIdError):
                self.broker.remove_subscriber(subscriber)

    @rule(event=EVENTS, until=BOUNDS, key=st.sampled_from([None, None, "k1", "k2"]))
    def publish(self, event: dict[str, Any], until: int | None, key: str | None) -> None:
        end = None if until is None else self.model.now + until
        before = len(self.model.pairs)
        try:
            number = self.model.publish(event, end, key, None)
        except FullError:
            with pytest.raises(QueueFullError):
                self.broker.publish(event, valid_until=moment(end), key=key)
            return
        receipt = self.broker.publish(event, valid_until=moment(end), key=key)
        assert receipt.sequence == number
        told = {name for name, each in self.model.pairs if each == number}
        assert set(receipt.matches) <= told
        assert len(self.model.pairs) == before or set(receipt.matches) == told

    @rule(events=st.lists(EVENTS, max_size=6), until=BOUNDS)
    def publish_many(self, events: list[dict[str, Any]], until: int | None) -> None:
        end = None if until is None else self.model.now + until
        after = self.model.copied()
        try:
            numbers = [after.publish(event, end, None, None) for event in events]
        except FullError:
            with pytest.raises(QueueFullError):
                self.broker.publish_many(events, valid_until=moment(end))
            return
        self.model = after
        receipts = self.broker.publish_many(events, valid_until=moment(end))
        assert [receipt.sequence for receipt in receipts] == numbers
        for receipt in receipts:
            assert set(receipt.matches) == {name for name, each in self.model.pairs if each == receipt.sequence}

    @rule(subscriber=SUBSCRIBERS, share=st.floats(0, 1.2))
    def acknowledge(self, subscriber: str, share: float) -> None:
        total = len(self.model.queues.get(subscriber, []))
        number = round(share * total)
        if subscriber not in self.model.subscribers:
            with pytest.raises(UnknownIdError):
                self.broker.acknowledge(subscriber, number)
        elif number > total:
            with pytest.raises(OptionError, match="the last note"):
                self.broker.acknowledge(subscriber, number)
        else:
            self.broker.acknowledge(subscriber, number)
            self.model.cursors[subscriber] = max(number, self.model.cursors.get(subscriber, 0))

    @rule(subscriber=SUBSCRIBERS, after=st.none() | st.integers(0, 10))
    def read(self, subscriber: str, after: int | None) -> None:
        if subscriber not in self.model.subscribers:
            with pytest.raises(UnknownIdError):
                self.broker.notifications(subscriber, after)
            return
        first = self.model.hidden(subscriber) + 1
        start = self.model.cursors.get(subscriber, 0) if after is None else after
        if 0 < start < first - 1:
            with pytest.raises(RetentionError) as caught:
                self.broker.notifications(subscriber, after)
            assert caught.value.first == first
        else:
            self._compare_notes(subscriber, after, max(start, first - 1))

    def _compare_notes(self, subscriber: str, after: int | None, start: int, broker: Any = None) -> None:
        notes = list((broker or self.broker).notifications(subscriber, after))
        told = self.model.queues.get(subscriber, [])
        assert [note.sequence for note in notes] == list(range(start + 1, len(told) + 1))
        for note in notes:
            expected = told[note.sequence - 1]
            stored = self.model.events[expected.event - 1]
            assert (note.event_sequence, note.subscriptions) == (expected.event, expected.names)
            assert note.event == stored.event
            assert note.expired == (stored.valid_until is not None and stored.valid_until <= self.model.now)

    @invariant()
    def notes_are_the_same(self) -> None:
        for subscriber in sorted(self.model.subscribers) if hasattr(self, "broker") else ():
            self._compare_notes(subscriber, 0, self.model.hidden(subscriber))

    def last_notes_are_the_same(self) -> None:
        """As `notes_are_the_same`, for some notes of each subscriber."""
        for subscriber in sorted(self.model.subscribers):
            hidden, total = self.model.hidden(subscriber), len(self.model.queues.get(subscriber, []))
            start = max(hidden, total - 10)
            self._compare_notes(subscriber, start, start)

    @invariant()
    def subscriptions_are_the_same(self) -> None:
        if hasattr(self, "broker"):
            listed = {
                (each.subscriber, each.name): (each.text, each.weight, each.valid_from, each.valid_until, each.paused)
                for each in self.broker.subscriptions()
            }
            assert listed == {
                name: (wish.expression, wish.weight, moment(wish.valid_from), moment(wish.valid_until), wish.paused)
                for name, wish in self.model.wishes.items()
            }

    @rule(subscriber=SUBSCRIBERS, own=NAMES, share=st.floats(0, 1))
    def explain(self, subscriber: str, own: str, share: float) -> None:
        name, number = (subscriber, own), 1 + round(share * len(self.model.events))
        if name not in self.model.wishes or number > len(self.model.events):
            with pytest.raises(UnknownIdError):
                self.broker.explain(*name, number)
            return
        if self.model.may_be_deleted(number):
            return
        explanation = self.broker.explain(name[0], name[1], number)
        stored = self.model.events[number - 1]
        assert explanation.truth is evaluate(self.model.wishes[name].expression, stored.event, stored.earlier)
        if self.history is not None and getattr(self, "reader", None) is not None:
            assert self.reader is not None
            if name in {(each.subscriber, each.name) for each in self.reader.subscriptions()}:
                assert self.reader.explain(name[0], name[1], number).truth is explanation.truth

    @rule(event=EVENTS)
    def would_match(self, event: dict[str, Any]) -> None:
        stored = self.model.coming(event)
        active = [name for name, wish in self.model.wishes.items() if wish.is_active(self.model.now)]
        is_wanted = any(self.model.wants(name, stored) for name in active)
        assert self.broker.would_match(event) == is_wanted
        if getattr(self, "reader", None) is not None:
            assert self.reader is not None
            assert self.reader.would_match(event) == is_wanted

    @rule(expression=EXPRESSIONS)
    def replay(self, expression: str) -> None:
        """A thread may delete events meanwhile. What is there before and after is found."""
        if self.history is None and expression in JOINED:
            return
        before, found, after = (
            {number for number, _ in self.broker.replay(text)} for text in ("TRUE", expression, "TRUE")
        )
        for number in before:
            stored = self.model.events[number - 1]
            if number in after or number in found:
                assert (number in found) == matches(expression, stored.event, stored.earlier)
        assert found <= before

    @rule()
    def read_in_another_broker(self) -> None:
        """A broker that only reads sees the same, when it is opened and later."""
        if getattr(self, "reader", None) is None:
            self.reader: Broker | None = self._opened(Path(self.folder, str(self.count)), read_only=True)
        assert self.reader is not None
        self.broker.stats()  # What begins now must have begun for the reader, too.
        for subscriber in sorted(self.model.subscribers):
            self._compare_notes(subscriber, 0, self.model.hidden(subscriber), self.reader)

    @rule()
    def compact(self) -> None:
        self.broker.compact()
        if self.model.max_notes is not None:
            stored = {number for number, _ in self.broker.replay("TRUE")}
            keyed = {number for number, moment in self.model.keys.values() if self.model.now < moment + DAY}
            unreadable = {number for number in range(1, len(self.model.events) + 1) if self.model.is_unreadable(number)}
            assert not stored & (unreadable - keyed)

    @rule()
    def go_on_in_a_backup(self) -> None:
        self.count += 1
        path = Path(self.folder, str(self.count))
        self.broker.backup(path)
        self._reopen(path)

    def _reopen(self, path: Path) -> None:
        if getattr(self, "reader", None) is not None:
            assert self.reader is not None
            self.reader.close()
            self.reader = None
        following = self.broker.notifications(subscriber, follow=True) if (subscriber := self._reader()) else iter(())
        self.broker.close()
        assert list(following) == []  # It waits no more.
        self.broker = Recorded(self._opened(path), self.called)

    def _reader(self) -> str | None:
        """A subscriber who may read from the cursor on."""
        for subscriber in sorted(self.model.subscribers):
            cursor = self.model.cursors.get(subscriber, 0)
            if cursor == len(self.model.queues.get(subscriber, [])) and cursor >= self.model.hidden(subscriber):
                return subscriber
        return None

    @rule()
    def restart(self) -> None:
        self._reopen(Path(self.folder, str(self.count)))

    @rule()
    def crash(self) -> None:
        """What is on disk at this moment is what a killed process would leave."""
        old = Path(self.folder, str(self.count))
        self.count += 1
        self._reopen(copy_folder(old, Path(self.folder, str(self.count))))
