"""Where tests keep compiled kernels, so that a second run need not compile them again.

    .cache/numba/<digest of the sources, and whether bounds are checked>/<slot>

Numba renews a cached kernel when its own file changes, but not when a kernel or a constant that it takes from another
file does: hence the digest. Processes that write one cache at once can crash: hence a slot for each, which it holds
locked while it lives. A later process takes the lowest free slot and finds it filled.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import os
import shutil
import time
from pathlib import Path
from typing import IO

ROOT = Path(__file__).parent.parent

# No kernel draws on these.
_WITHOUT_KERNELS = {"bench", "cli", "language", "spark", "workload"}
_ONE_DAY = 24 * 60 * 60.0

_held: list[IO[str]] = []


def use_numba_cache() -> None:
    """Point Numba to a cache of this process's own. Call before a kernel is imported."""
    caches = ROOT / ".cache" / "numba"
    # Kernels that check bounds are others, which Numba does not know of cached ones.
    checked = "-checked" if os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0" else ""
    current = caches / (_digest(ROOT / "src" / "tamis") + checked)
    current.mkdir(parents=True, exist_ok=True)
    os.utime(current)
    _remove_old(caches)
    os.environ["NUMBA_CACHE_DIR"] = str(_free_slot(current))


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


def _remove_old(caches: Path) -> None:
    """Remove the caches of sources that nobody has tested for a day; younger ones may be in use."""
    for cache in caches.iterdir():
        if cache.stat().st_mtime < time.time() - _ONE_DAY:
            shutil.rmtree(cache, ignore_errors=True)


def _digest(package: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in _WITHOUT_KERNELS:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
