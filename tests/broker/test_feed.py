"""The change feed as tables: the same rows as `Broker.changes`, read beside the process that writes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

import tamis
from tamis.broker import open
from tamis.broker.answers import Change
from tamis.broker.feed import FEED, ChangeFeed


def test_the_feed_has_the_rows_of_changes(tmp_path: Path) -> None:
    with open(tmp_path / "shop") as broker:
        feed = ChangeFeed(tmp_path / "shop")
        assert feed.last() == 0
        assert list(feed.between(0, 0)) == []
        bounds = {"valid_from": datetime(2026, 1, 1, tzinfo=UTC), "valid_until": datetime(9999, 12, 31, tzinfo=UTC)}
        broker.subscribe("ann", "crime", "genre = 'crime'", weight=2.5, **bounds)
        broker.subscribe("ann", "cheap", "price < 20")
        broker.subscribe("bob", "cheap", "price < 10")
        broker.pause("bob", "cheap")
        broker.subscribe("ann", "crime", "genre = 'krimi'")
        broker.unsubscribe("ann", "cheap")
        assert feed.last() == 6
        batches = list(feed.between(0, 6, rows_at_once=2))
        assert [len(batch) for batch in batches] == [2, 1]
        rows = [Change(**row) for batch in batches for row in batch.to_pylist()]
        assert rows == list(broker.changes())
        assert [(row.number, row.change, row.id) for row in rows] == [
            (4, "removed", 3),
            (5, "added", 1),
            (6, "removed", 2),
        ]
        assert [batch["number"].to_pylist() for batch in feed.between(4, 5)] == [[5]]
        feed.close()


def test_the_feed_of_a_closed_broker(tmp_path: Path) -> None:
    with open(tmp_path / "shop") as broker:
        broker.subscribe("ann", "cheap", "price < 20")
    feed = ChangeFeed(tmp_path / "shop")
    assert feed.last() == 1
    feed.close()
    with pytest.raises(tamis.errors.BrokerError, match="has no broker"):
        ChangeFeed(tmp_path / "none")


def test_the_columns_are_the_fields_of_a_change() -> None:
    assert tuple(FEED.names) == Change._fields
