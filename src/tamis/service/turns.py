"""Turns of the event loop are kept short, so that urgent requests are answered soon.

When many requests come at once, the loop would begin all of them in one turn: with 64, that takes 30 ms. The loop looks for
other requests only between turns. So some requests begin in each turn, and the others wait in line.
"""

from __future__ import annotations

import asyncio
from collections import deque

AT_ONCE = 8
"""Requests that begin, or answers that are sent, in one turn. Each takes some tenths of a millisecond."""


class Turns:
    """A line before the event loop."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._at_once = at_once
        self._left = at_once
        """Requests that may still begin in this turn."""
        self._line: deque[asyncio.Future[None]] = deque()
        self._is_due = False
        self._loop = asyncio.get_running_loop()

    async def wait(self) -> None:
        """Return when it is one's turn."""
        if self._left and not self._line:
            self._left -= 1
            self._plan()
            return
        place: asyncio.Future[None] = self._loop.create_future()
        self._line.append(place)
        self._plan()
        await place

    def _plan(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._next)

    def _next(self) -> None:
        """The next turn begins."""
        self._is_due = False
        self._left = self._at_once
        while self._line and self._left:
            place = self._line.popleft()
            if not place.done():  # It may have been given up.
                place.set_result(None)
                self._left -= 1
        if self._left < self._at_once:
            self._plan()
