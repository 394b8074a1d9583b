"""Attributes that are computed from an event, for rules that ask for more than one attribute or for a part of a value.

    keyword            'sigma.values'                            all values of the event, as strings
    a|fieldref: b      'sigma.equal(a, b)'                       whether some value of a is one of b, in any case
    a|hour: 3          'sigma.hour(a)'                           a part of a time, as it is written

The names are those of the rules' expressions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from tamis.language.event import FlatEvent, flatten

PREFIX = "sigma"
"""What the names of computed attributes begin with, before a dot."""


class Derived(ABC):
    """A computed attribute. Equal ones are computed once."""

    kind: ClassVar[str]
    """The type of its values, as SQL names it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The attribute's name in expressions."""

    @abstractmethod
    def value(self, event: FlatEvent) -> Any:
        """The value for an event, None if it has none."""


@dataclass(frozen=True, slots=True)
class AllValues(Derived):
    """Every value of the event as a string, so that a keyword is found wherever it stands."""

    kind = "array<string>"

    @property
    def name(self) -> str:
        return f"{PREFIX}.values"

    def value(self, event: FlatEvent) -> list[str]:
        return [_text(value) for values in event.values() for value in values]


def _equal(one: str, other: str) -> bool:
    return one == other


def _contains(one: str, other: str) -> bool:
    return other in one


_RELATIONS: dict[str, Callable[[str, str], bool]] = {
    "equal": _equal,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "contains": _contains,
}


@dataclass(frozen=True, slots=True)
class Related(Derived):
    """Whether a value of one attribute equals, begins with, ends with or contains a value of another, without case."""

    kind = "boolean"

    relation: str
    field: str
    other: str

    @property
    def name(self) -> str:
        return f"{PREFIX}.{self.relation}({self.field}, {self.other})"

    def value(self, event: FlatEvent) -> bool | None:
        ours, others = event.get(self.field, ()), event.get(self.other, ())
        if not ours or not others:
            return None
        holds = _RELATIONS[self.relation]
        texts = [_text(other).lower() for other in others]
        return any(holds(_text(value).lower(), text) for value in ours for text in texts)


_PARTS: dict[str, Callable[[datetime], int]] = {
    "minute": lambda moment: moment.minute,
    "hour": lambda moment: moment.hour,
    "day": lambda moment: moment.day,
    "week": lambda moment: moment.isocalendar().week,
    "month": lambda moment: moment.month,
    "year": lambda moment: moment.year,
}


@dataclass(frozen=True, slots=True)
class TimePart(Derived):
    """The hour or another part of a time, in the zone in which the event has it. The week is that of ISO 8601."""

    kind = "array<int>"

    part: str
    field: str

    @property
    def name(self) -> str:
        return f"{PREFIX}.{self.part}({self.field})"

    def value(self, event: FlatEvent) -> list[int]:
        moments = [_written_moment(value) for value in event.get(self.field, ())]
        return [_PARTS[self.part](moment) for moment in moments if moment is not None]


Source = Mapping[str, str]
"""What of its log source an event must have, by attribute, so that a rule can match it."""


class Deriver:
    """Adds computed attributes to events, only where the log source of some rule that asks for them fits.

    Parameters
    ----------
    derived : mapping
        The log sources of the rules that ask for each attribute.
    """

    def __init__(self, derived: Mapping[Derived, Iterable[Source]]) -> None:
        self._derived = [
            (each, [dict(pairs) for pairs in sorted({tuple(source.items()) for source in sources})])
            for each, sources in sorted(derived.items(), key=lambda pair: pair[0].name)
        ]

    def __bool__(self) -> bool:
        """Whether there is anything to add."""
        return bool(self._derived)

    @property
    def names(self) -> list[str]:
        """The names of the attributes that are computed."""
        return [each.name for each, _ in self._derived]

    @property
    def struct(self) -> str:
        """The type of a struct that has them as fields, without the prefix."""
        fields = (
            f"`{each.name.removeprefix(PREFIX + '.').replace('`', '``')}`: {each.kind}" for each, _ in self._derived
        )
        return f"struct<{', '.join(fields)}>"

    def added(self, event: Mapping[str, Any], row: int | None = None) -> Mapping[str, Any]:
        """The event with the computed attributes; the event itself if no rule that could match it asks for one.

        Raises
        ------
        EventError
            When it is no event; `row` is its place in a batch.
        """
        wanted = [each for each, sources in self._derived if any(_may_come_from(event, source) for source in sources)]
        if not wanted:
            return event
        flat = flatten(event, row=row)
        return {**event, **{each.name: each.value(flat) for each in wanted}}

    def fields(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The values of all computed attributes, None where no rule asks, by their names without the prefix."""
        computed = self.added(event)
        return {name.removeprefix(f"{PREFIX}."): computed.get(name) for name in self.names}


def _may_come_from(event: Any, source: Source) -> bool:
    """Whether an event has the log source. One whose log source has another form may have it."""
    for name, value in source.items():
        if not isinstance(event, Mapping):
            return True
        own = event.get(name)
        if own is None:
            outer, _, inner = name.partition(".")
            around = event.get(outer)
            own = around.get(inner) if isinstance(around, Mapping) else around
        if own != value and not isinstance(own, list | tuple | set | frozenset):
            return False
    return True


def _text(value: Any) -> str:
    """A value as JSON writes it, without quotes. A whole number is written alike as integer and as double."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _written_moment(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
