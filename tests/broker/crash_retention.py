"""A process whose broker drops notes and deletes events all the time, until somebody kills it. `test_crashes` runs this file.

After its calls it prints JSON lines: ["event", number, id], ["note", subscriber, number, event, id] and ["cursor", subscriber,
number].
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits
from tamis.errors import QueueFullError, RetentionError, UnknownIdError
from tests.broker.crash_load import say

SUBSCRIBERS = ("ann", "bob", "eve")
KEPT: dict[str, dict[str, Any]] = {
    "age": {"max_age": timedelta(milliseconds=60)},
    "number": {"max_notes": 15},
    "both": {"max_age": timedelta(milliseconds=300), "max_notes": 40},
    "refuse": {"max_notes": 25, "when_full": "refuse publish"},
}
LIMITS = BrokerLimits(
    notes_in_tail=32,
    blocks_to_merge=3,
    changes_behind=10,
    changes_to_save=3,
    valid_behind=20,
    valid_to_save=5,
    events_between_sweeps=25,
    events_deleted_at_once=7,
    pages_freed_at_once=2,
    rows_at_once=20,
    notes_at_once=10,
    log_pages=40,
)


def publish(broker: Broker, random: Random, run: str) -> None:
    for turn in count():
        name = f"{run}-{turn}"
        event = {"id": name, "price": random.randrange(20)}
        end = datetime.now(UTC) + timedelta(milliseconds=random.choice([1, 20, 200]))
        key = name if random.random() < 0.2 else None
        try:
            receipt = broker.publish(event, valid_until=random.choice([None, end]), key=key)
            say("event", receipt.sequence, name)
        except QueueFullError:
            time.sleep(0)  # Others run: a reader acknowledges notes.


def subscribe(broker: Broker, random: Random) -> None:
    for turn in count():
        pair = random.choice(SUBSCRIBERS), f"n{random.randrange(6)}"
        call: Callable[..., None] = random.choice([broker.unsubscribe, broker.pause, broker.resume])
        with suppress(UnknownIdError):
            if random.random() < 0.5:
                broker.subscribe(*pair, f"price < {random.randrange(20)}")
            else:
                call(*pair)
        if turn % 40 == 0:
            broker.compact()


def read(broker: Broker, random: Random) -> None:
    while True:
        for subscriber in SUBSCRIBERS:
            try:
                for note in broker.notifications(subscriber, random.choice([None, 0])):
                    say("note", subscriber, note.sequence, note.event_sequence, note.event["id"])
                    if random.random() < 0.1:
                        broker.acknowledge(subscriber, note.sequence)
                        say("cursor", subscriber, note.sequence)
            except RetentionError as error:
                broker.acknowledge(subscriber, error.first - 1)


def main(folder: str, run: str, kept: str) -> None:
    broker, random = Broker(Path(folder), limits=LIMITS), Random(int(run))
    broker.retain(**KEPT[kept])
    for subscriber in SUBSCRIBERS:
        broker.subscribe(subscriber, "all", "price >= 0")
    works: list[Callable[[], None]] = [
        lambda: publish(broker, Random(random.random()), f"{run}-0"),
        lambda: publish(broker, Random(random.random()), f"{run}-1"),
        lambda: subscribe(broker, Random(random.random())),
        lambda: read(broker, Random(random.random())),
    ]
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
