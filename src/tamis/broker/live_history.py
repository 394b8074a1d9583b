"""The history of new events: what is retained in memory, and the rows that go to the table `history` with the events of a commit.

    begin     a commit begins                 take_back   an event is refused: what it changed is taken back
    decide    match and retain events         settle      the events are stored

From `begin` to `settle`, memory is ahead of the tables. If the commit fails in between, for whatever reason, the next `begin`
reads the tables again. So an event that is not stored leaves no trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tamis.broker.history_table import HistoryRow, HistoryTable
from tamis.errors import BrokerError
from tamis.language.event import FlatEvent
from tamis.matcher.history_store import HistoryStore


class LiveHistory:
    """The retained events of a broker that writes. The caller holds the lock."""

    def __init__(self, table: HistoryTable, store: HistoryStore) -> None:
        self.table = table
        self._store = store
        self._is_sure = False
        """Whether memory has what the tables have."""
        self._is_lost = False
        """Whether memory may lack events of this commit."""
        self._events: list[FlatEvent] = []
        self._rows: list[HistoryRow] = []
        """The events of this commit, and their rows."""

    def begin(self) -> None:
        """Begin a commit.

        Raises
        ------
        BrokerError
            The tables cannot be read.
        """
        self.ensure()
        self._events, self._rows = [], []
        self._is_sure = self._is_lost = False

    def doubt(self) -> None:
        """Another process may have changed the tables."""
        self._is_sure = False

    def ensure(self) -> None:
        """Read the tables, if memory may differ from them."""
        if not self._is_sure:
            self._store.restore_retained(self.table.retained())
            self._is_sure = True

    def decide(
        self,
        events: Sequence[FlatEvent],
        idle: Sequence[bool],
        first: int,
        k: int | None = None,
        accept: Callable[[list[Any]], object] | None = None,
    ) -> list[list[int]]:
        """The subscriptions that new events satisfy. `first` is the number of the first event; `accept` may refuse matches.

        Raises
        ------
        EventError
            Nothing has changed. The same holds if `accept` raises an error.
        BrokerError
            The commit fails.
        """
        self._check()
        try:
            decided = self._store.decide(events, idle, k, accept)
        except Exception:
            if not self._store.is_intact:
                self._take_back()
            raise
        self._events += events
        self._rows += [self.table.row(first + row, each.place, each.newest) for row, each in enumerate(decided)]
        return [each.ids for each in decided]

    def _check(self) -> None:
        if self._is_lost:
            raise BrokerError("the earlier events could not be read. Nothing of this call was stored. Hint: try again")

    def _take_back(self) -> None:
        self._is_lost = True
        self._store.restore_retained(self.table.retained())
        self._store.decide(self._events, [True] * len(self._events))
        self._is_lost = False

    def put(self) -> None:
        """Store the rows of the commit. The caller has begun a transaction.

        Raises
        ------
        BrokerError
        """
        self._check()
        self.table.put_rows(self._rows)
        self.table.put_time_kind(self._store.time_kind)

    def settle(self) -> None:
        """The commit is done."""
        self.table.time_kind = self._store.time_kind
        self._is_sure = True
        self._events, self._rows = [], []

    def wants(self, event: Any) -> bool:
        """Whether an event would satisfy some subscription. Nothing changes.

        Raises
        ------
        EventError
        """
        self.ensure()
        return self._store.wants(event)
