"""Subscriptions that may ask about earlier events come and go: the part of `HistoryStore` that changes them.

    expression  --split-->  constant part  -->  the engine
                            rest           -->  the join table, by slot

Matching changes the retained events, so one thread matches at a time, in its turn. A thread that changes subscriptions never
waits for the turn, and a thread in its turn may wait for a change. The rest of a slot is noted before an event can find the slot,
and is forgotten while no event is matched.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tamis.earlier.history import History
from tamis.earlier.join_table import JoinTable, Split, split
from tamis.earlier.prefilter import UNREAD, PreFilter
from tamis.earlier.retained import Retained, RetainedContents
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.engine.interrupts import holding
from tamis.errors import ReentryError
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import F64s, I32s
from tamis.language.expression import FALSE, Expression
from tamis.language.schema import Schema
from tamis.matcher.clauses import ClauseRows
from tamis.matcher.engine_store import Contents, EngineStore
from tamis.matcher.expression_store import ExpressionBlock, GivenExpressions
from tamis.matcher.history_snapshot import HistoryContents
from tamis.matcher.ids import Id, Ids
from tamis.matcher.limits import StoreLimits

_READ_AT_ONCE = 32
"""Expressions that are read again in a call. Each takes a tenth of a millisecond."""


class Beside(NamedTuple):
    """What belongs to the same subscriptions as some `Ids`. Clearing the store replaces them together."""

    table: JoinTable
    weights: GrowingArray


class HistoryChanges(EngineStore):
    """The part of `HistoryStore` that changes subscriptions."""

    keeps_history = True

    def __init__(self, history: History, schema: Schema | None, limits: StoreLimits) -> None:
        self._retained = Retained(history, few=limits.scanned_history, block=limits.history_block)
        self._turn = threading.RLock()
        self._is_my_turn = holding(self._turn)
        self._beside: WeakKeyDictionary[Ids, Beside] = WeakKeyDictionary()
        super().__init__(schema, limits)
        self._indexed_for = self._table
        self._asked_with: tuple[frozenset[str] | None, frozenset[str]] = None, frozenset()
        """The attributes that joins ask about, and all that are asked about with them."""
        self._changes_of_version = 0
        """The changes of the join table when a match took its version."""

    @property
    def history(self) -> History:
        """The options of the history."""
        return self._retained.history

    def _reset(self) -> None:
        super()._reset()
        self._table = JoinTable(
            PreFilter(one_history=self._retained.has_one_history, fewest=self.limits.prefilter_from)
        )
        self._splits: dict[int, Split] = {}
        """The parts of the expressions that were compiled last, by their place."""
        self._beside[self.ids] = Beside(self._table, self._weights)

    # -- adding and removing

    def compile(self, expressions: Sequence[Expression]) -> ClauseRows:
        constant, splits = list(expressions), {}
        for place, expression in enumerate(expressions):
            if expression.needs_history():
                splits[place] = split(expression)
                constant[place] = splits[place].constant
        self._splits = splits
        return super().compile(constant)

    def compile_rows(self, rows: KeptPredicates) -> ClauseRows:
        self._splits = {}
        return super().compile_rows(rows)

    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        # A slot that had a rest may be given again. Then the rest must go before events find the slot, see `_enter`.
        if self._table.gone or expression.needs_history():
            clauses = self.compile([expression])
            self.add([identifier], clauses, GivenExpressions([given]), np.array([weight], np.float64))
        else:
            super().add_one(identifier, expression, given, weight)

    def _enter(self, identifiers: list[Id], slots: I32s, block: ExpressionBlock, weights: F64s) -> None:
        self._table.put(slots, self._splits)
        super()._enter(identifiers, slots, block, weights)
        self._table.show(slots, self._splits)

    # Changes of the engine and of what is decided for every event, which must look like one change.

    def add(self, identifiers: list[Id], clauses: ClauseRows, block: ExpressionBlock, weights: F64s) -> None:
        with self._table.shifting(self._adds_always()):
            super().add(identifiers, clauses, block, weights)

    def replace(self, identifiers: list[Id], clauses: ClauseRows, block: ExpressionBlock, weights: F64s) -> None:
        with self._table.shifting(self._adds_always() or self._have_always(identifiers)):
            super().replace(identifiers, clauses, block, weights)

    def remove(self, identifier: Id) -> None:
        with self._table.shifting(self._have_always([identifier])):
            super().remove(identifier)

    def remove_many(self, identifiers: Sequence[Id]) -> None:
        with self._table.shifting(self._have_always(identifiers)):
            super().remove_many(identifiers)

    def _adds_always(self) -> bool:
        return any(parts.always is not None for parts in self._splits.values())

    def _have_always(self, identifiers: Iterable[Id]) -> bool:
        return self._table.has_always(map(self.ids.slot, identifiers))

    def _remove_slot(self, slot: int) -> None:
        super()._remove_slot(slot)
        self._table.remove(slot)

    def _forget_sources(self, slots: I32s) -> None:
        super()._forget_sources(slots)
        for slot in slots.tolist():
            self._table.remove(slot)

    # -- snapshots

    def contents(self) -> Contents:
        if self._is_my_turn():
            raise ReentryError
        with self._turn:  # Before the lock: a thread in its turn may wait for a change.
            return super().contents()

    def contents_without_events(self) -> Contents:
        """The present contents without the retained events. Nobody waits for a match."""
        with self.changing():
            return self._with_history(super()._contents(), RetainedContents([], None, None, 0))

    def _contents(self) -> Contents:
        return self._with_history(super()._contents(), self._retained.contents())

    def _with_history(self, contents: Contents, retained: RetainedContents) -> Contents:
        slots = contents.living.astype(np.int32)
        parts = {int(slots[place]): parts for place, parts in self._table.parts(slots).items()}
        return contents._replace(history=HistoryContents(self.history, retained, parts))

    def restore(self, contents: Contents) -> None:
        assert contents.history is not None
        super().restore(contents)
        self._beside[self.ids] = Beside(self._table, self._weights)
        parts = contents.history.parts
        slots, by_place = np.array(list(parts), np.int32), dict(enumerate(parts.values()))
        self._table.put(slots, by_place)
        self._table.show(slots, by_place)
        self._retained.restore(contents.history.retained)

    # -- matching

    def _begin_turn(self) -> None:
        """Wait for the turn of the calling thread. It must be given back.

        Raises
        ------
        ReentryError
            If the call interrupts another one, which has the turn.
        """
        if self._is_my_turn():
            raise ReentryError
        if self._pending or self._late or self.is_changing() or self.engine.is_changing():
            self._prepare()
        self._turn.acquire()

    def _tidy(self) -> None:
        """Forget the slots that were removed. Nobody is matching, so no event needs their rests."""
        table = self._table
        if (table.gone or table is not self._indexed_for) and (table.tidy() or table is not self._indexed_for):
            table.prefilter.keep(table.earlier())
            self._retained.keep_indexes(table.earlier())
            self._indexed_for = table

    def _read_needs(self, slots: I32s) -> None:
        """Read what some slots need, if that was left when a file was loaded."""
        is_unread = self._table.prefilter.needs_of(slots) == UNREAD
        for slot in dict.fromkeys(slots[is_unread][:_READ_AT_ONCE].tolist()):
            with self.lock:
                if slot not in self._table.gone:
                    constant, rest, _ = split(self.sources.expression(slot))
                    self._table.prefilter.read(slot, FALSE if rest is None else rest, constant)

    @contextmanager
    def _turn_if_free(self) -> Iterator[bool]:
        """Have the turn if nobody has it. The caller may have the lock, for which a thread in its turn may wait."""
        is_mine = not self._is_my_turn() and self._turn.acquire(blocking=False)
        try:
            if is_mine:
                self._tidy()
            yield is_mine
        finally:
            if is_mine:
                self._turn.release()

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        self._begin_turn()
        try:
            self._tidy()
            yield
        finally:
            self._turn.release()

    def _asked(self) -> frozenset[str]:
        """The attributes that joins and the history ask about."""
        of_joins = self._table.attributes()
        known = self._asked_with
        if known[0] is not of_joins:
            known = self._asked_with = of_joins, frozenset({*of_joins, *self._retained.names()})
        return known[1]
