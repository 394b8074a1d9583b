"""A broker for the tests of its commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tamis.broker import Broker
from tamis.broker import open as open_broker


@pytest.fixture
def alerts(tmp_path: Path) -> Path:
    """The folder of a broker with one subscription."""
    folder = tmp_path / "alerts"
    with open_broker(folder) as broker:
        broker.subscribe("ann", "cheap", "price < 20")
    return folder


@pytest.fixture
def writer(alerts: Path) -> Iterator[Broker]:
    """Somebody else who has the folder open for writing."""
    with open_broker(alerts) as broker:
        yield broker
