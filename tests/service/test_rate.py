"""How fast bodies of lines may come. The clock is a number here, so nothing waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import pytest

from tamis.service.rate import MOST_WAIT, Pace, Rate, TooLongError


class Clock:
    """A clock that only goes on while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def read(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(time, "monotonic", found.read)
    monkeypatch.setattr(asyncio, "sleep", found.sleep)
    return found


def run(steps: Coroutine[Any, Any, None]) -> None:
    """Run steps that wait for nothing but the clock."""
    with pytest.raises(StopIteration):
        steps.send(None)


async def taken(pace: Pace, count: int) -> int:
    """Take a whole block, piece by piece. Returns the largest piece."""
    largest = done = 0
    while done < count:
        piece = await pace.take(count - done)
        largest, done = max(largest, piece), done + piece
    return largest


def test_a_body_never_takes_more_than_there_is(clock: Clock) -> None:
    async def steps() -> None:
        rate = Rate(100)
        pace = Pace(rate)
        assert await taken(pace, 300) == 100
        assert clock.now == pytest.approx(2.0, abs=0.01)
        assert rate.wait() <= 0.01  # There is no debt.

    run(steps())


def test_a_body_that_is_too_fast_ends(clock: Clock) -> None:
    async def steps() -> None:
        pace = Pace(Rate(10))
        assert await pace.take(60_000) == 10
        with pytest.raises(TooLongError):
            await pace.take(59_990)
        assert clock.now == 0  # It is told at once.
        pace, done = Pace(Rate(1000)), 0
        with suppress(TooLongError):
            while done < 100_000:
                await taken(pace, 500)
                done += 500
        assert done == pytest.approx(1000 * (1 + MOST_WAIT), rel=0.1)
        assert clock.now <= MOST_WAIT + 0.01

    run(steps())


@pytest.mark.parametrize(("lines", "share"), [(80, 0.99), (400, 0.5)])
def test_a_body_that_keeps_to_the_rate_may_be_endless(clock: Clock, lines: int, share: float) -> None:
    async def steps() -> None:
        pace = Pace(Rate(80))
        comes = 0.0
        for _ in range(1000):
            comes += lines / 80 / share
            clock.now = max(clock.now, comes)
            await taken(pace, lines)
        assert clock.now <= comes + MOST_WAIT

    run(steps())


def test_no_limit(clock: Clock) -> None:
    async def steps() -> None:
        assert await Pace(Rate(0)).take(60_000) == 60_000

    run(steps())
