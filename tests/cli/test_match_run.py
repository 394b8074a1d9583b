"""The pace of matching: it follows time and memory, and never stands still."""

from __future__ import annotations

from tamis.cli.match_run import Pace


def test_faster_while_it_is_quick() -> None:
    pace = Pace()
    before = pace.events
    pace.learn(0.01, 10)
    assert pace.events == 2 * before


def test_slower_when_it_takes_long_or_there_are_many_matches() -> None:
    for seconds, matches in [(5.0, 0), (0.01, 10_000_000)]:
        pace = Pace()
        for _ in range(20):
            pace.learn(seconds, matches)
        assert pace.events == 1


def test_steady_in_between() -> None:
    pace = Pace()
    before = pace.events
    pace.learn(0.4, 1_000_000)
    pace.learn(0.01, 1_000_000)
    assert pace.events == before
