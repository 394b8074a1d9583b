"""The commands of the broker beside `subscribe`: publish, receive, changes, backup, compact."""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.broker import open as open_broker
from tamis.cli.following import ITEMS_TOGETHER
from tests.cli.broker_running import events_of, failure, lines, publish, records
from tests.cli.running import run, write

LATER = "2999-01-01"
EVENTS = ['{"sku": "A1", "price": 12}', '{"sku": "B7", "price": 30}']


# -- publish


def test_receipts(alerts: Path, tmp_path: Path) -> None:
    result = run("publish", alerts, write(tmp_path / "e.jsonl", *EVENTS))
    assert lines(result.stdout) == [
        {"line": 1, "sequence": 1, "matches": 1},
        {"line": 2, "sequence": 2, "matches": 0},
    ]
    assert result.stderr.startswith("2 events, 1 match in ")
    assert events_of(alerts) == [{"sku": "A1", "price": 12}]


def test_receipts_of_several_files_with_matches(alerts: Path, tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", EVENTS[0])
    write(tmp_path / "2.csv", "price", "7")
    told = [{"subscriber": "ann", "name": "cheap"}]
    assert records("publish", alerts, tmp_path / "*.jsonl", tmp_path / "2.csv", "--matches") == [
        {"file": str(tmp_path / "1.jsonl"), "line": 1, "sequence": 1, "matches": 1, "subscriptions": told},
        {"file": str(tmp_path / "2.csv"), "line": 2, "sequence": 2, "matches": 1, "subscriptions": told},
    ]


def test_a_parquet_file_of_events(alerts: Path, tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [5, 50, None], "sku": ["a", "b", "c"]}), tmp_path / "e.parquet")
    found = records("publish", alerts, tmp_path / "e.parquet", "--key-from", "sku")
    assert [each["matches"] for each in found] == [1, 0, 0]
    assert events_of(alerts) == [{"price": 5, "sku": "a"}]


def test_only_the_largest_weights_are_told(alerts: Path) -> None:
    run("subscribe", alerts, "ben", "dear", "price < 20", "--weight", "5")
    (found,) = records("publish", alerts, "-k", "1", "--matches", stdin=EVENTS[0])
    assert found["subscriptions"] == [{"subscriber": "ben", "name": "dear"}]


def test_later_subscriptions_meet_valid_events(alerts: Path) -> None:
    run("publish", alerts, "--valid-until", LATER, stdin=EVENTS[1])
    run("publish", alerts, stdin=EVENTS[1])
    run("subscribe", alerts, "ben", "all", "TRUE")
    assert [note["event_sequence"] for note in records("receive", alerts, "ben")] == [1]


def test_the_same_key_is_published_once(alerts: Path) -> None:
    twice = "\n".join(['{"price": 1, "order": {"id": 7}}', '{"price": 2, "order": {"id": 7}}', '{"price": 3}'])
    result = run("publish", alerts, "--key-from", "order.id", "--on-error", "skip", "-q", stdin=twice)
    assert result.exit_code == 3
    assert "stdin:3: there is no field 'order.id'" in result.stderr
    again = records("publish", alerts, "--key-from", "order.id", stdin='{"order": {"id": 7}}')
    assert [each["sequence"] for each in (*lines(result.stdout), *again)] == [1, 1, 1]
    assert [event["price"] for event in events_of(alerts)] == [1]


TOO_LARGE = '{"price": 123456789012345678901234567890}'


@pytest.mark.parametrize("count", [1, 100], ids=["few events", "many events"])
def test_wrong_events_are_skipped(alerts: Path, count: int) -> None:
    """Both lines that are not JSON and values that a subscription cannot compare with."""
    text = "\n".join([EVENTS[0]] * count + [TOO_LARGE, "oops"] + [EVENTS[1]] * count)
    result = run("publish", alerts, "--on-error", "skip", stdin=text)
    assert result.exit_code == 3
    assert [each["line"] for each in lines(result.stdout)] == [*range(1, count + 1), *range(count + 3, 2 * count + 3)]
    assert [each["sequence"] for each in lines(result.stdout)] == list(range(1, 2 * count + 1))
    wrong, unread, summary = result.stderr.splitlines()
    assert wrong.startswith(f"stdin:{count + 1}: attribute 'price'")
    assert unread.startswith(f"stdin:{count + 2}: not JSON")
    assert summary.endswith("; 2 bad lines skipped")


@pytest.mark.parametrize("bad", [TOO_LARGE, "oops"])
def test_a_wrong_event_stops_the_work(alerts: Path, bad: str) -> None:
    result = run("publish", alerts, stdin="\n".join([*EVENTS, bad, *EVENTS]))
    assert result.exit_code == 1
    assert [each["line"] for each in lines(result.stdout)] == [1, 2]
    message, stopped = result.stderr.splitlines()
    assert message.startswith("stdin:3: ")
    assert stopped.startswith("stopped after 2 events, 1 match in ")
    assert events_of(alerts) == [{"sku": "A1", "price": 12}]


def test_an_event_that_a_full_queue_refuses_stops_the_work(alerts: Path) -> None:
    with open_broker(alerts) as broker:
        broker.retain(max_notes=3, when_full="refuse publish")
    result = run("publish", alerts, "--on-error", "skip", stdin="\n".join([EVENTS[0]] * 9))
    assert result.exit_code == 1
    assert [each["line"] for each in lines(result.stdout)] == [1, 2, 3]
    assert result.stderr.startswith("stdin:4: 'ann' has 3 notes that were not acknowledged")


def test_a_schema_for_events(alerts: Path, tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"price": "number", "at": "timestamp"}')
    text = '{"price": 1, "at": "2026-11-14T10:00:00Z"}\n{"price": "1"}\n'
    result = run("publish", alerts, "--schema", schema, "--on-error", "skip", stdin=text)
    assert result.exit_code == 3
    assert "stdin:2: attribute 'price': '1' is a string, but the schema declares a number" in result.stderr
    assert events_of(alerts) == [{"price": 1, "at": datetime(2026, 11, 14, 10)}]
    (note,) = records("receive", alerts, "ann")
    assert note["event"] == {"price": 1, "at": {"$timestamp": "2026-11-14T10:00:00"}}


def test_publishing_to_no_broker_makes_none(tmp_path: Path) -> None:
    assert "has no broker" in failure("publish", tmp_path / "typo", stdin=EVENTS[0])
    assert os.listdir(tmp_path) == []


# -- receive


def test_notes(alerts: Path) -> None:
    run("subscribe", alerts, "ann", "all", "TRUE")
    publish(alerts, {"price": 1}, {"price": 50, "title": "Émile \ud800"})
    first, second = records("receive", alerts, "ann")
    event = {"price": 1}
    assert first == {
        "sequence": 1,
        "event_sequence": 1,
        "subscriptions": ["all", "cheap"],
        "expired": False,
        "event": event,
    }
    assert second["event"] == {"price": 50, "title": "Émile \ud800"}
    assert records("receive", alerts, "ann", "--after", "1") == [second]
    assert records("receive", alerts, "ann", "--limit", "1") == [first]
    assert failure("receive", alerts, "zoe") == "Error: no subscriber 'zoe'"


def test_ack_moves_the_cursor(alerts: Path) -> None:
    publish(alerts, *[{"price": price} for price in range(5)])
    assert [note["sequence"] for note in records("receive", alerts, "ann", "--limit", "2", "--ack")] == [1, 2]
    assert [note["sequence"] for note in records("receive", alerts, "ann")] == [3, 4, 5]
    assert [note["sequence"] for note in records("receive", alerts, "ann", "--ack")] == [3, 4, 5]
    assert records("receive", alerts, "ann", "--ack") == []
    assert len(records("receive", alerts, "ann", "--after", "0", "--limit", "2", "--ack")) == 2
    assert records("receive", alerts, "ann") == []


def test_ack_while_another_process_writes(alerts: Path) -> None:
    with open_broker(alerts) as broker:
        broker.publish_many([{"price": price} for price in range(3)])
        assert [note["sequence"] for note in records("receive", alerts, "ann", "--ack")] == [1, 2, 3]
        assert list(broker.notifications("ann")) == []


def test_more_notes_than_a_block_has(alerts: Path) -> None:
    count = ITEMS_TOGETHER + 5
    publish(alerts, *[{"price": 5}] * count)
    assert [note["sequence"] for note in records("receive", alerts, "ann", "--ack")] == list(range(1, count + 1))
    assert records("receive", alerts, "ann") == []


def test_notes_that_were_dropped(alerts: Path) -> None:
    publish(alerts, *[{"price": price} for price in range(5)])
    run("receive", alerts, "ann", "--limit", "1", "--ack")
    with open_broker(alerts) as broker:
        broker.retain(max_notes=2)
    message = "Error: notes of 'ann' after 1 were dropped; the first that is left is 4. Hint: --after 3, or --after 0"
    assert failure("receive", alerts, "ann") == message
    assert [note["sequence"] for note in records("receive", alerts, "ann", "--after", "0")] == [4, 5]


# -- changes, backup, compact


def test_changes(alerts: Path) -> None:
    run("subscribe", alerts, "ben", "old", "year < 1900", "--valid-until", LATER)
    run("subscribe", alerts, "ann", "cheap", "--pause")
    old, cheap = records("changes", alerts)
    assert old == {
        "number": 2,
        "change": "added",
        "id": 2,
        "subscriber": "ben",
        "name": "old",
        "expression": "year < 1900",
        "weight": 1.0,
        "valid_from": None,
        "valid_until": "2999-01-01T00:00:00Z",
    }
    assert (cheap["number"], cheap["change"], cheap["id"]) == (3, "removed", 1)
    assert records("changes", alerts, "--after", "2") == [cheap]
    assert records("changes", alerts, "--limit", "1") == [old]


def test_backup_and_compact(alerts: Path, tmp_path: Path) -> None:
    publish(alerts, {"price": 1})
    result = run("backup", alerts, tmp_path / "copy")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"{tmp_path / 'copy'}: ")
    assert events_of(tmp_path / "copy") == [{"price": 1}]
    assert "exists. Hint: name a new or an empty folder" in failure("backup", alerts, tmp_path / "copy")
    with open_broker(alerts, clock=lambda: datetime(2999, 1, 1)) as broker:
        broker.retain(max_age=timedelta(days=1))
        broker.publish({"price": 2})
    result = run("compact", alerts)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(f"{alerts}: ")
    assert events_of(alerts) == [{"price": 2}]


@pytest.mark.parametrize(
    "words", [["receive", "ann"], ["changes"], ["backup", "copy"], ["compact"], ["subscribe", "--list"]]
)
def test_a_folder_without_a_broker(tmp_path: Path, words: list[str]) -> None:
    command, *others = words
    message = failure(command, tmp_path, *others)
    assert message == f"Error: {tmp_path} has no broker. Hint: check the name; `tamis subscribe` makes a broker"
    assert os.listdir(tmp_path) == []
