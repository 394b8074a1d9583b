"""Taking times, and saying where they were taken."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any


def seconds_of(work: Callable[[], Any]) -> float:
    """How long some work takes, once."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(work: Callable[[], Any], passes: int, budget: float = 1.0) -> float:
    """The shortest of some passes, after one that does not count; no new pass begins when the budget of seconds is spent."""
    left = budget - seconds_of(work)
    best = seconds_of(work)
    left -= best
    for _ in range(passes - 1):
        if left < 0:
            break
        seconds = seconds_of(work)
        best, left = min(best, seconds), left - seconds
    return best


def machine() -> dict[str, Any]:
    """What times depend on."""
    return {
        "processor": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def versions() -> dict[str, str]:
    """The versions of the libraries that the work is done with."""
    return {name: version(name) for name in ("numba", "numpy", "pyarrow")}
