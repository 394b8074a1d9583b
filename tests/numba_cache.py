"""Where tests keep compiled kernels, so that a second run need not compile them again.

    .cache/numba/<whether bounds are checked>/<slot>

Kernels that check bounds are others, which Numba does not know of cached ones. Processes that write one cache at once can
crash: hence a slot for each, which it holds locked while it lives. A later process takes the lowest free slot and
finds it filled.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent

_held: list[IO[str]] = []


def use_numba_cache() -> None:
    """Point Numba to a cache of this process's own. Call before a kernel is imported."""
    checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0"
    slots = ROOT / ".cache" / "numba" / ("checked" if checked else "unchecked")
    slots.mkdir(parents=True, exist_ok=True)
    os.environ["NUMBA_CACHE_DIR"] = str(_free_slot(slots))


def _free_slot(folder: Path) -> Path:
    for number in itertools.count():
        lock = open(folder / f"{number}.lock", "w")  # noqa: SIM115 - closing it would free the slot
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            continue
        _held.append(lock)
        return folder / str(number)
    raise AssertionError("unreachable")
