"""How many requests or events a tenant may send."""

from __future__ import annotations

import time


class Rate:
    """A bucket that fills with time. It holds what comes in one second, so short bursts pass.

    Parameters
    ----------
    per_second : int
        0: no limit.
    """

    def __init__(self, per_second: int) -> None:
        self.per_second = per_second
        self._left = float(per_second)
        self._seen = time.monotonic()

    def wait(self) -> float:
        """Seconds until the next one may come; 0 if it may come now."""
        if not self.per_second:
            return 0.0
        now = time.monotonic()
        self._left = min(self.per_second, self._left + (now - self._seen) * self.per_second)
        self._seen = now
        return 0.0 if self._left >= 1 else (1 - self._left) / self.per_second

    def take(self, count: int) -> None:
        """Count what has come. A batch may take more than there is; those after it wait for that."""
        if self.per_second:
            self._left -= count
