"""Following: what a broker that only reads takes over from the process that writes.

New notes enter its queues, and the notes of deleted events leave them. So a reader that runs for months stays small and quick.
"""

from __future__ import annotations

from tamis.broker.limits import BrokerLimits
from tamis.broker.moments import moment_of
from tamis.broker.queue_block import merged
from tamis.broker.retention import forget_deleted
from tamis.broker.state import State
from tamis.broker.stored_ends import last_deleted, last_moment, reaches


class Following:
    """Keeps a state up to date with the tables. The caller holds the lock."""

    def __init__(self, state: State, limits: BrokerLimits) -> None:
        self._state = state
        self._fewest = limits.notes_in_tail
        self._seen = -1
        """The version of the tables at the last look."""
        self._look_again = self._fewest
        """The number of notes at which the notes of deleted events are forgotten."""

    def refresh(self) -> bool:
        """Read what another process has written. Returns whether it has written anything."""
        state = self._state
        state.moment = max(state.moment, moment_of(state.clock()))
        version = state.tables.data_version()
        if version == self._seen:
            return False
        self._seen = version
        with state.tables.snapshot():
            state.moment = max(state.moment, last_moment(state.tables))
            if reaches(state.queues.end, last_deleted(state.tables)):
                state.catch_up()
            else:
                state.begin_queues()
            state.change = state.tables.last("subscriptions", "change")
            self._tidy()
        return True

    def _tidy(self) -> None:
        """Merge the blocks of the queues, and drop what has left the tables when the notes have doubled."""
        queues = self._state.queues
        while blocks := queues.due():
            queues.replace(blocks, merged(blocks))
        if queues.notes >= self._look_again:
            forget_deleted(self._state, last_deleted(self._state.tables)[0])
            self._look_again = max(self._fewest, 2 * queues.notes)
