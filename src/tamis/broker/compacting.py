"""Compacting: what is too old leaves the tables and the queues, and free pages go back to the disk.

All of it happens in short steps. Between two steps other threads may use the broker.
"""

from __future__ import annotations

import threading

from tamis.broker.publishing import KEY_LIFE
from tamis.broker.retention import delete_old, delete_old_meetings, forget_deleted
from tamis.broker.state import State

_EVENTS_AT_ONCE = 500
"""Events that are deleted in one transaction."""
_PAGES_AT_ONCE = 1000
"""Free pages that are given back in one step."""


class Compacting:
    """Makes the tables and the queues smaller."""

    def __init__(self, state: State, lock: threading.RLock) -> None:
        self._state = state
        self._lock = lock

    def sweep(self, max_age: int) -> bool:
        """Delete what is too old. Returns whether blocks of the queues have changed."""
        last = 0
        while True:
            with self._lock:
                deleted = delete_old(self._state, max_age, _EVENTS_AT_ONCE)
            last = max(last, deleted)
            if not deleted:
                break
        with self._lock:
            delete_old_meetings(self._state, max_age)
            if last:
                forget_deleted(self._state, last)
        return last > 0

    def shrink(self) -> None:
        """Give free space back to the disk."""
        tables = self._state.tables
        with self._lock:
            tables.rows("DELETE FROM keys WHERE published <= ?", (self._state.moment - KEY_LIFE,))
        while True:
            with self._lock:
                if not tables.one("PRAGMA freelist_count")[0]:
                    break
                list(tables.rows(f"PRAGMA incremental_vacuum({_PAGES_AT_ONCE})"))
        with self._lock:
            list(tables.rows("PRAGMA wal_checkpoint(TRUNCATE)"))
