"""The calls of a broker that look after what is stored: retention, backup, compaction, figures."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from tamis.broker.folder import TABLES
from tamis.broker.retention import WhenFull, checked_retention, write_retention
from tamis.broker.session import Session
from tamis.broker.subscribing import NOT_GIVEN, NotGiven
from tamis.errors import BrokerError


class StorageCalls(Session):
    """Looking after the folder."""

    def retain(
        self,
        *,
        max_age: timedelta | NotGiven | None = NOT_GIVEN,
        max_notes: int | NotGiven | None = NOT_GIVEN,
        when_full: WhenFull | NotGiven = NOT_GIVEN,
    ) -> None:
        """Say how long notes are kept. The folder remembers it. What is not given stays.

        Parameters
        ----------
        max_age : timedelta, optional
            Older notes are dropped, and older events leave the tables when they are not valid any more. None: keep all.
        max_notes : int, optional
            Only this many notes of a subscriber can be read. None: all.
        when_full : "drop oldest" or "refuse publish"
            What happens to a note beyond `max_notes`. With "refuse publish", an event for a subscriber that has so many notes
            it has not acknowledged is a `QueueFullError`.

        Raises
        ------
        OptionError
        """
        words = {"max_age": max_age, "max_notes": max_notes, "when_full": when_full}
        given = {name: value for name, value in words.items() if not isinstance(value, NotGiven)}
        with self._writing():
            retention = checked_retention(self._retention, given)
            write_retention(self._tables, retention)
            self._retention = retention

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the broker to a new folder, while it is in use. The copy has the state of one moment.

        Raises
        ------
        BrokerError
        """
        target = Path(os.fspath(path))
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise BrokerError(f"{target} exists. Hint: name a new or an empty folder")
        target.mkdir(parents=True, exist_ok=True)
        with self._looking():
            pass
        self._reading.backup(target / TABLES)

    def compact(self) -> None:
        """Delete what is too old, give free space back to the disk, and write all caches. Others may use the broker meanwhile."""
        with self._writing():
            self._state.now()
        self._housekeeping.finish(self._sweep)
        self._compacting.shrink()

    def stats(self) -> dict[str, Any]:
        """Figures about the contents and the work of the broker."""
        with self._looking():
            counted = "SELECT (SELECT count(*) FROM {}), (SELECT count(*) FROM {}), (SELECT count(*) FROM events)"
            living = ("subscribers WHERE removed = 0", "subscriptions WHERE removed = 0")
            subscribers, subscriptions, events = self._tables.one(counted.format(*living))
            return {
                "subscribers": subscribers,
                "subscriptions": subscriptions,
                "active": len(self._state.matcher),
                "events": events,
                "last_event": self._state.event,
                "last_change": self._state.change,
                "notes": self._state.queues.notes,
                "retention": self._retention.shown(),
                "commits": self._line.commits,
                "refused_values": self._state.refused_values,
                "problem": self._housekeeping.problem,
                "matcher": self._state.matcher.stats(),
            }
