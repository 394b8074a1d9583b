"""A tally that follows the retained events: it counts them as they come and leave.

Nothing happens when an event comes or leaves. The tally catches up when a need is asked for, with all events since then at once.
Events that leave in order of arrival are a range of numbers. The others are noted by the log. If positions or keys of a column
changed meanwhile, as when the log is written again, its events are counted again.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

import numpy as np

from tamis.earlier.column import Column
from tamis.earlier.retained import Retained
from tamis.earlier.tally import Tally
from tamis.kernels.numbers import I64s

_NOBODY = np.zeros(0, np.int64)


class _Seen(NamedTuple):
    """A column as it was counted."""

    column: Column
    changes: int


class Following:
    """A tally of the events that are retained, or that come in the batch which is being matched."""

    def __init__(self, retained: Retained, tally: Tally) -> None:
        self.tally = tally
        self._retained, self._log = retained, retained.log
        self._seen: list[_Seen | None] = [None] * len(tally.attributes)
        self._is_counting = False
        self._came = self._left = 0
        """The numbers behind the last event that came, and behind the last one that left in order."""
        if not retained.leaves_in_order:
            self._log.left = array("q")

    def is_valid(self) -> bool:
        """Whether the cells of the tally are those of the retained events."""
        return self._retained.log is self._log and self.tally.is_valid(self._log)

    def catch_up(self, until: int | None = None) -> None:
        """Count the events that came and left. With `until`, also those that come in a batch, up to this number."""
        retained, log = self._retained, self._log
        came = retained.came if until is None else until
        if came < self._came or self._is_counting:  # The last batch failed, or the last call.
            self._seen, self._came = [None] * len(self._seen), came
        self._is_counting = True
        first = retained.window.first if retained.leaves_in_order else 0
        new, gone = self._new(came), self._gone(came, first)
        for place, name in enumerate(self.tally.attributes):
            column, seen = log.column(name), self._seen[place]
            if seen is None or seen.column is not column or seen.changes != column.changes:
                self._seen[place] = _Seen(column, column.changes)
                self.tally.clear(place)
                self.tally.count(place, column, self._present(came), 1)
                continue
            if len(new):
                self.tally.count(place, column, new, 1)
            if len(gone):
                self.tally.count(place, column, gone, -1)
        self._came, self._left = came, max(min(first, came), self._left)
        self._is_counting = False

    def _new(self, came: int) -> I64s:
        """The positions of the events that came."""
        return np.arange(self._log.position(self._came), self._log.position(came))

    def _gone(self, came: int, first: int) -> I64s:
        """The positions of the events that left, also of those that came only now."""
        log = self._log
        if log.left is None:
            end = min(first, came)
            return np.arange(log.position(self._left), log.position(end)) if end > self._left else _NOBODY
        if not log.left:
            return _NOBODY
        left = np.array(log.left, np.int64)
        is_behind = left >= came
        log.left = array("q", left[is_behind].tolist())
        return log.positions(left[~is_behind])

    def _present(self, came: int) -> I64s:
        """The positions of all events that are there."""
        retained, log = self._retained, self._log
        start = log.position(retained.window.first) if retained.has_one_history else 0
        positions, alive = np.arange(start, log.position(came)), log.alive()
        return positions[alive[positions] != 0] if len(alive) else positions
