"""Matching events against the subscriptions of a store over the engine. Nothing here changes subscriptions.

Encoding an event and taking the state that it is matched with happen behind the gate. Matching itself needs no lock.
"""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.event_batch import EventBatch, encode_flat, encode_plain
from tamis.encoding.events.event_table import TableEncoder, encode_table
from tamis.encoding.events.json_lines import JsonEncoder, JsonLines
from tamis.encoding.events.mapping_encoder import MappingEncoder, UnevenError, UnknownClassesError
from tamis.encoding.events.mappings import Mappings
from tamis.encoding.events.plain_rows import NotPlainError, PlainRows, events_in
from tamis.engine.matching.results import Work
from tamis.engine.single import NOT_SMALL, Single
from tamis.engine.top_k import heaviest_slots, keep_heaviest
from tamis.engine.version import Accelerator, Version
from tamis.errors import ReentryError
from tamis.kernels.growing import GrowingArray
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.clauses import ClauseRows
from tamis.matcher.crew import Crew, largest_first
from tamis.matcher.event_shares import (
    CARD_THREADS,
    Encoded,
    bounds_for,
    encoded_lines,
    encoded_mappings,
    encoded_table,
    is_encoded_by_one,
    slices,
    waiting_table,
)
from tamis.matcher.ids import Id, Ids
from tamis.matcher.keyed_engine import KeyedEngine
from tamis.matcher.limits import StoreLimits
from tamis.matcher.store import Part, R, Store, Workers

if TYPE_CHECKING:
    from tamis.gpu.matching import CardMatching


class _Encoding(NamedTuple):
    """An event that was encoded for the state of one moment."""

    latest: tuple[Version, int, int]
    ids: Ids
    weights: GrowingArray
    dimensions: int
    mismatched: int


class EngineMatching(Store[ClauseRows]):
    """The part of `EngineStore` that matches."""

    _weights: GrowingArray
    _pending: dict[int, Expression]
    """Subscriptions that were added alone and wait to be compiled, by slot."""

    def __init__(self, schema: Schema | None, limits: StoreLimits) -> None:
        super().__init__(schema, limits)
        self.keyed = KeyedEngine(self.scalars, limits.engine, limits.rows_at_once)
        self.engine, self.sample, self.gate = self.keyed.engine, self.keyed.sample, self.keyed.gate
        self.cards: dict[int, CardMatching] = {}
        """The cards that this store was matched on, by number."""
        self._card_lock = threading.Lock()

    @property
    def dimensions(self) -> Dimensions:
        return self.keyed.dimensions

    def asked(self) -> set[str]:
        self.flush()
        return set(self.dimensions.by_attribute)

    def is_inside(self) -> bool:
        return self.is_changing() or self.keyed.is_inside()

    def _check_free(self) -> None:
        """A call that interrupts matching may match. A call that interrupts a change would meet a half-done state.

        Raises
        ------
        ReentryError
        """
        if self.is_changing() or self.engine.is_changing():
            raise ReentryError

    def _prepare(self) -> None:
        """Do what must be done before events are encoded."""
        self._check_free()
        if not self.is_inside():  # A call that interrupts matching must not wait for a writer.
            self.catch_up()
            self.flush()

    # -- one event

    def match_event(self, event: Mapping[str, Any], k: int | None, flat: FlatEvent | None = None) -> list[Id]:
        if self._pending or self._late or self.is_changing() or self.engine.is_changing():
            self._prepare()
        if flat is None and self.engine.counters.events + 1 >= self.sample.next:
            flat = flatten(event)  # The sample takes it, and it serves if the event is not plain.
        single = self.engine.singles.take()
        keyed, gate = self.keyed, self.gate
        changes, known = gate.changes, keyed.dimensions
        mismatched: int | None = 0
        is_packed = bool(known.forms) and single.event.pack_known(event, known)
        if is_packed:
            latest, ids, weights, dimensions = self.engine.latest(), self.ids, self._weights, known.count
        if not is_packed or changes & 1 or gate.changes != changes:
            with gate.lock:
                known = keyed.dimensions
                mismatched = single.event.pack(event, known, flat)
                latest, ids, weights, dimensions = self.engine.latest(), self.ids, self._weights, known.count
        numbers = ids.numbers
        count = NOT_SMALL if mismatched is None else single.match(latest, numbers, dimensions)
        if mismatched is None or count == NOT_SMALL:
            latest, ids, weights, dimensions, mismatched = self._put(event, flat, single, mismatched is not None)
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
            self.engine.counters.add(0, (0, 0, 0), mismatched)
        # Another thread may have matched meanwhile. Then a later event is taken, rather than flatten this one again.
        if flat is not None and self.engine.counters.events >= self.sample.next:
            self.sample.take_one(flat, self.engine.counters.events)
            self.engine.follow()
        return found

    def _put(self, event: Mapping[str, Any], flat: FlatEvent | None, single: Single, is_plain: bool) -> _Encoding:
        """Encode an event that `OneEvent.pack` could not take, or whose numbers turned out not to be small (`is_plain`)."""
        encoded = None
        if is_plain:
            with self.gate.lock:
                encoded = encode_plain(event, self.dimensions, flattens=flat is None)
                seen = self.engine.latest(), self.ids, self._weights, len(self.dimensions)
        if encoded is None:
            # Not behind the gate: flattening may run any code, which may call the matcher.
            flat = flatten(event) if flat is None else flat
            with self.gate.lock:
                encoded = encode_flat([flat], self.dimensions, numbered=False)
                seen = self.engine.latest(), self.ids, self._weights, len(self.dimensions)
        single.event.put(encoded.batch)
        return _Encoding(*seen, encoded.mismatched)

    # -- batches

    def match_flat(
        self, events: list[FlatEvent], workers: Workers, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        def encoded() -> Iterator[Encoded]:
            batch, mismatched = encode_flat(events, self.dimensions)
            yield slices(batch, bounds_for(len(events), workers, workers.threads)), mismatched

        return self._matched(encoded, events, False, workers, k, then)

    def match_table(self, events: pa.Table, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        share_bytes = self.limits.share_bytes
        by_one = workers.card is None and is_encoded_by_one(events, workers.threads, share_bytes)
        waits = workers.card is not None

        def encoded() -> Iterator[Encoded]:
            encoder = TableEncoder(events, self.dimensions, self.schema, waits=waits)
            if waits and encoder.can_wait():
                return waiting_table(encoder, events, workers.threads)
            return encoded_table(encoder, events, by_one, workers, share_bytes)

        try:
            return self._matched(encoded, events, by_one, workers, k, then)
        except NotPlainError:
            waits = False
            return self._matched(encoded, events, by_one, workers, k, then)

    def match_mappings(self, events: Mappings, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        at_once = self.limits.mappings_at_once
        overlaps = workers.card is None and workers.threads > 1 and len(events) >= 2 * at_once

        def encoded() -> Iterator[Encoded]:
            encoder = MappingEncoder(events, self.dimensions, self.limits.few_mappings)
            return encoded_mappings(encoder, len(events), workers, at_once if overlaps else max(len(events), 1))

        # Flattening is not behind the gate: it may run any code, which may call the matcher.
        while True:
            try:
                return self._matched(encoded, events, overlaps, workers, k, then)
            except UnknownClassesError as unknown:
                events.flatten(unknown.rows)
            except UnevenError:
                return EngineMatching.match_flat(self, events.flat(), workers, k, then)

    def match_json(self, events: JsonLines, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        def encoded() -> Iterator[Encoded]:
            encoder = JsonEncoder(events, self.dimensions, self.schema)
            return encoded_lines(encoder, events, workers, self.limits.json_share_bytes)

        return self._matched(encoded, events, False, workers, k, then)

    def on_card(self, number: int, most: int | None) -> Accelerator:
        from tamis.gpu.card import SegmentsOnCard, card_of

        card = card_of(number)
        from tamis.gpu.matching import CardMatching

        with self._card_lock:
            if number not in self.cards:
                self.cards[number] = CardMatching(SegmentsOnCard(card, most))
            return self.cards[number]

    def _took_version(self) -> None:
        """Called when a batch has taken the version that it is matched with."""

    def _matched(
        self,
        encoded: Callable[[], Iterator[Encoded]],
        events: list[FlatEvent] | Mappings | pa.Table | JsonLines,
        by_one: bool,
        workers: Workers,
        k: int | None,
        then: Callable[[Part], R],
    ) -> list[R]:
        """Match events. If one thread encodes them, the other threads match the first events meanwhile."""
        self._prepare()

        card = None if workers.card is None else workers.card.for_batch()

        def match(given: tuple[int, EventBatch | PlainRows]) -> tuple[R, Work]:
            first, batch = given
            counts, slots, work = self.engine.match(version, batch, dimensions, card)
            counts, slots = heaviest_slots(counts, slots, weighed, k)
            made = then(Part(first, counts, slots, ids, names, version))
            if isinstance(made, Part):
                made = made._replace(slots=np.asarray(made.slots))  # The card needs its memory for the next part.
            return made, work

        given, row, mismatched = 0, 0, 0
        threads = workers.threads if card is None else min(workers.threads, CARD_THREADS)
        with Crew(match, threads) as crew:
            if by_one:
                crew.begin()  # Outside of the gate, so that a writer does not wait for the pool of threads.
            with self.gate.reading():
                version, ids, weights, dimensions = self.engine.version, self.ids, self._weights, len(self.dimensions)
                names, weighed = ids.names_at_hand(), weights.view()
                self._took_version()
                for parts, of_these in encoded():
                    sizes = [events_in(part) for part in parts]
                    rows = list(itertools.accumulate(sizes, initial=row))
                    for at in largest_first(sizes):
                        crew.give(given + at, (rows[at], parts[at]))
                    given, row = given + len(parts), rows[-1]
                    mismatched += of_these
            found = crew.results()
        counters = self.engine.counters
        counters.add(len(events), functools.reduce(Work.plus, [work for _, work in found], Work()), mismatched)
        if len(events) and counters.events >= self.sample.next:
            self.sample.take_due(events, counters.events)
            self.engine.follow()
        return [made for made, _ in found]

    def observe(self, events: list[FlatEvent] | pa.Table) -> None:
        self._check_free()
        with self.gate.reading():  # Encoding finds what is wrong with the events.
            if isinstance(events, pa.Table):
                encode_table(events, self.dimensions, self.schema)
            else:
                encode_flat(events, self.dimensions)
        self.sample.take_all(events)
