"""A broker with a history: what is retained, what leaves no trace, and which history a stored event has."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.broker import Broker
from tamis.earlier.prefilter import PreFilter
from tamis.errors import EventError, HistoryError, OptionError, QueueFullError, UnknownIdError
from tamis.language.evaluate import evaluate, matches
from tests.earlier.reference import ReferenceHistory

START = datetime(2026, 11, 18, tzinfo=UTC)
LATER = START + timedelta(days=1)
LOWEST = "price < ALL (SELECT price FROM history)"
SEEN = "author = ANY (SELECT author FROM history)"
FIRST = "author IS NOT NULL AND NOT EXISTS (SELECT 1 FROM history h WHERE h.author = author)"
ROWS = tamis.History(rows=3)


def opened(path: Path | str, history: tamis.History | None = None, **words: Any) -> Broker:
    return tamis.open(path, history=history, clock=lambda: START, synchronous="off", **words)


def names(matches: Any) -> set[str]:
    return {name for _, name in matches}


def told(broker: Broker, subscriber: str = "ann") -> list[tuple[int, tuple[str, ...]]]:
    return [(note.event_sequence, note.subscriptions) for note in broker.notifications(subscriber, after=0)]


def retained(broker: Broker) -> dict[str, int]:
    history: dict[str, int] = broker.stats()["matcher"]["history"]
    return {name: history[name] for name in ("events", "keys")}


# Options


def test_the_folder_remembers_the_history(tmp_path: Path) -> None:
    history = tamis.History(rows=3, age=timedelta(hours=1, microseconds=1), order="at", key="shop")
    opened(tmp_path, history).close()
    for again in (None, history):
        with opened(tmp_path, again) as broker:
            assert broker.history == history
    with opened(tmp_path, read_only=True) as reader:
        assert reader.history == history
    for read_only in (False, True):
        with pytest.raises(OptionError, match=r"rows=3.* not .*rows=4.*Hint: leave out"):
            opened(tmp_path, tamis.History(rows=4), read_only=read_only)


def test_a_broker_without_history_refuses_joins(tmp_path: Path) -> None:
    with opened(tmp_path) as broker:
        assert broker.history is None
        for call in (lambda: broker.subscribe("ann", "a", LOWEST), lambda: broker.replay(LOWEST)):
            with pytest.raises(HistoryError, match=r"tamis\.open\(folder, history"):
                call()
        with pytest.raises(HistoryError):  # also one that sleeps
            broker.subscribe("ann", "a", LOWEST, valid_from=LATER)
    with pytest.raises(OptionError, match=r"tamis\.History"):
        opened(tmp_path, 5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="without read_only"):
        opened(tmp_path, ROWS, read_only=True)


def test_a_history_that_comes_later_has_the_stored_events(tmp_path: Path) -> None:
    with opened(tmp_path) as broker:
        broker.subscribe("ann", "cheap", "price < 5")
        broker.publish_many([{"price": price, "author": "Verne"} for price in (9, 7, 8, 6)], valid_until=LATER)
    with opened(tmp_path, read_only=True) as reader:
        with opened(tmp_path, ROWS) as broker:
            broker.subscribe("ann", "lowest", LOWEST)
            assert told(broker) == [(1, ("lowest",)), (2, ("lowest",)), (4, ("lowest",))]
            assert names(broker.publish({"price": 6}).matches) == set()
            assert reader.explain("ann", "lowest", 4).matched
        assert [number for number, _ in reader.replay(LOWEST)] == [1, 2, 4]
        assert reader.history == ROWS


# Which events


def test_the_rows_of_one_call_are_earlier_events_of_each_other() -> None:
    random = Random(28)
    events = [{"price": random.randrange(50), "author": random.choice("abc")} for _ in range(200)]
    ways: dict[str, Callable[[Broker], list[Any]]] = {
        "single": lambda broker: [broker.publish(event) for event in events],
        "one call": lambda broker: broker.publish_many(events),
        "few": lambda broker: [each for at in range(0, 200, 7) for each in broker.publish_many(events[at : at + 7])],
        "table": lambda broker: broker.publish_many(pa.Table.from_pylist(events)),
    }
    found = {}
    for way, publish in ways.items():
        with opened(":memory:", tamis.History(rows=10)) as broker:
            for name, text in {"lowest": LOWEST, "seen": f"price > 3 AND {SEEN}", "first": FIRST}.items():
                broker.subscribe("ann", name, text)
            found[way] = [sorted(receipt.matches) for receipt in publish(broker)]
    reference, expected = ReferenceHistory(tamis.History(rows=10)), []
    for event in events:
        before = reference.before(event)
        wanted = {"lowest": LOWEST, "seen": f"price > 3 AND {SEEN}", "first": FIRST}
        expected.append([("ann", name) for name in sorted(wanted) if matches(wanted[name], event, before)])
        reference.add(event)
    assert found == dict.fromkeys(ways, expected)


def test_what_meets_nobody_is_retained_too(tmp_path: Path) -> None:
    with opened(tmp_path, ROWS) as broker:
        broker.subscribe("ann", "seen", SEEN)
        assert not broker.publish({"author": "Verne"}, valid_until=START).matches
        broker.deliver([({"author": "Woolf"}, [])], source="job", batch=0)
        broker.deliver([({"author": "Hardy"}, [])], source="job", batch=0)
        for author, expected in {"Verne": {"seen"}, "Woolf": {"seen"}, "Hardy": set()}.items():
            assert names(broker.publish({"author": author}).matches) == expected
    with opened(tmp_path) as broker:
        assert [broker.explain("ann", "seen", number).matched for number in range(1, 6)] == [0, 0, 1, 1, 0]


def test_an_event_that_is_over_comes_after_a_change_of_subscriptions() -> None:
    """It is not matched, so nothing asks the engine for its version. Publishing went on for ever."""
    with opened(":memory:", ROWS) as broker:
        broker.subscribe("ann", "lowest", LOWEST)
        assert not broker.publish({"price": 5}, valid_until=START - timedelta(seconds=1)).matches
        broker.subscribe("ann", "seen", SEEN)
        assert broker.publish_many([{"price": 9}, {"price": 8}], valid_until=START - timedelta(seconds=1))
        broker.subscribe("ann", "more", SEEN)
        assert broker.publish_many([]) == []
        assert names(broker.publish({"price": 4}).matches) == {"lowest"}
        assert not broker.publish({"price": 6}).matches


def test_the_largest_weights_among_those_that_hold() -> None:
    with opened(":memory:", ROWS) as broker:
        broker.subscribe("ann", "seen", SEEN, weight=3.0)
        broker.subscribe("ann", "lowest", LOWEST, weight=2.0)
        broker.subscribe("ann", "any", "price > 0", weight=1.0)
        assert names(broker.publish({"price": 3, "author": "Verne"}, k=1).matches) == {"lowest"}
        assert names(broker.publish({"price": 4, "author": "Verne"}, k=2).matches) == {"seen", "any"}


# No trace


def test_what_is_not_stored_leaves_no_trace(tmp_path: Path) -> None:
    history = tamis.History(rows=3, age=10, order="at")
    event = {"author": "Verne", "at": 5}
    with opened(tmp_path, history) as broker:
        broker.subscribe("ann", "seen", SEEN)
        broker.subscribe("bob", "far", "far = TRUE")
        broker.publish(event, key="once")
        before = retained(broker)
        broker.publish({"author": "Woolf", "at": 90}, key="once")
        broker.publish_many([{"at": 90}, {"at": 91}], keys=["once", "once"])
        assert broker.would_match({"author": "Verne", "at": 6})
        assert not broker.would_match({"author": "Verne", "at": 90})
        with pytest.raises(EventError) as caught:
            broker.publish_many([{"at": 90}, {"at": 91}, {"author": b"bytes"}], keys=["once", None, None])
        assert caught.value.row == 2
        broker.retain(max_notes=1, when_full="refuse publish")
        broker.publish({"far": True})
        for _ in range(2):
            with pytest.raises(QueueFullError):
                broker.publish({"far": True, "at": 90})
            with pytest.raises(QueueFullError):
                broker.publish_many([{"at": 80}, {"far": True, "at": 90}])
        assert retained(broker) == before
        assert names(broker.publish({"author": "Verne", "at": 15}).matches) == {"seen"}
        assert broker.stats()["last_event"] == 3


@pytest.mark.parametrize("is_removed", [False, True])
def test_publishing_nothing_new_after_a_change_of_subscriptions(is_removed: bool) -> None:
    """A retry or an empty list gives the matcher nothing to match. It must not wait for a version that nobody takes."""
    with opened(":memory:", ROWS) as broker:
        broker.subscribe("ann", "lowest", LOWEST)
        first = broker.publish({"price": 3}, key="once")
        broker.subscribe("ann", "lower", f"{LOWEST} OR price < 0")
        if is_removed:
            broker.unsubscribe("ann", "lower")
        assert broker.publish({"price": 3}, key="once").sequence == first.sequence
        assert broker.publish_many([]) == []
        found = names(broker.publish({"price": 2}).matches)
    assert found == ({"lowest"} if is_removed else {"lowest", "lower"})


def test_a_refused_event_takes_back_no_other_event_of_its_commit() -> None:
    """Calls share commits. One of them is refused, again and again."""
    with opened(":memory:", tamis.History(rows=1000)) as broker:
        broker.subscribe("ann", "again", "number = ANY (SELECT number FROM history)")
        broker.subscribe("bob", "far", "far = TRUE")
        broker.retain(max_notes=1, when_full="refuse publish")
        broker.publish({"far": True})
        refused = []

        def refuse() -> None:
            for _ in range(100):
                try:
                    broker.publish_many([{"number": -1}, {"far": True}])
                except QueueFullError:
                    refused.append(1)

        threads = [threading.Thread(target=refuse)]
        for thread in range(4):
            numbers = range(100 * thread, 100 * thread + 100)
            threads.append(
                threading.Thread(target=lambda own=numbers: [broker.publish({"number": each}) for each in own])
            )
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert len(refused) == 100
        assert retained(broker) == {"events": 401, "keys": 1}
        assert names(broker.publish({"number": 7}).matches) == {"again"}
        assert not broker.publish({"number": -1}).matches


def test_the_order_of_numbers_is_the_order_of_the_history(tmp_path: Path) -> None:
    with opened(tmp_path, tamis.History(rows=5)) as broker:
        broker.subscribe("ann", "lowest", LOWEST)
        receipts: dict[int, bool] = {}

        def publish(seed: int) -> None:
            random = Random(seed)
            for _ in range(50):
                given = [{"price": random.randrange(1000)} for _ in range(random.choice([1, 1, 3]))]
                receipts.update({each.sequence: bool(each.matches) for each in broker.publish_many(given)})

        threads = [threading.Thread(target=publish, args=(seed,)) for seed in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        reference = ReferenceHistory(tamis.History(rows=5))
        for number, event in broker.replay("TRUE"):
            assert receipts[number] == matches(LOWEST, event, reference.before(event))
            reference.add(event)


# The histories of stored events


@pytest.mark.parametrize(
    "history",
    [
        tamis.History(rows=4),
        tamis.History(rows=2, key="shop"),
        tamis.History(age=7, order="at"),
        tamis.History(age=timedelta(hours=7), order="at", key="shop"),
        tamis.History(rows=2, age=9, order="at", key="shop"),
        tamis.History(rows=3, order="at", key="shop"),
    ],
)
def test_stored_events_meet_with_their_own_histories(tmp_path: Path, history: tamis.History) -> None:
    random, reference, earlier = Random(28), ReferenceHistory(history), []
    events: list[dict[str, Any]] = []
    for number in range(180):
        at: Any = number // 4 + random.choice([0, 0, 1, -3, 5])
        if isinstance(history.age, timedelta):
            at = START.replace(tzinfo=None) + timedelta(hours=at)
        values = {
            "price": random.choice([1, 2, 3, 4, [2, 5], tamis.Interval(1, 2)]),
            "shop": random.choice(["a", "a", "a", "b", 1, 1.0, True, ["a", "b"]]),
            "rare": random.random() < 0.1,
            "at": random.choice([at, at, at, at, "noon"]),
        }
        events.append({name: value for name, value in values.items() if random.random() < 0.95})
        earlier.append(reference.before(events[-1]))
        reference.add(events[-1])
    texts = [
        LOWEST,
        "price <= ALL (SELECT price FROM history)",
        "price = 2 AND shop = ANY (SELECT shop FROM history)",
        "rare = TRUE AND price > ANY (SELECT price FROM history)",
        "rare = TRUE AND NOT EXISTS (SELECT 1 FROM history h WHERE h.price = price AND h.shop = shop)",
        "(price < ALL (SELECT price FROM history)) IS UNKNOWN",
    ]
    expected = [
        [number for number, event in enumerate(events, 1) if matches(text, event, earlier[number - 1])]
        for text in texts
    ]
    with opened(tmp_path, history) as broker:
        for at in range(0, 180, 30):
            broker.publish_many(events[at : at + 30], valid_until=LATER)
        for place, text in enumerate(texts):  # alone
            broker.subscribe("ann", f"n{place}", text)
        broker.subscribe_many(
            [{"subscriber": "bob", "name": f"n{place}", "expression": text} for place, text in enumerate(texts)]
        )
        for subscriber in ("ann", "bob"):
            for place, numbers in enumerate(expected):
                assert [number for number, own in told(broker, subscriber) if f"n{place}" in own] == numbers
        for number in random.sample(range(1, 181), 30):
            for place, text in enumerate(texts):
                truth = evaluate(text, events[number - 1], earlier[number - 1])
                assert broker.explain("ann", f"n{place}", number).truth is truth
        assert [[number for number, _ in broker.replay(text)] for text in texts] == expected
    for cache in tmp_path.glob("*.tamis"):
        cache.unlink()
    with opened(tmp_path) as broker:
        assert retained(broker)["events"] == len(reference)
        broker.subscribe("eve", "n", texts[1])
        assert [number for number, _ in told(broker, "eve")] == expected[1]
        for _ in range(20):
            event = {
                **random.choice(events),
                "at": 90 if history.order and not isinstance(history.age, timedelta) else None,
            }
            wanted = {f"n{place}" for place, text in enumerate(texts) if matches(text, event, reference.before(event))}
            assert names(each for each in broker.publish(event).matches if each[0] == "ann") == wanted
            reference.add(event)


def test_values_outside_the_language_are_missing_in_stored_events() -> None:
    with opened(":memory:", ROWS) as broker:
        broker.publish_many([{"author": b"x", "price": 3}, {"author": "Verne", "price": 2}], valid_until=LATER)
        broker.subscribe("ann", "seen", SEEN)
        broker.subscribe("ann", "first", FIRST)
        broker.subscribe("ann", "unknown", f"({SEEN}) IS UNKNOWN")
        assert told(broker) == [(2, ("first",)), (2, ("unknown",))]


@pytest.mark.parametrize("history", [tamis.History(rows=12), tamis.History(age=9, order="at")])
def test_stops_between_events_that_are_filtered(
    tmp_path: Path, history: tamis.History, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pre-filter that works with few needs. After a stop, events are decided as without it."""

    def prefilter(*, one_history: bool, fewest: int) -> PreFilter:
        return PreFilter(one_history=one_history, fewest=0)

    monkeypatch.setattr("tamis.matcher.history_changes.PreFilter", prefilter)
    random, reference, skips = Random(28), ReferenceHistory(history), 0
    texts = {
        **{
            f"again {price}": f"price < {price} AND EXISTS (SELECT 1 FROM history h WHERE h.price = price)"
            for price in range(0, 40, 4)
        },
        **{
            f"lowest {author}": f"author = '{author}' AND price < ALL (SELECT price FROM history)"
            for author in range(0, 20, 4)
        },
        **{
            f"new {author}": f"author = '{author}' AND NOT EXISTS (SELECT 1 FROM history h WHERE h.author = author)"
            for author in range(0, 20, 4)
        },
        **{
            f"seen {price}": f"price = {price} OR EXISTS (SELECT 1 FROM history h WHERE h.price = {price} AND h.at = at)"
            for price in range(0, 40, 4)
        },
    }
    for stop in range(6):
        with opened(tmp_path, history) as broker:
            if stop == 0:
                broker.subscribe_many(
                    [{"subscriber": "ann", "name": name, "expression": texts[name]} for name in texts]
                )
            for _ in range(8):
                events = [
                    {
                        "price": random.choice([random.randrange(50), [3, 30]]),
                        "author": str(random.randrange(25)),
                        "at": 8 * stop,
                    }
                    for _ in range(random.choice([1, 1, 4]))
                ]
                for event, receipt in zip(events, broker.publish_many(events), strict=True):
                    before = reference.before(event)
                    assert names(receipt.matches) == {name for name in texts if matches(texts[name], event, before)}
                    reference.add(event)
            skips += broker.stats()["matcher"]["history"]["skips"]
        if stop % 2:
            for cache in tmp_path.glob("*.tamis"):
                cache.unlink()
    assert skips > 10


# Leaving the tables


def table(path: Path) -> list[tuple[int, bool]]:
    """The rows of the table `history`: numbers, and whether the text is there."""
    connection = sqlite3.connect(path / "broker.sqlite")
    try:
        rows = connection.execute("SELECT sequence, event IS NOT NULL FROM history ORDER BY sequence").fetchall()
    finally:
        connection.close()
    return [(number, bool(text)) for number, text in rows]


def test_what_the_history_needs_stays_when_events_leave(tmp_path: Path) -> None:
    now = [START]
    with tamis.open(tmp_path, history=tamis.History(rows=2), clock=lambda: now[0], synchronous="off") as broker:
        broker.subscribe("ann", "lowest", LOWEST)
        broker.retain(max_age=timedelta(hours=1))
        for price in (5, 9, 3, 4, 6):
            broker.publish({"price": price})
        now[0] += timedelta(hours=2)
        broker.publish({"price": 5})
        broker.publish({"price": 4})
        broker.compact()
        assert [number for number, _ in broker.replay("TRUE")] == [6, 7]
        assert table(tmp_path) == [(4, True), (5, True), (6, False), (7, False)]
        assert [broker.explain("ann", "lowest", number).matched for number in (6, 7)] == [False, True]
        with pytest.raises(UnknownIdError):
            broker.explain("ann", "lowest", 5)
    with tamis.open(tmp_path, clock=lambda: now[0], synchronous="off") as broker:
        now[0] += timedelta(hours=2)
        broker.compact()
        assert list(broker.replay("TRUE")) == []
        assert table(tmp_path) == [(6, True), (7, True)]
        broker.backup(tmp_path / "copy")
        assert names(broker.publish({"price": 4}).matches) == set()
    with tamis.open(tmp_path / "copy", clock=lambda: now[0], synchronous="off") as broker:
        assert names(broker.publish({"price": 3}).matches) == {"lowest"}
        assert told(broker)[-1] == (8, ("lowest",))


def test_a_broker_that_runs_for_long_stays_small(tmp_path: Path) -> None:
    now = [START]
    history = tamis.History(rows=2, age=20, order="at", key="shop")
    with tamis.open(tmp_path, history=history, clock=lambda: now[0], synchronous="off") as broker:
        broker.retain(max_age=timedelta(seconds=30))
        for turn in range(40):
            broker.publish_many([{"shop": place % 4, "at": turn} for place in range(20)])
            now[0] += timedelta(seconds=10)
            if turn % 10 == 9:
                broker.compact()
                assert len(table(tmp_path)) <= 4 * 20 + 8
        assert retained(broker) == {"events": 8, "keys": 4}


# Others


def test_covering_the_feed_and_attributes_know_joins() -> None:
    with opened(":memory:", tamis.History(rows=3, key="shop", order="at")) as broker:
        broker.subscribe("ann", "one", f"price < 5 AND {SEEN}")
        broker.subscribe("bob", "two", f"price < 9 AND {SEEN}")
        broker.subscribe("eve", "none", f"FALSE AND {LOWEST}")
        report = broker.covering()
        assert (("ann", "one"), ("bob", "two")) in report.implied
        assert broker.attributes() >= {"author", "price", "shop", "at"}
        assert next(change.expression for change in broker.changes()) == f"price < 5 AND {SEEN}"


def test_a_thousand_subscriptions_come_back_with_their_joins(tmp_path: Path) -> None:
    """The matcher comes from its file, with the joins of subscriptions that came, changed and went."""
    with opened(tmp_path, ROWS) as broker:
        broker.subscribe_many(
            [
                {
                    "subscriber": "ann",
                    "name": f"n{number}",
                    "expression": f"price > {number % 7} AND {(LOWEST, SEEN)[number % 2]}",
                }
                for number in range(1200)
            ]
        )
        broker.subscribe("ann", "n0", "price > 100")
        broker.unsubscribe("ann", "n7")
        broker.pause("ann", "n14")
        broker.publish({"price": 9, "author": "Verne"})
        expected = broker.explain("ann", "n1", 1).matched
    assert list(tmp_path.glob("matcher-*.tamis"))
    with opened(tmp_path) as broker:
        assert not expected
        receipt = broker.publish({"price": 8, "author": "Verne"})
        assert len(receipt.matches) == 1197
        assert not {"n0", "n7", "n14"} & names(receipt.matches)
        assert len(broker.publish({"price": 8, "author": "Verne"}).matches) == 600 - 1
