"""Wrong arguments are errors that name the argument. Nothing changes, and the broker stays in use."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.broker import Broker, open
from tamis.errors import BrokerError, IdTypeError, OptionError, TableError

HUGE = 2**70
EAST, WEST = timezone(timedelta(hours=5)), timezone(timedelta(hours=-5))
FIRST, LAST = datetime.min.replace(tzinfo=EAST), datetime.max.replace(tzinfo=WEST)
"""Moments before the year 1 and after 9999 in UTC."""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with open(tmp_path / "shop") as shop:
        shop.subscribe("ann", "cheap", "price < 20")
        shop.publish({"price": 15})
        yield shop


def assert_unchanged(broker: Broker) -> None:
    """The broker has what the fixture put in, and still takes events."""
    stats = broker.stats()
    assert (stats["subscriptions"], stats["events"], stats["notes"]) == (1, 1, 1)
    assert stats["retention"] == {"max_age": None, "max_notes": None, "when_full": "drop oldest"}
    assert broker.publish({"price": 10}).sequence == 2


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda broker: broker.deliver([({"price": 1}, [1])], source="spark", batch=HUGE), "batch"),
        (lambda broker: broker.acknowledge("ann", HUGE), "sequence"),
        (lambda broker: broker.explain("ann", "cheap", HUGE), "event_sequence"),
        (lambda broker: broker.changes(2**63), "after"),
        (lambda broker: broker.replay("price < 20", after=HUGE), "after"),
        (lambda broker: broker.notifications("ann", after=HUGE), "after"),
        (lambda broker: broker.retain(max_notes=HUGE), "max_notes"),
        (lambda broker: broker.retain(max_age=timedelta.max), "max_age"),
        (lambda broker: broker.retain(max_age=5), "max_age"),
        (lambda broker: broker.retain(max_age=timedelta(0)), "max_age"),
        (lambda broker: broker.retain(max_notes=0), "max_notes"),
        (lambda broker: broker.retain(max_notes="x"), "max_notes"),
        (lambda broker: broker.retain(when_full="burst"), "when_full"),
        (lambda broker: broker.publish({"price": 1}, valid_until=FIRST), "valid_until"),
        (lambda broker: broker.publish({"price": 1}, valid_until=LAST), "valid_until"),
        (lambda broker: broker.publish_many([{"price": 1}], valid_until=[FIRST]), "valid_until"),
        (lambda broker: broker.subscribe("ann", "new", "price < 1", valid_from=FIRST), "valid_from"),
        (lambda broker: broker.publish({"price": 1}, key="\ud800"), "key"),
        (lambda broker: broker.publish_many([{"price": 1}], keys=["\ud800"]), "key"),
        (lambda broker: broker.publish_many([{"price": 1}] * 2, keys="ab"), "keys"),
        (lambda broker: broker.publish_many([{"price": 1}], keys=b"a"), "keys"),
        (lambda broker: broker.publish_many([{"price": 1}], keys={"a": 1}), "keys"),
        (lambda broker: broker.publish_many([{"price": 1}], keys={"a"}), "keys"),
        (lambda broker: broker.publish_many([{"price": 1}], keys=5), "keys"),
        (lambda broker: broker.deliver(None, source="spark", batch=0), "matched"),
        (lambda broker: broker.deliver(5, source="spark", batch=0), "matched"),
        (lambda broker: broker.backup(5), "path"),
        (lambda broker: broker.backup("a\0b"), "path"),
        (lambda broker: broker.backup(":memory:"), "path"),
        (lambda broker: broker.acknowledge_many([("ann", 1)]), "sequences"),
        (lambda broker: broker.acknowledge_many({"ann": "x"}), "sequence"),
        (lambda broker: broker.listen(5), "listener"),
    ],
)
def test_a_wrong_argument_is_an_error_that_names_it(
    broker: Broker, call: Callable[[Broker], Any], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # A call that is not refused must not leave files elsewhere.
    with pytest.raises(OptionError, match=f"^`{name}` "):
        call(broker)
    assert_unchanged(broker)


def test_the_largest_numbers_are_taken(broker: Broker) -> None:
    largest = 2**63 - 1
    assert list(broker.changes(largest)) == []
    assert list(broker.replay("price < 20", after=largest)) == []
    assert list(broker.notifications("ann", after=largest)) == []
    age = datetime.max - datetime.min
    broker.retain(max_age=age, max_notes=largest)
    assert broker.stats()["retention"]["max_age"] == age
    assert [note.sequence for note in broker.notifications("ann")] == [1]
    broker.compact()
    assert broker.deliver([({"price": 1}, [1])], source="spark", batch=largest)
    assert broker.last_batch("spark") == largest


def test_numbers_of_numpy_are_numbers(broker: Broker) -> None:
    zero, one = np.int64(0), np.int32(1)
    assert [note.sequence for note in broker.notifications("ann", after=zero)] == [1]  # type: ignore[arg-type]
    assert broker.explain("ann", "cheap", one).truth is True  # type: ignore[arg-type]
    assert [change.number for change in broker.changes(zero)] == [1]  # type: ignore[arg-type]
    broker.acknowledge("ann", one)  # type: ignore[arg-type]
    broker.retain(max_notes=one)  # type: ignore[arg-type]
    assert broker.stats()["retention"]["max_notes"] == 1
    assert list(broker.notifications("ann")) == []


@pytest.mark.parametrize("numbers", [[[1], [1, 2]], [[1]], [HUGE], [1.5], [2**63], None])
def test_numbers_of_a_delivery_must_be_a_list_of_numbers(broker: Broker, numbers: Any) -> None:
    with pytest.raises(OptionError, match="delivery 0 must have a list of numbers"):
        broker.deliver([({"price": 1}, numbers)], source="spark", batch=0)
    assert_unchanged(broker)


def test_a_wrong_key_does_not_disturb_other_threads(broker: Broker) -> None:
    errors: list[Exception] = []

    def publish(key: str | None) -> None:
        for _ in range(50):
            try:
                broker.publish({"price": 1}, key=key)
            except Exception as error:
                errors.append(error)

    threads = [threading.Thread(target=publish, args=(key,)) for key in (None, None, None, "\ud800")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [type(error) for error in errors] == [OptionError] * 50
    assert broker.stats()["events"] == 151


@pytest.mark.parametrize("word", ["fulll", "FULL", "extra", "", None, 2, ["full"]])
def test_synchronous_is_one_of_three_words(tmp_path: Path, word: Any) -> None:
    for path in (tmp_path / "shop", ":memory:"):
        with pytest.raises(OptionError, match="`synchronous` must be 'full', 'normal' or 'off', not"):
            tamis.open(path, synchronous=word)
    assert not (tmp_path / "shop").exists()


@pytest.mark.parametrize("word", ["full", "normal", "off"])
def test_each_word_of_synchronous_is_taken(tmp_path: Path, word: Any) -> None:
    with open(tmp_path / "shop", synchronous=word) as broker:
        assert broker.publish({"price": 1}).sequence == 1


@pytest.mark.parametrize("path", [None, 5, ["shop"]])
def test_a_path_must_be_a_path(path: Any) -> None:
    with pytest.raises(OptionError, match="`path` must be a str or a path"):
        tamis.open(path)


@pytest.mark.parametrize("path", ["", "shop\0shop"])
def test_a_path_must_be_a_name(path: str) -> None:
    with pytest.raises(OptionError, match="`path` must be the name of a folder"):
        tamis.open(path)


@pytest.mark.parametrize("clock", [None, 5, datetime(2026, 1, 1, tzinfo=EAST)])
def test_a_clock_must_be_callable(tmp_path: Path, clock: Any) -> None:
    with pytest.raises(OptionError, match="`clock` must be callable and return a datetime, not"):
        tamis.open(tmp_path / "shop", clock=clock)
    assert not (tmp_path / "shop").exists()


def test_a_name_that_is_no_text_says_so(broker: Broker) -> None:
    with pytest.raises(IdTypeError, match=r"the name of a subscriber must be Unicode text, but .* lone surrogate"):
        broker.subscribe("\ud800", "cheap", "price < 1")
    assert_unchanged(broker)


def test_a_backup_that_cannot_be_made(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BrokerError, match=r"file.copy cannot be made: .*\. Hint: name a new or an empty folder"):
        broker.backup(tmp_path / "file" / "copy")
    broker.close()
    with pytest.raises(BrokerError, match="the broker is closed"):
        broker.backup(tmp_path / "late")
    assert not (tmp_path / "late").exists()


@pytest.mark.parametrize("path", ["shop", ":memory:"])
def test_what_was_handed_out_says_that_the_broker_is_closed(tmp_path: Path, path: str) -> None:
    broker = open(path if path == ":memory:" else tmp_path / path)
    broker.subscribe("ann", "cheap", "price < 20")
    receipt, replayed = broker.publish({"price": 15}), broker.replay("price < 20")
    broker.close()
    with pytest.raises(BrokerError, match=r"^the broker is closed\. Hint: open the folder again$"):
        list(receipt.matches)
    with pytest.raises(BrokerError, match=r"^the broker is closed\. Hint: open the folder again$"):
        next(replayed)
    with pytest.raises(BrokerError, match=r"^the broker is closed\. Hint: open the folder again$"):
        broker.replay("price < 20")


@pytest.mark.parametrize("count", [0, 1, 10, 100])
def test_a_table_with_a_column_twice_is_an_error(broker: Broker, count: int) -> None:
    numbers = pa.array(range(count), pa.int64())
    with pytest.raises(TableError, match="the column 'price' is given twice"):
        broker.publish_many(pa.table([numbers, numbers, numbers], names=["price", "year", "price"]))
    assert_unchanged(broker)


@pytest.mark.parametrize("change", ["DROP TABLE keys", "ALTER TABLE keys RENAME COLUMN sequence TO other"])
def test_tables_that_lack_something_are_damaged(tmp_path: Path, change: str) -> None:
    open(tmp_path / "shop").close()
    tables = sqlite3.connect(tmp_path / "shop" / "broker.sqlite")
    tables.execute(change)
    tables.close()
    with pytest.raises(BrokerError, match=r"no such (table|column).*Hint: the file is damaged"):
        open(tmp_path / "shop")


def test_a_path_that_the_system_refuses(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"xx cannot be used: File name too long"):
        open(tmp_path / ("x" * 5000))
    with pytest.raises(BrokerError, match=r"xx cannot be used: File name too long"):
        open(tmp_path / ("x" * 5000), read_only=True)
    with open(":memory:") as shop, pytest.raises(BrokerError, match=r"xx cannot be made: File name too long"):
        shop.backup(tmp_path / ("x" * 5000))


@pytest.mark.parametrize("wrong", [5, None, "now"])
def test_a_clock_must_return_a_datetime(wrong: Any) -> None:
    with pytest.raises(OptionError, match="`clock` must return a datetime"):
        open(":memory:", clock=lambda: wrong).publish({"price": 1})
