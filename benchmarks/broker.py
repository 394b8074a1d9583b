"""What a broker costs: publishing, sharing commits, reading, meeting stored events, opening.

python -m benchmarks.broker [--quick] [--folder FOLDER] [--json FILE] [--parts PART ...]

Every figure is a ratio to something plain that is measured beside it, or a rate. `FOLDER` says which disk is measured.
"""

from __future__ import annotations

import argparse
import json
import resource
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path
from statistics import median
from typing import Any, get_args

import numpy as np

import tamis
from benchmarks.broker_meetings import meetings
from tamis.broker.event_text import event_text
from tamis.broker.moments import moment_of
from tamis.broker.number_lists import numbers_text
from tamis.broker.tables import Synchronous
from tamis.experiments.machine import machine, versions
from tamis.experiments.timing import seconds_of
from tests.broker import faults

_AT_ONCE = 1000
"""Events of one call of `publish_many`."""
_THREADS = 16
_READERS = 50
"""Subscribers whose reading is measured. No two of them have an event in common."""
_SLOW_SYNC = 0.002
_LATER = datetime(2999, 1, 1, tzinfo=UTC)

Figures = dict[str, Any]


class Sizes:
    """How much is measured."""

    def __init__(self, quick: bool) -> None:
        self.subscriptions = 2_000 if quick else 100_000
        self.subscribers = 2_000 if quick else 1_000_000
        self.stored = 5_000 if quick else 1_000_000
        self.turns = 2 if quick else 7
        self.publishes = 64 if quick else 4_000
        self.matches = (1, 100) if quick else (1, 1000)


def wishes(number: int, groups: int) -> Iterator[str]:
    """Expressions of which `number / groups` are true of an event."""
    return (f"item = {each % groups} AND price < {50 + each % 50} AND stock >= 1" for each in range(number))


def offers(seed: int, number: int, groups: int) -> list[dict[str, Any]]:
    """Events that satisfy all wishes of one item."""
    random = np.random.default_rng(seed)
    items, prices = random.integers(0, groups, number).tolist(), random.uniform(0, 49, number).round(2).tolist()
    return [
        {"item": item, "price": price, "stock": 3, "title": f"title {item} of the shop", "condition": "fine"}
        for item, price in zip(items, prices, strict=True)
    ]


def filled_broker(folder: Path, number: int, groups: int, synchronous: Synchronous = "full") -> tamis.broker.Broker:
    """A broker in which each subscriber has one wish."""
    broker = tamis.open(folder, synchronous=synchronous)
    texts = wishes(number, groups)
    rows = [{"subscriber": f"reader {each}", "name": "wish", "expression": text} for each, text in enumerate(texts)]
    broker.subscribe_many(rows)
    return broker


class PlainScript:
    """What a user writes without a broker: match a batch, and store each event and its list of matches as one row.

    A key and an end are columns, too. Keys are unique, so that a second try stores nothing.
    """

    def __init__(self, path: Path, number: int, groups: int, has_keys: bool) -> None:
        self.matcher: tamis.Matcher[int] = tamis.Matcher()
        self.matcher.add_many(range(1, number + 1), wishes(number, groups))
        self._tables = sqlite3.connect(path, isolation_level=None)
        self._tables.execute("PRAGMA journal_mode = WAL")
        self._tables.execute("PRAGMA synchronous = FULL")
        unique = "UNIQUE" if has_keys else ""
        columns = f"number INTEGER PRIMARY KEY, event TEXT, matches TEXT, key TEXT {unique}, valid_until INTEGER"
        self._tables.execute(f"CREATE TABLE events ({columns})")

    def publish(
        self, events: Sequence[dict[str, Any]], valid_until: datetime | None, keys: Sequence[str | None] | None
    ) -> None:
        found = self.matcher.match_batch(list(events))
        names = found["subscription"].to_numpy()
        ends = np.searchsorted(found["event"].to_numpy(), np.arange(len(events) + 1)).tolist()
        end = None if valid_until is None else moment_of(valid_until)
        rows = (
            (event_text(event), numbers_text(names[ends[row] : ends[row + 1]]), keys and keys[row], end)
            for row, event in enumerate(events)
        )
        self._tables.execute("BEGIN")
        self._tables.executemany(
            "INSERT OR IGNORE INTO events (event, matches, key, valid_until) VALUES (?, ?, ?, ?)", rows
        )
        self._tables.execute("COMMIT")


def publishing(home: Path, sizes: Sizes, matches: int) -> list[Figures]:
    """`publish_many` beside the plain script."""
    groups = max(1, sizes.subscriptions // matches)
    figures: list[Figures] = []
    with filled_broker(home / f"publishing-{matches}", sizes.subscriptions, groups) as broker:
        # A subscription meets an event, so all valid events are in memory from here on.
        broker.publish({"nobody": 1}, valid_until=_LATER)
        broker.subscribe("reader 0", "another wish", "nobody = 2")
        for options in ((), ("keys",), ("valid_until",), ("keys", "valid_until")):
            script = PlainScript(
                home / f"plain-{matches}-{len(figures)}.sqlite", sizes.subscriptions, groups, "keys" in options
            )
            figures.append(publishing_with(broker, script, sizes.turns, groups, options))
            figures[-1]["matches"] = matches
    return figures


def publishing_with(
    broker: tamis.broker.Broker, script: PlainScript, turns: int, groups: int, options: Sequence[str]
) -> Figures:
    """`publish_many` beside the plain script, with some options."""
    taken: dict[str, list[float]] = {"plain": [], "broker": []}
    for turn in range(turns + 1):
        for name in ("plain", "broker"):
            events = offers(2 * turn + (name == "plain"), _AT_ONCE, groups)
            keys = [f"{'-'.join(options)}-{turn}-{row}" for row in range(_AT_ONCE)] if "keys" in options else None
            end = _LATER if "valid_until" in options else None

            def publish(name: str = name, events: Any = events, keys: Any = keys, end: Any = end) -> None:
                if name == "plain":
                    script.publish(events, end, keys)
                else:
                    broker.publish_many(events, valid_until=end, keys=keys)

            seconds = seconds_of(publish)
            if turn:
                taken[name].append(seconds)
    ratios = [ours / plain for ours, plain in zip(taken["broker"], taken["plain"], strict=True)]
    milliseconds = {name: 1000 * median(values) for name, values in taken.items()}
    return {"options": list(options), "milliseconds": milliseconds, "ratio": median(ratios)}


def sharing(home: Path, sizes: Sizes, synchronous: Synchronous, *, slow: bool = False) -> Figures:
    """Single publishes of one thread and of many. With `slow`, each sync of the disk takes at least two milliseconds."""
    with ExitStack() as stack:
        if slow:
            stack.enter_context(faults.Faults(sync_delay=_SLOW_SYNC, methods=("sync",)))
        folder = home / f"sharing-{synchronous}-{slow}"
        filled_broker(folder, sizes.subscriptions, sizes.subscriptions, synchronous).close()
        # Opened again, the matcher has no merges of new subscriptions left to do in the background.
        broker = stack.enter_context(tamis.open(folder, synchronous=synchronous))
        events = offers(1, 1000, sizes.subscriptions)

        def publish(place: int) -> object:
            return broker.publish(events[place % 1000])

        rate(publish, sizes.publishes // 10, _THREADS)
        ones, manys = [], []
        before = broker.stats()["commits"]
        for _ in range(sizes.turns):
            ones.append(rate(publish, sizes.publishes // (20 if slow else 10), 1))
            manys.append(rate(publish, sizes.publishes, _THREADS))
        alone = sizes.turns * (sizes.publishes // (20 if slow else 10))
        commits = (broker.stats()["commits"] - before - alone) / (sizes.turns * sizes.publishes)
    one, many = median(ones), median(manys)
    return {
        "synchronous": synchronous,
        "slow": slow,
        "one": one,
        "many": many,
        "gain": many / one,
        "commits": commits,
    }


def rate(publish: Callable[[int], object], number: int, threads: int) -> float:
    """Calls per second of some threads."""
    places = count()

    def labour() -> None:
        while (place := next(places)) < number:
            publish(place)

    workers = [threading.Thread(target=labour) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return number / (time.perf_counter() - start)


def readers(groups: int) -> range:
    """Subscribers of different groups."""
    return range(1, min(groups, 1 + _READERS))


def scattered(groups: int) -> list[dict[str, Any]]:
    """Events for subscribers who have nothing in common: 200 for the group of each reader, 2,000 for one group, 2 for all others.

    They come in random order, so that the events of a reader lie far apart.
    """
    few, many = np.repeat(np.arange(groups), 2), np.repeat(np.array(readers(groups)), 200)
    items = np.concatenate([few, many, np.zeros(2000, np.int64)])
    np.random.default_rng(5).shuffle(items)
    events = zip(offers(0, len(items), groups), items.tolist(), strict=True)
    return [
        {**event, "item": item, "title": f"title {place} of the shop"} for place, (event, item) in enumerate(events)
    ]


def read_next(broker: tamis.broker.Broker, subscriber: str) -> None:
    """Read the 100 notes after the first 50."""
    notes = list(islice(broker.notifications(subscriber, 50), 100))
    assert [note.sequence for note in notes] == list(range(51, 151))


def reading(home: Path, sizes: Sizes) -> Figures:
    """The next 100 notes of one of many subscribers, and opening a folder with all of them."""
    folder = home / "reading"
    groups = max(1, sizes.subscribers // 1000)
    start = time.perf_counter()
    with filled_broker(folder, sizes.subscribers, groups) as broker:
        subscribing = time.perf_counter() - start
        events = scattered(groups)
        for first in range(0, len(events), _AT_ONCE):
            broker.publish_many(events[first : first + _AT_ONCE])
    opening = seconds_of(lambda: tamis.open(folder).close())
    for path in (*folder.glob("matcher-*"), *folder.glob("queue-*")):
        path.unlink()
    building = seconds_of(lambda: tamis.open(folder).close())
    with tamis.open(folder) as broker:
        names = [f"reader {each}" for each in readers(groups)]
        taken = [seconds_of(lambda name=name: read_next(broker, name)) for name in names]  # type: ignore[misc]
        total = broker.stats()["notes"]
    return {
        "subscribers": sizes.subscribers,
        "notes": total,
        "read_milliseconds": 1000 * median(taken),
        "subscribe_seconds": subscribing,
        "open_seconds": opening,
        "build_seconds": building,
    }


def first_meeting(home: Path, sizes: Sizes) -> Figures:
    """Opening a folder with valid events, until the first new subscription has met them, and telling one about most of them."""
    folder = home / "valid"
    with tamis.open(folder, synchronous="off") as broker:
        broker.subscribe("ann", "none", "price < 0")
        for turn in range(sizes.stored // _AT_ONCE):
            events = offers(turn, _AT_ONCE, 1000)
            titled = [{**event, "title": f"title {turn} {row}"} for row, event in enumerate(events)]
            broker.publish_many(titled, valid_until=_LATER)
    names = count()

    def meet() -> None:
        with tamis.open(folder) as broker:
            broker.subscribe("ann", f"new {next(names)}", "item = 7 AND price < 1")

    meet()
    cached = seconds_of(meet)
    for path in folder.glob("*.tamis"):
        path.unlink()
    plain = seconds_of(meet)
    with tamis.open(folder) as broker:
        broker.subscribe("bob", "none", "price < 0")
        start = time.process_time()
        broker.subscribe("bob", "most", "price < 44")
        telling = time.process_time() - start
        told = broker.subscriber("bob").last
    return {
        "events": sizes.stored,
        "cached_seconds": cached,
        "plain_seconds": plain,
        "told": told,
        "telling_milliseconds": 1000 * telling,
    }


_LAYOUTS = {
    "a row for each match": ("CREATE TABLE matches (event INTEGER, subscription INTEGER)", None),
    "JSON text for each event": (
        "CREATE TABLE matches (event INTEGER, subscriptions TEXT)",
        lambda names: numbers_text(np.array(names, np.int32)),
    ),
    "bytes for each event": (
        "CREATE TABLE matches (event INTEGER, subscriptions BLOB)",
        lambda names: np.array(names, np.int32).tobytes(),
    ),
}


def layouts(home: Path, sizes: Sizes) -> list[Figures]:
    """Ways to store a thousand matches of each of a hundred events."""
    random = np.random.default_rng(1)
    lists = [np.sort(random.integers(0, 10**6, sizes.matches[1])).tolist() for _ in range(100)]
    figures = []
    for place, (name, (schema, write)) in enumerate(_LAYOUTS.items()):
        path = home / f"layout-{place}.sqlite"
        tables = sqlite3.connect(path, isolation_level=None)
        tables.execute(schema)
        if write is None:
            rows: Any = ((event, each) for event, names in enumerate(lists) for each in names)
        else:
            rows = ((event, write(names)) for event, names in enumerate(lists))

        def store(tables: sqlite3.Connection = tables, rows: Any = rows) -> None:
            tables.execute("BEGIN")
            tables.executemany("INSERT INTO matches VALUES (?, ?)", rows)
            tables.execute("COMMIT")

        seconds = seconds_of(store)
        tables.close()
        figures.append({"layout": name, "milliseconds": 1000 * seconds, "bytes": path.stat().st_size})
    return figures


@contextmanager
def a_home(folder: str | None) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as home:
        yield Path(home)


PARTS = ("publishing", "sharing", "layouts", "meeting", "first_meeting", "reading")


def measure(quick: bool, folder: str | None, parts: Sequence[str] = PARTS) -> Figures:
    """The figures of some parts. Each part is printed as soon as it is measured."""
    sizes = Sizes(quick)
    figures: Figures = {"benchmark": "broker", "machine": machine(), "versions": versions(), "tamis": tamis.__version__}
    with a_home(folder) as home:
        slow = (False, True) if faults.available() else (False,)
        works: dict[str, Callable[[], Any]] = {
            "publishing": lambda: [row for matches in sizes.matches for row in publishing(home, sizes, matches)],
            "sharing": lambda: [
                sharing(home, sizes, each, slow=is_slow)
                for is_slow in slow
                for each in (("full",) if is_slow else get_args(Synchronous))
            ],
            "layouts": lambda: layouts(home, sizes),
            "meeting": lambda: meetings(sizes.stored, sizes.turns),
            "first_meeting": lambda: first_meeting(home, sizes),
            "reading": lambda: reading(home, sizes),
        }
        for part in parts:
            _note(figures, part, works[part]())
    figures["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return figures


def _note(figures: Figures, name: str, found: Any) -> None:
    figures[name] = found
    for each in found if isinstance(found, list) else [found]:
        sys.stdout.write(f"{name}: {json.dumps(each)}\n")
        sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="little data, to try the benchmark")
    parser.add_argument("--folder", help="a folder on the disk to measure")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="the other figures of the file stay")
    given = parser.parse_args()
    figures = measure(given.quick, given.folder, given.parts)
    if given.json is not None:
        if given.json.exists() and len(given.parts) < len(PARTS):
            before = json.loads(given.json.read_text())
            figures = {**before, **figures, "peak_bytes": max(before["peak_bytes"], figures["peak_bytes"])}
        given.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
