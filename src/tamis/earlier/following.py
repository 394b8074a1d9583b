"""A tally that follows the retained events: it counts them as they come and leave.

Nothing happens when an event comes or leaves. The tally catches up when a need is asked for: with all events since then at once,
and for the attributes of this need alone.
Events that leave in order of arrival are a range of numbers. The others are noted by the log. If positions or keys of a column
changed meanwhile, as when the log is written again, its events are counted again.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from tamis.earlier.column import Column
from tamis.earlier.retained import Retained
from tamis.earlier.tally import Moves, Tally
from tamis.kernels.numbers import I64s

_NOBODY = np.zeros(0, np.int64)


class _Seen(NamedTuple):
    """A column as it was counted."""

    column: Column
    changes: int
    came: int
    """The number behind the last event that came."""
    left: int
    """The number behind the last event that left in order."""


class Following:
    """A tally of the events that are retained, or that come in the batch which is being matched."""

    def __init__(self, retained: Retained, tally: Tally) -> None:
        self.tally = tally
        self._retained, self._log = retained, retained.log
        self._seen: list[_Seen | None] = [None] * len(tally.attributes)
        """By attribute. None while its events are counted: the call may be interrupted."""
        if not retained.leaves_in_order:
            self._log.left = array("q")

    def is_valid(self) -> bool:
        """Whether the cells of the tally are those of the retained events."""
        return self._retained.log is self._log

    def catch_up(self, until: int | None = None, places: Collection[int] | None = None) -> bool:
        """Count the events that came and left, for attributes in some places of the tally, or for all.

        With `until`, it also counts the events of a batch, up to this number. Returns False if the tally has other columns than
        the log has now.
        """
        retained, log = self._retained, self._log
        came = retained.came if until is None else until
        first = retained.window.first if retained.leaves_in_order else 0
        gone: I64s | None = None
        seen_before = self._seen
        if log.left is not None:
            places, self._seen = None, [None] * len(seen_before)
            gone = self._gone(came)
        for place in range(len(seen_before)) if places is None else places:
            column, seen = log.column(self.tally.attributes[place]), seen_before[place]
            if not self.tally.has_cells_of(place, column):
                return False
            self._seen[place] = None
            left = min(first, came)
            if seen is None or seen.column is not column or seen.changes != column.changes or came < seen.came:
                self.tally.clear(place)
                self.tally.count(place, column, self._present(came), 1)
            else:
                left = max(left, seen.left)
                behind = seen.left if gone is None else left
                if came > seen.came or left > behind:
                    at = log.position
                    self.tally.move(place, column, Moves(at(seen.came), at(came), at(behind), at(left)))
                if gone is not None and len(gone):
                    self.tally.count(place, column, gone, -1)
            self._seen[place] = _Seen(column, column.changes, came, left)
        return True

    def _gone(self, came: int) -> I64s:
        """The positions of the events that left, also of those that came only now, if events leave in any order."""
        log = self._log
        assert log.left is not None
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
