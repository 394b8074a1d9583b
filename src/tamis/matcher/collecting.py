"""Python's collector of reference cycles, paused while a call makes many objects that stay.

The collector runs after every 700 new objects, and now and then goes through all objects of the process. Reading a few thousand
long expressions makes millions of objects and no cycles: the collector would take half of the time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Pauses:
    """The pauses of all threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.present: set[object] = set()
        self.was_enabled = False


_all = _Pauses()


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collector, unless it is off already. It goes on when the last of several pauses ends."""
    pause = object()
    # An interrupt may come between any two steps, and a finalizer may pause the collector in between.
    try:
        with _all.lock:
            _all.present.add(pause)
            if len(_all.present) == 1:
                _all.was_enabled = gc.isenabled()
                gc.disable()
        yield
    finally:
        with _all.lock:
            if _all.present == {pause} and _all.was_enabled:
                gc.enable()
            _all.present.discard(pause)
