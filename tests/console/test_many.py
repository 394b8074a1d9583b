"""The console with a million subscriptions."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from selenium import webdriver

import tamis
from tests.console.browsing import Console
from tests.service.serving import serving

MANY = 1_000_000
BLOCK = 100_000


@pytest.mark.long
def test_a_million_subscriptions(browser: webdriver.Chrome, tmp_path: Path) -> None:
    folder = tmp_path / "served" / "tenants" / "default"
    folder.mkdir(parents=True)
    broker = tamis.open(folder, synchronous="off")
    for start in range(0, MANY, BLOCK):
        numbers = range(start, start + BLOCK)
        columns = {
            "subscriber": [f"shop {n % 100_000}" for n in numbers],
            "name": [f"offer {n}" for n in numbers],
            "expression": [f"price = {n} AND genre = 'g{n % 100}'" for n in numbers],
        }
        broker.subscribe_many(pa.table(columns))
    broker.close()
    with serving(tmp_path / "served") as server:
        console = Console(browser, server.url)
        console.open("subscriptions")
        console.says("#subscriptions-status", "1–50 of 1,000,000")
        console.click("#subscriptions-next")
        console.says("#subscriptions-status", "51–100 of 1,000,000")
        console.write("#subscriptions-search", f"offer {MANY - 1}")
        last = f"price = {MANY - 1} AND genre = 'g99'"
        console.when(
            lambda: [row[1] for row in console.rows("#subscriptions-table")] == [last], "the last subscription"
        )
        console.write("#subscriptions-search", "nothing like that")
        console.says("#subscriptions-status", "No subscription found.")
        assert server.publish({"price": 500_000, "genre": "g0"})["matches"] == 1
        console.go("overview")
        console.says("#overview-facts", "1,000,000")
        console.says("#hottest", "offer 500000")
        console.go("queues")
        console.says("#queues-status", "1–50 of 100,000")
        console.says("#deepest-rows", "shop 0")
        console.go("index")
        console.says("#index-facts", "1,000,000")
        console.go(f"subscriptions/shop 77/offer {MANY - 100_000 + 77}")
        console.says("#editor-verdict", "Valid.")
        assert console.complaints() == []
