"""A broker that is opened again meets the same stored events, with and without the file of valid events, whole or damaged."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.broker import Broker, valid_file
from tamis.broker.housekeeping import Housekeeping
from tamis.broker.limits import BrokerLimits
from tamis.broker.state import State
from tamis.broker.valid_events import ValidEvents
from tamis.errors import SnapshotError
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import flatten
from tamis.language.expression import Expression
from tamis.storage import container
from tests.random_cases import RandomCases

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
LIMITS = BrokerLimits(valid_behind=1, valid_to_save=1, strings_to_know=2)
"""Every new valid event makes a new file due."""
BOOKS: list[dict[str, Any]] = [
    {"title": "Emma", "price": 9.5, "out": datetime(2026, 1, 1), "new": True},
    {"title": "Émile", "price": 20, "tags": ["a", "b"]},
    {"title": "", "cover": b"png"},
    {"title": "Emma", "price": "free"},
    {"price": 2**60, "tags": []},
    {"price": tamis.Interval(5, 8)},
    {},
]
WISHES = [
    "title LIKE '%m%'",
    "price < 10",
    "tags = 'b'",
    "cover IS NULL",
    "title = 'Emma'",
    "NOT price = 20",
    "out > '2025'",
    "new",
]


class Shop:
    """A folder with books, all published with an end in seconds from `NOON` on."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.seconds = folder, 0
        self.events: list[tuple[dict[str, Any], int | None]] = []
        self._names = count()

    def opened(self, limits: BrokerLimits = LIMITS) -> Broker:
        clock = lambda: NOON + timedelta(seconds=self.seconds)  # noqa: E731
        return Broker(self.folder, clock=clock, synchronous="off", limits=limits)

    def publish(self, broker: Broker, events: list[dict[str, Any]], end: int | None = 100) -> None:
        until = None if end is None else NOON + timedelta(seconds=end)
        broker.publish_many(events, valid_until=until)
        self.events += [(event, end) for event in events]

    def met(self, broker: Broker, wish: str | Expression) -> list[int]:
        """The events that a new subscription meets."""
        name = f"s{next(self._names)}"
        broker.subscribe(name, "a", wish)
        found = [note.event_sequence for note in broker.notifications(name)]
        broker.remove_subscriber(name)
        return found

    def check(self, broker: Broker, wishes: list[Any]) -> None:
        """Compare what subscriptions meet with what the reference evaluator says."""
        for wish in wishes:
            read = tamis.parse(wish) if isinstance(wish, str) else wish
            expected = [
                number
                for number, (event, end) in enumerate(self.events, 1)
                if end is not None and end > self.seconds and evaluate_flat(read, flatten(event)) is True
            ]
            assert self.met(broker, wish) == expected, str(read)

    def files(self) -> list[str]:
        return sorted(re.sub(r"-[0-9a-f]{8}\.", ".", path.name) for path in self.folder.glob("valid-*"))

    def file(self) -> Path:
        (path,) = self.folder.glob("valid-*")
        return path


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A folder with books and a file of valid events."""
    made = Shop(tmp_path / "shop")
    with made.opened() as broker:
        made.publish(broker, BOOKS)
        made.check(broker, WISHES)
    assert made.files() == [f"valid-{len(BOOKS)}.tamis"]
    return made


def read_from_tables(broker: Broker) -> int:
    """How many valid events were read from the tables. Nothing was published since."""
    return int(broker.stats()["valid_events_unsaved"])


QUIET = BrokerLimits(valid_behind=10**9, valid_to_save=10**9, strings_to_know=2)
"""No file is written."""


# With and without a file


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("strings_to_know", [0, 10**6])
def test_random_events_and_expressions(tmp_path: Path, seed: int, strings_to_know: int) -> None:
    cases, random = RandomCases(seed, attributes=["a", "b", "user.name"]), Random(seed)
    limits = LIMITS._replace(strings_to_know=strings_to_know)
    shop = Shop(tmp_path / "shop")
    for turn in range(4):
        with shop.opened(limits) as broker:
            for _ in range(random.randint(0, 3)):
                events = [cases.event() for _ in range(random.randint(1, 15))]
                for event in events:
                    if random.random() < 0.2:
                        event[random.choice("ab")] = random.choice([b"x", [1, b"x"], {"c": b"x"}])
                shop.publish(broker, events, random.choice([None, 1, 5, 100]))
            shop.check(broker, [cases.expression(2) for _ in range(12)])
        without = Path(shutil.copytree(shop.folder, tmp_path / f"without-{turn}"))
        for path in without.glob("valid-*"):
            path.unlink()
        wishes = [cases.expression(2) for _ in range(12)]
        for folder in (shop.folder, without):
            shop.folder = folder
            with shop.opened(QUIET) as broker:
                shop.check(broker, wishes)
        shop.folder = tmp_path / "shop"
        shop.seconds += random.choice([0, 1, 3])


def test_a_file_spares_the_tables(shop: Shop) -> None:
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 0
        shop.publish(broker, BOOKS)
        shop.publish(broker, BOOKS, None)
        shop.check(broker, WISHES)
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == len(BOOKS)
    shop.file().unlink()
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 2 * len(BOOKS)


def test_values_outside_the_language_are_counted(shop: Shop) -> None:
    with shop.opened(QUIET) as broker:
        shop.met(broker, "cover = 'red'")
        assert broker.stats()["refused_values"] == 1


def test_events_that_are_over_do_not_come_back(shop: Shop) -> None:
    with shop.opened() as broker:
        shop.publish(broker, BOOKS, 10)
        shop.check(broker, WISHES)
    shop.seconds = 10
    with shop.opened() as broker:
        shop.check(broker, WISHES)
    shop.seconds = 100
    with shop.opened() as broker:
        assert shop.met(broker, "TRUE") == []


def test_events_that_were_deleted_do_not_come_back(shop: Shop) -> None:
    with shop.opened() as broker:
        broker.retain(max_age=timedelta(seconds=5))
        shop.publish(broker, BOOKS, 10)
        shop.publish(broker, [{"title": "Mum"}], 1000)
        shop.check(broker, WISHES)
    old = shop.file().read_bytes(), shop.file()
    with shop.opened(QUIET) as broker:
        shop.seconds = 200
        shop.publish(broker, [{"title": "Sum"}], None)  # The time is stored with it.
        broker.compact()
        assert broker.stats()["events"] == 2
    assert shop.file().read_bytes() == old[0]
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 0


def test_the_last_event_of_a_file_may_have_left_the_tables(shop: Shop) -> None:
    with shop.opened(QUIET) as broker:
        broker.retain(max_age=timedelta(seconds=5))
        shop.publish(broker, [{"title": "Mum"}], 1000)
        shop.seconds = 200
        broker.compact()
        assert broker.stats()["events"] == 1
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 1


# When a file is written


def test_few_new_events_are_not_saved(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    limits = BrokerLimits(valid_behind=1000, valid_to_save=10)
    with shop.opened(limits) as broker:
        shop.met(broker, "TRUE")
        shop.publish(broker, [{"n": n} for n in range(9)])
        shop.met(broker, "TRUE")
    assert shop.files() == []
    with shop.opened(limits) as broker:
        shop.publish(broker, [{"n": 9}])
        shop.met(broker, "TRUE")
    assert shop.files() == ["valid-10.tamis"]
    with shop.opened(limits) as broker:
        shop.publish(broker, [{"n": n} for n in range(9)])
        shop.met(broker, "TRUE")
    assert shop.files() == ["valid-10.tamis"]


def test_the_share_of_new_events_counts(tmp_path: Path) -> None:
    """A file of many events is not written again for a few."""
    shop = Shop(tmp_path / "shop")
    with shop.opened() as broker:
        shop.publish(broker, [{"n": n} for n in range(320)])
        shop.met(broker, "TRUE")
    with shop.opened(LIMITS._replace(valid_behind=10**9)) as broker:
        shop.met(broker, "TRUE")
        shop.publish(broker, [{"n": 1}] * 9)
    assert shop.files() == ["valid-320.tamis"]
    with shop.opened(LIMITS._replace(valid_behind=10**9)) as broker:
        shop.met(broker, "TRUE")
        shop.publish(broker, [{"n": 1}])
    assert shop.files() == ["valid-330.tamis"]


@pytest.mark.parametrize("few", [0, 3])
def test_events_are_saved_before_anybody_needs_them(tmp_path: Path, few: int) -> None:
    """A writer keeps valid events in columns from the first one on, in a new folder, with few events, and with a file."""
    shop = Shop(tmp_path / "shop")
    limits = BrokerLimits(valid_behind=1000, valid_to_save=5)
    with shop.opened(limits) as broker:
        shop.publish(broker, BOOKS[:few])
        assert broker.stats()["valid_events"] == few
    assert shop.files() == []
    with shop.opened(limits) as broker:
        shop.publish(broker, BOOKS)
        assert broker.stats()["valid_events"] == few + len(BOOKS)
    assert shop.files() == [f"valid-{few + len(BOOKS)}.tamis"]
    with shop.opened(limits) as broker:
        shop.publish(broker, BOOKS)
        assert broker.stats()["valid_events"] == few + 2 * len(BOOKS)
        assert broker.stats()["valid_events_unsaved"] == len(BOOKS)
        shop.check(broker, WISHES)
    assert shop.files() == [f"valid-{few + 2 * len(BOOKS)}.tamis"]


def test_many_events_without_a_file_are_read_when_somebody_needs_them(shop: Shop) -> None:
    shop.file().unlink()
    with shop.opened() as broker:
        assert broker.stats()["valid_events"] == 0
        shop.publish(broker, BOOKS)
        assert broker.stats()["valid_events"] == 0
        shop.check(broker, WISHES)
        assert broker.stats()["valid_events"] == len(shop.events)


def test_events_are_saved_while_the_broker_is_open(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    with shop.opened() as broker:
        shop.publish(broker, BOOKS)
        shop.check(broker, WISHES)
        for _ in range(20):
            shop.publish(broker, BOOKS)
        for thread in threading.enumerate():
            if thread.name == "tamis-broker":
                thread.join()
        assert len(shop.files()) == 1
        crashed = shop.folder.with_name("crashed")
        shutil.copytree(shop.folder, crashed)
        shop.check(broker, WISHES)
    shop.folder = crashed
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
        assert read_from_tables(broker) < len(shop.events)


def test_a_call_that_was_interrupted_saves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event is in the tables, but not among the valid events in memory."""
    shop = Shop(tmp_path / "shop")
    broker = shop.opened()
    with monkeypatch.context() as patched:
        patched.setattr(Housekeeping, "begin", lambda self, sweep: None)
        shop.publish(broker, BOOKS)
        shop.check(broker, WISHES)

    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(State, "add_valid", interrupt)
        with pytest.raises(KeyboardInterrupt):
            shop.publish(broker, BOOKS)
    broker.close()
    assert shop.files() == []
    shop.events *= 2
    with shop.opened() as broker:
        shop.check(broker, WISHES)


def test_a_file_that_cannot_be_written_is_a_problem_and_no_error(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> None:
        raise SnapshotError("the disk is full", path="x")

    monkeypatch.setattr(valid_file, "write_valid", fail)
    with shop.opened(LIMITS._replace(changes_to_save=10**9)) as broker:
        shop.publish(broker, BOOKS)
        shop.check(broker, WISHES)
        broker.compact()
        assert "the disk is full" in broker.stats()["problem"]
    with shop.opened() as broker:
        shop.check(broker, WISHES)


# What may have become of a file


def damages(content: bytes) -> list[bytes]:
    cut = [content[:size] for size in [0, 1, 8, 63, 64, *range(65, len(content), 997), len(content) - 1]]
    flipped = [content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :] for at in range(0, len(content), 61)]
    return [*cut, *flipped, content + b"\0" * 64, content[64:], b"a list of books\n" * 1000]


def test_a_damaged_file_is_ignored_and_deleted(shop: Shop) -> None:
    whole, path = shop.file().read_bytes(), shop.file()
    for content in damages(whole):
        path.write_bytes(content)
        with shop.opened(QUIET) as broker:
            shop.check(broker, WISHES[:3])
            assert read_from_tables(broker) == len(BOOKS)
        assert shop.files() == []


def _other_version(path: Path) -> None:
    opened = container.open(path, mmap=False)
    arrays = {name: opened.array(name) for name in opened.names}
    container.write(path, arrays, {**opened.meta, "content_version": 99})


def _other_content(path: Path) -> None:
    container.write(path, {"x": np.arange(3)}, {"content": "queue", "content_version": 1})


@pytest.mark.parametrize("change", [_other_version, _other_content])
def test_a_foreign_file_is_ignored_and_deleted(shop: Shop, change: Callable[[Path], None]) -> None:
    change(shop.file())
    with shop.opened(QUIET) as broker:
        assert shop.files() == []
        shop.check(broker, WISHES)


def test_a_file_with_another_name_is_no_cache(shop: Shop) -> None:
    (shop.folder / "valid-x.tamis").write_bytes(b"")
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
    assert "valid-x.tamis" in shop.files()


def _restored(shop: Shop, tmp_path: Path) -> None:
    """Let the shop go on, then bring the tables of before back. The caches stay."""
    with shop.opened() as broker:
        broker.backup(tmp_path / "backup")
        shop.seconds = 1
        shop.publish(broker, [{"title": "from another time"}] * 3)
        shop.check(broker, WISHES)
    del shop.events[-3:]
    shutil.copy(tmp_path / "backup" / "broker.sqlite", shop.folder)
    for path in shop.folder.glob("broker.sqlite-*"):
        path.unlink()


def test_a_file_that_is_newer_than_the_tables_is_ignored_and_deleted(shop: Shop, tmp_path: Path) -> None:
    _restored(shop, tmp_path)
    assert shop.files() == ["valid-10.tamis"]
    with shop.opened(QUIET) as broker:
        assert shop.files() == []
        shop.check(broker, WISHES)


@pytest.mark.parametrize("more", [1, 3, 5])
def test_a_file_of_other_tables_is_ignored(shop: Shop, tmp_path: Path, more: int) -> None:
    """As many events come after a backup was restored, and then the file is back."""
    _restored(shop, tmp_path)
    path, content = shop.file(), shop.file().read_bytes()
    with shop.opened(QUIET) as broker:
        shop.seconds = 2
        shop.publish(broker, [{"title": "mine"}] * more)
    path.write_bytes(content)
    with shop.opened(QUIET) as broker:
        shop.check(broker, WISHES)
    assert shop.files() == []


def test_a_crash_leaves_the_old_file_beside_the_new_one(shop: Shop) -> None:
    old, content = shop.file(), shop.file().read_bytes()
    with shop.opened() as broker:
        shop.publish(broker, BOOKS)
        shop.check(broker, WISHES)
    new = shop.file()
    old.write_bytes(content)
    with shop.opened(QUIET) as broker:
        assert shop.file() == new
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 0
    # If the new file is damaged, the tables serve.
    old.write_bytes(content)
    os.truncate(new, 100)
    with shop.opened(QUIET) as broker:
        assert shop.files() == []
        shop.check(broker, WISHES)
        assert read_from_tables(broker) == 2 * len(BOOKS)


def test_a_crash_leaves_a_part_of_a_file(shop: Shop) -> None:
    (shop.folder / ".valid-9-89abcdef.tamis.0123abcd.part").write_bytes(b"half")
    with shop.opened() as broker:
        shop.publish(broker, [{"title": "Sum"}] * 2)
        shop.check(broker, WISHES)
    assert list(shop.folder.glob(".valid-*")) == []


# What is written


def test_contents_stay_while_events_come_and_go() -> None:
    """They are written while others publish."""
    valid = ValidEvents(look_again=8)

    def add(numbers: range) -> None:
        for number in numbers:
            valid.add(number, flatten({"a": number, "b": f"b{number}", "c": [1, number], "d": b"x"}), number)

    add(range(1, 10))
    for end in (40, 400, 9000):
        contents = valid.contents()
        kept = [np.copy(array) for array in contents[:2]]
        columns = {key: (each.rows.copy(), each.values.copy(), each.texts) for key, each in contents.columns.items()}
        texts = {key: None if each.texts is None else each.texts.to_pylist() for key, each in contents.columns.items()}
        add(range(int(contents.sequence[-1]) + 1, end))
        valid.forget(end - 4)
        assert all(map(np.array_equal, contents[:2], kept))
        for key, column in contents.columns.items():
            assert np.array_equal(column.rows, columns[key][0])
            assert np.array_equal(column.values, columns[key][1])
            assert (None if column.texts is None else column.texts.to_pylist()) == texts[key]
    assert len(valid) < 9000


def test_a_restored_broker_goes_on(shop: Shop) -> None:
    """Arrays of a file cannot be written to. New events take copies."""
    for _ in range(3):
        with shop.opened() as broker:
            shop.check(broker, WISHES)
            shop.publish(broker, BOOKS)
            shop.check(broker, WISHES)
            shop.publish(broker, [{"title": f"t{n}", "price": n} for n in range(50)])
            shop.check(broker, [*WISHES, "title = 't7'", "title IN ('t8', 'Emma')", "title NOT LIKE 't%'"])
