"""Each version of a cache file has a fixed set of arrays. A change of these arrays needs a new version."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits
from tamis.storage import container

PINNED = {
    "queue": (
        1,
        "subscriber int32, start int64, last int64, event int64, moment int64, name_start int64, name int32",
    ),
    "valid events": (
        2,
        "sequence int64, valid_until int64, 0.values int32, 0.texts uint8, 1.rows int64, 1.values float64",
    ),
}
"""By the content of a file: its version and its arrays. Old files of another version are made again from the tables."""

LATER = datetime(2999, 1, 1, tzinfo=UTC)
EVENTS = [
    {"genre": "crime", "price": 5.0},
    {"genre": "poetry"},
]


def test_the_arrays_of_a_version(tmp_path: Path) -> None:
    with Broker(tmp_path / "shop", limits=BrokerLimits(valid_to_save=1)) as broker:
        broker.subscribe("ann", "all", "genre IS NOT NULL")
        broker.publish_many(EVENTS, valid_until=LATER)
        broker.subscribe("bob", "crime", "genre = 'crime'")
    found = {}
    for path in sorted((tmp_path / "shop").glob("*.tamis")):
        opened = container.open(path)
        arrays = ", ".join(f"{name} {opened.array(name).dtype}" for name in opened.names)
        found[opened.meta["content"]] = (opened.meta["content_version"], arrays)
    assert found == PINNED, "the arrays have changed: raise the version of this file, and write down its arrays here"
