"""What an index is: something that finds, for a batch of events, the conjunctions that are true of them.

An index sees dimensions and keys. It reads the conjunction table, is told which rows to insert and delete, and answers with
pairs of numbers; strings, types and the users' ids are none of its business.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KeyKind
from tamis.encoding.events.event_batch import EventBatch, has_several
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.errors import CapabilityError
from tamis.papers.options import Options


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an index can do. Anything else is a CapabilityError.

    Attributes
    ----------
    dynamic : bool
        Insert and delete work in place. Otherwise the index builds itself again before the next match.
    several_values : bool
        An event may have several values of one attribute.
    interval_values : bool
        An event's value may be an interval.
    every_predicate : bool
        Any predicate may be inserted. Otherwise `Index.refuse` tells which predicates may not.
    """

    dynamic: bool = True
    several_values: bool = True
    interval_values: bool = True
    every_predicate: bool = True

    def to_dict(self) -> dict[str, bool]:
        return asdict(self)

    def check(self, batch: EventBatch, name: str) -> None:
        """Raise a CapabilityError if the batch has what an index, called `name`, cannot match."""
        if not self.interval_values and (batch.lo != batch.hi).any():
            raise CapabilityError(f"the index {name!r} cannot match events with an Interval. Hint: use index='auto'")
        if not self.several_values and has_several(batch):
            raise CapabilityError(
                f"the index {name!r} cannot match events with several values of an attribute, or with LIKE '%x%' and "
                "RLIKE, which may find several patterns in one value. Hint: use index='auto'"
            )


class Counters(NamedTuple):
    """How much work a match was.

    Attributes
    ----------
    candidates : int
        Conjunctions looked at.
    predicates : int
        Predicates evaluated.
    nodes : int
        Nodes, lists, tables or whatever the index has of them that were visited.
    """

    candidates: int
    predicates: int
    nodes: int = 0


class Matches(NamedTuple):
    """Pairs of event row and conjunction, grouped by event in ascending order, each pair once."""

    event: npt.NDArray[np.int64]
    conjunction: npt.NDArray[np.int32]
    counters: Counters


Numbers = npt.NDArray[np.int32]
"""Numbers of conjunctions."""
KindOf = Callable[[int], KeyKind]
"""What the keys of a dimension are."""


def all_integers(dimension: int) -> KeyKind:
    """The keys of every dimension are the values themselves."""
    return KeyKind.INTEGER


NameOf = Callable[[int], str]
"""What a dimension is called in messages."""


def numbered(dimension: int) -> str:
    """The name of a dimension of which only the number is known."""
    return f"dimension {dimension}"


class Index(ABC):
    """Finds the conjunctions of a table that are true of events.

    An index is not changed while it is read: the caller sees to that, and to it that only one thread matches at a time.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    """Where it is described: authors, title, year and sections."""
    capabilities: Capabilities = Capabilities()
    """What it can do; options may take away from what its class says."""
    options_type: ClassVar[type[Options]] = Options
    table_type: ClassVar[type[ConjunctionTable]] = ConjunctionTable
    """The table that it reads: a `ClauseTable` if it takes conjunctions of disjunctions."""

    @classmethod
    def variant(cls, options: Options) -> type[Index]:
        """The class of an index with these options: one that has several kinds tells them apart here."""
        return cls

    def __init__(
        self,
        table: ConjunctionTable,
        options: Options | None = None,
        kind_of: KindOf = all_integers,
        name_of: NameOf = numbered,
    ) -> None:
        self.table = table
        self.options: Any = self.options_type() if options is None else options
        self.kind_of = kind_of
        self.name_of = name_of

    def refuse(self, conjunctions: Numbers) -> None:  # noqa: B027 - most have nothing to refuse
        """Raise a CapabilityError if the index cannot hold one of these rows of the table."""

    @abstractmethod
    def insert(self, conjunctions: Numbers) -> None:
        """Take in rows of the table that are not in the index."""

    @abstractmethod
    def delete(self, conjunctions: Numbers) -> None:
        """Drop rows of the table that are in the index."""

    @abstractmethod
    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        """All pairs of an event and a conjunction that is true of it. Dimension numbers are below `dimensions`."""

    def observe(self, batch: EventBatch, dimensions: int) -> None:  # noqa: B027 - nor anything to learn
        """Learn from events how frequent values are. What that changes takes effect at the latest with the next `insert`."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Figures about the index: at least `conjunctions` and `bytes`, of its own arrays."""

    @abstractmethod
    def check(self) -> None:
        """Raise an AssertionError if an invariant of the index does not hold. It may take long: it is for tests."""
