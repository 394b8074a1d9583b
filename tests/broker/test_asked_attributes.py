"""`attributes` names what the subscriptions of this moment ask about, and nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tamis.broker import Broker
from tamis.broker.limits import BrokerLimits

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


@pytest.mark.parametrize("many", [0, 100])
def test_what_nobody_asks_about_any_more(tmp_path: Path, many: int) -> None:
    now, limits = NOON, BrokerLimits(names_to_look_for=many, rows_at_once=2)

    def opened(*, read_only: bool) -> Broker:
        return Broker(tmp_path, clock=lambda: now, limits=limits, read_only=read_only)

    with opened(read_only=False) as broker, opened(read_only=True) as reader:

        def names() -> set[str]:
            found = broker.attributes()
            assert reader.attributes() == found
            return found

        assert names() == set()
        broker.subscribe("ann", "a", "price < 5 AND `the name` = 'price' AND book.title = 'x'")
        broker.subscribe("ann", "b", "price < 9")
        assert names() == {"price", "the name", "book.title"}
        broker.subscribe("ann", "a", "price < 6")
        assert names() == {"price"}
        broker.subscribe("ann", "c", "size > 1")
        assert names() == {"price", "size"}
        broker.pause("ann", "c")
        assert names() == {"price"}
        broker.resume("ann", "c")
        assert names() == {"price", "size"}
        broker.subscribe("bob", "later", "genre = 'x'", valid_from=NOON + timedelta(1), valid_until=NOON + timedelta(2))
        assert names() == {"price", "size"}
        now = NOON + timedelta(1)
        assert names() == {"price", "size", "genre"}
        now = NOON + timedelta(2)
        assert names() == {"price", "size"}
        broker.remove_subscriber("ann")
        assert names() == set()


def test_random_changes() -> None:
    random, wanted = Random(1), dict[str, str]()
    with Broker(":memory:") as broker:
        for _ in range(150):
            name, attribute = random.choice("abcde"), random.choice(["u", "v", "w", "x.u"])
            if name in wanted and random.random() < 0.5:
                broker.unsubscribe("ann", name)
                del wanted[name]
            else:
                broker.subscribe("ann", name, f"{attribute} = 1")
                wanted[name] = attribute
            if random.random() < 0.7:
                assert broker.attributes() == set(wanted.values())
