"""Indexes that their papers build once. Here they are built again before the first match after a change."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.numbers import I32s
from tamis.papers.interface import Capabilities, Index, Matches


class StaticIndex(Index):
    """An index over a set of rows that is built as a whole.

    Invariant: `_rows` are the rows that were inserted and not deleted, ascending. The index is built over these rows unless
    `_stale`.
    """

    capabilities = Capabilities(dynamic=False)

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._rows: I32s = np.zeros(0, np.int32)
        self._stale = True
        self._builds = 0

    def insert(self, conjunctions: I32s) -> None:
        if len(conjunctions):
            self._rows = np.union1d(self._rows, conjunctions).astype(np.int32)
            self._stale = True

    def delete(self, conjunctions: I32s) -> None:
        if len(conjunctions):
            self._rows = np.setdiff1d(self._rows, conjunctions).astype(np.int32)
            self._stale = True

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        self.build()
        return self._match(batch, dimensions)

    def build(self) -> None:
        """Build the index, if something has changed."""
        if self._stale:
            self._build(self._rows)
            self._stale = False
            self._builds += 1

    def stats(self) -> dict[str, Any]:
        self.build()
        figures = self._figures()
        figures["bytes"] += self._rows.nbytes
        return {"conjunctions": len(self._rows), "static": True, "builds": self._builds, **figures}

    def check(self) -> None:
        self.build()
        self._check()

    @abstractmethod
    def _build(self, rows: I32s) -> None:
        """Build the index over these rows alone."""

    @abstractmethod
    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        """Match against the index as it was built."""

    @abstractmethod
    def _figures(self) -> dict[str, Any]:
        """Figures of the index, at least `bytes`: the size of all arrays but `_rows`."""

    def _check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
