"""A broker in examples: each sentence of docs/pubsub.md about meaning, and what many threads and processes see."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.broker import Broker, Note
from tamis.broker.limits import BrokerLimits
from tamis.broker.state import State
from tamis.errors import BrokerError, EventError, HistoryError, OptionError, ParseError, UnknownIdError

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def broker(clock: Clock) -> Broker:
    return Broker(":memory:", clock=clock)


def notes(broker: Broker, subscriber: str, after: int | None = 0) -> list[tuple[int, int, tuple[str, ...]]]:
    return [
        (note.sequence, note.event_sequence, note.subscriptions) for note in broker.notifications(subscriber, after)
    ]


def test_one_note_has_all_names(broker: Broker) -> None:
    broker.subscribe("ann", "b", "price < 20")
    broker.subscribe("ann", "a", "genre = 'crime'")
    receipt = broker.publish({"price": 5, "genre": "crime"})
    assert set(receipt.matches) == {("ann", "a"), ("ann", "b")}
    assert (len(receipt.matches), receipt.sequence) == (2, 1)
    assert notes(broker, "ann") == [(1, 1, ("a", "b"))]


def test_a_later_subscription_makes_a_note_with_its_own_name(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    broker.publish({"price": 5}, valid_until=NOON + timedelta(hours=1))
    broker.subscribe("ann", "b", "price < 10")
    assert notes(broker, "ann") == [(1, 1, ("a",)), (2, 1, ("b",))]


def test_subscriptions_of_one_call_share_a_note(broker: Broker) -> None:
    for price in (5, 6):
        broker.publish({"price": price}, valid_until=NOON + timedelta(hours=1))
    rows = [{"subscriber": "ann", "name": name, "expression": "price < 20"} for name in "ab"]
    broker.subscribe_many([*rows, {"subscriber": "bob", "name": "c", "expression": "price = 6"}])
    assert notes(broker, "ann") == [(1, 1, ("a", "b")), (2, 2, ("a", "b"))]
    assert notes(broker, "bob") == [(1, 2, ("c",))]


def test_a_pair_is_told_once_over_all_versions(broker: Broker) -> None:
    broker.publish({"price": 5}, valid_until=NOON + timedelta(hours=1))
    broker.subscribe("ann", "a", "price < 20")
    broker.subscribe("ann", "a", "price < 30")
    broker.unsubscribe("ann", "a")
    broker.subscribe("ann", "a", "price < 40")
    assert notes(broker, "ann") == [(1, 1, ("a",))]


def test_an_event_is_valid_at_its_own_moment_only(broker: Broker) -> None:
    broker.publish({"price": 5})
    broker.subscribe("ann", "a", "price < 20")
    assert notes(broker, "ann") == []


def test_an_event_that_is_over_meets_nobody_and_is_stored(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    receipt = broker.publish({"price": 5}, valid_until=NOON)
    assert len(receipt.matches) == 0
    assert broker.explain("ann", "a", receipt.sequence).truth is True


def test_a_subscription_begins_and_ends(broker: Broker, clock: Clock) -> None:
    broker.publish({"price": 1}, valid_until=NOON + timedelta(seconds=15))
    broker.publish({"price": 2}, valid_until=NOON + timedelta(seconds=5))
    start, end = NOON + timedelta(seconds=10), NOON + timedelta(seconds=20)
    broker.subscribe("ann", "a", "price < 20", valid_from=start, valid_until=end)
    assert notes(broker, "ann") == []
    clock.wait(10)
    assert notes(broker, "ann") == [(1, 1, ("a",))]
    assert len(broker.publish({"price": 3}).matches) == 1
    clock.wait(10)
    assert len(broker.publish({"price": 4}).matches) == 0


def test_a_late_start_meets_what_was_valid_then(tmp_path: Path, clock: Clock) -> None:
    """The broker was closed when the subscription began. The event has ended since."""
    with tamis.open(tmp_path / "b", clock=clock) as broker:
        broker.publish({"price": 1}, valid_until=NOON + timedelta(seconds=15))
        broker.subscribe("ann", "a", "price < 20", valid_from=NOON + timedelta(seconds=10))
    clock.wait(100)
    with tamis.open(tmp_path / "b", clock=clock) as broker:
        (note,) = broker.notifications("ann")
        assert (note.event, note.expired) == ({"price": 1}, True)


def test_paused_subscriptions_catch_up_when_they_resume(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    broker.pause("ann", "a")
    broker.publish({"price": 1})
    broker.publish({"price": 2}, valid_until=NOON + timedelta(hours=1))
    assert notes(broker, "ann") == []
    broker.resume("ann", "a")
    assert notes(broker, "ann") == [(1, 2, ("a",))]


def test_the_same_key_gives_the_first_receipt(broker: Broker, clock: Clock) -> None:
    broker.subscribe("ann", "a", "price < 20")
    first = broker.publish({"price": 1}, key="k")
    again = broker.publish({"price": 2}, key="k")
    assert (again.sequence, list(again.matches)) == (first.sequence, [("ann", "a")])
    clock.wait(24 * 3600 - 1)
    assert broker.publish({"price": 3}, key="k").sequence == 1
    clock.wait(1)
    assert broker.publish({"price": 4}, key="k").sequence == 2
    twice = broker.publish_many([{"price": 5}, {"price": 6}], keys=["x", "x"])
    assert [receipt.sequence for receipt in twice] == [3, 3]
    assert [note.event["price"] for note in broker.notifications("ann", 0)] == [1, 4, 5]


def test_the_heaviest_are_told(broker: Broker) -> None:
    for name, weight in (("a", 1.0), ("b", 3.0), ("c", 2.0)):
        broker.subscribe("ann", name, "price < 20", weight=weight)
    assert [name for _, name in broker.publish({"price": 1}, k=2).matches] == ["b", "c"]
    assert notes(broker, "ann") == [(1, 1, ("b", "c"))]


def test_publishing_is_all_or_nothing(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    with pytest.raises(EventError, match="event 1, attribute 'x'"):
        broker.publish_many([{"price": 1}, {"x": object()}])
    with pytest.raises(EventError, match="event 1, attribute 'price'"):
        broker.publish_many([{"price": 1}, {"price": b"x"}])
    with pytest.raises(EventError, match="attribute 'price'"):
        broker.publish({"price": b"x"})
    assert notes(broker, "ann") == []
    assert broker.publish({"price": 1, "x": b"x"}).sequence == 1
    assert next(broker.notifications("ann")).event == {"price": 1, "x": b"x"}


def test_tables_are_published(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20 AND user.name = 'x'")
    wide = pa.table({"price": [1, 30, None], "user": [{"name": "x"}, {"name": "x"}, {"name": "y"}]})
    assert [len(receipt.matches) for receipt in broker.publish_many(wide)] == [1, 0, 0]
    assert next(broker.notifications("ann")).event == {"price": 1, "user": {"name": "x"}}
    many = pa.table({"price": list(range(100)), "user": [{"name": "x"}] * 100})
    assert sum(len(receipt.matches) for receipt in broker.publish_many(many)) == 20


@pytest.mark.parametrize("count", [1, 100])
def test_tables_with_all_attributes_in_one_column(broker: Broker, count: int) -> None:
    broker.subscribe("ann", "a", "price < 20")
    maps = pa.table({"e": pa.array([[("price", 5), ("year", None)]] * count, pa.map_(pa.string(), pa.int64()))})
    assert [len(receipt.matches) for receipt in broker.publish_many(maps)] == [1] * count
    variant = pa.struct({"number": pa.float64(), "string": pa.string()})
    entry = pa.struct({"attribute": pa.string(), "value": variant})
    rows = [[("price", {"number": 5.0, "string": None}), ("genre", {"number": None, "string": "x"})]] * count
    entries = [[{"attribute": name, "value": value} for name, value in row] for row in rows]
    lists = pa.table({"e": pa.array(entries, pa.list_(entry))})
    assert [len(receipt.matches) for receipt in broker.publish_many(lists)] == [1] * count
    assert [note.event for note in broker.notifications("ann")] == [{"price": 5}] * count + [
        {"price": 5.0, "genre": "x"}
    ] * count


def test_subscriptions_of_a_table(broker: Broker) -> None:
    table = pa.table(
        {"subscriber": ["ann", "bob"], "name": ["a", "a"], "expression": ["x = 1", "x = 2"], "weight": [None, 5.0]}
    )
    broker.subscribe_many(table)
    assert [(each.subscriber, each.weight) for each in broker.subscriptions()] == [("ann", 1.0), ("bob", 5.0)]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"subscriber": "ann", "name": "b", "expression": "x ="}, ParseError),
        ({"subscriber": "ann", "name": "b"}, UnknownIdError),
        ({"subscriber": "ann", "name": "a", "expression": "x = 1"}, tamis.DuplicateIdError),
        ({"subscriber": "ann", "expression": "x = 1"}, OptionError),
        ({"subscriber": "ann", "name": "b", "expression": "x = 1", "wieght": 3}, OptionError),
        ({"subscriber": "ann", "name": "b", "expression": "x < ANY (SELECT x FROM history)"}, HistoryError),
        ({"subscriber": "ann", "name": "b", "expression": "x =", "valid_from": NOON + timedelta(hours=1)}, ParseError),
    ],
)
def test_subscribing_is_all_or_nothing(broker: Broker, row: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        broker.subscribe_many([{"subscriber": "ann", "name": "a", "expression": "x = 1"}, row])
    assert list(broker.subscriptions()) == []
    assert len(broker.publish({"x": 1}).matches) == 0


def test_numbers_go_on_when_a_subscriber_comes_back(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    broker.publish({"price": 1})
    broker.remove_subscriber("ann")
    with pytest.raises(UnknownIdError, match="no subscriber 'ann'"):
        broker.notifications("ann")
    broker.subscribe("ann", "a", "price < 20")
    broker.publish({"price": 2})
    assert notes(broker, "ann") == [(2, 2, ("a",))]


def test_the_covering_report(broker: Broker) -> None:
    for name, text in (
        ("wide", "price < 20"),
        ("narrow", "price < 10 AND genre = 'crime'"),
        ("same", "20 > price"),
    ):
        broker.subscribe("ann", name, text)
    broker.subscribe("bob", "odd", "price < 3 AND price > 5")
    report = broker.covering()
    assert [set(group) for group in report.identical] == [{("ann", "wide"), ("ann", "same")}]
    assert (("ann", "narrow"), ("ann", "wide")) in report.implied
    assert list(report.never_single) == [("bob", "odd")]
    assert list(broker.covering(one_value=True).never) == [("bob", "odd")]


def test_followers_wake_up(broker: Broker) -> None:
    broker.subscribe("ann", "a", "price < 20")
    seen: list[Note] = []
    two = threading.Event()

    def follow() -> None:
        for note in broker.notifications("ann", follow=True):
            seen.append(note)
            if len(seen) == 2:
                two.set()

    follower = threading.Thread(target=follow)
    follower.start()
    broker.publish({"price": 1})
    broker.publish({"price": 2})
    assert two.wait(60)
    broker.close()
    follower.join(60)
    assert [note.event["price"] for note in seen] == [1, 2]
    assert not follower.is_alive()


def test_a_subscription_begins_though_nobody_calls(tmp_path: Path) -> None:
    """Another broker reads. The one that writes is idle when the time comes, and so it is after a restart."""
    soon = timedelta(seconds=0.3)
    with tamis.open(tmp_path / "b") as broker:
        broker.publish({"price": 1}, valid_until=datetime.now(UTC) + timedelta(hours=1))
        broker.subscribe("ann", "a", "price < 20", valid_from=datetime.now(UTC) + soon)
        with tamis.open(tmp_path / "b", read_only=True) as reader:
            assert awaited(reader, "ann") == ("a",)
        broker.subscribe("bob", "b", "price < 20", valid_from=datetime.now(UTC) + soon)
    with tamis.open(tmp_path / "b"), tamis.open(tmp_path / "b", read_only=True) as reader:
        assert awaited(reader, "bob") == ("b",)


def awaited(reader: Broker, subscriber: str) -> tuple[str, ...]:
    """The names of the next note. If none comes for a minute, the reader is closed, so that waiting ends."""
    patience = threading.Timer(60, reader.close)
    patience.start()
    try:
        return next(reader.notifications(subscriber, follow=True)).subscriptions
    finally:
        patience.cancel()


_FOLLOWER = """
import sys, tamis
with tamis.open(sys.argv[1], read_only=True) as broker:
    print("ready", flush=True)
    for note in broker.notifications("ann", follow=True):
        print(note.sequence, note.event["price"], flush=True)
        if note.sequence == 3:
            break
    try:
        broker.publish({})
    except tamis.BrokerError as error:
        print(error)
"""


def test_another_process_follows(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "b") as broker:
        broker.subscribe("ann", "a", "price < 20")
        broker.publish({"price": 1})
        command = [sys.executable, "-c", _FOLLOWER, str(tmp_path / "b")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as follower:
            assert follower.stdout is not None
            assert follower.stdout.readline() == "ready\n"
            broker.publish({"price": 2})
            broker.publish({"price": 3})
            said = follower.stdout.read()
    assert said.startswith("1 1\n2 2\n3 3\nthe broker was opened with read_only=True")


def test_a_reader_acknowledges_while_another_process_writes(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "shop") as broker, tamis.open(tmp_path / "shop", read_only=True) as reader:
        broker.subscribe("ann", "all", "price >= 0")
        broker.publish_many([{"price": number} for number in range(5)])
        reader.acknowledge("ann", 3)
        reader.acknowledge("ann", 2)
        assert [note.sequence for note in broker.notifications("ann")] == [4, 5]
        broker.publish({"price": 6})
        broker.acknowledge("ann", 5)
        assert [note.sequence for note in reader.notifications("ann")] == [6]
        with pytest.raises(OptionError, match="the last note of 'ann' is 6"):
            reader.acknowledge("ann", 7)
        with pytest.raises(UnknownIdError):
            reader.acknowledge("bob", 1)


def test_threads_share_commits(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "b", synchronous="off") as broker:
        broker.subscribe("ann", "all", "n >= 0")
        receipts: list[int] = []

        def publish(first: int) -> None:
            receipts.extend(broker.publish({"n": number}).sequence for number in range(first, first + 50))

        threads = [threading.Thread(target=publish, args=(50 * place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(receipts) == list(range(1, 401))
        assert sorted(note.event["n"] for note in broker.notifications("ann")) == list(range(400))
        assert broker.stats()["commits"] <= 400


def test_a_closed_broker_says_so(broker: Broker) -> None:
    broker.close()
    broker.close()
    for call in (lambda: broker.publish({}), lambda: broker.notifications("ann"), broker.stats, broker.subscriptions):
        with pytest.raises(BrokerError, match="is closed"):
            call()


def test_the_folder_opens_with_and_without_its_caches(tmp_path: Path) -> None:
    limits = BrokerLimits(notes_in_tail=8, changes_to_save=1)
    folder = tmp_path / "b"
    with Broker(folder, limits=limits) as broker:
        broker.subscribe_many(
            [{"subscriber": f"s{n % 7}", "name": f"n{n}", "expression": f"x = {n}"} for n in range(100)]
        )
        broker.publish_many([{"x": n % 100} for n in range(300)])
        expected = {f"s{n}": notes(broker, f"s{n}") for n in range(7)}
    assert list(folder.glob("matcher-*.tamis"))
    assert list(folder.glob("queue-*.tamis"))

    def check() -> None:
        with Broker(folder, limits=limits) as again:
            assert {name: notes(again, name) for name in expected} == expected
            assert len(again.publish({"x": 50}, valid_until=NOON - timedelta(days=9999)).matches) == 0
            assert again.would_match({"x": 50})
            assert not again.would_match({"x": 500})

    check()
    for path in folder.glob("*.tamis"):
        path.write_bytes(path.read_bytes()[:-1])
    check()
    for path in folder.glob("*.tamis"):
        path.unlink()
    check()


def test_old_events_leave_the_tables(tmp_path: Path, clock: Clock) -> None:
    with tamis.open(tmp_path / "b", clock=clock) as broker:
        broker.retain(max_age=timedelta(minutes=1))
        broker.subscribe("ann", "a", "price < 20")
        broker.publish_many([{"price": n, "text": "x" * 1000} for n in range(500)])
        before = (tmp_path / "b" / "broker.sqlite-wal").stat().st_size
        clock.wait(61)
        broker.publish({"price": 1})
        broker.compact()
        assert broker.stats()["events"] == 1
        assert notes(broker, "ann") == [(21, 501, ("a",))]
        assert (tmp_path / "b" / "broker.sqlite").stat().st_size < before
        with pytest.raises(tamis.RetentionError, match="the first that is left is 21") as caught:
            broker.notifications("ann", 3)
        assert caught.value.first == 21


def test_events_that_nobody_wants_are_not_read_again(tmp_path: Path) -> None:
    with Broker(tmp_path / "b") as broker:
        broker.subscribe("ann", "none", "price < 0")
        broker.publish_many([{"price": price} for price in range(100)])
    (path,) = (tmp_path / "b").glob("queue-*")
    assert path.name.startswith("queue-0-0-100-0-")
    with Broker(tmp_path / "b") as broker:
        broker.publish({"price": -1})
        assert notes(broker, "ann") == [(1, 101, ("none",))]


def test_a_broker_in_memory_saves_nothing() -> None:
    limits = BrokerLimits(notes_in_tail=2, changes_behind=1, changes_to_save=1, valid_behind=1, valid_to_save=1)
    with Broker(":memory:", limits=limits) as broker:
        broker.subscribe("ann", "all", "price >= 0")
        for price in range(20):
            broker.publish({"price": price}, valid_until=datetime(2999, 1, 1))
            broker.subscribe("bob", str(price), f"price = {price}")
        broker.compact()
        assert broker.stats()["problem"] is None
        assert [note.event["price"] for note in broker.notifications("bob")] == list(range(20))


def test_compacting_beside_the_background_thread(tmp_path: Path) -> None:
    limits = BrokerLimits(notes_in_tail=4, changes_to_save=1)
    with Broker(tmp_path / "shop", limits=limits, synchronous="off") as broker:
        broker.subscribe("ann", "all", "price >= 0")
        publisher = threading.Thread(target=lambda: [broker.publish({"price": number}) for number in range(1000)])
        publisher.start()
        while publisher.is_alive():
            broker.compact()
        publisher.join()
        assert [note.event["price"] for note in broker.notifications("ann")] == list(range(1000))


def test_a_reader_opens_while_old_events_leave(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first event is valid for long, so the events that leave are not the first ones."""
    with Broker(tmp_path / "b", clock=clock) as broker:
        broker.retain(max_age=timedelta(seconds=10))
        broker.subscribe("ann", "a", "price >= 0")
        broker.publish({"price": 0}, valid_until=NOON + timedelta(hours=1))
        broker.publish({"price": 1})
    with Broker(tmp_path / "b", clock=clock) as broker:
        for price in range(8):
            broker.publish({"price": price})
        clock.wait(11)

        catch_up = State.catch_up

        def after_events_left(state: State) -> None:
            monkeypatch.undo()
            broker.compact()
            catch_up(state)

        monkeypatch.setattr(State, "catch_up", after_events_left)
        with Broker(tmp_path / "b", read_only=True, clock=clock) as reader:
            broker.publish({"price": 1})
            assert notes(reader, "ann") == [(11, 11, ("a",))]


@pytest.mark.parametrize("later", [0, 40])
def test_no_number_is_used_again_when_only_an_early_event_is_left(tmp_path: Path, clock: Clock, later: int) -> None:
    """The first event is valid for long, so its note stays in a block whose later notes are gone."""
    limits = BrokerLimits(notes_in_tail=4)
    with Broker(tmp_path / "b", clock=clock, limits=limits) as broker:
        broker.retain(max_age=timedelta(seconds=10))
        broker.subscribe("ann", "a", "price >= 0")
        broker.publish({"price": 0}, valid_until=NOON + timedelta(hours=1))
        for price in range(8 + later):
            broker.publish({"price": price})
        clock.wait(11)
        broker.compact()
    with Broker(tmp_path / "b", clock=clock, limits=limits) as again:
        again.publish({"price": 1})
        assert notes(again, "ann") == [(10 + later, 10 + later, ("a",))]
