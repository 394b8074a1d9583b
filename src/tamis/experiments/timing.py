"""Measures times, and collects facts about the machine."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name


def seconds_of(work: Callable[[], Any]) -> float:
    """The seconds of one run of some work."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def best_of(work: Callable[[], Any], passes: int, budget: float = 1.0) -> float:
    """The seconds of the shortest pass of some work. See `best_of_each`."""
    return best_of_each({"": work}, passes, budget)[""]


def best_of_each(works: dict[str, Callable[[], Any]], passes: int, budget: float = 1.0) -> dict[str, float]:
    """The seconds of the shortest pass of each work. The first pass of each work does not count.

    The works take turns, so that all of them meet the machine in the same states. A work whose budget of seconds is spent gets no
    more passes, but each gets at least one that counts.
    """
    left = {name: budget - seconds_of(work) for name, work in works.items()}
    best = dict.fromkeys(works, math.inf)
    for number in range(passes):
        for name, work in works.items():
            if number == 0 or left[name] >= 0:
                seconds = seconds_of(work)
                best[name] = min(best[name], seconds)
                left[name] -= seconds
    return best


def machine() -> dict[str, Any]:
    """The facts about the machine that affect times."""
    return {
        "processor": platform.machine(),
        "model": get_host_cpu_name(),
        "system": platform.system(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "caches": _caches(),
    }


def _caches() -> dict[str, int]:
    """The bytes of the outer caches of a core, if the system tells. They matter: much of matching is waiting for memory."""
    sizes = {}
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            level, size = ((folder / name).read_text().strip() for name in ("level", "size"))
        except OSError:
            continue
        if level in ("2", "3") and size.endswith("K"):
            sizes[f"L{level}"] = int(size[:-1]) * 1024
    return dict(sorted(sizes.items()))


def versions() -> dict[str, str]:
    """The versions of the libraries that affect times."""
    return {name: version(name) for name in ("numba", "numpy", "pyarrow")}
