"""The interface of an index: it finds the conjunctions that are true of each event in a batch.

An index sees dimensions and keys. It reads the conjunction table, inserts and deletes rows by number, and answers with pairs of
numbers. It knows nothing about strings, types and the users' ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, NamedTuple

from tamis.encoding.dimensions.keys import KeyKind
from tamis.encoding.events.event_batch import EventBatch, has_several
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.errors import CapabilityError
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.options import Options


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an index can do. It raises a CapabilityError for anything else.

    Attributes
    ----------
    dynamic : bool
        Whether insert and delete work in place. Otherwise the index builds itself again before the next match.
    several_values : bool
        Whether an event may have several values of one attribute.
    interval_values : bool
        Whether an event's value may be an interval.
    every_predicate : bool
        Whether any predicate may be inserted. Otherwise `Index.refuse` rejects the predicates that may not.
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
    """The work of a match.

    Attributes
    ----------
    candidates : int
        Conjunctions visited, and not kept out by a filter.
    predicates : int
        Predicates evaluated.
    nodes : int
        Nodes, lists or tables visited, whichever the index has.
    filtered : int
        Conjunctions visited that a filter of the index has kept from being candidates, like the signatures of `pst-bloom`.
    """

    candidates: int
    predicates: int
    nodes: int = 0
    filtered: int = 0


class Matches(NamedTuple):
    """Pairs of event row and conjunction, grouped by event in ascending order, each pair once."""

    event: I64s
    conjunction: I32s
    counters: Counters


KindOf = Callable[[int], KeyKind]
"""Dimension -> the kind of its keys."""


def all_integers(dimension: int) -> KeyKind:
    """The keys of every dimension are the values themselves."""
    return KeyKind.INTEGER


NameOf = Callable[[int], str]
"""Dimension -> its name in messages."""


def numbered(dimension: int) -> str:
    """A name for a dimension when only its number is known."""
    return f"dimension {dimension}"


class Index(ABC):
    """Finds the conjunctions of a table that are true of events.

    The caller must not change an index while it is read, and must match with one thread at a time.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    paper: ClassVar[str] = ""
    """Where it is described: authors, title, year and sections."""
    capabilities: Capabilities = Capabilities()
    """The capabilities of the class; options may remove some from an object."""
    options_type: ClassVar[type[Options]] = Options
    table_type: ClassVar[type[ConjunctionTable]] = ConjunctionTable
    """The table that it reads: a `FactorTable` if it takes conjunctions of disjunctions."""

    @classmethod
    def variant(cls, options: Options) -> type[Index]:
        """The class of an index with these options. An index with several classes chooses one here."""
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

    def refuse(self, conjunctions: I32s) -> None:  # noqa: B027 - most have nothing to refuse
        """Raise a CapabilityError if the index cannot hold one of these rows of the table."""

    @abstractmethod
    def insert(self, conjunctions: I32s) -> None:
        """Take in rows of the table that are not in the index."""

    @abstractmethod
    def delete(self, conjunctions: I32s) -> None:
        """Drop rows of the table that are in the index."""

    @abstractmethod
    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        """All pairs of an event and a conjunction that is true of it. Dimension numbers are below `dimensions`."""

    def observe(self, batch: EventBatch, dimensions: int) -> None:  # noqa: B027 - nor anything to learn
        """Learn from events how frequent values are. Changes take effect with the next `insert` at the latest."""

    @abstractmethod
    def stats(self) -> dict[str, Any]:
        """Figures about the index: at least `conjunctions` and `bytes`, of its own arrays."""

    @abstractmethod
    def check(self) -> None:
        """Raise an AssertionError if an invariant of the index does not hold. For tests: it may be slow."""
