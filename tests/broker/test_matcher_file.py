"""The saved matcher is never far behind, whenever a process is killed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tamis.broker import Broker, cache_names, matcher_file, matcher_files
from tamis.broker.folder import TABLES
from tamis.broker.housekeeping import Housekeeping
from tamis.broker.limits import BrokerLimits
from tamis.broker.tables import Tables
from tamis.errors import SnapshotError
from tests.broker.folders import copy_folder

LIMITS = BrokerLimits(changes_behind=6)
START = datetime(2026, 11, 18, tzinfo=UTC)


def behind(folder: Path) -> int:
    """How many changes the newest saved matcher lacks, if the process is killed now."""
    tables = Tables(str(folder / TABLES), read_only=True)
    try:
        changes = tables.last("subscriptions", "change")
        saved = [0, *(numbers[0] for numbers, _ in cache_names.numbered(tables.caches(), matcher_file.KIND))]
        return changes - max(saved)
    finally:
        tables.close()


def rows(count: int, first: int = 0) -> list[dict[str, str]]:
    return [
        {"subscriber": f"user {each}", "name": "low", "expression": f"price < {each}"} for each in range(first, count)
    ]


def check_killed(folder: Path, copy: Path) -> None:
    """A process that is killed now leaves a matcher that serves."""
    copy_folder(folder, copy)
    assert behind(copy) <= LIMITS.changes_behind
    with Broker(copy, limits=LIMITS) as broker:
        expected = sum(1 for each in broker.subscriptions() if not each.paused)
        assert broker.stats()["active"] == expected
        assert len(broker.publish({"price": -1}).matches) == expected


def test_after_subscribing_many(tmp_path: Path) -> None:
    with Broker(tmp_path / "shop", limits=LIMITS) as broker:
        for step, count in enumerate([3, 5, 40, 41, 100]):
            broker.subscribe_many(rows(count))
            check_killed(tmp_path / "shop", tmp_path / str(step))


def test_without_a_thread_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if it were slow: calls save the matcher themselves."""
    monkeypatch.setattr(Housekeeping, "begin", lambda *given: None)
    with Broker(tmp_path / "shop", limits=LIMITS) as broker:
        for each in range(30):
            broker.subscribe("ann", str(each), "price < 3")
            assert behind(tmp_path / "shop") <= LIMITS.changes_behind
        check_killed(tmp_path / "shop", tmp_path / "subscribed")
        for each in range(30):
            broker.pause("ann", str(each)) if each % 2 else broker.unsubscribe("ann", str(each))
            assert behind(tmp_path / "shop") <= LIMITS.changes_behind
        check_killed(tmp_path / "shop", tmp_path / "paused")
        broker.remove_subscriber("ann")
        check_killed(tmp_path / "shop", tmp_path / "removed")


def test_many_subscriptions_that_begin_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beginning counts as a change."""
    monkeypatch.setattr(Housekeeping, "begin", lambda *given: None)
    now = START
    with Broker(tmp_path / "shop", clock=lambda: now, limits=LIMITS) as broker:
        broker.subscribe_many([{**each, "valid_from": START + timedelta(seconds=9)} for each in rows(50)])
        now += timedelta(seconds=10)
        assert len(broker.publish({"price": -1}).matches) == 50
        assert behind(tmp_path / "shop") <= LIMITS.changes_behind


def test_a_disk_that_is_full_for_the_matcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> str:
        raise SnapshotError("the disk is full", path="matcher")

    with Broker(tmp_path / "shop", limits=LIMITS) as broker:
        monkeypatch.setattr(Housekeeping, "begin", lambda *given: None)
        monkeypatch.setattr(matcher_files, "write_matcher", fail)
        broker.subscribe_many(rows(20))
        assert len(broker.publish({"price": -1}).matches) == 20
        assert "the disk is full" in broker.stats()["problem"]
        monkeypatch.undo()
        broker.subscribe_many(rows(40, 20))
        assert behind(tmp_path / "shop") <= LIMITS.changes_behind
