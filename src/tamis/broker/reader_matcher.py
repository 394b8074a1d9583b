"""The matcher of a broker that only reads: whether anyone wants an event.

It is made when somebody first asks, from the saved matcher and the tables. Later calls follow the tables and the clock: they take
in what another process has changed, and what has begun or ended meanwhile. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from tamis.broker.history_table import read_options
from tamis.broker.limits import BrokerLimits
from tamis.broker.matcher_file import SavedMatcher, read_matcher
from tamis.broker.moments import Clock, moment_of
from tamis.broker.queues import Queues
from tamis.broker.state import Progress, State
from tamis.broker.tables import SubscriptionRow, Tables
from tamis.earlier.history import History
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import new_store


class ReaderMatcher:
    """The subscriptions that are valid now, in a matcher. The caller holds the lock."""

    def __init__(self, tables: Tables, folder: Path, clock: Clock, limits: BrokerLimits, told: Progress) -> None:
        self._tables, self._folder, self._clock, self._limits, self._told = tables, folder, clock, limits, told
        self._state: State | None = None
        """Its queues are empty: it only matches."""
        self._seen = 0
        """The version of the tables at the last call."""
        self._history: History | None = None

    def state(self) -> State:
        """A state with a matcher that has all changes until now.

        Raises
        ------
        BrokerError
        """
        seen = self._tables.data_version()
        with self._tables.snapshot():
            if self._state is None or (seen != self._seen and read_options(self._tables) != self._history):
                self._state = self._made()
            elif seen != self._seen:
                self._catch_up(self._state)
            self._seen = seen
            state = self._state
            state.moment = max(state.moment, moment_of(self._clock()))
            due = {turn.number for _, turns in state.schedule.due(state.moment) for turn in turns}
            _renew(state, state.rows(due).values())
            if state.history is not None:
                state.history.ensure()
        return state

    def _made(self) -> State:
        self._history = read_options(self._tables)
        found = read_matcher(self._folder, self._tables.caches(), self._history)
        state = State(self._tables, self._clock, Queues(self._limits), self._store(found), self._limits)
        if found is None:
            state.load_matcher(self._told)
        else:
            state.catch_up_matcher(*found.stamp)
        return state

    def _store(self, found: SavedMatcher | None) -> EngineStore:
        store = new_store(history=self._history) if found is None else found.store
        assert isinstance(store, EngineStore)
        return store

    def _catch_up(self, state: State) -> None:
        """Take in what another process has committed."""
        rows = list(self._tables.subscriptions("change > ? ORDER BY change", (state.change,)))
        _renew(state, rows)
        for row in rows:
            state.plan(row)
            state.change = row.change
        if state.history is not None:
            state.history.doubt()


def _renew(state: State, rows: Collection[SubscriptionRow]) -> None:
    """Let the matcher have some subscriptions as they are at this moment. That one has begun need not be stored yet."""
    state.rest(row.number for row in rows)
    state.rests += len(rows) > 0  # A subscription that has begun has no new change here.
    begun = (row._replace(started=int(row.valid_from is None or row.valid_from <= state.moment)) for row in rows)
    state.wake(row for row in begun if state.is_active(row))
