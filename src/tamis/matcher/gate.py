"""A lock that many may hold to read, and one to change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.engine.interrupts import holding


class Gate:
    """Guards what is read for long or for an instant, and changed seldom.

    `lock` alone is for readers who are done at once: it costs a tenth of what `reading` does, and keeps writers out as well.
    A writer who waits is let in before readers who come later. Whoever reads may read once more inside of that, which happens
    when a finalizer calls.

    `changes` tells those who read without any lock, and can read again, whether they have to: it is odd while something is
    changed, and another number afterwards.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changes = 0
        self._is_held = holding(self.lock)
        self._changed = threading.Condition(self.lock)
        self._readers: dict[int, int] = {}
        """Threads that read -> how often at once."""
        self._writers: set[int] = set()
        """Threads that change what is guarded, or wait for it."""

    def is_writer(self) -> bool:
        """Whether the calling thread is changing what the gate guards."""
        return self._is_held() and threading.get_ident() in self._writers

    def is_inside(self) -> bool:
        """Whether the calling thread is reading or changing what the gate guards."""
        return self._is_held() or (bool(self._readers) and threading.get_ident() in self._readers)

    # An interrupt may come between any two steps, so what is noted here is taken back whether it was noted or not.

    @contextmanager
    def reading(self) -> Iterator[None]:
        reader = threading.get_ident()
        before = self._readers.get(reader, 0)
        try:
            with self.lock:
                while self._writers and not before:
                    self._changed.wait()
                self._readers[reader] = before + 1
            yield
        finally:
            with self.lock:
                self._readers[reader] = before
                if not before:
                    del self._readers[reader]
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        writer = threading.get_ident()
        with self.lock:
            inside = self.changes & 1  # of another change by the same thread, with which this one ends
            try:
                self._writers.add(writer)
                while self._readers:
                    self._changed.wait()
                self.changes |= 1
                yield
            finally:
                if not inside:
                    self.changes += self.changes & 1
                    self._writers.discard(writer)
                self._changed.notify_all()
