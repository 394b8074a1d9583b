"""Predicates in keys, put into words of the language again: `7 SOME [4000, 5999]` is "title LIKE 'Nautil%'".

Keys have no operators: `price >= 20 AND price <= 40` and `price BETWEEN 20 AND 40` are the same interval. The text is the shorter
of the two.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, NamedTuple

from tamis.encoding.dimensions.dimension import (
    CASE_OF,
    REGEXES,
    AddressDimension,
    BooleanDimension,
    Dimension,
    Facet,
    NumberDimension,
    PatternDimension,
    StringDimension,
    TimestampDimension,
)
from tamis.encoding.dimensions.intervals import EVERYTHING, Intervals, complement
from tamis.encoding.dimensions.keys import INT_EXACT, KEY_MAX, KEY_MIN, SMALL_FIRST, double_value
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.compile import prefix_range
from tamis.language.addresses import networks_between
from tamis.language.expression import Predicate
from tamis.language.operators import OPPOSITE, Case, Operator
from tamis.language.printer import TAMIS
from tamis.language.quoting import quoted
from tamis.language.values import from_microseconds, is_moment

SHOWN = 5
"""The most values of a set that a text names. It counts the others."""

_BACKWARDS = frozenset({Facet.REVERSED, Facet.LOWER_REVERSED, Facet.UPPER_REVERSED})
_KINDS = {
    Facet.NUMBER: "a number", Facet.BOOLEAN: "a boolean", Facet.TIMESTAMP: "a timestamp", Facet.ADDRESS: "an address",
}  # fmt: skip


class _Bound(NamedTuple):
    """An end of an interval as a value, and whether the value itself is inside."""

    value: Any
    included: bool


def phrase(dimension: Dimension, mode: Mode, intervals: Intervals, *, scalar: bool = False) -> str:
    """A leaf in words. `scalar`: events have at most one value, so that "some are not" is "none is"."""
    name = TAMIS.name(dimension.attribute)
    if dimension.facet is Facet.PRESENCE:
        return f"{name} IS NULL" if mode is Mode.ABSENT else f"{name} IS NOT NULL"
    kind = _KINDS.get(dimension.facet, "a string")
    if mode is Mode.ABSENT:
        return f"{name} is not {kind}"
    if _covers_all(dimension, intervals):
        return f"{name} is {kind}"
    negated = mode is Mode.NONE
    if isinstance(dimension, AddressDimension):
        return _networks(dimension, intervals, negated)
    if isinstance(dimension, PatternDimension):
        numbers = [number for lo, hi in intervals for number in range(lo, hi + 1)]
        return _any_of([_pattern(dimension, number) for number in numbers[:SHOWN]], negated, len(numbers) - SHOWN)
    others = complement(intervals) if scalar else intervals
    if scalar and not negated and len(others) < len(intervals):
        intervals, negated = others, True
    points = [value for lo, hi in intervals if lo == hi and (value := _point(dimension, lo)) is not None]
    if len(points) == len(intervals):
        return _equals(dimension.attribute, points, negated)
    parts = [_interval(dimension, lo, hi) for lo, hi in intervals[:SHOWN]]
    return _any_of(parts, negated, len(intervals) - SHOWN)


class _Part(NamedTuple):
    """Predicates that are true together, and the name of their subject."""

    name: str
    predicates: tuple[Predicate, ...]

    def text(self, negated: bool) -> str:
        if negated and len(self.predicates) == 1 and self.predicates[0].operator in OPPOSITE:
            predicate = self.predicates[0]
            return predicate.with_operator(OPPOSITE[predicate.operator]).written_of(TAMIS, self.name)
        text = " AND ".join(predicate.written_of(TAMIS, self.name) for predicate in self.predicates)
        return f"NOT ({text})" if negated else text


def _any_of(parts: Sequence[_Part], negated: bool, more: int) -> str:
    """One of these parts holds; if `negated`, none of them. The text leaves out `more` other parts."""
    alone = negated or len(parts) == 1
    texts = [part.text(negated) if alone or len(part.predicates) == 1 else f"({part.text(negated)})" for part in parts]
    if more > 0:
        texts.append(f"... {more:,} more")
    return (" AND " if negated else " OR ").join(texts)


def _equals(attribute: str, values: Sequence[Any], negated: bool) -> str:
    name = TAMIS.name(attribute)
    literals = [TAMIS.literal(value) for value in values[:SHOWN]]
    if len(values) == 1:
        return f"{name} {'<>' if negated else '='} {literals[0]}"
    if len(values) > SHOWN:
        literals.append(f"... {len(values) - SHOWN:,} more")
    return f"{name} {'NOT IN' if negated else 'IN'} ({', '.join(literals)})"


def _networks(dimension: AddressDimension, intervals: Intervals, negated: bool) -> str:
    if intervals[0][0] == KEY_MIN:
        # Of one value, what is left out is the rest of all addresses.
        intervals, negated = complement(intervals), not negated
    networks: list[str] = []
    for lo, hi in intervals:
        labels = dimension.labels_at(lo)
        assert labels is not None
        first, beyond = bisect_left(labels.labels, lo), bisect_left(labels.labels, hi + 1)
        networks += networks_between(labels.constants[first], labels.constants[beyond])
    shown = [TAMIS.literal(network) for network in networks[:SHOWN]]
    if len(networks) > SHOWN:
        shown.append(f"... {len(networks) - SHOWN:,} more")
    text = f"ip_in({', '.join([TAMIS.name(dimension.attribute), *shown])})"
    return f"NOT {text}" if negated else text


def _pattern(dimension: PatternDimension, number: int) -> _Part:
    pattern = dimension.pattern(number)
    if dimension.facet in REGEXES:
        return _Part(_name(dimension), (Predicate.unchecked(dimension.attribute, Operator.RLIKE, (pattern,)),))
    return _like(dimension, *quoted(pattern, before="%", after="%"))


def _like(dimension: Dimension, pattern: str, escape: str | None) -> _Part:
    """A pattern for strings as they are, for their lower case (ILIKE), or for their upper case.

    ILIKE lowers its pattern too. So it is not used for a pattern with capitals, which matches no lower case.
    """
    lowered = CASE_OF.get(dimension.facet) is Case.LOWER and pattern == pattern.lower()
    predicate = Predicate.unchecked(
        dimension.attribute, Operator.ILIKE if lowered else Operator.LIKE, (pattern,), escape
    )
    return _Part(TAMIS.name(dimension.attribute) if lowered else _cased(dimension), (predicate,))


def _cased(dimension: Dimension) -> str:
    """The name of the attribute in the case in which a dimension sees it."""
    case, name = CASE_OF.get(dimension.facet), TAMIS.name(dimension.attribute)
    return name if case is None else f"{case}({name})"


def _name(dimension: Dimension) -> str:
    """The name of the text whose keys a string dimension has."""
    name = _cased(dimension)
    return f"reverse({name})" if dimension.facet in _BACKWARDS else name


# -- intervals


def _covers_all(dimension: Dimension, intervals: Intervals) -> bool:
    """Whether intervals hold all values of a dimension."""
    if intervals == EVERYTHING or isinstance(dimension, PatternDimension):
        return intervals == EVERYTHING
    lo, hi = intervals[0]
    return len(intervals) == 1 and _low(dimension, lo) is None and _high(dimension, hi) is None


def _interval(dimension: Dimension, lo: int, hi: int) -> _Part:
    attribute = dimension.attribute
    low, high = _low(dimension, lo), _high(dimension, hi)
    if isinstance(dimension, StringDimension) and low is not None and low.included:
        backwards = dimension.facet in _BACKWARDS
        text = low.value[::-1] if backwards else low.value
        if lo == hi:
            return _like(dimension, *quoted(text))
        end = prefix_range(low.value)[1] if low.value else None
        if end is not None and high is not None and not high.included and high.value == end:
            around = {"before": "%"} if backwards else {"after": "%"}
            return _like(dimension, *quoted(text, **around))
    name = _name(dimension)
    if low is not None and high is not None and low.included and high.included:
        return _Part(name, (Predicate.unchecked(attribute, Operator.BETWEEN, (low.value, high.value)),))
    predicates = []
    if low is not None:
        operator = Operator.GE if low.included else Operator.GT
        predicates.append(Predicate.unchecked(attribute, operator, (low.value,)))
    if high is not None:
        operator = Operator.LE if high.included else Operator.LT
        predicates.append(Predicate.unchecked(attribute, operator, (high.value,)))
    return _Part(name, tuple(predicates))


def _point(dimension: Dimension, key: int) -> Any:
    """The value of a key, for a text with `=`; None if there is none."""
    if isinstance(dimension, StringDimension) and dimension.facet is not Facet.STRING:
        return None
    labels = dimension.labels_at(key)
    if labels is None:
        return _value(dimension, key)
    at = bisect_left(labels.labels, key)
    return labels.constants[at] if at < len(labels) and labels.labels[at] == key else None


def _low(dimension: Dimension, key: int) -> _Bound | None:
    """The lower end of an interval; None: it has none."""
    if key == KEY_MIN or (isinstance(dimension, BooleanDimension) and key <= 0):
        return None
    labels = dimension.labels_at(key)
    if labels is None:
        # The integers just above -2**63 have labels, which are not the keys of their doubles.
        inside = None if key == SMALL_FIRST else _value(dimension, key)
        return _shorter(inside, _value(dimension, key - 1))
    at = bisect_right(labels.labels, key) - 1
    if at < 0:
        # This region of labels begins at 2**53, or just above -2**63.
        is_large = labels.first > 0
        return _edge(dimension, labels.first if is_large else labels.first - 1, is_large)
    return _Bound(labels.constants[at], labels.labels[at] == key)


def _high(dimension: Dimension, key: int) -> _Bound | None:
    if key == KEY_MAX or (isinstance(dimension, BooleanDimension) and key >= 1):
        return None
    labels = dimension.labels_at(key)
    if labels is None:
        return _shorter(_value(dimension, key), _value(dimension, key + 1))
    at = bisect_left(labels.labels, key)
    if at == len(labels):
        # This region of labels ends just below 2**63, or at -2**53.
        is_large = labels.first > 0
        return _edge(dimension, labels.last if is_large else labels.last - 1, not is_large)
    return _Bound(labels.constants[at], labels.labels[at] == key)


def _edge(dimension: Dimension, key: int, included: bool) -> _Bound | None:
    """The end of a region of labels: for large integers the number of the key, for strings no bound at all."""
    if isinstance(dimension, StringDimension | AddressDimension):
        return None
    return _Bound(_value(dimension, key), included)


def _shorter(inside: Any, outside: Any) -> _Bound | None:
    """The bound with the shorter text, of two neighbouring values."""
    if inside is None and outside is None:
        return None
    if inside is None or (outside is not None and len(TAMIS.literal(outside)) < len(TAMIS.literal(inside))):
        return _Bound(outside, False)
    return _Bound(inside, True)


def _value(dimension: Dimension, key: int) -> Any:
    """The value of a key that is no label; None if there is none."""
    if isinstance(dimension, TimestampDimension):
        return from_microseconds(key) if is_moment(key) else None
    if isinstance(dimension, BooleanDimension):
        return bool(key) if key in (0, 1) else None
    if not isinstance(dimension, NumberDimension) or not KEY_MIN <= key <= KEY_MAX or key == -1:
        return None  # -1 would be -0.0, which is 0.0
    number = double_value(key)
    if number != number:
        return None
    return int(number) if abs(number) < INT_EXACT and number.is_integer() else number
