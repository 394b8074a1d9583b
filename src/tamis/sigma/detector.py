"""Sigma rules against events: matches of single events at once, correlations at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from tamis.errors import OptionError, shortened
from tamis.language.event import FlatEvent, flatten
from tamis.sigma.rule import Rule
from tamis.sigma.rules import RuleSet
from tamis.sigma.windows import Finding, Occurrence, correlate


class Untimed(NamedTuple):
    """An event that a correlation would count if its time could be read."""

    place: Any
    reason: str


class Detector:
    """Matches events against rules.

    Parameters
    ----------
    rules : RuleSet
    time : str, optional
        The attribute with the time of an event: ISO 8601, a datetime, or the seconds, milliseconds or microseconds since 1970.
        Without a zone it is UTC. Needed if there are correlations.

    Attributes
    ----------
    untimed : list of Untimed

    Examples
    --------
    >>> from tamis.sigma import Detector, read_rules
    >>> detector = Detector(read_rules("rules"))                        # doctest: +SKIP
    >>> [(at, rule.title) for at, rule in detector.match(events)]       # doctest: +SKIP
    """

    def __init__(self, rules: RuleSet, *, time: str | None = None) -> None:
        if rules.correlations and time is None:
            raise OptionError(
                f"{shortened(rules.correlations[0].title)} is about several events, and needs their time: say which "
                "attribute has it"
            )
        self.untimed: list[Untimed] = []
        self.matcher = rules.matcher()
        self._deriver = rules.deriver
        self._rules = {rule.id: rule for rule in rules.rules}
        self._correlations = rules.correlations
        self._counted = frozenset(own for each in rules.correlations for own in each.rules)
        self._needed = frozenset[str]().union(*(each.needed() for each in rules.correlations))
        self._time = time
        self._occurrences: list[Occurrence] = []
        self._order = 0

    def match(self, events: Sequence[Mapping[str, Any]], places: Sequence[Any] | None = None) -> list[tuple[Any, Rule]]:
        """The pairs of events and rules that match, in the order of the events; rules that only serve correlations are left out.

        An event is named by its place: its number in `events`, or what `places` has for it.

        Raises
        ------
        EventError
            When an event is wrong; none of the events has then been taken in.
        """
        prepared = (
            [self._deriver.added(event, row=row) for row, event in enumerate(events)] if self._deriver else events
        )
        table = self.matcher.match_batch(list(prepared))
        pairs = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
        found = []
        for row, own in sorted(pairs):
            rule, place = self._rules[own], row if places is None else places[row]
            if own in self._counted:
                self._note(own, flatten(events[row]), self._order + row, place)
            if rule.reported:
                found.append((place, rule))
        self._order += len(events)
        return found

    def correlated(self) -> list[Finding]:
        """What correlations find in all events so far, in the order of their times."""
        return correlate(self._correlations, self._occurrences)

    def _note(self, own: str, event: FlatEvent, order: int, place: Any) -> None:
        assert self._time is not None
        moment = _moment(event.get(self._time, ()))
        if moment is None:
            values = event.get(self._time)
            reason = "is missing" if not values else f"is {shortened(values[0])}, which is no time"
            self.untimed.append(Untimed(place, f"{self._time!r} {reason}: correlations leave the event out"))
            return
        fields = {name: event[name] for name in self._needed if event.get(name)}
        self._occurrences.append(Occurrence(moment, order, own, place, fields))


_UNITS = ((1e11, 1_000_000), (1e14, 1_000), (float("inf"), 1))
"""Below which number it counts seconds, milliseconds, microseconds; and the microseconds of each."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(values: Sequence[Any]) -> int | None:
    """The microseconds since 1970 of the first value; None if it is no time."""
    value = values[0] if values else None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        since = (value if value.tzinfo else value.replace(tzinfo=UTC)) - _EPOCH
        return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    if isinstance(value, int | float) and not isinstance(value, bool):
        return round(value * next(each for below, each in _UNITS if abs(value) < below))
    return None
