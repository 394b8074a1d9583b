"""What both stores of subscriptions share: ids, expressions and locking. A store works over the engine or over an index.

A *slot* is the number of a subscription. Everything that can fail happens before the first change, so a call that adds many adds
all or none. A subscription that is added alone may wait, and is compiled together with others when something needs it. If a
finalizer removes a subscription inside of another call, it goes when the next call begins.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar
from weakref import WeakSet

import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.events.json_lines import JsonLines
from tamis.encoding.events.mappings import Mappings
from tamis.encoding.expressions.kept_predicates import KeptPredicates
from tamis.engine.interrupts import holding
from tamis.engine.version import Accelerator
from tamis.errors import CapabilityError, ReentryError
from tamis.kernels.background import is_ours
from tamis.kernels.numbers import F64s, I32s, I64s
from tamis.language.event import FlatEvent
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.expression_store import ExpressionBlock, Sources
from tamis.matcher.ids import Id, Ids, Names
from tamis.matcher.limits import StoreLimits
from tamis.matcher.plan import Plan

ClausesT = TypeVar("ClausesT")
R = TypeVar("R")

_stores: WeakSet[Store[Any]] = WeakSet()
"""All stores of this process."""


class Workers(NamedTuple):
    """Who matches a batch."""

    threads: int
    card: Accelerator | None = None
    """What matches segments instead of these threads."""


class Part(NamedTuple):
    """The slots that some consecutive events of a batch satisfy, event by event."""

    first: int
    """The row of the first event."""
    counts: I64s
    slots: I32s
    """An array. For the caller of `Part` in the thread that matched it, it may be `LazySlots`."""
    ids: Ids
    names: Names | None
    """The ids of all slots, if they are at hand."""
    held: object
    """While this lives, no slot is given to another subscription."""


class Store(ABC, Generic[ClausesT]):
    """Subscriptions by slot, and which of them events satisfy. With a schema, tables of events must keep to it."""

    ids: Ids
    sources: Sources
    keeps_history: ClassVar[bool] = False
    """Whether subscriptions may ask about earlier events."""

    def __init__(self, schema: Schema | None, limits: StoreLimits) -> None:
        self.schema = schema
        self.scalars: Container[str] = () if schema is None else schema.scalars
        """Attributes that have one value in every event."""
        self.limits = limits
        self.lock = threading.RLock()
        """Held by the thread that changes the store."""
        self.is_changing = holding(self.lock)
        """Whether the calling thread changes the store."""
        self._late: deque[Id] = deque()
        """Ids to remove as soon as possible."""
        _stores.add(self)

    def __len__(self) -> int:
        return len(self.ids)

    def is_inside(self) -> bool:
        """Whether the calling thread is inside of another call, which a finalizer or a signal handler interrupted."""
        return self.is_changing()

    def changing(self) -> AbstractContextManager[bool]:
        """The lock, for a call that changes the store.

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
        """Remove a subscription now, or else before the next call does anything. Returns whether it was there.

        Raises
        ------
        UnknownIdError
            If it must be there and is not.
        IdTypeError
        """
        if self.is_inside() or is_ours():
            return self._defer(identifier, must_be_there)
        if not self.lock.acquire(False):
            # A finalizer interrupts a change of another matcher. The thread that holds our lock may wait for that matcher.
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
        """Remove the subscriptions whose removal was deferred."""
        if self._late and not self.is_inside() and not is_ours():
            with self.lock:
                self._remove_late()

    def _remove_late(self) -> None:
        while self._late:
            identifier = self._late[0]
            if identifier in self.ids:
                self.remove(identifier)
            self._late.popleft()  # Last: if the removal is interrupted, it is done again.

    @abstractmethod
    def compile(self, expressions: Sequence[Expression]) -> ClausesT:
        """Compile expressions. Their clauses have no owner yet.

        Raises
        ------
        CapabilityError
            If the index cannot hold an expression.
        """

    @abstractmethod
    def compile_rows(self, rows: KeptPredicates) -> ClausesT:
        """The same for rows of predicates.

        Raises
        ------
        WrongRowsError, CapabilityError
        """

    @abstractmethod
    def add(self, identifiers: list[Id], clauses: ClausesT, block: ExpressionBlock, weights: F64s) -> None:
        """Take in new subscriptions, whose ids were checked."""

    @abstractmethod
    def add_one(self, identifier: Id, expression: Expression, given: str | Expression, weight: float) -> None:
        """Take in one subscription, whose id was checked. It may wait to be compiled."""

    @abstractmethod
    def flush(self) -> None:
        """Compile the subscriptions that wait."""

    @abstractmethod
    def remove(self, identifier: Id) -> None:
        """Remove a subscription.

        Raises
        ------
        UnknownIdError, IdTypeError
        """

    @abstractmethod
    def remove_many(self, identifiers: Sequence[Id]) -> None:
        """Remove subscriptions at one moment. They are there, and each is named once."""

    @abstractmethod
    def replace(self, identifiers: list[Id], clauses: ClausesT, block: ExpressionBlock, weights: F64s) -> None:
        """Give subscriptions other clauses at one moment. They are there, and each is named once."""

    @abstractmethod
    def clear(self) -> None:
        """Forget all subscriptions, dimensions and constants. The sample of events stays."""

    @abstractmethod
    def weights(self, slots: npt.NDArray[Any]) -> F64s:
        """The weights of slots."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """The size of the encoded subscriptions and the index over them. A call that interrupts a change may ask for it."""

    @abstractmethod
    def match_event(self, event: Mapping[str, Any], k: int | None, flat: FlatEvent | None = None) -> list[Id]:
        """The ids of the subscriptions that one event satisfies: all, or the `k` with the largest weights.

        `flat` is the flat form of the event, if the caller made it.
        """

    @abstractmethod
    def match_flat(
        self, events: list[FlatEvent], workers: Workers, k: int | None, then: Callable[[Part], R]
    ) -> list[R]:
        """Match flat events in parts; returns the result of `then` for each part. The thread that matched a part calls `then`."""

    def match_mappings(self, events: Mappings, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        """The same for mappings. A store with a schema needs flat events instead."""
        return self.match_flat(events.flat(), workers, k, then)

    @abstractmethod
    def match_table(self, events: pa.Table, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        """The same for a table of events."""

    @abstractmethod
    def match_json(self, events: JsonLines, workers: Workers, k: int | None, then: Callable[[Part], R]) -> list[R]:
        """The same for lines of JSON. A store that keeps a history needs flat events instead.

        Raises
        ------
        WrongEventsError
        """

    def on_card(self, number: int, most: int | None) -> Accelerator:
        """What matches segments on the card with this number, in at most `most` bytes of its memory.

        Raises
        ------
        CapabilityError, OptionError
        """
        raise CapabilityError("this index cannot match on a GPU. Hint: use Matcher() without index")

    @abstractmethod
    def asked(self) -> set[str]:
        """The attributes that subscriptions ask about, and perhaps those of recently removed subscriptions."""

    def earlier(self, event: Any) -> Sequence[FlatEvent]:
        """The earlier events that subscriptions would compare an event with now."""
        return ()

    @abstractmethod
    def observe(self, events: list[FlatEvent] | pa.Table) -> None:
        """Learn from events how frequent values are."""

    @abstractmethod
    def optimize(self) -> None:
        """Plan all subscriptions again, for the present sample of events."""

    @abstractmethod
    def plan(self, identifier: Id) -> Plan:
        """How events find a subscription that is there."""

    @abstractmethod
    def stats(self) -> dict[str, Any]: ...
