"""Subscriptions over the engine.

One writer at a time changes the store, under its lock; any number of threads match meanwhile. What an event's value is in keys
depends on the constants that are known, so encoding an event and taking the engine's version of that moment belong
together: the gate keeps constants from changing in between. Matching itself needs no lock.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.events.event_batch import EventBatch, encode_flat, encode_plain
from tamis.encoding.events.event_table import TableEncoder, encode_table
from tamis.encoding.expressions.compile import Compiler
from tamis.encoding.expressions.plain_row import PlainEncoder
from tamis.encoding.expressions.predicate_rows import PredicateRows
from tamis.encoding.expressions.predicates import ends_by_dimension
from tamis.engine.delta import Delta
from tamis.engine.engine import Engine
from tamis.engine.matching.results import Work
from tamis.engine.rows import Rows
from tamis.engine.sample import Sample, relabelled, renumbered
from tamis.engine.segment import Segment
from tamis.engine.single import NOT_SMALL, Single
from tamis.engine.snapshot import frozen
from tamis.engine.top_k import keep_heaviest
from tamis.engine.version import Version
from tamis.errors import ReentryError
from tamis.kernels.growing import GrowingArray
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.clauses import ClauseRows, RowCompiler
from tamis.matcher.crew import Crew, largest_first, tapering
from tamis.matcher.event_shares import Encoded, encoded_table, is_encoded_by_one, slices
from tamis.matcher.expression_store import Block, Sources
from tamis.matcher.gate import Gate
from tamis.matcher.ids import Id, Ids, StoredIds
from tamis.matcher.plan import Plan, plan_of
from tamis.matcher.store import Part, R, Store

# Subscriptions that are added one by one wait for each other up to this many.
_MOST_PENDING = 256
# So many that are added together are laid out one by one, if that can be: compiling one or ten takes twice as long, a hundred
# as long.
_MOST_ONE_BY_ONE = 32
# Constants and dimensions are swept when as many subscriptions have gone as there are, of which so many take a look.
_GONE_PER_LOOK = 1024


class Contents(NamedTuple):
    """All that a store holds, as it was at one moment."""

    segments: tuple[Segment, ...]
    rows: Rows | None
    """What is in no segment."""
    alive: npt.NDArray[np.bool_]
    ids: npt.NDArray[np.int64] | pa.Array | None
    living: npt.NDArray[np.int64]
    """The slots of the living, in order of addition."""
    weights: npt.NDArray[np.float64]
    dimensions: pa.Table
    sources: Sources


class EngineStore(Store[ClauseRows]):
    """Subscriptions in segments and deltas."""

    name = "engine"

    def __init__(self, scalars: Container[str]) -> None:
        super().__init__()
        self._scalars = scalars
        self._gate = Gate()
        self._moves = 0
        self.sample = Sample()
        self.engine = Engine(self._sampled)
        self._reset()

    def _reset(self) -> None:
        self.ids = Ids()
        self.sources = Sources()
        self._compile_with(Dimensions())
        self._gone = 0
        self._weights = GrowingArray(np.float64)
        self._weighted = False
        self._pending: dict[int, Expression] = {}
        """Slots that were added alone and wait to be compiled."""

    def _compile_with(self, dimensions: Dimensions) -> None:
        self.dimensions = dimensions
        compiler = Compiler(dimensions, self._relabel, self._scalars, self._gate.writing)
        self._rows = RowCompiler(compiler, lambda: self._moves)
        self._plain = PlainEncoder(compiler)

    def is_inside(self) -> bool:
        return self.is_changing() or self.engine.is_changing() or self._gate.is_inside() or self.sample.is_changing()

    def _check_free(self) -> None:
        """Whoever interrupts matching may match; whoever interrupts a change would meet what is half done, or wait for ever.

        Raises
        ------
        ReentryError
        """
        if self.is_changing() or self.engine.is_changing():
            raise ReentryError

    def _prepare(self) -> None:
        """Do what must be done before events are encoded."""
        self._check_free()
        if not self.is_inside():  # Whoever interrupts matching must not wait for those that change.
            self.catch_up()
            self.flush()

    # -- adding and removing

    def compile(self, expressions: Sequence[Expression]) -> ClauseRows:
        # First what waits: its constants may move labels, and keys that are made here must not grow stale.
        self.flush()
        plain = self._plain_rows(expressions) if len(expressions) <= _MOST_ONE_BY_ONE else None
        return self._rows.compile(expressions) if plain is None else plain

    def _plain_rows(self, expressions: Sequence[Expression]) -> ClauseRows | None:
        """The rows of a few expressions if all are plain, laid out like those that come alone."""
        delta = Delta()
        for number, expression in enumerate(expressions):
            if not self._add_plain(delta, expression, number):
                return None
        return ClauseRows(delta.view().rows, len(expressions))

    def _add_plain(self, to: Engine | Delta, expression: Expression, slot: int) -> bool:
        """Add the row of an expression, if it has but one and is plain."""
        row = self._plain.row(expression)
        if row is not None and to.add_plain(row, slot):
            return True
        row = self._plain.keyed_row(expression)
        return row is not None and to.add_plain(row, slot)

    def compile_rows(self, rows: PredicateRows) -> ClauseRows:
        self.flush()
        return self._rows.compile_rows(rows)

    def add(self, identifiers: list[Id], clauses: ClauseRows, block: Block, weights: npt.NDArray[np.float64]) -> None:
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
            if not self._add_plain(self.engine, expression, slot):
                self._pending[slot] = expression
        except BaseException:
            self.ids.discard(identifier)
            self._withdraw(np.array([slot], np.int32))
            raise
        if len(self._pending) >= _MOST_PENDING:
            self.flush()

    def _withdraw(self, slots: npt.NDArray[np.int32]) -> None:
        """Take back what was interrupted while it was added, as far as it had come. No id has these slots any more."""
        self.engine.settle_again(slots)
        for slot in slots.tolist():
            self._remove_slot(slot)
        self.engine.publish()

    def _enter(
        self, identifiers: list[Id], slots: npt.NDArray[np.int32], block: Block, weights: npt.NDArray[np.float64]
    ) -> None:
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
        """Compile what `add_one` left; nothing can go wrong with an expression that was read."""
        if not self._pending:
            return
        with self.lock:
            if not self._pending:
                return
            slots = np.array(list(self._pending), np.int32)
            clauses = self._rows.compile(list(self._pending.values()))
            try:
                self.engine.add(clauses.of_slots(slots))
                self.engine.publish()
                # Not before: whoever finds nothing waiting relies on everything being published.
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
            self._remove(identifier, slot)  # Interrupted: it goes nevertheless.
            raise

    def _remove(self, identifier: Id, slot: int) -> None:
        if not self.ids.discard(identifier):
            self.clear()
            return
        self._remove_slot(slot)
        self._sweep_if_due()

    def _remove_slot(self, slot: int) -> None:
        """Let a slot go, if it is there still."""
        self.sources.remove(slot)
        self._pending.pop(slot, None)
        self.engine.remove_one(slot)

    def remove_many(self, identifiers: Sequence[Id]) -> None:
        slots = np.array([self.ids.slot(identifier) for identifier in identifiers], np.int32)
        try:
            self._remove_many(identifiers, slots)
        except BaseException:
            self._remove_many(identifiers, slots)  # Interrupted: they go nevertheless.
            raise

    def _remove_many(self, identifiers: Sequence[Id], slots: npt.NDArray[np.int32]) -> None:
        if not self.ids.discard(*identifiers):
            self.clear()
            return
        self._forget_sources(slots)
        self.engine.remove(self.engine.living_among(slots))
        self.engine.publish()
        self._sweep_if_due(len(slots))

    def _forget_sources(self, slots: npt.NDArray[np.int32]) -> None:
        for slot in slots.tolist():
            self.sources.remove(slot)
            self._pending.pop(slot, None)

    def replace(
        self, identifiers: list[Id], clauses: ClauseRows, block: Block, weights: npt.NDArray[np.float64]
    ) -> None:
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

    def clear(self) -> None:
        self._at_once(self._forget_all)

    def _forget_all(self) -> None:
        self.engine.clear()
        self._reset()

    def weights(self, slots: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        weights: npt.NDArray[np.float64] = self._weights.view()[slots]
        return weights

    @property
    def nbytes(self) -> int:
        return self.engine.nbytes

    # -- snapshots

    def contents(self) -> Contents:
        """What there is now; it stays as it is, whatever changes afterwards."""
        with self.changing():
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
        """Begin with what another store held."""
        with self.lock, self._gate.writing():
            self._reset()
            if contents.ids is not None:
                self.ids = Ids(StoredIds(contents.ids, contents.living))
            self.sources = contents.sources
            self.dimensions.restore(contents.dimensions)
            self._weights.extend(contents.weights)
            self._weighted = bool(np.any(contents.weights))
            self.engine.restore(contents.segments, contents.rows, contents.alive)

    def _relabel(self, dimension: int, relabelling: Relabelling) -> None:
        """Keys of a dimension move: those that are stored follow. Whoever encodes waits only while they change places."""
        sample = relabelled(self._sampled(), dimension, relabelling)
        with self.engine.rewriting(lambda rows: rows.relabelled(dimension, relabelling), sample) as rewritten:

            def move() -> None:
                relabelling.carry_out()
                self._moves += 1
                self.engine.put(rewritten)

            self._at_once(move)

    def _at_once(self, change: Callable[[], None]) -> None:
        """Change dimensions, and what goes with them, while nobody encodes. If that is interrupted, it is done once more: it
        has to do no harm then."""
        with self._gate.writing():
            try:
                change()
            except BaseException:
                change()
                raise

    def _sweep_if_due(self, gone: int = 1) -> None:
        before, self._gone = self._gone, self._gone + gone
        if self._gone // _GONE_PER_LOOK > before // _GONE_PER_LOOK and self._gone > len(self):
            self._sweep()
            self._gone = 0

    def _sweep(self) -> None:
        """Forget the constants that no living subscription needs, and dimensions once most are idle.

        Keys stay as they are, so rows need no change, unless dimensions are numbered anew. What takes long is done aside.
        """
        rows = self.engine.living()
        ends = list(ends_by_dimension((rows.table.predicates, rows.programs.predicates)))
        used = [number for number, _, _ in ends]
        idle = sorted(set(range(len(self.dimensions))) - set(used))
        nothing = np.zeros(0, np.int64)
        keepings = [self.dimensions[number].keeping(lows, highs) for number, lows, highs in ends]
        keepings += [self.dimensions[number].keeping(nothing, nothing) for number in idle]
        if len(idle) <= len(used):
            self._at_once(lambda: self._forget(keepings, self.dimensions))
            return
        old, numbers = self.dimensions, self.dimensions.numbers_if_kept(used)
        sample = renumbered(self._sampled(), numbers)
        with self.engine.rewriting(lambda rows: rows.renumbered(numbers), sample) as rewritten:

            def renumber() -> None:
                self._forget(keepings, old.kept(used))
                self.sample.forget_encoding()
                self.engine.put(rewritten)

            self._at_once(renumber)

    def _forget(self, keepings: Sequence[Callable[[], None]], dimensions: Dimensions) -> None:
        """Forget constants, and go on with these dimensions."""
        for keep in keepings:
            keep()
        self._compile_with(dimensions)

    # -- matching

    def match_event(self, event: Mapping[str, Any], k: int | None) -> list[Id]:
        if self._pending or self._late or self.is_changing() or self.engine.is_changing():
            self._prepare()
        single = self.engine.singles.take()
        gate, changes, known = self._gate, self._gate.changes, self.dimensions
        mismatched: int | None = 0
        is_packed = bool(known.forms) and single.event.pack_known(event, known)
        if is_packed:
            latest, ids, weights, dimensions = self.engine.latest(), self.ids, self._weights, known.count
        if not is_packed or changes & 1 or gate.changes != changes:
            with gate.lock:
                mismatched = single.event.pack(event, self.dimensions)
                latest, ids, weights, dimensions = self.engine.latest(), self.ids, self._weights, self.dimensions.count
        numbers = ids.numbers
        count = NOT_SMALL if mismatched is None else single.match(latest, numbers, dimensions)
        if mismatched is None or count == NOT_SMALL:
            latest, ids, weights, dimensions, mismatched = self._put(event, single)
            numbers = ids.numbers
            count = single.match(latest, numbers, dimensions)
        found: list[Any] = []
        if count and k is not None:
            _, slots = keep_heaviest(np.array([count]), single.slots(count), weights.view(), k)
            found = ids.name(slots)
        elif count:
            found = single.names(count) if numbers is not None else ids.name(single.slots(count))
        single.is_taken = False
        if mismatched:
            self.engine.tally.add(0, (0, 0, 0), mismatched)
        if self.engine.tally.events >= self.sample.next:
            self.sample.take_one(flatten(event), self.engine.tally.events)
            self.engine.follow()
        return found

    def _put(
        self, event: Mapping[str, Any], single: Single
    ) -> tuple[tuple[Version, int, int], Ids, GrowingArray, int, int]:
        """Encode an event that `OneEvent.pack` does not take; returns what of the store belongs to that moment."""
        with self._gate.lock:
            encoded = encode_plain(event, self.dimensions)
            seen = self.engine.latest(), self.ids, self._weights, len(self.dimensions)
        if encoded is None:
            flat = flatten(event)  # Not behind the gate: anybody's code may run, and come here again.
            with self._gate.lock:
                encoded = encode_flat([flat], self.dimensions, numbered=False)
                seen = self.engine.latest(), self.ids, self._weights, len(self.dimensions)
        single.event.put(encoded.batch)
        return *seen, encoded.mismatched

    def match_flat(self, events: list[FlatEvent], threads: int, k: int | None, then: Callable[[Part], R]) -> list[R]:
        def encoded() -> Iterator[Encoded]:
            batch, mismatched = encode_flat(events, self.dimensions)
            yield slices(batch, tapering(len(events), threads)), mismatched

        return self._matched(encoded, events, False, threads, k, then)

    def match_table(
        self, events: pa.Table, schema: Schema | None, threads: int, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        by_one = is_encoded_by_one(events, threads)

        def encoded() -> Iterator[Encoded]:
            return encoded_table(TableEncoder(events, self.dimensions, schema), events, by_one, threads)

        return self._matched(encoded, events, by_one, threads, k, then)

    def _matched(
        self,
        encoded: Callable[[], Iterator[Encoded]],
        events: list[FlatEvent] | pa.Table,
        by_one: bool,
        threads: int,
        k: int | None,
        then: Callable[[Part], R],
    ) -> list[R]:
        """Match events; where one thread encodes them, some while others are still being encoded."""
        self._prepare()

        def match(given: tuple[int, EventBatch]) -> tuple[R, Work]:
            first, batch = given
            counts, slots, work = self.engine.match(version, batch, dimensions)
            if k is not None:
                counts, slots = keep_heaviest(counts, slots, weights.view(), k)
            return then(Part(first, counts, slots, ids, names, version)), work

        given, row, mismatched = 0, 0, 0
        with Crew(match, threads) as crew:
            if by_one:
                crew.begin()  # Not behind the gate: whoever waits for the pool keeps nobody from changing constants.
            with self._gate.reading():
                version, ids, weights, dimensions = self.engine.version, self.ids, self._weights, len(self.dimensions)
                names = ids.names_at_hand()
                for parts, of_these in encoded():
                    rows = list(itertools.accumulate((len(part.start) - 1 for part in parts), initial=row))
                    for at in largest_first([len(part.start) for part in parts]):
                        crew.give(given + at, (rows[at], parts[at]))
                    given, row = given + len(parts), rows[-1]
                    mismatched += of_these
            found = crew.results()
        tally = self.engine.tally
        tally.add(len(events), functools.reduce(Work.plus, [work for _, work in found], Work()), mismatched)
        if len(events) and tally.events >= self.sample.next:
            self.sample.take_due(events, tally.events)
            self.engine.follow()
        return [made for made, _ in found]

    # -- learning from events

    def observe(self, events: list[FlatEvent] | pa.Table, schema: Schema | None) -> None:
        self._check_free()
        with self._gate.reading():  # What is wrong with them is found here.
            if isinstance(events, pa.Table):
                encode_table(events, self.dimensions, schema)
            else:
                encode_flat(events, self.dimensions)
        self.sample.take_all(events)

    def _sampled(self) -> EventBatch | None:
        """The sample in keys. Whoever restores a snapshot asks for it while having the gate."""
        if self._gate.is_writer():
            return self.sample.encoded(self.dimensions, self._moves)
        with self._gate.reading():
            return self.sample.encoded(self.dimensions, self._moves)

    def optimize(self) -> None:
        self.flush()
        self.sample.forget_encoding()
        self.engine.optimize()

    def plan(self, identifier: Id) -> Plan:
        self.flush()
        return plan_of(identifier, *self.engine.accesses(self.ids.slot(identifier)), self.dimensions, self._scalars)

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
            **self.engine.tally.as_dict(),
        }
