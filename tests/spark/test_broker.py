"""What is subscribed in a broker is matched on Spark, and what Spark finds is told by the broker, once."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tamis.broker import Broker
from tamis.spark import streaming
from tamis.spark.matching import MatchOptions
from tests.markdown import ROOT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

AVAILABLE = {"availableNow": True}
EVENTS = "id long, price double, genre string"

PROGRAM = """
import os, signal, sys
from pathlib import Path
import tamis.spark
from tamis.spark.broker_sink import ToBroker
from tests.spark_session import start_spark

class Killed(ToBroker):
    def __call__(self, matches, batch):
        super().__call__(matches, batch)
        if batch == 1:  # The broker has stored this batch. Spark has not noted it yet.
            os.killpg(0, signal.SIGKILL)

folder = Path(sys.argv[1])
spark = start_spark(folder / "spark")
events = spark.readStream.schema("id long, price double, genre string").option("maxFilesPerTrigger", 1)
tamis.spark.match_stream(
    events.json(str(folder / "events")), folder / "index", checkpoint=folder / "matching", deliver=Killed(str(folder / "shop")),
    trigger={"availableNow": True},
).awaitTermination()
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with tamis.open(tmp_path / "shop") as shop:
        yield shop


def subscribe(broker: Broker) -> None:
    broker.subscribe("ann", "crime", "genre = 'crime' AND price < 20")
    broker.subscribe("ann", "cheap", "price < 10")
    broker.subscribe("bob", "maps", "genre = 'maps'")
    broker.subscribe("bob", "over", "price > 0", valid_until=datetime(2026, 1, 1, tzinfo=UTC))


def change(broker: Broker) -> None:
    broker.subscribe("ann", "cheap", "price < 12")
    broker.unsubscribe("bob", "maps")
    broker.subscribe("cid", "all", "id >= 0")
    broker.subscribe("dan", "all", "id >= 0")
    broker.pause("dan", "all")


BATCHES: list[list[dict[str, Any]]] = [
    [{"id": 1, "price": 11.5, "genre": "crime"}, {"id": 2, "price": 30.0, "genre": "maps"}],
    [{"id": 3, "price": 5.0}, {"id": 4, "price": 19.0, "genre": "crime"}, {"id": 4, "price": 19.0, "genre": "crime"}],
    [{"id": 5, "genre": "crime"}, {"id": 6, "price": 1.0, "genre": "maps"}],
]


def put(folder: Path, number: int) -> None:
    """Put a file of events where the stream reads, in one step."""
    (folder / "events").mkdir(exist_ok=True)
    part = folder / f"part-{number}"
    part.write_text("".join(json.dumps(event) + "\n" for event in BATCHES[number]))
    # Spark reads older files first.
    os.utime(part, (1_800_000_000 + number,) * 2)
    part.rename(folder / "events" / f"{number}.json")


def update(spark: SparkSession, folder: Path) -> None:
    query = tamis.spark.update_stream(
        tamis.spark.broker_changes(spark, folder / "shop"),
        folder / "index",
        checkpoint=folder / "updating",
        order="number",
        trigger=AVAILABLE,
    )
    query.awaitTermination()


def match(spark: SparkSession, folder: Path, deliver: Any, **options: Any) -> None:
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(folder / "events"))
    checkpoint = folder / "matching"
    tamis.spark.match_stream(
        events, folder / "index", checkpoint=checkpoint, deliver=deliver, trigger=AVAILABLE, **options
    ).awaitTermination()


def told(broker: Broker, subscriber: str) -> list[tuple[Any, tuple[str, ...]]]:
    """The notes of a subscriber. Their numbers have no gaps."""
    notes = list(broker.notifications(subscriber, after=0))
    assert [note.sequence for note in notes] == list(range(1, len(notes) + 1))
    # Files that Spark reads in one batch may come in any order.
    return sorted(((note.event, note.subscriptions) for note in notes), key=lambda pair: json.dumps(pair[0]["id"]))


def subscribed(spark: SparkSession, folder: Path) -> set[tuple[str, str]]:
    """The names in the index."""
    return {(row.subscriber, row.name) for row in tamis.spark.subscriptions(spark, folder / "index").collect()}


def test_from_subscribing_to_receiving_with_a_kill_between(spark: SparkSession, tmp_path: Path) -> None:
    with tamis.open(tmp_path / "shop") as broker:
        subscribe(broker)
        tamis.spark.build(tamis.spark.broker_subscriptions(spark, tmp_path / "shop"), tmp_path / "index")
        change(broker)
        update(spark, tmp_path)
    for number in range(len(BATCHES)):
        put(tmp_path, number)
    program = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    killed = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False, start_new_session=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert [path.name for path in (tmp_path / "matching" / "commits").glob("[0-9]*")] == ["0"]
    alone = tamis.open(":memory:")
    subscribe(alone)
    change(alone)
    with tamis.open(tmp_path / "shop") as broker:
        for batch in BATCHES[:2]:
            alone.publish_many(batch)
        assert told(broker, "cid") == told(alone, "cid")
        match(spark, tmp_path, tamis.spark.to_broker(broker))
        alone.publish_many(BATCHES[2])
        for subscriber in ("ann", "bob", "cid", "dan"):
            assert told(broker, subscriber) == told(alone, subscriber)
        assert broker.stats()["notes"] == 12


def test_a_delivery_that_fails_is_made_again(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    subscribe(broker)
    tamis.spark.build(tamis.spark.broker_subscriptions(spark, tmp_path / "shop"), tmp_path / "index")
    put(tmp_path, 0)
    broker.retain(max_notes=1, when_full="refuse publish")
    broker.publish({"id": 0, "price": 5.0})
    with pytest.raises(Exception, match="'ann' has 1 notes that were not acknowledged"):
        match(spark, tmp_path, tamis.spark.to_broker(broker), keep=["price"], carry=["name"])
    broker.acknowledge("ann", 1)
    match(spark, tmp_path, tamis.spark.to_broker(broker), keep=["price"], carry=["name"])
    # Only the id and the columns that are kept are stored.
    (note,) = broker.notifications("ann")
    assert (note.event, note.subscriptions) == ({"id": 1, "price": 11.5}, ("crime",))


def test_a_repeated_batch_of_changes_may_have_later_changes(
    spark: SparkSession, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The index has its columns although nobody has subscribed yet.
    tamis.spark.build(tamis.spark.broker_subscriptions(spark, tmp_path / "shop"), tmp_path / "index")
    broker.subscribe("ann", "a", "price < 1")
    broker.subscribe("bob", "b", "price < 1")

    def fail(*args: Any, **options: Any) -> None:
        raise RuntimeError("killed before the update")

    with monkeypatch.context() as patch:
        patch.setattr(streaming, "update", fail)
        with pytest.raises(Exception, match="killed before the update"):
            update(spark, tmp_path)
    broker.subscribe("ann", "a", "price < 2")
    broker.subscribe("bob", "c", "price < 1")
    broker.unsubscribe("bob", "b")
    update(spark, tmp_path)
    assert subscribed(spark, tmp_path) == {("ann", "a"), ("bob", "c")}
    # As if Spark had been killed after the update, before it noted the batch.
    commits = tmp_path / "updating" / "commits"
    last = max(int(path.name) for path in commits.glob("[0-9]*"))
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink()
    broker.unsubscribe("ann", "a")
    update(spark, tmp_path)
    assert subscribed(spark, tmp_path) == {("bob", "c")}


def test_the_reader_of_changes(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    from tamis.spark.broker_source import ChangeReader

    reader = ChangeReader(str(tmp_path / "shop"), 0)
    assert reader.initialOffset() == reader.latestOffset() == {"change": 0}
    assert reader.partitions({"change": 0}, {"change": 0}) == []
    subscribe(broker)
    assert reader.latestOffset({"change": 0}, None) == {"change": 4}
    now = ChangeReader(str(tmp_path / "shop"), 0)
    now.prepareForTriggerAvailableNow()
    broker.subscribe("eve", "all", "id > 0")
    assert now.latestOffset({"change": 0}, None) == {"change": 4}
    now.stop()
    (rows,) = reader.partitions({"change": 1}, {"change": 3})
    again = pickle.loads(pickle.dumps(reader))
    (batch,) = again.read(pickle.loads(pickle.dumps(rows)))
    assert batch["number"].to_pylist() == [2, 3]
    with pytest.raises(tamis.errors.BrokerError, match=r"restored from a backup. Hint: build the index again"):
        reader.partitions({"change": 5}, {"change": 4})
    reader.stop()


def test_subscriptions_of_a_broker(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    subscribe(broker)
    change(broker)
    frame = tamis.spark.broker_subscriptions(spark, tmp_path / "shop")
    assert frame.columns == ["id", "subscriber", "name", "expression", "weight", "valid_from", "valid_until"]
    rows = {row.id: row for row in frame.collect()}
    assert {number: (row.subscriber, row.name) for number, row in rows.items()} == {
        1: ("ann", "crime"), 2: ("ann", "cheap"), 4: ("bob", "over"), 5: ("cid", "all"),
    }  # fmt: skip
    assert rows[2].expression == "price < 12"
    over = frame.where("id = 4").selectExpr("unix_seconds(valid_until)", "valid_from").collect()
    assert tuple(over[0]) == (datetime(2026, 1, 1, tzinfo=UTC).timestamp(), None)


def matches(spark: SparkSession, rows: list[tuple[Any, ...]], schema: str) -> DataFrame:
    return spark.createDataFrame(rows, f"id long, subscription long, {schema}")


def test_values_of_all_kinds_are_told(spark: SparkSession, broker: Broker) -> None:
    broker.subscribe("ann", "all", "id > 0")
    at = datetime(2026, 11, 18, 9, 30, tzinfo=UTC)
    schema = (
        "at timestamp, local timestamp_ntz, day date, cost decimal(5,2), raw binary, few array<int>, ok boolean, `a.b` float, "
        "book struct<title: string, pages: int, sold: timestamp>, labels map<string, string>, none string"
    )
    book = {"title": "x", "pages": None, "sold": at}
    values = (
        at,
        at.replace(tzinfo=None),
        date(2026, 1, 2),
        Decimal("9.90"),
        b"\x00",
        [1, 2],
        True,
        0.5,
        book,
        {"e": "f"},
    )
    frame = matches(spark, [(1, 1, *values, None), (2, 1, *[None] * 10, "x")], schema)
    tamis.spark.to_broker(broker, source="shop")(frame, 0)
    first, second = (event for event, _ in told(broker, "ann"))
    assert first == {
        "id": 1, "at": at, "local": at.replace(tzinfo=None), "day": date(2026, 1, 2), "cost": Decimal("9.90"), "raw": b"\x00",
        "few": [1, 2], "ok": True, "a.b": 0.5, "book": {"title": "x", "sold": at}, "labels": {"e": "f"},
    }  # fmt: skip
    assert first["at"].utcoffset().total_seconds() == 0
    assert second == {"id": 2, "none": "x"}


def test_equal_events_are_told_as_often_as_they_came(spark: SparkSession, broker: Broker) -> None:
    broker.subscribe("ann", "a", "id > 0")
    broker.subscribe("ann", "b", "id > 0")
    rows = [(1, 1, 5), (1, 2, 5), (2, 1, 5), (1, 1, 5), (1, 2, 5), (1, 1, 6)]
    deliver = tamis.spark.to_broker(broker, source="shop")
    for _ in range(2):
        deliver(matches(spark, rows, "price int"), 0)
    found = sorted((note.event["id"], note.event["price"], note.subscriptions) for note in broker.notifications("ann"))
    assert found == [(1, 5, ("a", "b")), (1, 5, ("a", "b")), (1, 6, ("a",)), (2, 5, ("a",))]
    deliver(matches(spark, [], "price int"), 1)
    assert broker.last_batch("shop") == 1


@pytest.mark.parametrize("kind", ["map<string, int>", "array<struct<attribute: string, value: int>>"])
def test_a_column_that_holds_all_attributes(spark: SparkSession, broker: Broker, kind: str) -> None:
    from tamis.spark.broker_sink import keeping_events

    broker.subscribe("ann", "a", "price > 0")
    held = {"price": 5} if kind.startswith("map") else [("price", 5), ("size", 1), ("size", 2), ("none", None)]
    events = spark.createDataFrame([(1, held, date(2026, 1, 1))], f"id long, all {kind}, day date")
    options = MatchOptions.of("id", None, (), (), None, "day", None)
    kept = keeping_events(events, options)
    assert (kept.attributes, kept.keep) == (("all",), ("all", "day"))
    deliver = tamis.spark.to_broker(broker).of_stream(events, kept, "query")
    deliver(events.selectExpr("id", "1L AS subscription", "all", "day", "'x' AS carried"), 0)
    sizes = {} if kind.startswith("map") else {"size": [1, 2]}
    assert told(broker, "ann") == [({"id": 1, "day": date(2026, 1, 1), "price": 5, **sizes}, ("a",))]


def test_a_folder_that_is_open_elsewhere(spark: SparkSession, tmp_path: Path) -> None:
    from tamis.spark.broker_sink import opened

    deliver = tamis.spark.to_broker(tmp_path / "shop", source="shop")
    again = pickle.loads(pickle.dumps(deliver))
    assert again == deliver
    frame = matches(spark, [(1, 1, 5)], "price int")
    with tamis.open(tmp_path / "shop") as broker:
        broker.subscribe("ann", "a", "price > 0")
        with pytest.raises(tamis.errors.LockedError, match=r"Hint: if that is this process, \d+, give its broker"):
            deliver(frame, 0)
        with pytest.raises(tamis.OptionError, match=r"another process delivers the matches\. Hint: give the folder"):
            pickle.dumps(tamis.spark.to_broker(broker))
    again(frame, 0)
    deliver(frame, 0)
    with tamis.open(tmp_path / "shop", read_only=True) as reader:
        assert told(reader, "ann") == [({"id": 1, "price": 5}, ("a",))]
    opened(str(tmp_path / "shop")).close()


def test_wrong_calls(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    frame = matches(spark, [(1, 1, 5)], "price int")
    with pytest.raises(tamis.errors.BrokerError, match="has no broker"):
        tamis.spark.broker_changes(spark, tmp_path / "none")
    with pytest.raises(tamis.OptionError, match="`after` must be the number of a change"):
        tamis.spark.broker_changes(spark, tmp_path / "shop", after=-1)
    with pytest.raises(tamis.OptionError, match="a folder or a broker is needed, not 5"):
        tamis.spark.to_broker(5)  # type: ignore[arg-type]
    with pytest.raises(tamis.OptionError, match="`source` must be the name"):
        tamis.spark.to_broker(broker, source="")
    with pytest.raises(tamis.OptionError, match="a stream needs a name"):
        tamis.spark.to_broker(broker)(frame, 0)
    with pytest.raises(tamis.UnknownIdError, match="no subscription with the number 1"):
        tamis.spark.to_broker(broker, source="shop")(frame, 0)
    with pytest.raises(tamis.FrameError, match="ids of the index are string, but a broker numbers"):
        tamis.spark.to_broker(broker, source="shop")(frame.selectExpr("id", "'x' AS subscription"), 0)
    broker.subscribe("ann", "a", "price > 0")
    far = frame.selectExpr("id", "subscription", "timestamp_micros(571000000000000000) AS at")
    with pytest.raises(Exception, match=r"attribute 'at': a value cannot be stored"):
        tamis.spark.to_broker(broker, source="shop")(far, 0)
    long = frame.selectExpr("id", "subscription", "INTERVAL '5' DAY AS age")
    with pytest.raises(Exception, match=r"attribute 'age': .* Hint: `keep` of match_stream"):
        tamis.spark.to_broker(broker, source="shop")(long, 0)
    assert broker.last_batch("shop") is None
    rows = spark.createDataFrame([("x", "price > 0")], "id string, expression string")
    tamis.spark.build(rows, tmp_path / "named")
    (tmp_path / "events").mkdir()
    events = spark.readStream.schema(EVENTS).json(str(tmp_path / "events"))
    with pytest.raises(tamis.FrameError, match=r"Hint: build the index from tamis\.spark\.broker_subscriptions"):
        tamis.spark.match_stream(
            events, tmp_path / "named", checkpoint=tmp_path / "c", deliver=tamis.spark.to_broker(broker)
        )
    shutil.rmtree(tmp_path / "named")
