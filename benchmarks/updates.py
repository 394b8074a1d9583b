"""Changes during matching: subscriptions are added and removed while events are matched one by one.

Expressions are prepared before the measurement, or given as SQL texts, each of another shape. Every change adds one of them or
removes the oldest subscription. So after some time all subscriptions are new, and segments of every size are merged. With one
thread, changes and matches take turns. With two threads, one changes as fast as it can and the other matches.

A match right after another finds all data in the processor's caches. A match after any kind of pause takes 1.5 times as long. So
the quiet state is measured both ways: one match after another, and with pauses. The pauses are as long as 20 changes take at the
wanted rate.

A shared machine is sometimes slow and sometimes fast. So there are several rounds, each with its own quiet state. The page shows
all figures of the round with the most changes, and only the number of changes of the other rounds.
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
from benchmarks.matching import Effort, Loaded, as_dicts
from tamis.encoding.expressions.predicate_table import read_predicates
from tamis.language.expression import Expression
from tamis.workload import AnyConfig, generate

_PREPARED = 20_000
_EVENTS_PER_ROUND = 25_000
_CHANGES_PER_MATCH = 20
_WANTED = 50_000
"""The changes per second that should be possible. They set the pace of the quiet state."""

Events = Iterator[dict[str, Any]]


def measure_updates(loaded: Loaded, fresh: AnyConfig, effort: Effort) -> dict[str, Any]:
    """Changes per second, and the times of single matches with and without changes. `fresh` is the config of the additions."""
    table = generate(fresh).subscriptions().slice(0, _PREPARED)
    rows = read_predicates(table.column("predicates"))
    expressions = [rows.expression(row) for row in range(len(table))]
    prepared = itertools.cycle([tamis.prepare(each) for each in expressions])
    texts = itertools.cycle([str(each) for each in expressions])
    # Enough events that few of them repeat. Otherwise the engine would plan for the repeated ones.
    events = itertools.cycle(list(as_dicts(loaded.workload.other_events(_EVENTS_PER_ROUND * effort.update_rounds))))
    changes = _Changes(loaded.matcher, prepared, texts)
    changes.make(_CHANGES_PER_MATCH)  # compiles all kernels before the measurement
    rounds = [_round(loaded, changes, events, effort) for _ in range(effort.update_rounds)]
    rates = [each["one thread"]["changes_per_second"] for each in rounds]
    return {**rounds[int(np.argmax(rates))], "rounds": rates}


def _round(loaded: Loaded, changes: _Changes, events: Events, effort: Effort) -> dict[str, Any]:
    matcher = loaded.matcher
    matcher.optimize()  # All rounds begin with one segment.
    _latencies(matcher, events, effort.update_seconds / 8, 0.0)
    quiet = _latencies(matcher, events, effort.update_seconds / 2, _CHANGES_PER_MATCH / _WANTED)
    at_once = _latencies(matcher, events, effort.update_seconds / 4, 0.0)
    merges = loaded.engine.merges
    alone, latencies = _taking_turns(changes, events, effort.update_seconds)
    merges_in_turns = loaded.engine.merges - merges
    together, beside = _beside(changes, events, effort.update_seconds)
    merges_beside = loaded.engine.merges - merges - merges_in_turns
    in_text, beside_text = _beside(changes, events, effort.update_seconds, in_text=True)
    merges_in_text = loaded.engine.merges - merges - merges_in_turns - merges_beside
    loaded.engine.wait()
    done = len(latencies) * _CHANGES_PER_MATCH
    return {
        "subscriptions": len(matcher),
        "quiet": _summary(quiet),
        "one after another": _summary(at_once),
        "one thread": {
            **_summary(latencies),
            "changes_per_second": done / (alone + sum(latencies)),
            "changes_per_second_alone": done / alone,
            "merges": merges_in_turns,
        },
        "two threads": {
            **_summary(beside),
            "changes_per_second": together / effort.update_seconds,
            "merges": merges_beside,
        },
        "two threads, SQL text": {
            **_summary(beside_text),
            "changes_per_second": in_text / effort.update_seconds,
            "merges": merges_in_text,
        },
    }


class _Changes:
    """Adds and removes subscriptions in turns."""

    def __init__(self, matcher: tamis.Matcher, prepared: Iterator[Expression], texts: Iterator[str]) -> None:
        self.matcher = matcher
        self._prepared = prepared
        self._texts = texts
        self._there = deque(int(identifier) for identifier in matcher)
        self._ids = itertools.count(1 + max(self._there))

    def make(self, count: int, in_text: bool = False) -> None:
        """Make `count` changes: the first half adds, the second half removes the oldest."""
        coming: Iterator[str | Expression] = self._texts if in_text else self._prepared
        for _ in range(count // 2):
            identifier = next(self._ids)
            self.matcher.add(identifier, next(coming))
            self._there.append(identifier)
        for _ in range(count // 2):
            self.matcher.remove(self._there.popleft())


def _latencies(matcher: tamis.Matcher, events: Events, seconds: float, pause: float) -> list[float]:
    """The seconds of each match. The thread stays busy in the pauses between matches."""
    end = time.perf_counter() + seconds
    latencies = [_match(matcher, next(events))]
    while (now := time.perf_counter()) < end:
        while time.perf_counter() < now + pause:
            pass
        latencies.append(_match(matcher, next(events)))
    return latencies


def _match(matcher: tamis.Matcher, event: dict[str, Any]) -> float:
    start = time.perf_counter()
    matcher.match(event)
    return time.perf_counter() - start


def _taking_turns(changes: _Changes, events: Events, seconds: float) -> tuple[float, list[float]]:
    """The seconds of all changes, without the matches, and the seconds of each match."""
    spent = 0.0
    latencies: list[float] = []
    end = time.perf_counter() + seconds
    while not latencies or time.perf_counter() < end:
        start = time.perf_counter()
        changes.make(_CHANGES_PER_MATCH)
        spent += time.perf_counter() - start
        latencies.append(_match(changes.matcher, next(events)))
    return spent, latencies


def _beside(changes: _Changes, events: Events, seconds: float, in_text: bool = False) -> tuple[int, list[float]]:
    """The number of changes by another thread during the matches, and the seconds of each match."""
    stop = threading.Event()
    done = 0

    def write() -> None:
        nonlocal done
        while not stop.is_set():
            changes.make(_CHANGES_PER_MATCH, in_text)
            done += _CHANGES_PER_MATCH

    writer = threading.Thread(target=write)
    writer.start()
    latencies = _latencies(changes.matcher, events, seconds, 0.0)
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
