"""A process that uses a broker from several threads until somebody kills it. `test_crashes` runs this file.

The test of the service uses the same load, with clients in place of the broker, and kills the service.

It prints a line before and after each call, as JSON: ["begin", number, call, ...] and ["done", number, ...]. Each line is one
write to the pipe, so a line is there whole or not at all, and none is lost when the process dies.

Events are of three kinds: "moment" ones are valid at their own moment, "short" ones for a while, "long" ones until the end
of the next run.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import tamis
from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits

if TYPE_CHECKING:
    from tamis.client.client import Client

START = datetime(2026, 11, 18, tzinfo=UTC)
TICKS_OF_A_RUN = 1_000_000
"""Milliseconds between the clocks of two runs."""
SUBSCRIBERS = ["ann", "bob", "eve"]
GENRES = ["crime", "poetry", "classics"]


def moment(tick: int) -> datetime:
    return START + timedelta(milliseconds=tick)


HISTORY = tamis.History(rows=5, key="genre")
JOINED = [
    "price < ALL (SELECT price FROM history)",
    "price = ANY (SELECT price FROM history)",
    "price > 15 AND NOT EXISTS (SELECT 1 FROM history h WHERE h.price > price)",
]


def opened(folder: Path, ticks: Any, history: tamis.History | None) -> Broker:
    """A broker whose clock goes on by a millisecond with each look at it."""
    # With few pages in the log, it is copied to the tables many times.
    limits = BrokerLimits(
        notes_in_tail=64, rows_at_once=50, notes_at_once=20, log_pages=50, valid_behind=20, valid_to_save=5
    )
    return Broker(folder, clock=lambda: moment(next(ticks)), synchronous="full", history=history, limits=limits)


class Load:
    """The threads and what they share.

    Parameters
    ----------
    broker : Broker or Client
    ticks : iterator
        The milliseconds of the broker's clock.
    run : int
    long : datetime
        The end of "long" events.
    say : callable
        Takes the words of a line.
    joins : bool
        Whether subscriptions compare with earlier events.
    """

    def __init__(
        self,
        broker: Broker | Client,
        ticks: Iterator[int],
        run: int,
        long: datetime,
        say: Callable[..., None],
        *,
        joins: bool,
    ) -> None:
        self.broker = broker
        self.ticks = ticks
        self.run = run
        self.long = long
        self.say = say
        self._joined = JOINED if joins else []
        self._numbers = count(1)

    def works(self) -> list[Callable[[], None]]:
        """What the threads do, each until the process is killed."""
        random = Random(self.run)
        calls = [(self.publish, thread) for thread in range(3)]
        works: list[tuple[Any, ...]] = [*calls, *((self.subscribe, each) for each in SUBSCRIBERS), (self.read,)]
        return [partial(work, Random(random.random()), *words) for work, *words in works]

    def begin_all(self) -> None:
        """Make the subscribers that are missing."""
        for subscriber in SUBSCRIBERS:
            if subscriber not in {each.subscriber for each in self.broker.subscriptions()}:
                self.call("subscribe", subscriber, "all", "price >= 0")

    def begin(self, call: str, *words: Any) -> int:
        number = next(self._numbers)
        self.say("begin", number, call, *words)
        return number

    # Publishers

    def publish(self, random: Random, thread: int) -> None:
        for turn in count():
            if random.random() < 0.3:
                self._publish_many(random, thread, turn)
                continue
            event, kind = _event(random, self.run, thread, turn, 0), random.choice(["moment", "short", "long"])
            key = f"{self.run}-{thread}-{turn}" if random.random() < 0.3 else None
            number = self.begin("publish", [event], kind)
            receipt = self.broker.publish(event, valid_until=self._until(kind), key=key)
            self.say("done", number, [[receipt.sequence, list(receipt.matches)]])

    def _publish_many(self, random: Random, thread: int, turn: int) -> None:
        events = [_event(random, self.run, thread, turn, place) for place in range(random.choice([0, 2, 5]))]
        kind = random.choice(["moment", "short", "long"])
        number = self.begin("publish", events, kind)
        receipts = self.broker.publish_many(events, valid_until=self._until(kind))
        self.say("done", number, [[receipt.sequence, list(receipt.matches)] for receipt in receipts])

    def _until(self, kind: str) -> datetime | None:
        return {"moment": None, "short": moment(next(self.ticks) + 40), "long": self.long}[kind]

    # Subscribers

    def subscribe(self, random: Random, subscriber: str) -> None:
        """Add and change the subscriptions of a subscriber. Nobody else touches them."""
        standing = {each.name: each.paused for each in self.broker.subscriptions() if each.subscriber == subscriber}
        for turn in count():
            name = f"n{random.randrange(8)}"
            paused = standing.get(name)
            choice = random.random()
            if paused is None or choice < 0.3:
                plain = [f"price < {random.randrange(20)}", f"genre = '{random.choice(GENRES)}'", "FALSE"]
                text = random.choice([*plain, *self._joined])
                self.call("subscribe", subscriber, name, text)
                standing[name] = bool(paused)
            elif choice < 0.45:
                self.call("unsubscribe", subscriber, name)
                del standing[name]
            else:
                self.call("resume" if paused else "pause", subscriber, name)
                standing[name] = not paused
            if turn % 5 == 0:
                self._subscribe_for_a_while(random, subscriber, f"r{self.run}-{turn}")

    def call(self, call: str, *words: Any) -> None:
        number = self.begin(call, *words)
        getattr(self.broker, call)(*words)
        self.say("done", number)

    def _subscribe_for_a_while(self, random: Random, subscriber: str, name: str) -> None:
        """A subscription that begins later, ends, and is never changed."""
        start = next(self.ticks) + random.randrange(5, 60)
        end = start + random.randrange(20, 200)
        text = random.choice([f"price < {random.randrange(20)}", *self._joined])
        number = self.begin("subscribe", subscriber, name, text, start, end)
        self.broker.subscribe(subscriber, name, text, valid_from=moment(start), valid_until=moment(end))
        self.say("done", number, next(self.ticks))

    # Readers

    def read(self, random: Random) -> None:
        """Read notes, say what they are, and acknowledge some."""
        while True:
            subscriber = random.choice(SUBSCRIBERS)
            for note in self.broker.notifications(subscriber):
                self.say("note", subscriber, note.sequence, note.event_sequence, note.subscriptions)
                if random.random() < 0.2:
                    self.call("acknowledge", subscriber, note.sequence)
                if random.random() < 0.05:
                    break


def _event(random: Random, run: int, thread: int, turn: int, place: int) -> dict[str, Any]:
    return {
        "id": f"{run}-{thread}-{turn}-{place}",
        "price": random.randrange(20),
        "genre": random.choice(GENRES),
    }


def say(*words: Any) -> None:
    line = json.dumps(words).encode() + b"\n"
    assert len(line) <= 4096  # What a pipe takes in one piece.
    os.write(1, line)


def main(folder: str, run: str, keeps_history: str) -> None:
    joins, number = keeps_history == "True", int(run)
    ticks = count(number * TICKS_OF_A_RUN)
    broker = opened(Path(folder), ticks, HISTORY if joins else None)
    load = Load(broker, ticks, number, moment((number + 2) * TICKS_OF_A_RUN), say, joins=joins)
    load.begin_all()
    threads = [threading.Thread(target=work) for work in load.works()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
