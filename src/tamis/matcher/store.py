"""What a matcher keeps its subscriptions in: ids, expressions and dimensions, over the engine or over an index.

A *slot* is a subscription's number. Everything that can fail happens before the first change, so a call that adds many adds
all or none. A subscription that is added alone may wait to be compiled together with others until something needs it. One that
is removed in the midst of another call, by a finalizer, goes when the next call begins.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.expressions.predicate_rows import PredicateRows
from tamis.engine.interrupts import holding
from tamis.errors import ReentryError
from tamis.kernels.background import is_ours
from tamis.language.event import FlatEvent
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.expression_store import Block, Sources
from tamis.matcher.ids import Id, Ids, Names
from tamis.matcher.plan import Plan

ClausesT = TypeVar("ClausesT")
R = TypeVar("R")

_stores: WeakSet[Store[Any]] = WeakSet()
"""All that there are."""


class Part(NamedTuple):
    """The slots that some events of a batch satisfy, one event after another."""

    first: int
    """The row of the first of these events."""
    counts: npt.NDArray[np.int64]
    slots: npt.NDArray[np.int32]
    ids: Ids
    names: Names | None
    """What slots are called, if that is at hand."""
    held: object
    """While this lives, no slot is given to another subscription."""


class Store(ABC, Generic[ClausesT]):
    """Subscriptions by slot, and which of them events satisfy."""

    ids: Ids
    sources: Sources

    def __init__(self) -> None:
        self.lock = threading.RLock()
        """Whoever changes the store holds it."""
        self.is_changing = holding(self.lock)
        """Whether the calling thread changes the store."""
        self._late: deque[Id] = deque()
        """What is to be removed as soon as that can be."""
        _stores.add(self)

    def __len__(self) -> int:
        return len(self.ids)

    def is_inside(self) -> bool:
        """Whether the calling thread is in the midst of something, which a finalizer or a signal handler interrupts."""
        return self.is_changing()

    def changing(self) -> AbstractContextManager[bool]:
        """The lock, for whoever is going to change the store: nobody does so twice at once.

        Raises
        ------
        ReentryError
        """
        if self.is_inside():
            raise ReentryError
        if self._late:
            self.catch_up()
        return self.lock

    def remove_or_defer(self, identifier: Id, *, must_be_there: bool) -> bool:
        """Remove a subscription: now, or if that cannot be, then before anything else is done. Returns whether it was there.

        Raises
        ------
        UnknownIdError
            When it must be there and is not.
        IdTypeError
        """
        if self.is_inside() or is_ours():
            return self._defer(identifier, must_be_there)
        if not self.lock.acquire(False):
            # In a finalizer that interrupts a change of another matcher: whoever changes this one may wait for that one.
            if any(store.is_inside() for store in list(_stores)):
                return self._defer(identifier, must_be_there)
            self.lock.acquire()
        try:
            if self._late:
                self._remove_late()
            is_there = self._is_there(identifier, must_be_there)
            if is_there:
                self.remove(identifier)
            return is_there
        finally:
            self.lock.release()

    def _defer(self, identifier: Id, must_be_there: bool) -> bool:
        is_there = self._is_there(identifier, must_be_there)
        if is_there:
            self._late.append(identifier)
        return is_there

    def _is_there(self, identifier: Id, must_be_there: bool) -> bool:
        return (self.ids.slot(identifier) if must_be_there else self.ids.find(identifier)) is not None

    def catch_up(self) -> None:
        """Remove what could not be removed when it was asked for."""
        if self._late and not self.is_inside() and not is_ours():
            with self.lock:
                self._remove_late()

    def _remove_late(self) -> None:
        while self._late:
            identifier = self._late[0]
            if identifier in self.ids:
                self.remove(identifier)
            self._late.popleft()  # Not before: should it be interrupted, it is done once more.

    @abstractmethod
    def compile(self, expressions: Sequence[Expression]) -> ClausesT:
        """Compile expressions; their clauses have no owner yet."""

    @abstractmethod
    def compile_rows(self, rows: PredicateRows) -> ClausesT:
        """The same for rows of predicates.

        Raises
        ------
        WrongRowsError
        """

    @abstractmethod
    def add(self, identifiers: list[Id], clauses: ClausesT, block: Block, weights: npt.NDArray[np.float64]) -> None:
        """Take in new subscriptions, whose ids were checked."""

    @abstractmethod
    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        """Take in one subscription, whose id was checked. It may be compiled with those that follow, when it is needed."""

    @abstractmethod
    def remove(self, identifier: Id) -> None:
        """Remove a subscription.

        Raises
        ------
        UnknownIdError, IdTypeError
        """

    @abstractmethod
    def remove_many(self, identifiers: Sequence[Id]) -> None:
        """Remove subscriptions that are there, each named once, at one moment."""

    @abstractmethod
    def replace(self, identifiers: list[Id], clauses: ClausesT, block: Block, weights: npt.NDArray[np.float64]) -> None:
        """Give subscriptions that are there, each named once, other clauses, at one moment."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all subscriptions, and with them every dimension and constant. What is known of events stays."""

    @abstractmethod
    def weights(self, slots: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """The weights of slots."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of the encoded subscriptions and the index over them. Whoever interrupts a change may ask."""

    @abstractmethod
    def match_event(self, event: Mapping[str, Any], k: int | None) -> list[Id]:
        """The ids of the subscriptions that one event satisfies: all, or the `k` that weigh most."""

    @abstractmethod
    def match_flat(self, events: list[FlatEvent], threads: int, k: int | None, then: Callable[[Part], R]) -> list[R]:
        """Match events in their normal form, in parts; returns what `then` makes of each, in the thread that matched it."""

    @abstractmethod
    def match_table(
        self, events: pa.Table, schema: Schema | None, threads: int, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        """The same of a table of events; with a schema, they must keep to it."""

    @abstractmethod
    def observe(self, events: list[FlatEvent] | pa.Table, schema: Schema | None) -> None:
        """Learn from events how frequent values are; with a schema, a table must keep to it."""

    @abstractmethod
    def optimize(self) -> None:
        """Plan everything anew, with what is known of events now."""

    @abstractmethod
    def plan(self, identifier: Id) -> Plan:
        """How events find a subscription that is there."""

    @abstractmethod
    def stats(self) -> dict[str, Any]: ...
