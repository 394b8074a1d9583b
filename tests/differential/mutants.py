"""Wrong versions of our own functions, each with a mistake that is easily made. The comparison has to notice them all."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any, NamedTuple

import pyarrow as pa
import re2

from tamis.language.evaluate import Truth, conjunction, disjunction, satisfies, some_satisfies
from tamis.language.event import FlatEvent, Value, flatten
from tamis.language.expression import Predicate
from tamis.language.like import LikePattern
from tamis.language.operators import Operator
from tamis.language.values import Kind, compare, kind_of
from tamis.matcher.matcher import Matcher

match_batch = Matcher.match_batch


def unknown_is_false(truth: Truth) -> Truth:
    return not truth


def unknown_before_false(truths: Iterable[Truth]) -> Truth:
    known = list(truths)
    return None if None in known else conjunction(known)


def unknown_before_true(truths: Iterable[Truth]) -> Truth:
    known = list(truths)
    return None if None in known else disjunction(known)


def numbers_as_doubles(left: Any, right: Any) -> int:
    return compare(float(left), float(right)) if kind_of(left) is Kind.NUMBER else compare(left, right)


def strings_as_utf_16(left: Any, right: Any) -> int:
    if isinstance(left, str):
        return compare(left.encode("utf-16-be"), right.encode("utf-16-be"))
    return compare(left, right)


def dates_at_noon(left: Any, right: Any) -> int:
    noon = [datetime(*side.timetuple()[:3], 12) if type(side) is date else side for side in (left, right)]
    return compare(*noon)


def nan_above_all(event: Mapping[str, Any]) -> FlatEvent:
    return flatten({name: math.inf if value != value else value for name, value in event.items()})


def every_element(predicate: Predicate, kind: Kind, values: tuple[Value, ...]) -> Truth:
    return conjunction(some_satisfies(predicate, kind, (value,)) for value in values) if values else None


def other_kind_is_false(predicate: Predicate, kind: Kind, values: tuple[Value, ...]) -> Truth:
    return bool(some_satisfies(predicate, kind, values)) if values else None


def between_in_any_order(element: Value, predicate: Predicate, literals: list[Any]) -> bool:
    if predicate.operator is Operator.BETWEEN:
        literals = sorted(literals, key=functools.cmp_to_key(compare))
    return satisfies(element, predicate, literals)


def between_without_its_ends(element: Value, predicate: Predicate, literals: list[Any]) -> bool:
    inside = predicate.operator is not Operator.BETWEEN or element not in literals
    return inside and satisfies(element, predicate, literals)


def ilike_with_case(element: Value, predicate: Predicate, literals: list[Any]) -> bool:
    operator = Operator.LIKE if predicate.operator is Operator.ILIKE else predicate.operator
    exact = Predicate.unchecked(predicate.attribute, operator, predicate.values, predicate.escape)
    return satisfies(element, exact, literals)


def like_without_escape(element: Value, predicate: Predicate, literals: list[Any]) -> bool:
    plain = Predicate.unchecked(predicate.attribute, predicate.operator, predicate.values)
    return satisfies(element, plain, literals)


def like_within_a_line(pattern: LikePattern, text: str) -> bool:
    return re.fullmatch(pattern.to_regex().removeprefix(r"(?s)\A").removesuffix(r"\z"), text) is not None


class WholeText(NamedTuple):
    """A regular expression that has to match the whole text."""

    pattern: str

    def search(self, text: str) -> Any:
        return re2.fullmatch(self.pattern, text)


def first_match_lost(matcher: Matcher, events: Any) -> pa.Table:
    return match_batch(matcher, events).slice(1)
