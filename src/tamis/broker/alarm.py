"""The alarm: subscriptions begin and end when their time comes, also if nobody calls the broker then."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tamis.errors import BrokerError
from tamis.kernels.background import begin_named_thread, is_stopping

_LONGEST = 0.2
"""Seconds between two looks. The thread must see soon that the process ends."""


class Alarm:
    """A thread that lives while a subscription is to begin or to end.

    Parameters
    ----------
    told : Condition
        The lock of the broker. Those who wait for notes are woken by it.
    left : callable
        Returns the seconds until the next beginning or end; None if there is none, or if the broker is closed.
    ring : callable
        Lets subscriptions begin and end.
    """

    def __init__(self, told: threading.Condition, left: Callable[[], float | None], ring: Callable[[], object]) -> None:
        self._told = told
        self._left = left
        self._ring = ring
        self._thread: threading.Thread | None = None

    def set(self) -> None:
        """Start the thread if it is needed. The caller holds the lock."""
        if self._thread is None and self._left() is not None:
            self._thread = begin_named_thread(self._wait, "tamis-broker-alarm")

    def _wait(self) -> None:
        with self._told:
            try:
                while (seconds := self._left()) is not None and not is_stopping():
                    if seconds > 0:
                        self._told.wait(min(seconds, _LONGEST))
                    else:
                        self._ring()
                        self._told.notify_all()
            except BrokerError:
                return  # The next call of a user meets the same error.
            finally:
                self._thread = None
