"""How many requests or events a tenant may send."""

from __future__ import annotations

import asyncio
import time

MOST_WAIT = 5.0
"""Seconds for which one body of lines may be slowed down. A longer one ends with an error: its client would hear nothing."""
_LEAST_WAIT = 0.001
"""Seconds of the shortest sleep. A rounding error may leave a wait that no clock notices."""
_PIECE_SECONDS = 0.1
"""Seconds of a rate that are worth a call of the broker."""


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

    def wait(self, count: float = 1) -> float:
        """Seconds until this many may come; 0 if they may come now. More than the bucket holds never may."""
        if not self.per_second:
            return 0.0
        now = time.monotonic()
        self._left = min(self.per_second, self._left + (now - self._seen) * self.per_second)
        self._seen = now
        return max(0.0, (count - self._left) / self.per_second)

    def take(self, count: int) -> None:
        """Count what comes."""
        if self.per_second:
            self._left -= count

    def take_most(self, count: int) -> int:
        """Take as many as may come now, up to a number. Returns how many."""
        if not self.per_second:
            return count
        self.wait()
        taken = max(0, min(count, int(self._left)))
        self.take(taken)
        return taken


class TooLongError(Exception):
    """A body would have to wait for too long."""


class Pace:
    """What one body takes of a rate, before it is published. It never takes more than there is."""

    def __init__(self, rate: Rate) -> None:
        self._rate = rate
        self._waited = 0.0
        """Seconds that the body has waited, less those in which it brought nothing: few if it keeps to the rate."""
        self._took = time.monotonic()
        """When it took the last piece."""

    async def take(self, count: int) -> int:
        """Take some of the next lines, as soon as there is room for them. Returns how many.

        Raises
        ------
        TooLongError
        """
        rate = self._rate
        self._waited = max(0.0, self._waited) - (time.monotonic() - self._took)
        needed = rate.wait(count)
        while not (taken := rate.take_most(count)):
            if self._waited + needed > MOST_WAIT:
                raise TooLongError
            seconds = max(_LEAST_WAIT, rate.wait(min(count, max(1.0, rate.per_second * _PIECE_SECONDS))))
            self._waited += seconds
            await asyncio.sleep(seconds)
            needed = rate.wait(count)
        self._took = time.monotonic()
        return taken
