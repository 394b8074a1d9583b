"""Running the commands of the broker in tests, and looking at the broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tamis.broker import open as open_broker
from tests.cli.running import run


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def records(*words: object, stdin: str | None = None) -> list[Any]:
    """What a command prints, if it ends well."""
    result = run(*words, stdin=stdin)
    assert result.exit_code == 0, result.stderr
    return lines(result.stdout)


def failure(*words: object, stdin: str | None = None, status: int = 1) -> str:
    """What a command that fails says."""
    result = run(*words, stdin=stdin)
    assert (result.exit_code, result.stdout) == (status, ""), result.stderr
    return result.stderr.rstrip("\n")


def publish(folder: Path, *events: Any) -> None:
    with open_broker(folder) as broker:
        broker.publish_many(events)


def events_of(folder: Path, subscriber: str = "ann") -> list[Any]:
    """The events of all notes of a subscriber."""
    with open_broker(folder, read_only=True) as broker:
        return [note.event for note in broker.notifications(subscriber, after=0)]


def listed(folder: Path) -> dict[tuple[str, str], Any]:
    with open_broker(folder, read_only=True) as broker:
        return {(each.subscriber, each.name): each for each in broker.subscriptions()}
