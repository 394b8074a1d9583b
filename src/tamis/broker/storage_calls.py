"""The calls of a broker that look after what is stored: retention, backup, compaction, figures."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tamis.broker.arguments import check_storable, plain_path
from tamis.broker.dropping import drop, glance, too_many_or_old
from tamis.broker.folder import PART, TABLES, make_folder
from tamis.broker.moments import clock_problem
from tamis.broker.retention import WhenFull, checked_retention, write_retention
from tamis.broker.session import Session
from tamis.broker.subscribing import NOT_GIVEN, NotGiven
from tamis.broker.tables import MEMORY
from tamis.errors import BrokerError, OptionError
from tamis.language.values import INT64_MAX
from tamis.storage.replacing import flush_folder


class StorageCalls(Session):
    """Looking after the folder."""

    def retain(
        self,
        *,
        max_age: timedelta | NotGiven | None = NOT_GIVEN,
        max_notes: int | NotGiven | None = NOT_GIVEN,
        when_full: WhenFull | NotGiven = NOT_GIVEN,
    ) -> None:
        """Say how long notes are kept. The folder remembers it. What is not given stays. Notes that were dropped never come back.

        Parameters
        ----------
        max_age : timedelta, optional
            Older notes are dropped, and older events leave the tables when they are not valid any more. None: keep all.
        max_notes : int, optional
            Only this many notes of a subscriber can be read. An event leaves the tables when none of its notes can be read and
            it is not valid any more. An event that nobody was told about stays. None: keep all.
        when_full : "drop oldest" or "refuse publish"
            What happens to a note beyond `max_notes`. With "refuse publish", an event is a `QueueFullError` if it would give a
            subscriber more notes that it has not acknowledged.

        Raises
        ------
        OptionError
        """
        words = {"max_age": max_age, "max_notes": max_notes, "when_full": when_full}
        given: dict[str, Any] = {name: value for name, value in words.items() if not isinstance(value, NotGiven)}
        if isinstance(given.get("max_notes"), np.integer):
            given["max_notes"] = int(given["max_notes"])
        check_storable(given)
        with self._writing():
            retention = checked_retention(self._retention, given)
            self._state.now()
            seen = glance(self._state)
            many, old = too_many_or_old(seen, self._retention)
            with self._tables.transaction():
                drop(self._state, self._retention, many, old, range(len(seen.last)))
                write_retention(self._tables, retention)
            self._retention = retention

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the broker to a new folder, while it is in use. The copy has the state of one moment.

        Raises
        ------
        BrokerError
        OptionError
            `path` is not a path.
        """
        target = Path(plain_path(path))
        if str(target) == MEMORY:
            raise OptionError(f"`path` must be the name of a folder, not {MEMORY!r}: a backup is a folder")
        with self._looking():
            pass
        part = target / PART
        try:
            is_new = not target.exists()
            if target.exists() and (not target.is_dir() or any(target.iterdir())):
                raise BrokerError(f"{target} exists. Hint: name a new or an empty folder")
            make_folder(target)
            part.touch()  # From now on, whoever opens the folder is told that the backup is not complete.
        except OSError as error:
            raise BrokerError(
                f"{target} cannot be made: {error.strerror}. Hint: name a new or an empty folder"
            ) from None
        try:
            self._reading.backup(part)
            part.replace(target / TABLES)
        except BaseException:
            _discard(part, is_new=is_new)
            raise
        flush_folder(target)

    def compact(self) -> None:
        """Delete what nobody can read any more, give free space back to the disk, and write all caches.

        Others may use the broker meanwhile.
        """
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
            counts = {"subscribers": subscribers, "subscriptions": subscriptions, "events": events}
            return {**counts, "active": self._active(), **self._brief()}

    def _brief(self) -> dict[str, Any]:
        """Figures that are in memory. The caller holds the lock."""
        return {
            "last_event": self._state.event,
            "last_change": self._state.change,
            "notes": self._state.queues.notes,
            "retention": self._retention.shown(),
            "commits": self._line.commits,
            "valid_events": self._state.known_valid,
            "valid_events_unsaved": self._state.unsaved_valid,
            "refused_values": self._state.refused_values,
            "problem": self._housekeeping.problem or clock_problem(self._state.moment, self._state.clock),
            "matcher": self._state.matcher.stats(),
        }

    def _active(self) -> int:
        """How many subscriptions events meet now. A broker that only reads has no matcher, so it counts in the tables."""
        if not self._read_only:
            return len(self._state.matcher)
        sql = "SELECT count(*) FROM subscriptions WHERE {} AND coalesce(valid_until, ?) > ?"
        values = (INT64_MAX, self._state.moment)
        return int(self._tables.one(sql.format("started = 1 AND paused = 0 AND removed = 0"), values)[0])


def _discard(part: Path, *, is_new: bool) -> None:
    """Delete what a backup that failed has written, and its folder if it is new."""
    with suppress(OSError):
        for path in part.parent.glob(f"{PART}*"):
            path.unlink()
        if is_new:
            part.parent.rmdir()
