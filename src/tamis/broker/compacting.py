"""Compacting: what nobody can read any more leaves the tables and the queues, and free pages go back to the disk.

All of it happens in short steps. Between two steps other threads may use the broker.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

import numpy as np

from tamis.broker.dropping import Glance, drop, glance, too_many_or_old, unreadable_events
from tamis.broker.limits import BrokerLimits
from tamis.broker.publishing import KEY_LIFE
from tamis.broker.retention import (
    Retention,
    delete_old,
    delete_old_meetings,
    delete_unreadable,
    delete_unreadable_meetings,
    forget_deleted,
    forget_events,
)
from tamis.broker.state import State
from tamis.kernels.numbers import I64s


class Compacting:
    """Makes the tables and the queues smaller."""

    def __init__(self, state: State, lock: threading.RLock, limits: BrokerLimits) -> None:
        self._limits = limits
        self._state = state
        self._lock = lock

    def sweep(self, retention: Retention) -> bool:
        """Delete what nobody can read any more. Returns whether blocks of the queues have changed."""
        has_old = retention.max_age is not None and self._delete_old(retention.max_age)
        has_unreadable = retention.max_notes is not None and self._delete_unreadable(retention)
        if self._state.history is not None:
            with self._lock:
                self._state.history.table.prune(at_once=False)
        return has_old or has_unreadable

    def _delete_old(self, max_age: int) -> bool:
        last = 0
        while True:
            with self._lock:
                deleted = delete_old(self._state, max_age, self._limits.events_deleted_at_once)
            last = max(last, deleted)
            if not deleted:
                break
        with self._lock:
            delete_old_meetings(self._state, max_age)
            if last:
                forget_deleted(self._state, last)
        return last > 0

    def _delete_unreadable(self, retention: Retention) -> bool:
        """Delete events that have notes, but none that can be read. Events that may still be met or asked for by key stay."""
        with self._lock:
            seen = glance(self._state)
            sql = "SELECT sequence FROM keys WHERE published > ?"
            keyed = np.array(list(self._state.tables.rows(sql, (seen.moment - KEY_LIFE,))), np.int64).ravel()
        # Nobody meets the events that are over by now. So they get no more notes while others use the broker.
        found = np.setdiff1d(unreadable_events(seen, self._drop(seen, retention)), keyed).tolist()
        gone: list[int] = []
        for some in _parts(range(len(found)), self._limits.events_deleted_at_once):
            with self._lock:
                gone += delete_unreadable(self._state, found[some.start : some.stop], seen.moment)
        if not gone:
            return False
        last = 0
        while True:
            with self._lock:
                last = delete_unreadable_meetings(self._state, last, self._limits.events_deleted_at_once)
            if not last:
                break
        with self._lock:
            forget_events(self._state, gone)
        return True

    def _drop(self, seen: Glance, retention: Retention) -> I64s:
        """Store which notes cannot be read any more. Returns the last such note by subscriber."""
        many, old = too_many_or_old(seen, retention)
        hidden = [np.empty(0, np.int64)]
        for some in _parts(range(len(seen.last)), self._limits.rows_at_once):
            with self._lock, self._state.tables.transaction():
                hidden.append(drop(self._state, retention, many, old, some))
        return np.concatenate(hidden)

    def shrink(self) -> None:
        """Give free space back to the disk."""
        tables = self._state.tables
        with self._lock:
            tables.rows("DELETE FROM keys WHERE published <= ?", (self._state.moment - KEY_LIFE,))
            if self._state.history is not None:
                self._state.history.table.prune(at_once=True)
        while True:
            with self._lock:
                if not tables.one("PRAGMA freelist_count")[0]:
                    break
                list(tables.rows(f"PRAGMA incremental_vacuum({self._limits.pages_freed_at_once})"))
        with self._lock:
            tables.shorten_log()


def _parts(whole: range, most: int) -> Iterator[range]:
    """A range in parts of at most `most` numbers."""
    return (whole[start : start + most] for start in range(0, len(whole), most))
