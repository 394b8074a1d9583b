"""The engine as an index over a table of conjunctions, for the checks that every index must pass."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import conjunctions_taken
from tamis.engine.engine import Engine
from tamis.engine.rows import nbytes
from tamis.papers.interface import Counters, Index, Matches
from tests.engine.naive import rows_of_table


class EngineDeltas(Index):
    """The engine with all rows in its delta."""

    name = "engine, deltas"
    summary = "rows in deltas"

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._engine = Engine(lambda: None, background=False)
        self._slot: dict[int, int] = {}
        """Conjunction -> slot."""
        self._conjunction: dict[int, int] = {}

    def insert(self, conjunctions: npt.NDArray[np.int32]) -> None:
        slots = self._engine.new_slots(len(conjunctions))
        self._slot.update(zip(conjunctions.tolist(), slots.tolist(), strict=True))
        self._conjunction.update(zip(slots.tolist(), conjunctions.tolist(), strict=True))
        self._engine.add(rows_of_table(conjunctions_taken(self.table.view(), conjunctions), slots))
        self._engine.publish()

    def delete(self, conjunctions: npt.NDArray[np.int32]) -> None:
        slots = [self._slot.pop(conjunction) for conjunction in conjunctions.tolist()]
        self._engine.remove(np.array(slots, np.int32))
        self._engine.publish()
        if not self._slot:
            self._engine.clear()

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        found = self._engine.match(self._engine.version, batch, dimensions)
        events = np.repeat(np.arange(len(found.counts)), found.counts)
        conjunctions = [self._conjunction[slot] for slot in found.slots.tolist()]
        # Matches of one list may be copied without visiting each entry.
        counters = Counters(max(found.work.candidates, len(found.slots)), found.work.survivors)
        return Matches(events, np.array(conjunctions, np.int32), counters)

    def stats(self) -> dict[str, Any]:
        version = self._engine.version
        parts = [segment.nbytes for segment in version.segments] + [nbytes(view.rows) for _, view in version.deltas]
        return {"conjunctions": len(self._slot), "bytes": sum(parts)}

    def check(self) -> None:
        assert self._slot.keys() == set(self._conjunction.values()) & self._slot.keys()


class EngineSegments(EngineDeltas):
    """The engine with all rows in segments."""

    name = "engine, segments"
    summary = "rows in segments"

    def insert(self, conjunctions: npt.NDArray[np.int32]) -> None:
        super().insert(conjunctions)
        self._engine.optimize()
