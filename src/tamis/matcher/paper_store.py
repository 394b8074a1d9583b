"""Subscriptions over one of the papers' indexes.

    expression --compile--> clauses --intern--> conjunctions (each once) <--owners-- slots --ids--> users' ids

Slots are never given twice. A sweep gives all slots new numbers and drops those of removed subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.keys import KeyKind
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.events.event_batch import EncodedEvents, encode_flat, encode_plain
from tamis.encoding.events.event_table import encode_table
from tamis.encoding.events.json_lines import JsonEncoder, JsonLines
from tamis.encoding.expressions.compile import Clause, Compiled, Compiler
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.encoding.expressions.predicates import Predicates, ends_by_dimension
from tamis.encoding.expressions.programs import ProgramTable
from tamis.engine.sample import Sample
from tamis.engine.top_k import keep_heaviest
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.compiling import CompiledMany, SubscriptionCompiler, clauses_of
from tamis.matcher.expression_store import ExpressionBlock, GivenExpressions, Sources
from tamis.matcher.ids import Id, Ids
from tamis.matcher.limits import USUAL_STORE_LIMITS, StoreLimits
from tamis.matcher.plan import Plan
from tamis.matcher.store import Part, R, Store, Workers
from tamis.papers.factor_table import FactorRows, FactorTable
from tamis.papers.interface import Index
from tamis.papers.options import Options
from tamis.papers.owners import NO_PROGRAM, Owners, verify


class Clauses(NamedTuple):
    """The clauses of new subscriptions."""

    numbers: I32s
    """Conjunctions in the table, subscription by subscription."""
    counts: I32s
    """The number of clauses of each subscription."""
    programs: I64s
    """The program of each subscription, or NO_PROGRAM."""


@dataclass(slots=True)
class WorkTotals:
    """How much matching has been done so far."""

    events: int = 0
    candidates: int = 0
    filtered: int = 0
    predicates: int = 0
    verified: int = 0
    mismatched: int = 0


class PaperStore(Store[Clauses]):
    """Subscriptions over an index."""

    def __init__(
        self,
        index_type: type[Index],
        options: Options,
        schema: Schema | None = None,
        limits: StoreLimits = USUAL_STORE_LIMITS,
    ) -> None:
        super().__init__(schema, limits)
        self._most_pending = limits.pending_in_index
        self._index_type = index_type.variant(options)
        self.options = options
        self.sample = Sample()
        self._moves = 0
        self.work = WorkTotals()
        self.clear()

    def clear(self) -> None:
        self.ids = Ids(few=self.limits.ids_per_lookup)
        self.sources = Sources()
        self.dimensions = Dimensions()
        self.table = self._index_type.table_type()
        self.programs = ProgramTable()
        self.owners = Owners()
        self.compiler = self._new_compiler()
        self.index = self._new_index()
        self.conjunctions = 0
        self._pending: list[Expression] = []
        self._slots = 0
        self._weights = GrowingArray(np.float64)

    def _new_compiler(self) -> SubscriptionCompiler:
        """A compiler over the dimensions. It keeps conjunctions of disjunctions as they are if the table can hold them."""
        factors = isinstance(self.table, FactorTable)
        compiler = Compiler(self.dimensions, self._relabel, self.scalars, factors=factors)
        return SubscriptionCompiler(compiler, lambda: self._moves, self.limits.rows_at_once)

    def _new_index(self) -> Index:
        """An empty index over the table, which has observed the sample of events."""
        # Functions of the dimensions alone, not of the store, whose locks cannot be pickled.
        kind_of, name_of = partial(_kind_of, self.dimensions), partial(_name_of, self.dimensions)
        index = self._index_type(self.table, self.options, kind_of, name_of)
        sample = self.sample.encoded(self.dimensions, self._moves)
        if sample is not None:
            index.observe(sample, len(self.dimensions))
        return index

    @property
    def nbytes(self) -> int:
        return self.table.nbytes + self.owners.nbytes + self.programs.nbytes

    # -- adding and removing

    def compile(self, expressions: Sequence[Expression]) -> Clauses:
        return self._interned(self.compiler.compile(expressions))

    def compile_rows(self, rows: KeptPredicates) -> Clauses:
        return self._interned(self.compiler.compile_rows(rows))

    def _interned(self, compiled: CompiledMany) -> Clauses:
        """Enter the clauses of subscriptions into the table, all of which the index can hold."""
        of_one = self._taken(self.table.intern(compiled.conjunctions))
        of_others = self._interned_others(compiled.compiled)
        counts = np.zeros(compiled.total, np.int32)
        counts[compiled.one_conjunction] = 1
        counts[compiled.others] = [1 if each.factors else len(each.clauses) for each in compiled.compiled]
        programs = np.full(compiled.total, NO_PROGRAM, np.int64)
        programs[compiled.others] = [
            NO_PROGRAM if each.tree is None else self.programs.add(each.tree) for each in compiled.compiled
        ]
        first = np.cumsum(counts, dtype=np.int64) - counts
        numbers = np.empty(len(of_one) + len(of_others), np.int32)
        numbers[first[compiled.one_conjunction]] = of_one
        numbers[span_indices(first[compiled.others], counts[compiled.others].astype(np.int64))] = of_others
        return Clauses(numbers, counts, programs)

    def _interned_others(self, compiled: Sequence[Compiled]) -> I32s:
        """The numbers of all clauses in the table, one for an expression with factors."""
        table = self.table
        if isinstance(table, FactorTable):
            rows = [row for each in compiled for row in ([each.factors] if each.factors else map(_alone, each.clauses))]
            return self._taken(table.intern_factors(FactorRows.of(rows)))
        return self._taken(table.intern(clauses_of(compiled)))

    def _taken(self, numbers: I32s) -> I32s:
        """The same numbers, unless the index refuses one of them."""
        self.index.refuse(numbers)
        return numbers

    def add(self, identifiers: list[Id], clauses: Clauses, block: ExpressionBlock, weights: F64s) -> None:
        self.flush()
        slots = np.arange(self._slots, self._slots + len(identifiers))
        self._slots += len(slots)
        self.sources.add(block, slots)
        self.ids.add(identifiers, slots)
        self._weights.extend(weights)
        self._own(clauses)

    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        if not self.index.capabilities.every_predicate:  # The index may refuse it, and the caller must know now.
            self.add([identifier], self.compile([expression]), GivenExpressions([given]), np.array([weight]))
            return
        self.sources.add_one(given, self._slots)
        self.ids.add_one(identifier, self._slots)
        self._weights.append(weight)
        self._slots += 1
        self._pending.append(expression)
        if len(self._pending) >= self._most_pending:
            self.flush()

    def flush(self) -> None:
        """Compile what `add_one` left. An expression that was read has no errors."""
        if self._pending:
            pending, self._pending = self._pending, []
            self._own(self.compile(pending))

    def _own(self, clauses: Clauses) -> None:
        """Give the clauses to the slots that have none yet, in their order."""
        born = self.owners.add(clauses.numbers, clauses.counts, clauses.programs, len(self.table))
        self.conjunctions += len(born)
        self.index.insert(born)

    def remove(self, identifier: Id) -> None:
        self.remove_many([identifier])

    def remove_many(self, identifiers: Sequence[Id]) -> None:
        self._release(identifiers)
        self.ids.discard(*identifiers)
        if len(self) == 0:
            self.clear()
        else:
            self._sweep_if_due()

    def replace(self, identifiers: list[Id], clauses: Clauses, block: ExpressionBlock, weights: F64s) -> None:
        self._release(identifiers)
        self.add(identifiers, clauses, block, weights)
        self._sweep_if_due()

    def _release(self, identifiers: Sequence[Id]) -> None:
        """Remove the subscriptions of ids. The ids stay in their places."""
        self.flush()
        for slot in [self.ids.slot(identifier) for identifier in identifiers]:
            died = self.owners.remove(slot)
            self.sources.remove(slot)
            self.conjunctions -= len(died)
            self.index.delete(died)

    def weights(self, slots: npt.NDArray[Any]) -> F64s:
        weights: F64s = self._weights.view()[slots]
        return weights

    def _sweep_if_due(self) -> None:
        # A sweep takes time in proportion to the living subscriptions, so it waits until as many are dead.
        if len(self.owners) > 2 * max(len(self), self.limits.fewest_to_sweep):
            self._sweep()

    def _sweep(self) -> None:
        """Drop slots, conjunctions, programs, constants and dimensions that no living subscription needs. Order stays."""
        edges = self.owners.view()
        live = np.sort(self.ids.slots())
        chosen = span_indices(edges.first_edge[live], edges.edges[live].astype(np.int64))
        kept, numbers = np.unique(edges.clause[chosen], return_inverse=True)
        programs = edges.program[live]
        self.programs, moved = self.programs.taken(np.unique(programs[programs != NO_PROGRAM]).tolist())
        self.table, order = self.table.swept(kept, self._sweep_dimensions)
        self.owners = Owners()
        moved_programs = np.array([moved.get(program, NO_PROGRAM) for program in programs.tolist()], np.int64)
        born = self.owners.add(order[numbers], edges.edges[live], moved_programs, len(self.table))
        self.ids = self.ids.compacted(live)
        self.sources = self.sources.compacted(live)
        weights, self._weights = self._weights.view()[live], GrowingArray(np.float64)
        self._weights.extend(weights)
        self._slots = len(live)
        self.compiler = self._new_compiler()
        self.index = self._new_index()
        self.index.insert(born)

    def _sweep_dimensions(self, predicates: Predicates) -> None:
        """Keep only the dimensions and constants of these predicates and of the programs. Renumber dimensions in both."""
        parts = (predicates, self.programs.view().predicates)
        used = []
        for number, lows, highs in ends_by_dimension(parts):
            self.dimensions[number].keeping(lows, highs)()
            used.append(number)
        renumbered = self.dimensions.numbers_if_kept(used)
        self.dimensions = self.dimensions.kept(used)
        for part in parts:
            part.dimension[:] = renumbered[part.dimension]

    def _relabel(self, dimension: int, relabelling: Relabelling) -> None:
        """Let the stored keys of a dimension follow its labels, and build the index again."""
        relabelling.carry_out()
        self._moves += 1
        self.table.relabel(dimension, relabelling)
        self.programs.relabel(dimension, relabelling)
        self._rebuild()

    def _rebuild(self) -> None:
        self.index = self._new_index()
        self.index.insert(np.flatnonzero(self.owners.view().owners > 0).astype(np.int32))

    # -- matching

    def match_event(self, event: Mapping[str, Any], k: int | None, flat: FlatEvent | None = None) -> list[Id]:
        if flat is None:
            with self.changing():
                self.flush()
                encoded = encode_plain(event, self.dimensions)
                if encoded is not None:
                    return self.ids.name(self._matched(encoded, k).slots)
            flat = flatten(event)  # Not behind the lock: it may run any code, which may call the matcher.
        with self.changing():
            self.flush()
            return self.ids.name(self._matched(encode_flat([flat], self.dimensions, numbered=False), k).slots)

    def match_flat(
        self, events: list[FlatEvent], workers: Workers, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        with self.changing():
            self.flush()
            return [then(self._matched(encode_flat(events, self.dimensions), k))]

    def match_table(self, events: pa.Table, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        with self.changing():
            self.flush()
            return [then(self._matched(encode_table(events, self.dimensions, self.schema), k))]

    def match_json(self, events: JsonLines, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        with self.changing():
            self.flush()
            encoder = JsonEncoder(events, self.dimensions, self.schema)
            return [then(self._matched(encoder.rows(0, len(events)), k))]

    def asked(self) -> set[str]:
        with self.changing():
            self.flush()
            return set(self.dimensions.by_attribute)

    def _matched(self, encoded: EncodedEvents, k: int | None) -> Part:
        rows, slots = self.match(encoded)
        counts = np.bincount(rows, minlength=len(encoded.batch.start) - 1)
        if k is not None:
            counts, slots = keep_heaviest(counts, slots, self._weights.view(), k)
        return Part(0, counts, slots, self.ids, self.ids.names_at_hand(), self.ids)

    def match(self, encoded: EncodedEvents) -> tuple[I64s, I32s]:
        """All pairs of event row and slot, each once, grouped by event."""
        self.index.capabilities.check(encoded.batch, self.index.name)
        matches = self.index.match(encoded.batch, len(self.dimensions))
        rows, slots = self.owners.of_matches(matches.event, matches.conjunction)
        if len(self.programs):
            rows, slots = self._verified(encoded, rows, slots)
        self.work.events += len(encoded.batch.start) - 1
        self.work.candidates += matches.counters.candidates
        self.work.filtered += matches.counters.filtered
        self.work.predicates += matches.counters.predicates
        self.work.mismatched += encoded.mismatched
        return rows, slots

    def _verified(self, encoded: EncodedEvents, rows: I64s, slots: I32s) -> tuple[I64s, I32s]:
        """The pairs that the program of their slot accepts."""
        programs, dimensions = self.programs.view(), len(self.dimensions)
        kept, verified = verify(self.owners.view(), programs, encoded.batch, dimensions, rows, slots)
        self.work.verified += verified
        return rows[kept], slots[kept]

    def observe(self, events: list[FlatEvent] | pa.Table) -> None:
        with self.changing():
            self.flush()
            if isinstance(events, pa.Table):
                encoded = encode_table(events, self.dimensions, self.schema)
            else:
                encoded = encode_flat(events, self.dimensions)
            self.sample.take_all(events)
            self.index.observe(encoded.batch, len(self.dimensions))

    def optimize(self) -> None:
        self.flush()
        self._rebuild()

    def plan(self, identifier: Id) -> Plan:
        return Plan(identifier, (), f"by the index {self.index.name!r}: {self.index.summary}")

    def stats(self) -> dict[str, Any]:
        with self.changing():
            self.flush()
        return {
            "index": self.index.name,
            "subscriptions": len(self),
            "conjunctions": self.conjunctions,
            "dimensions": len(self.dimensions),
            "bytes": self.nbytes,
            "index_stats": self.index.stats(),
            "events": self.work.events,
            "candidates": self.work.candidates,
            "filtered": self.work.filtered,
            "predicates": self.work.predicates,
            "verified": self.work.verified,
            "mismatched": self.work.mismatched,
        }


def _kind_of(dimensions: Dimensions, dimension: int) -> KeyKind:
    return dimensions[dimension].key_kind


def _name_of(dimensions: Dimensions, dimension: int) -> str:
    return f"attribute {dimensions[dimension].attribute!r}"


def _alone(clause: Clause) -> list[Clause]:
    """A conjunction of leaves as factors of one leaf each."""
    return [(leaf,) for leaf in clause]
