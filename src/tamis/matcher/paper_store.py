"""Subscriptions over one of the papers' indexes.

    expression --compile--> clauses --intern--> conjunctions (each once) <--owners-- slots --ids--> users' ids

Slots are never given twice; those of removed subscriptions go when the store is swept.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
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
from tamis.encoding.expressions.compile import Clause, Compiled, Compiler
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicate_encoding import encode_rows
from tamis.encoding.expressions.predicate_rows import ExpressionRows, PredicateRows
from tamis.encoding.expressions.predicates import Predicates, ends_by_dimension, predicates_of
from tamis.encoding.expressions.programs import ProgramTable
from tamis.engine.sample import Sample
from tamis.engine.top_k import keep_heaviest
from tamis.kernels.growing import GrowingArray
from tamis.kernels.ranges import run_indices
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.expression_store import Block, GivenExpressions, Sources
from tamis.matcher.ids import Id, Ids
from tamis.matcher.plan import Plan
from tamis.matcher.store import Part, R, Store
from tamis.papers.clause_table import ClauseTable, FactorRows
from tamis.papers.interface import Index
from tamis.papers.options import Options
from tamis.papers.owners import NO_PROGRAM, Owners, verify

# Below this, laying expressions out in columns costs more than compiling them one by one.
_FEWEST_IN_BULK = 32
# Subscriptions that are added one by one wait for each other up to this many.
_MOST_PENDING = 4096
# A sweep costs time in proportion to what is alive: it waits until as much is dead, and not for a few.
_FEWEST_TO_SWEEP = 256


class Clauses(NamedTuple):
    """The clauses of new subscriptions: conjunction numbers, how many each subscription has, and the programs."""

    numbers: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]
    programs: npt.NDArray[np.int64]


@dataclass(slots=True)
class Work:
    """How much matching has been done so far."""

    events: int = 0
    candidates: int = 0
    predicates: int = 0
    verified: int = 0
    mismatched: int = 0


class IndexStore(Store[Clauses]):
    """Subscriptions over an index."""

    def __init__(self, index_type: type[Index], options: Options, scalars: Container[str]) -> None:
        super().__init__()
        self._index_type = index_type.variant(options)
        self.options = options
        self._scalars = scalars
        self.sample = Sample()
        self._moves = 0
        self.work = Work()
        self.clear()

    def clear(self) -> None:
        """Forget all subscriptions, and with them every dimension and constant."""
        self.ids = Ids()
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

    def _new_compiler(self) -> Compiler:
        """A compiler over the dimensions, which leaves to the table what that can hold."""
        factors = isinstance(self.table, ClauseTable)
        return Compiler(self.dimensions, self._relabel, self._scalars, factors=factors)

    def _new_index(self) -> Index:
        """An empty index over the table, which knows of the events of late."""
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
        if len(expressions) < _FEWEST_IN_BULK:
            return self._compile_each(expressions)
        # Most subscriptions are plain conjunctions, and those are encoded together.
        plain = np.array([ExpressionRows.can_hold(expression) for expression in expressions], np.bool_)
        bulk, rest = np.flatnonzero(plain), np.flatnonzero(~plain)
        together = self.compile_rows(ExpressionRows([expressions[row] for row in bulk.tolist()]))
        return _merged((bulk, together), (rest, self._compile_each([expressions[row] for row in rest.tolist()])))

    def compile_rows(self, rows: PredicateRows) -> Clauses:
        encoded = encode_rows(rows, self.compiler)
        # Interned first: should the rest move labels, the table's keys follow.
        numbers = self._interned(encoded.conjunctions)
        left = np.ones(len(rows), np.bool_)
        left[encoded.rows] = left[encoded.never] = False
        others = np.flatnonzero(left)
        return _merged(
            (encoded.rows, _plain_clauses(numbers, 1, len(numbers))),
            (encoded.never, _plain_clauses(numbers[:0], 0, len(encoded.never))),
            (others, self._compile_each(rows.expressions(others.tolist()))),
        )

    def _compile_each(self, expressions: Sequence[Expression]) -> Clauses:
        compiled = self.compiler.compile_many(expressions)
        numbers = self._interned_clauses(compiled)
        counts = np.array([1 if each.factors else len(each.clauses) for each in compiled], np.int32)
        programs = [NO_PROGRAM if each.tree is None else self.programs.add(each.tree) for each in compiled]
        return Clauses(numbers, counts, np.array(programs, np.int64))

    def _interned_clauses(self, compiled: Sequence[Compiled]) -> npt.NDArray[np.int32]:
        """The numbers of all clauses in the table, one for an expression with factors."""
        table = self.table
        if isinstance(table, ClauseTable):
            rows = [row for each in compiled for row in ([each.factors] if each.factors else map(_alone, each.clauses))]
            return self._taken(table.intern_factors(FactorRows.of(rows)))
        clauses = [clause for each in compiled for clause in each.clauses]
        start = np.append(0, np.cumsum([len(clause) for clause in clauses], dtype=np.int64))
        return self._interned(Conjunctions(start, predicates_of(leaf for clause in clauses for leaf in clause)))

    def _interned(self, conjunctions: Conjunctions) -> npt.NDArray[np.int32]:
        """The numbers of conjunctions in the table, all of which the index can hold."""
        return self._taken(self.table.intern(conjunctions))

    def _taken(self, numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The same numbers, unless the index refuses one of them."""
        self.index.refuse(numbers)
        return numbers

    def add(self, identifiers: list[Id], clauses: Clauses, block: Block, weights: npt.NDArray[np.float64]) -> None:
        self.flush()
        slots = np.arange(self._slots, self._slots + len(identifiers))
        self._slots += len(slots)
        self.sources.add(block, slots)
        self.ids.add(identifiers, slots)
        self._weights.extend(weights)
        self._own(clauses)

    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        if not self.index.capabilities.every_predicate:  # It may be refused, and that must be said now.
            self.add([identifier], self.compile([expression]), GivenExpressions([given]), np.array([weight]))
            return
        self.sources.add_one(given, self._slots)
        self.ids.add_one(identifier, self._slots)
        self._weights.append(weight)
        self._slots += 1
        self._pending.append(expression)
        if len(self._pending) >= _MOST_PENDING:
            self.flush()

    def flush(self) -> None:
        """Compile what `add_one` left; nothing can go wrong with an expression that was read."""
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

    def replace(self, identifiers: list[Id], clauses: Clauses, block: Block, weights: npt.NDArray[np.float64]) -> None:
        self._release(identifiers)
        self.add(identifiers, clauses, block, weights)
        self._sweep_if_due()

    def _release(self, identifiers: Sequence[Id]) -> None:
        """Let go of the slots of ids, which stay in their places."""
        self.flush()
        for slot in [self.ids.slot(identifier) for identifier in identifiers]:
            died = self.owners.remove(slot)
            self.sources.remove(slot)
            self.conjunctions -= len(died)
            self.index.delete(died)

    def weights(self, slots: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        weights: npt.NDArray[np.float64] = self._weights.view()[slots]
        return weights

    def _sweep_if_due(self) -> None:
        if len(self.owners) > 2 * max(len(self), _FEWEST_TO_SWEEP):
            self._sweep()

    def _sweep(self) -> None:
        """Drop what nobody owns any more: slots, conjunctions, programs, constants, dimensions. Order stays."""
        edges = self.owners.view()
        live = np.sort(self.ids.slots())
        chosen = run_indices(edges.first_edge[live], edges.edges[live].astype(np.int64))
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
        """Keep only the dimensions and constants of these predicates and of the programs, and renumber them in both."""
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
        """Keys of a dimension move: those that are stored follow, and the index is built anew."""
        relabelling.carry_out()
        self._moves += 1
        self.table.relabel(dimension, relabelling)
        self.programs.relabel(dimension, relabelling)
        self._rebuild()

    def _rebuild(self) -> None:
        self.index = self._new_index()
        self.index.insert(np.flatnonzero(self.owners.view().owners > 0).astype(np.int32))

    # -- matching

    def match_event(self, event: Mapping[str, Any], k: int | None) -> list[Id]:
        with self.changing():
            self.flush()
            encoded = encode_plain(event, self.dimensions)
            if encoded is not None:
                return self.ids.name(self._matched(encoded, k).slots)
        flat = flatten(event)  # Not behind the lock: anybody's code may run, and come here again.
        with self.changing():
            self.flush()
            return self.ids.name(self._matched(encode_flat([flat], self.dimensions, numbered=False), k).slots)

    def match_flat(self, events: list[FlatEvent], threads: int, k: int | None, then: Callable[[Part], R]) -> list[R]:
        with self.changing():
            self.flush()
            return [then(self._matched(encode_flat(events, self.dimensions), k))]

    def match_table(
        self, events: pa.Table, schema: Schema | None, threads: int, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        with self.changing():
            self.flush()
            return [then(self._matched(encode_table(events, self.dimensions, schema), k))]

    def _matched(self, encoded: EncodedEvents, k: int | None) -> Part:
        rows, slots = self.match(encoded)
        counts = np.bincount(rows, minlength=len(encoded.batch.start) - 1)
        if k is not None:
            counts, slots = keep_heaviest(counts, slots, self._weights.view(), k)
        return Part(0, counts, slots, self.ids, self.ids.names_at_hand(), self.ids)

    def match(self, encoded: EncodedEvents) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """All pairs of event row and slot, each once, grouped by event."""
        self.index.capabilities.check(encoded.batch, self.index.name)
        matches = self.index.match(encoded.batch, len(self.dimensions))
        rows, slots = self.owners.of_matches(matches.event, matches.conjunction)
        if len(self.programs):
            rows, slots = self._verified(encoded, rows, slots)
        self.work.events += len(encoded.batch.start) - 1
        self.work.candidates += matches.counters.candidates
        self.work.predicates += matches.counters.predicates
        self.work.mismatched += encoded.mismatched
        return rows, slots

    def _verified(
        self, encoded: EncodedEvents, rows: npt.NDArray[np.int64], slots: npt.NDArray[np.int32]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """The pairs without those that the program of their slot rejects."""
        programs, dimensions = self.programs.view(), len(self.dimensions)
        kept, verified = verify(self.owners.view(), programs, encoded.batch, dimensions, rows, slots)
        self.work.verified += verified
        return rows[kept], slots[kept]

    def observe(self, events: list[FlatEvent] | pa.Table, schema: Schema | None) -> None:
        with self.changing():
            self.flush()
            is_table = isinstance(events, pa.Table)
            encoded = (
                encode_table(events, self.dimensions, schema) if is_table else encode_flat(events, self.dimensions)
            )
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


def _plain_clauses(numbers: npt.NDArray[np.int32], each: int, count: int) -> Clauses:
    """`count` subscriptions with as many clauses each and no program."""
    return Clauses(numbers, np.full(count, each, np.int32), np.full(count, NO_PROGRAM, np.int64))


def _merged(*parts: tuple[npt.NDArray[np.intp], Clauses]) -> Clauses:
    """Clauses of rows that were compiled apart, in the order of the rows."""
    total = sum(len(rows) for rows, _ in parts)
    counts, programs = np.empty(total, np.int32), np.empty(total, np.int64)
    for rows, clauses in parts:
        counts[rows], programs[rows] = clauses.counts, clauses.programs
    first = np.cumsum(counts, dtype=np.int64) - counts
    numbers = np.empty(int(counts.sum(dtype=np.int64)), np.int32)
    for rows, clauses in parts:
        numbers[run_indices(first[rows], clauses.counts.astype(np.int64))] = clauses.numbers
    return Clauses(numbers, counts, programs)
