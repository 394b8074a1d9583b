"""Subscriptions over the engine that may ask about earlier events, and these events.

history_changes    subscriptions come and go
history_matching   events are matched, and retained
here               the calls of a broker: events that are decided one after another and stored, or only looked at
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tamis.earlier.history import History
from tamis.earlier.join_table import JOINS_ONLY, NO_REST, Always, joined_slots
from tamis.earlier.leaving import Time
from tamis.earlier.marks import marked_places
from tamis.earlier.phases import Phases
from tamis.earlier.prefilter import State
from tamis.earlier.retained import Place, RetainedContents
from tamis.engine.top_k import keep_heaviest
from tamis.errors import ReentryError
from tamis.kernels.numbers import I32s
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten, refuse_asked
from tamis.language.expression import FALSE
from tamis.language.schema import Schema
from tamis.language.values import Kind
from tamis.matcher.engine_store import Contents, EngineStore
from tamis.matcher.history_matching import HistoryMatching
from tamis.matcher.history_plan import ALONE, LOOKED_AT, join_plan, phases_of
from tamis.matcher.ids import Id, Ids
from tamis.matcher.limits import USUAL_STORE_LIMITS, StoreLimits
from tamis.matcher.options import checked_threads
from tamis.matcher.plan import Plan
from tamis.matcher.store import Workers

_FEW_EVENTS = 64
"""Events that are matched faster one by one than as a batch."""


class Decided(NamedTuple):
    """What `HistoryStore.decide` says of an event."""

    ids: list[Any]
    place: Place
    newest: Time | None
    """The largest time seen, that of the event itself included."""


class _Candidates(NamedTuple):
    """The slots whose constant part an event satisfies, and their ids."""

    slots: I32s
    ids: Ids


class HistoryStore(HistoryMatching):
    """An `EngineStore` with earlier events."""

    def __init__(self, history: History, schema: Schema | None, limits: StoreLimits) -> None:
        super().__init__(history, schema, limits)
        self.is_intact = True
        """Whether the last call of `decide` has changed nothing of what is retained."""
        self._last_skipped = 0

    def decide(
        self,
        events: Sequence[FlatEvent],
        idle: Sequence[bool],
        k: int | None = None,
        accept: Callable[[list[Any]], object] | None = None,
    ) -> list[Decided]:
        """Match and retain events, row after row. Events that are `idle` are retained, and match nothing.

        `accept` gets the matches of each event before the event is retained. If it raises, `is_intact` says what has changed.

        Raises
        ------
        EventError
            Nothing is retained.
        """
        with self._in_turn():
            self.is_intact = True
            for row, event in enumerate(events):
                if not idle[row]:
                    refuse_asked(event, self._asked, row)
            held = self.engine.version
            candidates, always = self._with_always(lambda: self._candidates(events, idle))
            decided = [
                self._decided_event(event, candidates.get(row), always, k, accept) for row, event in enumerate(events)
            ]
            del held
            return decided

    def _candidates(self, events: Sequence[FlatEvent], idle: Sequence[bool]) -> dict[int, _Candidates]:
        """By row: the slots whose constant part an event satisfies."""
        rows = [row for row in range(len(events)) if not idle[row]]
        if len(rows) < _FEW_EVENTS:
            return {row: self._found(events[row]) for row in rows}
        given = [events[row] for row in rows]
        found: dict[int, _Candidates] = {}
        for part in self._candidates_of(given, Workers(checked_threads(None, len(given)))):
            ends = np.append(0, np.cumsum(part.counts)).tolist()
            for place in range(len(part.counts)):
                slots = part.slots[ends[place] : ends[place + 1]]
                found[rows[part.first + place]] = _Candidates(slots, part.ids)
        return found

    def _found(self, flat: FlatEvent) -> _Candidates:
        """The slots whose constant part an event satisfies. The caller holds the version of the engine."""
        single = self.engine.singles.take()
        latest, ids, _, dimensions, mismatched = self._put(flat, flat, single, False)
        self._took_version()
        slots = single.slots(single.match(latest, ids.numbers, dimensions)).copy()
        single.is_taken = False
        if mismatched:
            self.engine.counters.add(0, (0, 0, 0), mismatched)
        if self.engine.counters.events >= self.sample.next:
            self._learn(flat)
        return _Candidates(slots, ids)

    def _decided_event(
        self,
        event: FlatEvent,
        found: _Candidates | None,
        always: Sequence[Always],
        k: int | None,
        accept: Callable[[list[Any]], object] | None,
    ) -> Decided:
        before = self._retained.newest, self._retained.kind
        events, ids = self._retained.begin(event), []
        if found is not None:
            table, weights = self._beside[found.ids]
            places = marked_places(found.slots, table.marks)
            failing, more = self._decided_slots(found.slots[places].tolist(), event, events, always, table)
            slots = joined_slots(found.slots, places[failing], more)
            if k is not None:
                _, slots = keep_heaviest(np.array([len(slots)]), slots, weights.view(), k)
            ids = found.ids.name(slots) if len(slots) else []
        self.is_intact = self.is_intact and before == (self._retained.newest, self._retained.kind)
        if accept is not None:
            accept(ids)
        self.is_intact = False
        place, newest = self._retained.place(event), self._retained.newest
        self._retained.add(event)
        return Decided(ids, place, newest)

    def wants(self, event: Any) -> bool:
        """Whether an event satisfies some subscription. It is not retained.

        Raises
        ------
        EventError
        """
        flat = flatten(event)
        with self._in_turn():
            refuse_asked(flat, self._asked)
            held = self.engine.version
            found, always = self._with_always(lambda: self._found(flat))
            table = self._beside[found.ids].table
            numbers = table.numbers(found.slots)
            if (numbers == NO_REST).any():
                return True
            earlier = self._retained.earlier(flat)
            wanted = {*table.expressions(numbers), *(each.expression for each in always)}
            del held
            return any(evaluate_flat(each, flat, earlier) is True for each in wanted)

    def restore_retained(self, contents: RetainedContents) -> None:
        """Retain other events than now."""
        with self._in_turn():
            self._retained.restore(contents)

    @property
    def retained(self) -> int:
        """The number of retained events."""
        return len(self._retained)

    @property
    def time_kind(self) -> Kind | None:
        """The kind of times, if it is known."""
        return self._retained.kind

    def asked(self) -> set[str]:
        return {*super().asked(), *self._asked()}

    def earlier(self, event: Any) -> Sequence[FlatEvent]:
        flat = flatten(event)
        if self._is_my_turn():
            raise ReentryError
        with self._turn:
            return self._retained.earlier(flat)

    def plan(self, identifier: Id) -> Plan:
        plan = super().plan(identifier)
        table, slot = self._table, self.ids.slot(identifier)
        parts = table.parts(np.array([slot], np.int32)).get(0)
        if parts is None:
            return plan
        self._read_needs(np.array([slot], np.int32))
        needs_joins = parts.rest is not None
        if parts.rest == FALSE:
            plan = replace(plan, clauses=(), note=ALONE)
            parts = parts._replace(rest=None)
        states: list[State] = []
        with self._turn_if_free() as is_mine:
            if is_mine and needs_joins:
                states = [table.prefilter.state(number, self._retained) for number in table.need(slot)]
        return replace(plan, history=join_plan(parts, states, self._phases()))

    def _phases(self) -> Phases:
        slots = self.ids.slots()[:LOOKED_AT].tolist()
        expressions = [self.sources.expression(slot) for slot in slots]
        asked = {dimension.attribute for dimension in self.dimensions} - {JOINS_ONLY}
        counts = len(self), self.engine.counters.events
        return phases_of(self._table, self._retained, expressions, *counts, asked, self.sample.read(LOOKED_AT))

    def _skipped(self) -> int:
        """How many subscriptions the pre-filter skips at present. While an event is matched: when it was last counted."""
        with self._turn_if_free() as is_mine:
            if is_mine:
                self._last_skipped = self._table.skipped(self._retained)
        return self._last_skipped

    def stats(self) -> dict[str, Any]:
        """The figures of the store, and under `history`: retained events, their keys, distinct joins, joins decided for all
        events.

        Also how many subscriptions the pre-filter skips now, how often it has skipped one, and how many events were not retained
        because they lack the key or the time.
        """
        table = self._table
        history = {
            "events": len(self._retained),
            "keys": self._retained.keys,
            "joins": table.joins(),
            "decided": table.decided,
            "skipped": self._skipped(),
            "skips": table.prefilter.skips,
            "left_out": self._retained.left_out,
        }
        return {**super().stats(), "history": history}


def store_of(contents: Contents, schema: Schema | None, limits: StoreLimits = USUAL_STORE_LIMITS) -> EngineStore:
    """A store with the contents of another one. It keeps earlier events if the other one did."""
    kept = contents.history
    store = EngineStore(schema, limits) if kept is None else HistoryStore(kept.history, schema, limits)
    store.restore(contents)
    return store
