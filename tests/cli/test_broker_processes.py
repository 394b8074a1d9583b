"""The commands of the broker while other processes use the folder, at the ends of pipes, and under Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

from tamis.broker import Broker
from tamis.broker import open as open_broker
from tests.cli.broker_running import events_of, failure, publish, records
from tests.cli.running import run, start

EVENT = '{"price": 12}'
PATIENCE = 120
"""Seconds after which a test gives up."""


def test_everything_can_be_read_while_another_writes(alerts: Path, writer: Broker, tmp_path: Path) -> None:
    writer.publish({"price": 1})
    assert len(records("receive", alerts, "ann")) == 1
    assert len(records("changes", alerts)) == 1
    assert len(records("subscribe", alerts, "--list")) == 1
    assert run("backup", alerts, tmp_path / "copy", "-q").output == ""
    assert events_of(tmp_path / "copy") == [{"price": 1}]


@pytest.mark.parametrize(
    "words",
    [
        ["publish", "-"],
        ["compact"],
        ["subscribe", "ann", "new", "a = 1"],
        ["subscribe", "ann", "cheap", "--remove"],
        ["subscribe", "--file", "-"],
    ],
    ids=" ".join,
)
def test_one_process_writes_at_a_time(alerts: Path, writer: Broker, words: list[str]) -> None:
    writer.publish({"price": 1})
    command, *others = words
    message = failure(command, alerts, *others, "--wait", "0", stdin="")
    hint = "Hint: try again when that process has ended, or give --wait more seconds"
    assert message == f"Error: process {os.getpid()} writes to {alerts}. {hint}"


def test_a_command_waits_for_the_lock(alerts: Path, writer: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tamis.cli.broker_folder.time.sleep", lambda _: writer.close())
    assert len(records("publish", alerts, "--wait", PATIENCE, stdin=EVENT)) == 1


def test_a_live_stream_of_events_is_told_at_once(alerts: Path) -> None:
    receiver = start("receive", alerts, "ann", "--follow")
    publisher = start("publish", alerts, "-", "--wait", PATIENCE)
    assert publisher.stdin is not None
    assert publisher.stdout is not None
    assert receiver.stdout is not None
    for number in (1, 2):
        publisher.stdin.write(EVENT + "\n")
        publisher.stdin.flush()
        assert json.loads(publisher.stdout.readline())["sequence"] == number
        assert json.loads(receiver.stdout.readline())["sequence"] == number
    _, errors = publisher.communicate(timeout=PATIENCE)
    assert publisher.returncode == 0, errors
    receiver.send_signal(signal.SIGINT)
    output, errors = receiver.communicate(timeout=PATIENCE)
    assert (receiver.returncode, output, errors) == (130, "", "Interrupted\n")


def test_an_interrupted_publisher_has_stored_what_it_acknowledged(alerts: Path) -> None:
    process = start("publish", alerts, "-")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(EVENT + "\n")
    process.stdin.flush()
    assert json.loads(process.stdout.readline())["sequence"] == 1
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE) == ("", "Interrupted\n")
    assert process.returncode == 130
    assert events_of(alerts) == [{"price": 12}]


def test_following_changes_ends_with_the_limit(alerts: Path) -> None:
    process = start("changes", alerts, "--follow", "--limit", "2")
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["name"] == "cheap"
    with open_broker(alerts) as broker:
        broker.subscribe("ben", "old", "year < 1900")
    output, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (0, "")
    assert json.loads(output)["name"] == "old"


@pytest.mark.parametrize("words", [["receive", "ann"], ["changes"]])
def test_following_ends_when_the_reader_is_gone(alerts: Path, words: list[str]) -> None:
    """Also if nothing more comes that could be written."""
    publish(alerts, {"price": 1})
    command, *others = words
    process = start(command, alerts, *others, "--follow")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_notes_that_the_reader_did_not_take_are_not_acknowledged(
    alerts: Path, unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    publish(alerts, *[{"price": 1, "text": "x" * 1000} for _ in range(3000)])
    process = start("receive", alerts, "ann", "--ack")
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == 141
    process.stderr.close()
    assert json.loads(run("receive", alerts, "ann", "--limit", "1").stdout)["sequence"] == 1


def test_notes_are_acknowledged_while_another_process_writes(alerts: Path, writer: Broker) -> None:
    process = start("receive", alerts, "ann", "--follow", "--ack")
    assert process.stdout is not None
    until = time.monotonic() + PATIENCE
    for number in (1, 2):
        writer.publish({"price": number})
        assert json.loads(process.stdout.readline())["sequence"] == number
        while list(writer.notifications("ann")):
            assert time.monotonic() < until
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=PATIENCE) == ("", "Interrupted\n")
    assert process.returncode == 130
