"""A reader that follows a writer for long stays small."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tamis.broker import Broker
from tamis.broker.folder import TABLES
from tamis.broker.following import Following
from tamis.broker.limits import BrokerLimits
from tamis.broker.opening import open_state
from tamis.broker.tables import Tables

LIMITS = BrokerLimits(notes_in_tail=16, blocks_to_merge=4)
START = datetime(2026, 11, 18, tzinfo=UTC)


class Watch:
    """A clock that goes on by a second with each call of `tick`."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def tick(self) -> None:
        self.now += timedelta(seconds=1)


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_blocks_of_a_reader_are_merged(tmp_path: Path, watch: Watch) -> None:
    with Broker(tmp_path / "shop", clock=watch) as broker:
        broker.subscribe("ann", "all", "price >= 0")
        tables = Tables(str(tmp_path / "shop" / TABLES), read_only=True)
        state = open_state(tables, tmp_path / "shop", watch, LIMITS, read_only=True).state
        following = Following(state, LIMITS)
        following.refresh()
        for number in range(1, 101):
            broker.publish_many([{"price": number}] * 8)
            assert following.refresh()
            assert len(state.queues.blocks) <= 9
        assert not following.refresh()
        assert [note.event for note in state.queues.read(1, 0, 1000)] == list(range(1, 801))
        tables.close()


@pytest.mark.parametrize("kept", [{"max_age": timedelta(seconds=3)}, {"max_notes": 10}], ids=["age", "number"])
def test_a_reader_forgets_what_has_left_the_tables(tmp_path: Path, watch: Watch, kept: dict[str, object]) -> None:
    limits = LIMITS._replace(events_between_sweeps=10)
    with Broker(tmp_path / "shop", clock=watch, limits=limits) as broker:
        broker.subscribe("ann", "all", "price >= 0")
        broker.retain(**kept)  # type: ignore[arg-type]
        with Broker(tmp_path / "shop", clock=watch, limits=limits, read_only=True) as reader:
            for number in range(100):
                watch.tick()
                broker.publish_many([{"price": number}] * 4)
                broker.compact()
                notes = list(reader.notifications("ann", after=0))
                assert notes == list(broker.notifications("ann", after=0))
                assert notes[-1].sequence == 4 * (number + 1)
                assert reader.stats()["notes"] <= 48
