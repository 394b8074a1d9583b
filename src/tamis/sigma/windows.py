"""Correlations over the matches of a batch of events.

Matches are put in the order of their times. For each event, a correlation looks at the window that ends there, in each group:

    event_count, value_count, value_sum, value_avg    is the number of the window large enough?
    temporal                                          do enough of the rules have an event in the window?
    temporal_ordered                                  does a chain of different events, in the order of the rules, end here?

A result is reported when this becomes true, and again only after it was false. A chain is reported once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from tamis.sigma.correlations import Correlation


class Occurrence(NamedTuple):
    """An event that a rule, or a correlation that ends there, has matched."""

    moment: int
    """Microseconds since 1970."""
    order: int
    """The number of the event: what tells events apart, and orders those of one moment."""
    rule: str
    place: Any
    """What the caller knows the event by."""
    fields: Mapping[str, tuple[Any, ...]]
    """The values of the attributes that correlations read."""


class Finding(NamedTuple):
    """A correlation that has matched, and the event that made it complete."""

    correlation: Correlation
    occurrence: Occurrence
    group: dict[str, Any]
    number: float
    """The count, sum or average; of temporal ones, the number of events in the window."""
    since: int
    """The moment of the first event in the window."""


def correlate(correlations: Sequence[Correlation], occurrences: Iterable[Occurrence]) -> list[Finding]:
    """What correlations find, in the order of the events. A correlation comes after those that it refers to."""
    by_rule: dict[str, list[Occurrence]] = {}
    for occurrence in occurrences:
        by_rule.setdefault(occurrence.rule, []).append(occurrence)
    found: list[Finding] = []
    for correlation in correlations:
        search = _Search(correlation)
        own = [each for rule in dict.fromkeys(correlation.rules) for each in by_rule.get(rule, ())]
        for occurrence in sorted(own, key=lambda each: (each.moment, each.order)):
            search.add(occurrence)
        by_rule[correlation.id] = search.held
        if correlation.reported:
            found += search.found
    return sorted(found, key=lambda each: (each.occurrence.moment, each.occurrence.order))


class _Search:
    """One correlation: a window for each group.

    Attributes
    ----------
    found : list of Finding
    held : list of Occurrence
        All events at which it was true, for correlations that refer to this one.
    """

    def __init__(self, correlation: Correlation) -> None:
        self.found: list[Finding] = []
        self.held: list[Occurrence] = []
        self._correlation = correlation
        self._windows: dict[tuple[Any, ...], _Window] = {}

    def add(self, occurrence: Occurrence) -> None:
        """Take in the next event. It belongs to no group if it lacks an attribute of `group-by`."""
        correlation = self._correlation
        for key in product(*(occurrence.fields.get(name, ()) for name in correlation.fields[occurrence.rule])):
            window = self._windows.get(key)
            if window is None:
                window = self._windows[key] = _WINDOWS[correlation.kind](correlation)
            held_before = window.held
            number = window.add(occurrence)
            if not window.held:
                continue
            self.held.append(occurrence._replace(rule=correlation.id))
            if not held_before:
                group = dict(zip(correlation.names, key, strict=True))
                self.found.append(Finding(correlation, occurrence, group, number, window.since))


class _Window(ABC):
    """The events of one group that lie in the window which ends at the last of them.

    Attributes
    ----------
    held : bool
        Whether the correlation is true of it.
    since : int
        The moment of the first event.
    """

    def __init__(self, correlation: Correlation) -> None:
        self.held = False
        self.since = 0
        self._correlation = correlation

    @abstractmethod
    def add(self, occurrence: Occurrence) -> float:
        """Take in the next event, set `held` and `since`, and return the number to report."""


class _SlidingWindow(_Window):
    """Keeps its events, and drops those that are too old."""

    def __init__(self, correlation: Correlation) -> None:
        super().__init__(correlation)
        self._events: deque[Occurrence] = deque()

    def add(self, occurrence: Occurrence) -> float:
        oldest = occurrence.moment - self._correlation.microseconds
        while self._events and self._events[0].moment < oldest:
            self._changed(self._events.popleft(), -1)
        # One event that several rules match is one event.
        if not self._events or self._events[-1].order != occurrence.order or self._counts_rules():
            self._events.append(occurrence)
            self._changed(occurrence, 1)
        self.since = self._events[0].moment
        number = self._number()
        self.held = self._is_enough(number)
        return number

    def _counts_rules(self) -> bool:
        return False

    def _changed(self, occurrence: Occurrence, change: int) -> None:
        """Note that an event was added (1) or dropped (-1)."""

    def _number(self) -> float:
        return len(self._events)

    def _is_enough(self, number: float) -> bool:
        return self._correlation.reached(number)


class _ValueCount(_SlidingWindow):
    def __init__(self, correlation: Correlation) -> None:
        super().__init__(correlation)
        self._values: Counter[tuple[Any, ...]] = Counter()

    def _changed(self, occurrence: Occurrence, change: int) -> None:
        for value in product(*(occurrence.fields.get(name, ()) for name in self._correlation.values)):
            self._values[value] += change
            if not self._values[value]:
                del self._values[value]

    def _number(self) -> float:
        return len(self._values)


class _ValueSum(_SlidingWindow):
    """Sums exactly, so that what was added and dropped leaves nothing behind."""

    def __init__(self, correlation: Correlation) -> None:
        super().__init__(correlation)
        self._sum = Fraction()
        self._count = 0

    def _changed(self, occurrence: Occurrence, change: int) -> None:
        for number in _numbers(occurrence.fields.get(self._correlation.values[0], ())):
            self._sum += change * number
            self._count += change

    def _number(self) -> float:
        return _plain(self._sum)


class _ValueAverage(_ValueSum):
    def _number(self) -> float:
        return _plain(self._sum / self._count) if self._count else 0

    def _is_enough(self, number: float) -> bool:
        return bool(self._count) and super()._is_enough(number)


class _Temporal(_SlidingWindow):
    def __init__(self, correlation: Correlation) -> None:
        super().__init__(correlation)
        self._rules: Counter[str] = Counter()

    def _counts_rules(self) -> bool:
        return True

    def _changed(self, occurrence: Occurrence, change: int) -> None:
        self._rules[occurrence.rule] += change
        if not self._rules[occurrence.rule]:
            del self._rules[occurrence.rule]

    def _number(self) -> float:
        return len({each.order for each in self._events})

    def _is_enough(self, number: float) -> bool:
        assert self._correlation.complete is not None
        return self._correlation.complete(frozenset(self._rules))


class _Ordered(_Window):
    """Keeps for each step the latest moment at which a chain up to this step can begin."""

    def __init__(self, correlation: Correlation) -> None:
        super().__init__(correlation)
        self._begun: list[int | None] = [None] * len(correlation.rules)
        self._before = list(self._begun)
        """The same before the current event, so that it cannot be two steps of a chain."""
        self._order = -1

    def add(self, occurrence: Occurrence) -> float:
        if self.held:  # The chain was reported: the next one begins behind it.
            self.held, self._begun = False, [None] * len(self._begun)
        if occurrence.order != self._order:
            self._order, self._before = occurrence.order, list(self._begun)
        rules = self._correlation.rules
        for step, rule in enumerate(rules):
            begun = occurrence.moment if step == 0 else self._before[step - 1]
            if rule != occurrence.rule or begun is None or begun < occurrence.moment - self._correlation.microseconds:
                continue
            self._begun[step] = begun
            if step == len(rules) - 1:
                self.held, self.since = True, begun
        return len(rules)


_WINDOWS: dict[str, type[_Window]] = {
    "event_count": _SlidingWindow,
    "value_count": _ValueCount,
    "value_sum": _ValueSum,
    "value_avg": _ValueAverage,
    "temporal": _Temporal,
    "temporal_ordered": _Ordered,
}


def _numbers(values: Iterable[Any]) -> Iterator[Fraction]:
    """Numbers, and texts of numbers."""
    for value in values:
        try:
            if not isinstance(value, bool):
                yield Fraction(value)
        except (TypeError, ValueError, OverflowError, ZeroDivisionError):
            continue


def _plain(number: Fraction) -> float:
    return int(number) if number.denominator == 1 else float(number)
