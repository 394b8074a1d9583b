"""Subscriptions that come and go while events are matched, one by one, against all that stay.

Expressions were parsed before. Every change adds one of them or removes the one that was added longest ago. In one thread,
changes and matches take turns; in two, a writer changes as fast as it can beside a thread that matches.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import tamis
from tamis.bench.matching import Effort, Loaded, as_dicts
from tamis.encoding.predicate_table import read_predicates
from tamis.language.expression import Expression
from tamis.workload import AnyConfig, generate

_PREPARED = 20_000
_ALIVE = 1_000
"""So many of the subscriptions that come are alive at a time."""
_CHANGES_PER_MATCH = 20


def measure_updates(loaded: Loaded, fresh: AnyConfig, effort: Effort) -> dict[str, Any]:
    """Changes per second, and what they do to the time that matching one event takes; `fresh` says what comes."""
    table = generate(fresh).subscriptions().slice(0, _PREPARED)
    rows = read_predicates(table.column("predicates"))
    coming = itertools.cycle([rows.expression(row) for row in range(len(table))])
    events = itertools.cycle(as_dicts(loaded.workload.other_events(effort.events)))
    matcher = loaded.matcher
    first = 10 * len(matcher)
    quiet = _latencies(matcher, events, effort.update_seconds / 4)
    changes = _Changes(matcher, coming, first)
    taking_turns, spent, latencies = _taking_turns(changes, events, effort.update_seconds)
    together, beside = _beside(changes, events, effort.update_seconds)
    changes.undo()
    loaded.engine.wait()
    return {
        "subscriptions": len(matcher),
        "quiet": _summary(quiet),
        "one thread": {
            **_summary(latencies),
            "changes_per_second": taking_turns / effort.update_seconds,
            "changes_per_second_alone": taking_turns / spent,
        },
        "two threads": {**_summary(beside), "changes_per_second": together / effort.update_seconds},
        "merges": loaded.engine.merges,
    }


class _Changes:
    """Adds and removes by turns."""

    def __init__(self, matcher: tamis.Matcher, coming: Iterator[Expression], first: int) -> None:
        self._matcher = matcher
        self._coming = coming
        self._ids = itertools.count(first)
        self._alive: deque[int] = deque()
        for _ in range(_ALIVE):
            self._add()
        matcher.match({})

    def _add(self) -> None:
        identifier = next(self._ids)
        self._matcher.add(identifier, next(self._coming))
        self._alive.append(identifier)

    def make(self, count: int) -> None:
        """So many changes, half of them adds; they come first, and then the oldest go."""
        for _ in range(count // 2):
            self._add()
        for _ in range(count // 2):
            self._matcher.remove(self._alive.popleft())

    def undo(self) -> None:
        while self._alive:
            self._matcher.remove(self._alive.popleft())


def _latencies(matcher: tamis.Matcher, events: Iterator[dict[str, Any]], seconds: float) -> list[float]:
    end = time.perf_counter() + seconds
    latencies = [_match(matcher, next(events))]
    while time.perf_counter() < end:
        latencies.append(_match(matcher, next(events)))
    return latencies


def _match(matcher: tamis.Matcher, event: dict[str, Any]) -> float:
    start = time.perf_counter()
    matcher.match(event)
    return time.perf_counter() - start


def _taking_turns(
    changes: _Changes, events: Iterator[dict[str, Any]], seconds: float
) -> tuple[int, float, list[float]]:
    """The number of changes, the seconds they took without the matches, and the seconds of each match."""
    done, spent, latencies = 0, 0.0, []
    end = time.perf_counter() + seconds
    while done == 0 or time.perf_counter() < end:
        start = time.perf_counter()
        changes.make(_CHANGES_PER_MATCH)
        spent += time.perf_counter() - start
        latencies.append(_match(changes._matcher, next(events)))
        done += _CHANGES_PER_MATCH
    return done, spent, latencies


def _beside(changes: _Changes, events: Iterator[dict[str, Any]], seconds: float) -> tuple[int, list[float]]:
    """The number of changes that another thread made meanwhile, and the seconds of each match."""
    stop = threading.Event()
    done = 0

    def write() -> None:
        nonlocal done
        while not stop.is_set():
            changes.make(_CHANGES_PER_MATCH)
            done += _CHANGES_PER_MATCH

    writer = threading.Thread(target=write)
    writer.start()
    latencies = _latencies(changes._matcher, events, seconds)
    stop.set()
    writer.join()
    return done, latencies


def _summary(latencies: list[float]) -> dict[str, float]:
    microseconds: npt.NDArray[np.float64] = np.array(latencies) * 1e6
    median, high = np.quantile(microseconds, [0.5, 0.99])
    return {
        "matches": len(latencies),
        "median": float(median),
        "p99": float(high),
        "longest": float(microseconds.max()),
    }
