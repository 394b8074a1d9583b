"""Other tables in a folder do not believe the cache files that they find there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tamis
from tamis.broker import Broker, cache_names
from tamis.broker.limits import BrokerLimits
from tamis.broker.tables import Tables
from tamis.errors import BrokerError

LIMITS = BrokerLimits(notes_in_tail=2, changes_to_save=1, changes_behind=1, valid_to_save=1, valid_behind=1)
LATER = datetime(2999, 1, 1, tzinfo=UTC)


def opened(folder: Path) -> Broker:
    return Broker(folder, limits=LIMITS)


def copied(folder: Path, copy: Path) -> None:
    """Copy a folder as other programs do."""
    shutil.copytree(folder, copy)


def backed_up(folder: Path, copy: Path) -> None:
    with tamis.open(folder) as broker:
        broker.backup(copy)


def shown(broker: Broker) -> dict[str, list[tuple[int, int, tuple[str, ...]]]]:
    names = sorted({each.subscriber for each in broker.subscriptions()})
    return {
        name: [(note.sequence, note.event_sequence, note.subscriptions) for note in broker.notifications(name, 0)]
        for name in names
    }


@pytest.mark.parametrize("copy", [copied, backed_up])
def test_tables_that_went_on_elsewhere(tmp_path: Path, copy: Callable[[Path, Path], None]) -> None:
    """Both folders go on for a while from the same state. Then the tables of one replace those of the other."""
    one, other = tmp_path / "one", tmp_path / "other"
    with opened(one) as broker:
        broker.subscribe("ann", "low", "price < 10")
        broker.publish({"price": 1}, valid_until=LATER)
        broker.subscribe("bob", "high", "price >= 10")
    copy(one, other)
    with opened(one) as broker:
        for price in (11, 12, 13, 14):
            broker.publish({"price": price}, valid_until=LATER)
        broker.subscribe("bob", "one", "price > 11")
    with opened(other) as broker:
        for price in (2, 3, 4, 5, 6, 7):
            broker.publish({"price": price}, valid_until=LATER)
        broker.subscribe("bob", "high", "price > 100")
        broker.subscribe("bob", "other", "price = 2")
        expected = shown(broker)
    for path in one.glob("broker.sqlite*"):
        path.unlink()
    shutil.copy(other / "broker.sqlite", one)
    with opened(one) as broker:
        assert shown(broker) == expected
        assert list(broker.publish({"price": 12}).matches) == []
        assert sorted(broker.publish({"price": 2}).matches) == [("ann", "low"), ("bob", "other")]
        broker.subscribe("eve", "all", "price > 0")
        assert len(shown(broker)["eve"]) == 7  # the events that are valid


def test_files_that_the_tables_do_not_list_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the disk had failed between the file and the tables."""

    def fail(*given: object) -> None:
        raise BrokerError("the disk is full")

    with opened(tmp_path / "shop") as broker:
        monkeypatch.setattr(Tables, "put_cache", fail)
        broker.subscribe("ann", "low", "price < 10")
        for price in (1, 2, 3):
            broker.publish({"price": price}, valid_until=LATER)
        broker.compact()
        assert broker.stats()["problem"] == "the disk is full"
        expected = shown(broker)
    assert list((tmp_path / "shop").glob("*.tamis"))
    monkeypatch.undo()
    with opened(tmp_path / "shop") as broker:
        assert not list((tmp_path / "shop").glob("*.tamis"))
        assert shown(broker) == expected
        broker.compact()
        assert broker.stats()["problem"] is None


def test_names() -> None:
    name = cache_names.new_name("matcher", (5, -17))
    assert cache_names.numbers_of(name, "matcher") == (5, -17)
    assert cache_names.numbers_of(name, "queue") is None
    assert cache_names.numbers_of("matcher-5-17.tamis", "matcher") is None
    assert name != cache_names.new_name("matcher", (5, -17))
