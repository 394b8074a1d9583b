"""What a broker hands out: receipts, notes, subscriptions and changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, overload

from tamis.language.expression import Expression
from tamis.language.reading import to_expression


class Matches(Sequence[tuple[str, str]]):
    """The subscriptions that an event satisfied, as pairs of subscriber and name. Names are looked up when they are asked for."""

    __slots__ = ("_names", "_numbers")

    def __init__(self, numbers: Sequence[int], names: Callable[[int], tuple[str, str]]) -> None:
        self._numbers = numbers
        self._names = names

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> tuple[str, str]: ...

    @overload
    def __getitem__(self, place: slice) -> list[tuple[str, str]]: ...

    def __getitem__(self, place: int | slice) -> tuple[str, str] | list[tuple[str, str]]:
        if isinstance(place, slice):
            return [self._names(int(number)) for number in self._numbers[place]]
        return self._names(int(self._numbers[place]))

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return (self._names(int(number)) for number in self._numbers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3])) + (", ..." if len(self) > 3 else "")
        return f"<{len(self)} match{'' if len(self) == 1 else 'es'}: {shown}>" if self else "<0 matches>"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What `publish` returns when the event is safe on disk.

    Attributes
    ----------
    sequence : int
        The number of the event. Events count from 1.
    matches : sequence of (subscriber, name)
        Who was told. The length is known at once; names are looked up when they are read.
    """

    sequence: int
    matches: Matches


@dataclass(frozen=True, slots=True)
class Note:
    """One event for one subscriber.

    Attributes
    ----------
    sequence : int
        The number of the note. The notes of a subscriber count from 1, without gaps.
    event : dict
        The event, as it was published.
    event_sequence : int
        The number of the event. A subscriber that must not act twice remembers it.
    subscriptions : tuple of str
        The names of the subscriptions that wanted the event.
    expired : bool
        Whether `valid_until` of the event has passed.
    """

    sequence: int
    event: dict[str, Any]
    event_sequence: int
    subscriptions: tuple[str, ...]
    expired: bool


@dataclass(frozen=True, slots=True)
class StandingSubscription:
    """A subscription of a broker."""

    subscriber: str
    name: str
    text: str
    """The expression as it was given, or as SQL if it was not text."""
    weight: float
    valid_from: datetime | None
    valid_until: datetime | None
    paused: bool

    @property
    def expression(self) -> Expression:
        return to_expression(self.text)


class SubscriberFigures(NamedTuple):
    """A subscriber and the state of its queue."""

    number: int
    """The number of the subscriber, which never changes."""
    name: str
    cursor: int
    """The last note that was acknowledged."""
    first: int
    """The first note that can be read."""
    last: int
    """The last note."""
    waiting: int
    """Notes that can be read and were not acknowledged."""


class StoredEvent(NamedTuple):
    """An event in the tables."""

    sequence: int
    event: dict[str, Any]
    published: datetime
    valid_until: datetime | None
    matches: int
    """How many subscriptions were told when it was published."""


class Change(NamedTuple):
    """The last change of a subscription, in the form that `tamis.spark.update_stream` takes. The fields are its columns."""

    number: int
    """Changes count up. A later change of the same subscription replaces an earlier one."""
    change: str
    """``added`` or ``removed``. A paused subscription counts as removed."""
    id: int
    """The number of the subscription, which never changes."""
    subscriber: str
    name: str
    expression: str
    weight: float
    valid_from: datetime | None
    valid_until: datetime | None
