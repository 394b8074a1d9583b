"""Subscriptions over the engine: adding, removing and replacing them, and snapshots.

One writer at a time changes the store, under its lock. Any number of threads match meanwhile (`engine_matching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tamis.engine.snapshot import frozen
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import Bools, F64s, I32s, I64s
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.clauses import ClauseRows
from tamis.matcher.engine_matching import EngineMatching
from tamis.matcher.expression_store import ExpressionBlock, Sources
from tamis.matcher.history_snapshot import HistoryContents
from tamis.matcher.ids import Id, Ids, StoredIds
from tamis.matcher.limits import USUAL_STORE_LIMITS, StoreLimits
from tamis.matcher.plan import Plan, plan_of


class Contents(NamedTuple):
    """The contents of a store at one moment."""

    segments: tuple[Segment, ...]
    rows: Rows | None
    """The rows of deltas."""
    alive: Bools
    ids: I64s | pa.Array | None
    living: I64s
    """The living slots, in order of addition."""
    weights: F64s
    dimensions: pa.Table
    sources: Sources
    history: HistoryContents | None = None
    """None if the store keeps no earlier events."""


class EngineStore(EngineMatching):
    """Subscriptions in segments and deltas."""

    name = "engine"

    def __init__(self, schema: Schema | None = None, limits: StoreLimits = USUAL_STORE_LIMITS) -> None:
        super().__init__(schema, limits)
        self._most_pending = limits.pending_in_engine
        self._reset()

    def _reset(self) -> None:
        self.ids = Ids(few=self.limits.ids_per_lookup)
        self.sources = Sources()
        self.keyed.use(Dimensions())
        self._gone = 0
        self._weights = GrowingArray(np.float64)
        self._weighted = False
        self._pending: dict[int, Expression] = {}

    # -- adding and removing

    def compile(self, expressions: Sequence[Expression]) -> ClauseRows:
        # Waiting subscriptions come first: their constants may move labels, which would make the keys of these expressions stale.
        self.flush()
        return self.keyed.compile(expressions)

    def compile_rows(self, rows: KeptPredicates) -> ClauseRows:
        self.flush()
        return self.keyed.compile_rows(rows)

    def add(self, identifiers: list[Id], clauses: ClauseRows, block: ExpressionBlock, weights: F64s) -> None:
        slots = self.engine.new_slots(len(identifiers))
        try:
            self._enter(identifiers, slots, block, weights)
            self.engine.add(clauses.of_slots(slots))
            self.engine.publish()
        except BaseException:
            self.ids.discard(*identifiers)
            self._withdraw(slots)
            raise

    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        slot = self.engine.new_slot()
        try:
            self.sources.add_one(given, slot)
            if slot >= len(self._weights):
                self._weights.grow(slot + 1 - len(self._weights), fill=0.0)
            if weight != 0.0 or self._weighted:
                self._weights.view()[slot] = weight
                self._weighted = True
            self.ids.add_one(identifier, slot)
            if not self.keyed.add_plain(self.engine, expression, slot):
                self._pending[slot] = expression
        except BaseException:
            self.ids.discard(identifier)
            self._withdraw(np.array([slot], np.int32))
            raise
        if len(self._pending) >= self._most_pending:
            self.flush()

    def _withdraw(self, slots: I32s) -> None:
        """Remove slots whose addition was interrupted, as far as it had come. No id has these slots any more."""
        self.engine.settle_again(slots)
        for slot in slots.tolist():
            self._remove_slot(slot)
        self.engine.publish()

    def _enter(self, identifiers: list[Id], slots: I32s, block: ExpressionBlock, weights: F64s) -> None:
        self.sources.add(block, slots)
        if len(slots):
            self._weigh(slots, weights)
        self.ids.add(identifiers, slots)

    def _weigh(self, slots: Any, weights: Any) -> None:
        self._weighted = self._weighted or bool(np.any(weights))
        missing = int(np.max(slots)) + 1 - len(self._weights)
        if missing > 0:
            self._weights.grow(missing, fill=0.0)
        self._weights.view()[slots] = weights

    def flush(self) -> None:
        """Compile what `add_one` left. An expression that was read has no errors."""
        if not self._pending:
            return
        with self.lock:
            if not self._pending:
                return
            slots = np.array(list(self._pending), np.int32)
            clauses = self.keyed.compile_any(list(self._pending.values()))
            try:
                self.engine.add(clauses.of_slots(slots))
                self.engine.publish()
                # Last: a reader that finds nothing pending relies on everything being published.
                self._pending = {}
            except BaseException:
                left = self.engine.settle_again(slots).tolist()
                self._pending = {slot: self._pending[slot] for slot in left}
                self.engine.publish()
                raise

    def remove(self, identifier: Id) -> None:
        slot = self.ids.slot(identifier)
        try:
            self._remove(identifier, slot)
        except BaseException:
            self._remove(identifier, slot)  # Interrupted: it is still removed.
            raise

    def _remove(self, identifier: Id, slot: int) -> None:
        if not self.ids.discard(identifier):
            self.clear()
            return
        self._remove_slot(slot)
        self._sweep_if_due()

    def _remove_slot(self, slot: int) -> None:
        """Remove a slot, if it is still there."""
        self.sources.remove(slot)
        self._pending.pop(slot, None)
        self.engine.remove_one(slot)

    def remove_many(self, identifiers: Sequence[Id]) -> None:
        slots = np.array([self.ids.slot(identifier) for identifier in identifiers], np.int32)
        try:
            self._remove_many(identifiers, slots)
        except BaseException:
            self._remove_many(identifiers, slots)  # Interrupted: they are still removed.
            raise

    def _remove_many(self, identifiers: Sequence[Id], slots: I32s) -> None:
        if not self.ids.discard(*identifiers):
            self.clear()
            return
        self._forget_sources(slots)
        self.engine.remove(self.engine.living_among(slots))
        self.engine.publish()
        self._sweep_if_due(len(slots))

    def _forget_sources(self, slots: I32s) -> None:
        for slot in slots.tolist():
            self.sources.remove(slot)
            self._pending.pop(slot, None)

    def replace(self, identifiers: list[Id], clauses: ClauseRows, block: ExpressionBlock, weights: F64s) -> None:
        old = np.array([self.ids.slot(identifier) for identifier in identifiers], np.int32)
        slots = self.engine.new_slots(len(identifiers))
        try:
            self._enter(identifiers, slots, block, weights)
            self.engine.add(clauses.of_slots(slots))
            self.engine.remove(old)
            self.engine.publish()
        except BaseException:
            if len(self.engine.living_among(old)):
                self.ids.add(identifiers, old)
                self._withdraw(slots)
            else:
                self.engine.publish()
                self._forget_sources(old)
            raise
        self._forget_sources(old)
        self._sweep_if_due(len(old))

    def _sweep_if_due(self, gone: int = 1) -> None:
        before, self._gone = self._gone, self._gone + gone
        look = self.limits.gone_per_look
        if self._gone // look > before // look and self._gone > len(self):
            self.keyed.sweep()
            self._gone = 0

    def clear(self) -> None:
        self.keyed.at_once(self._forget_all)

    def _forget_all(self) -> None:
        self.engine.clear()
        self._reset()

    def weights(self, slots: npt.NDArray[Any]) -> F64s:
        weights: F64s = self._weights.view()[slots]
        return weights

    @property
    def nbytes(self) -> int:
        return self.engine.nbytes

    # -- snapshots

    def contents(self) -> Contents:
        """The present contents. Later changes do not change them."""
        with self.changing():
            return self._contents()

    def _contents(self) -> Contents:
        self.flush()
        slots = self.ids.slots()
        alive = np.zeros(len(self._weights), np.bool_)
        alive[slots] = True
        segments, rows = frozen(self.engine.version, alive)
        return Contents(
            segments,
            rows,
            alive,
            self.ids.by_slot(),
            slots,
            self._weights.view().copy(),
            self.dimensions.state(),
            self.sources.copied(),
        )

    def restore(self, contents: Contents) -> None:
        """Begin with the contents of another store."""
        with self.lock, self.gate.writing():
            self._reset()
            if contents.ids is not None:
                self.ids = Ids(StoredIds(contents.ids, contents.living), few=self.limits.ids_per_lookup)
            self.sources = contents.sources
            self.dimensions.restore(contents.dimensions)
            self._weights.extend(contents.weights)
            self._weighted = bool(np.any(contents.weights))
            self.engine.restore(contents.segments, contents.rows, contents.alive)

    # -- all subscriptions

    def optimize(self) -> None:
        self.flush()
        self.sample.forget_encoding()
        self.engine.optimize()

    def plan(self, identifier: Id) -> Plan:
        self.flush()
        accesses = self.engine.version.accesses(self.ids.slot(identifier))
        return plan_of(identifier, *accesses, self.dimensions, self.scalars)

    def stats(self) -> dict[str, Any]:
        self._prepare()
        engine = self.engine.stats() | {"sample": len(self.sample)}
        return {
            "index": self.name,
            "subscriptions": len(self),
            "conjunctions": sum(part["conjunctions"] for part in engine["segments"]) + engine["delta_rows"],
            "dimensions": len(self.dimensions),
            "bytes": self.nbytes,
            "index_stats": engine,
            "cards": [card.segments.stats(self.engine.version.segments) for card in self.cards.values()],
            **self.engine.counters.as_dict(),
        }
