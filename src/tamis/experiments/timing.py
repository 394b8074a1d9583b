"""Measures times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, TypeAlias

Clock: TypeAlias = Callable[[], float]
"""What tells seconds: time.perf_counter, or time.process_time for work of one thread."""

PASSES = 49
"""The most timed passes over the events of a kind: enough that one of them is undisturbed. The scale's budget may allow fewer."""


def seconds_of(work: Callable[[], Any], clock: Clock = time.perf_counter) -> float:
    """The seconds of one run of some work."""
    start = clock()
    work()
    return clock() - start


def best_of(work: Callable[[], Any], passes: int, budget: float = 1.0, clock: Clock = time.perf_counter) -> float:
    """The seconds of the shortest pass of some work. See `best_of_each`."""
    return best_of_each({"": work}, passes, budget, clock)[""]


def best_of_each(
    works: dict[str, Callable[[], Any]], passes: int, budget: float = 1.0, clock: Clock = time.perf_counter
) -> dict[str, float]:
    """The seconds of the shortest pass of each work. The first pass of each work does not count.

    The works take turns, so that all of them meet the machine in the same states. A work whose budget of seconds is spent gets no
    more passes, but each gets at least one that counts.
    """
    left = {name: budget - seconds_of(work, clock) for name, work in works.items()}
    best = dict.fromkeys(works, math.inf)
    for number in range(passes):
        for name, work in works.items():
            if number == 0 or left[name] >= 0:
                seconds = seconds_of(work, clock)
                best[name] = min(best[name], seconds)
                left[name] -= seconds
    return best
