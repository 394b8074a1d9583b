"""More calls of the machine: lists, streams, top-k, keys, tables of Arrow, figures."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from tamis.broker import Broker
from tamis.errors import OptionError, QueueFullError, UnknownIdError
from tamis.language.evaluate import matches
from tamis.language.reading import to_expression
from tests.broker.machine import BOUNDS, EVENTS, JOINED, NAMES, SUBSCRIBERS, TEXTS, BrokerMachine, moment
from tests.broker.model import FullError

PUBLIC = frozenset(name for name in dir(Broker) if not name.startswith("_") and callable(getattr(Broker, name)))
"""The methods of a broker."""
KEYS = st.sampled_from([None, "k1", "k2", "k3"])
COLUMNS = st.fixed_dictionaries(
    {"price": st.none() | st.sampled_from([0.0, 5.0, 9.5, 25.0]), "genre": st.sampled_from([None, "crime", "poetry"])}
)
"""Events that fit into the columns of one table."""


class AllCallsMachine(BrokerMachine):
    """Calls all that a broker has."""

    # Publishing

    @rule(event=EVENTS, until=BOUNDS, k=st.integers(1, 3))
    def publish_top(self, event: dict[str, Any], until: int | None, k: int) -> None:
        limit = None if self.model.has_ties() else k
        end = None if until is None else self.model.now + until
        try:
            number = self.model.publish(event, end, None, limit)
        except FullError:
            with pytest.raises(QueueFullError):
                self.broker.publish(event, valid_until=moment(end), k=limit)
            return
        receipt = self.broker.publish(event, valid_until=moment(end), k=limit)
        assert (receipt.sequence, len(receipt.matches)) == (number, self.model.events[-1].told)
        assert set(receipt.matches) == {name for name, each in self.model.pairs if each == number}

    @rule(
        events=st.lists(st.tuples(COLUMNS, BOUNDS, KEYS), max_size=5),
        is_table=st.booleans(),
        k=st.none() | st.integers(1, 3),
    )
    def publish_table(
        self, events: list[tuple[dict[str, Any], int | None, str | None]], is_table: bool, k: int | None
    ) -> None:
        """Events with keys and ends of their own, as mappings or as a table, in which null is a missing attribute."""
        limit = None if self.model.has_ties() else k
        rows = [{name: value for name, value in event.items() if value is not None} for event, _, _ in events]
        ends = [None if until is None else self.model.now + until for _, until, _ in events]
        keys = [key for _, _, key in events]
        given: Any = rows
        if is_table:
            schema = pa.schema({"price": pa.float64(), "genre": pa.string()})
            given = pa.Table.from_pylist([event for event, _, _ in events], schema)
        words: dict[str, Any] = {"valid_until": [moment(end) for end in ends], "keys": keys, "k": limit}
        after = self.model.copied()
        try:
            numbers = [after.publish(*each, limit) for each in zip(rows, ends, keys, strict=True)]
        except FullError:
            with pytest.raises(QueueFullError):
                self.broker.publish_many(given, **words)
            return
        before, self.model = len(self.model.events), after
        receipts = self.broker.publish_many(given, **words)
        assert [receipt.sequence for receipt in receipts] == numbers
        for receipt in receipts:
            if receipt.sequence > before:
                assert len(receipt.matches) == after.events[receipt.sequence - 1].told

    @rule(event=EVENTS)
    def listen(self, event: dict[str, Any]) -> None:
        heard: list[int] = []
        leave = self.broker.listen(lambda subscribers, names: heard.extend(names.tolist()))
        self.publish(event, None, None)
        leave()
        told = {name for name, each in self.model.pairs if each == len(self.model.events)}
        assert {self.broker.names(number) for number in heard} in (told, set())
        count = len(heard)
        self.publish(event, None, None)
        assert len(heard) == count

    @rule(events=st.lists(st.tuples(EVENTS, st.integers(0, 15)), max_size=3), later=st.integers(0, 2))
    def deliver(self, events: list[tuple[dict[str, Any], int]], later: int) -> None:
        """Each event with a mask that chooses subscriptions. `later` is 0 if the batch was delivered before."""
        batch = self.model.batches.get("job", -1) + later
        if batch < 0:
            return
        names = [
            [name for place, name in enumerate(sorted(self.model.numbers)) if mask >> place & 1] for _, mask in events
        ]
        given = [(event, own) for (event, _), own in zip(events, names, strict=True)]
        matched = [(event, [self.model.numbers[name] for name in own]) for event, own in given]
        with pytest.raises(UnknownIdError):
            self.broker.deliver([({}, [10**6])], source="job", batch=10**6)
        after = self.model.copied()
        try:
            is_new = after.deliver(given, "job", batch)
        except FullError:
            with pytest.raises(QueueFullError):
                self.broker.deliver(matched, source="job", batch=batch)
            return
        self.model = after
        assert self.broker.deliver(matched, source="job", batch=batch) == is_new
        assert self.broker.last_batch("job") == self.model.batches["job"]
        assert self.broker.last_batch("another job") is None

    # Subscribing

    @rule(
        rows=st.lists(st.tuples(SUBSCRIBERS, NAMES, st.sampled_from(TEXTS)), max_size=3, unique_by=lambda row: row[:2])
    )
    def subscribe_many(self, rows: list[tuple[str, str, str]]) -> None:
        """They meet the stored events together: one note has all names of a subscriber."""
        given = [{"subscriber": who, "name": name, "expression": text} for who, name, text in rows]
        self.broker.subscribe_many(given)
        self.model.subscribe_many(rows)

    # Reading

    @rule(subscriber=SUBSCRIBERS, most=st.integers(1, 5), event=EVENTS)
    def follow(self, subscriber: str, most: int, event: dict[str, Any]) -> None:
        """Reading goes on with what comes meanwhile."""
        if subscriber not in self.model.subscribers:
            with pytest.raises(UnknownIdError):
                self.broker.notifications(subscriber, follow=True)
            return
        hidden = self.model.hidden(subscriber)
        notes = self.broker.notifications(subscriber, hidden, follow=True)
        there = len(self.model.queues.get(subscriber, []))
        found = [note.sequence for note in islice(notes, min(most, there - hidden))]
        self.publish(event, None, None)
        if self.model.hidden(subscriber) > hidden + len(found):
            return  # The next note may be dropped now.
        told = self.model.queues.get(subscriber, [])
        found += [note.sequence for note in islice(notes, len(told) - hidden - len(found))]
        assert found == list(range(hidden + 1, len(told) + 1))
        notes.close()

    @rule(shares=st.dictionaries(SUBSCRIBERS, st.floats(0, 1.2)))
    def acknowledge_many(self, shares: dict[str, float]) -> None:
        totals = {subscriber: len(self.model.queues.get(subscriber, [])) for subscriber in shares}
        moves = {subscriber: round(share * totals[subscriber]) for subscriber, share in shares.items()}
        if any(
            subscriber not in self.model.subscribers or moves[subscriber] > totals[subscriber] for subscriber in moves
        ):
            with pytest.raises((UnknownIdError, OptionError)):
                self.broker.acknowledge_many(moves)
            return
        self.broker.acknowledge_many(moves)
        for subscriber, number in moves.items():
            self.model.cursors[subscriber] = max(number, self.model.cursors.get(subscriber, 0))

    # Looking

    @rule()
    def stats_are_the_same(self) -> None:
        model, stats = self.model, self.broker.stats()
        retained = {"max_age": model.max_age and timedelta(seconds=model.max_age), "max_notes": model.max_notes}
        readable = sum(len(model.queues.get(each, [])) - model.hidden(each) for each in model.subscribers)
        kept = sum(not model.may_be_deleted(number) for number in range(1, len(model.events) + 1))
        counts = {"subscribers": len(model.subscribers), "subscriptions": len(model.wishes), "events": stats["events"]}
        assert {name: stats[name] for name in counts} == counts
        assert kept <= stats["events"] <= len(model.events)
        assert stats["active"] == sum(wish.is_active(model.now) for wish in model.wishes.values())
        assert (stats["last_event"], stats["last_change"]) == (len(model.events), model.changes)
        assert readable <= stats["notes"] <= sum(map(len, model.queues.values()))
        way = "refuse publish" if model.refuses else "drop oldest"
        assert stats["retention"] == {**retained, "when_full": way}
        assert stats["problem"] is None
        assert self.broker.brief().keys() == stats.keys() - counts.keys() - {"active"}
        assert self.broker.counts().keys() == counts.keys()
        assert {name: each for name, each in self.broker.counts().items() if name != "events"} == {
            name: each for name, each in counts.items() if name != "events"
        }

    @rule(after=st.integers(0, 30), limit=st.none() | st.integers(0, 5))
    def changes_are_the_same(self, after: int, limit: int | None) -> None:
        expected = sorted((number, name) for name, number in self.model.changed.items() if number > after)[:limit]
        found = list(self.broker.changes(after, limit=limit))
        assert [(each.number, (each.subscriber, each.name)) for each in found] == expected
        for each in found:
            wish = self.model.wishes.get((each.subscriber, each.name))
            assert each.change == ("removed" if wish is None or wish.paused else "added")
            assert (each.id, each.expression) == (
                self.model.numbers[each.subscriber, each.name],
                self.model.texts[each.subscriber, each.name],
            )
            if wish is not None:
                bounds = moment(wish.valid_from), moment(wish.valid_until)
                assert (each.weight, each.valid_from, each.valid_until) == (wish.weight, *bounds)

    @rule(subscriber=SUBSCRIBERS, name=NAMES, search=st.sampled_from(["", "ANN", "genre", "bob"]))
    def lists_are_the_same(self, subscriber: str, name: str, search: str) -> None:
        model, broker = self.model, self.broker
        by_number = sorted(model.wishes, key=lambda each: model.numbers[each])
        own = [each for each in by_number if each[0] == subscriber]
        if subscriber in model.subscribers:
            assert [(each.subscriber, each.name) for each in broker.subscriptions(subscriber)] == own
            listed = broker.find_subscriptions(subscriber=subscriber)
            assert [each.subscription.name for each in listed] == [each for _, each in own]
            assert broker.subscriber(subscriber)[2:] == model.figures(subscriber)
        else:
            for call in (
                broker.subscriptions,
                broker.subscriber,
                lambda who: broker.find_subscriptions(subscriber=who),
            ):
                with pytest.raises(UnknownIdError):
                    call(subscriber)
        if (subscriber, name) in model.wishes:
            found = broker.numbered(subscriber, name)
            assert found.number == model.numbers[subscriber, name]
            assert broker.names(found.number) == (subscriber, name)
            assert found.subscription == broker.subscription(subscriber, name)
            assert found.subscription in list(broker.subscriptions())
        else:
            with pytest.raises(UnknownIdError):
                broker.subscription(subscriber, name)
        parts = {each: f"{each[0]} {each[1]} {model.wishes[each].expression}".lower() for each in by_number}
        wanted = [each for each in by_number if search.lower() in parts[each]]
        searched = [each.subscription for each in broker.find_subscriptions(search)]
        assert [(each.subscriber, each.name) for each in searched] == wanted
        figures = {each.name: each[2:] for each in broker.find_subscribers(search if search in {"", "bob"} else "")}
        assert figures == {each: model.figures(each) for each in model.subscribers if search != "bob" or each == "bob"}
        waiting = {each: model.figures(each)[3] for each in model.subscribers if model.figures(each)[3]}
        total, deepest = broker.deepest()
        if model.max_age is None:
            assert total == sum(waiting.values())
        assert {each.name: each.waiting for each in deepest if each.waiting} == waiting

    @rule(number=st.integers(0, 20))
    def events_are_the_same(self, number: int) -> None:
        if not 0 < number <= len(self.model.events):
            with pytest.raises(UnknownIdError):
                self.broker.event(number)
        elif not self.model.may_be_deleted(number):
            stored, found = self.model.events[number - 1], self.broker.event(number)
            assert (found.event, found.published) == (stored.event, moment(stored.published))
            assert (found.valid_until, found.matches) == (moment(stored.valid_until), stored.told)

    @rule()
    def what_is_asked(self) -> None:
        """Attributes, costs, and what follows from what."""
        active = [name for name, wish in self.model.wishes.items() if wish.is_active(self.model.now)]
        asked: set[str] = set()
        for name in active:
            asked |= to_expression(self.model.wishes[name].expression).attributes()
        assert asked <= self.broker.attributes() <= asked | {"genre", "at"}  # Those of the history itself.
        numbers = {self.model.numbers[name] for name in active}
        assert {number for number, _ in self.broker.costs()} <= numbers
        assert all(self.broker.cost(number) is None for number in self.model.numbers.values() if number not in numbers)
        report = self.broker.covering()
        texts = {name: wish.expression for name, wish in self.model.wishes.items()}
        for narrow, wide in [*report.implied, *(tuple(group[:2]) for group in report.identical)]:
            for stored in self.model.events:
                assert not matches(texts[narrow], stored.event, stored.earlier) or matches(
                    texts[wide], stored.event, stored.earlier
                )
        assert all(texts[name] == "FALSE" for name in report.never if texts[name] not in JOINED)
