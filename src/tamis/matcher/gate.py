"""A lock that many may hold to read, and one to change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tamis.engine.interrupts import holding


class Gate:
    """A lock with many readers or one writer, for data that seldom changes.

    `lock` alone is for readers that are done at once: it takes a tenth of the time of `reading`, and keeps writers out too. A
    waiting writer comes before later readers. A reader may call `reading` again inside of `reading`, as finalizers do.

    `changes` is for readers without any lock. It is odd during a change, and differs afterwards. A reader that sees an odd or a
    changed number reads again.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changes = 0
        self._is_held = holding(self.lock)
        self._changed = threading.Condition(self.lock)
        self._readers: dict[int, int] = {}
        """Thread that reads -> number of its calls of `reading` inside of each other."""
        self.writers: set[int] = set()
        """Threads that change the data, or wait to change it."""

    def is_writer(self) -> bool:
        """Whether the calling thread is changing the data."""
        return self._is_held() and threading.get_ident() in self.writers

    def is_inside(self) -> bool:
        """Whether the calling thread is reading or changing the data."""
        return self._is_held() or (bool(self._readers) and threading.get_ident() in self._readers)

    # An interrupt may come between any two steps. So each `finally` takes a note back whether it was made or not.

    @contextmanager
    def reading(self) -> Iterator[None]:
        reader = threading.get_ident()
        before = self._readers.get(reader, 0)
        try:
            with self.lock:
                while self.writers and not before:
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
            inside = self.changes & 1  # 1 inside of another change by the same thread, which ends both.
            try:
                self.writers.add(writer)
                while self._readers:
                    self._changed.wait()
                self.changes |= 1
                yield
            finally:
                if not inside:
                    self.changes += self.changes & 1
                    self.writers.discard(writer)
                self._changed.notify_all()
