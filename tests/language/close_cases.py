"""Expressions and events from small pools of values, so that predicates on one attribute overlap, touch and contradict."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from hypothesis import strategies as st

from tamis.language.expression import FALSE, TRUE, Expression, Not, Predicate, all_of, any_of
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import COMPARISONS, ORDER_COMPARISONS, SETS, Operator, Quantifier
from tamis.language.values import Interval, Scalar, compare

NAMES = ("a", "b", "c.d")

NUMBERS: tuple[Scalar, ...] = (-1, 0, -0.0, 1, 1.5, 2, 2.0, 3, 2**53, float(2**53), 2**53 + 1)
STRINGS: tuple[Scalar, ...] = ("", "a", "ab", "abc", "b", "B", "a%", "a_c", "é", "\U0010ffff", "\ud7ff", "\ue000")
BOOLEANS: tuple[Scalar, ...] = (True, False)
TIMES: tuple[Scalar, ...] = (
    date(2026, 11, 14),
    datetime(2026, 11, 14),
    datetime(2026, 11, 14, 10, 0, 0, 1),
    date(2027, 1, 1),
)
KINDS = (NUMBERS, STRINGS, BOOLEANS, TIMES)
LITERALS = tuple(value for kind in KINDS for value in kind)

# Values between and beyond the literals, and values that only events may have.
VALUES: tuple[Any, ...] = (*LITERALS, 0.5, 2.5, 9, -9, float("inf"), float("-inf"), "aa", "abcd", "z", date(1970, 1, 1))

PATTERNS = ("", "a", "a%", "%", "%b", "%b%", "a_c", "_", "a!%", "B%", "\U0010ffff%", "\ud7ff%")
REGEXES = ("a", "^a", "b$", "^$", ".")

_LIKES = (Operator.LIKE, Operator.NOT_LIKE, Operator.ILIKE, Operator.NOT_ILIKE)


def predicates(names: Sequence[str] = NAMES) -> st.SearchStrategy[Predicate]:
    """Predicates with every operator."""
    name = st.sampled_from(names)
    literal = st.sampled_from(LITERALS)
    ordered = st.sampled_from([kind for kind in KINDS if kind is not BOOLEANS])
    operators = st.sampled_from
    return st.one_of(
        st.builds(Predicate, name, operators([Operator.EQ, Operator.NE]), st.tuples(literal)),
        ordered.flatmap(
            lambda kind: st.builds(
                Predicate, name, operators(sorted(ORDER_COMPARISONS)), st.tuples(st.sampled_from(kind))
            )
        ),
        ordered.flatmap(
            lambda kind: st.builds(
                Predicate,
                name,
                operators([Operator.BETWEEN, Operator.NOT_BETWEEN]),
                st.tuples(st.sampled_from(kind), st.sampled_from(kind)),
            )
        ),
        st.builds(Predicate, name, operators(sorted(SETS)), st.lists(literal, min_size=1, max_size=4)),
        st.sampled_from(KINDS).flatmap(
            lambda kind: st.builds(
                Predicate, name, operators(sorted(SETS)), st.lists(st.sampled_from(kind), min_size=1, max_size=3)
            )
        ),
        st.builds(
            lambda name, operator, pattern: Predicate(
                name, operator, [pattern], escape="!" if "!" in pattern else None
            ),
            name,
            operators(_LIKES),
            st.sampled_from(PATTERNS),
        ),
        st.builds(
            Predicate,
            name,
            operators([Operator.RLIKE, Operator.NOT_RLIKE]),
            st.tuples(st.sampled_from(REGEXES)),
        ),
        st.builds(Predicate, name, operators([Operator.IS_NULL, Operator.IS_NOT_NULL])),
    )


def history_leaves(names: Sequence[str] = NAMES) -> st.SearchStrategy[Expression]:
    """Comparisons with earlier events."""
    name = st.sampled_from(names)
    operator = st.sampled_from(sorted(COMPARISONS))
    joins = st.builds(Join, name, operator, name)
    return st.one_of(
        st.builds(Quantified, name, operator, st.sampled_from(Quantifier), name),
        st.builds(Exists, st.lists(joins, min_size=1, max_size=2), st.lists(predicates(names), max_size=2)),
    )


def expressions(
    names: Sequence[str] = NAMES, *, history: bool = False, max_leaves: int = 12
) -> st.SearchStrategy[Expression]:
    """Trees of AND, OR and NOT over predicates, constants and optionally joins with earlier events."""
    leaves: st.SearchStrategy[Expression] = st.one_of(
        predicates(names), predicates(names), st.sampled_from([TRUE, FALSE])
    )
    if history:
        leaves = st.one_of(leaves, history_leaves(names))

    def extend(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(inner, min_size=2, max_size=4)
        return st.one_of(
            several.map(lambda operands: all_of(*operands)),
            several.map(lambda operands: any_of(*operands)),
            inner.map(Not),
        )

    return st.recursive(leaves, extend, max_leaves=max_leaves)


def scalar_events(names: Sequence[str] = NAMES) -> st.SearchStrategy[dict[str, Any]]:
    """Events with one value or none for each attribute."""
    value = st.one_of(st.none(), st.sampled_from(VALUES))
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, value))


def events(names: Sequence[str] = NAMES) -> st.SearchStrategy[dict[str, Any]]:
    """Events with scalars, lists and intervals."""
    scalar = st.sampled_from(VALUES)
    ordered = st.sampled_from([NUMBERS, TIMES])
    interval = ordered.flatmap(lambda kind: st.tuples(st.sampled_from(kind), st.sampled_from(kind))).map(_interval)
    element = st.one_of(scalar, interval)
    value = st.one_of(st.none(), scalar, interval, st.lists(element, max_size=4))
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, value))


def _interval(ends: tuple[Scalar, Scalar]) -> Interval:
    one, other = ends
    return Interval(one, other) if compare(one, other) <= 0 else Interval(other, one)


PLACES: list[Scalar] = [-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 5]
"""A value at, between and beyond all literals of `plain_predicates`."""
PLAIN_DOMAIN: list[Scalar | None] = [None, "x", *PLACES]
"""All scalars that `plain_predicates` can tell apart."""


def plain_predicates() -> st.SearchStrategy[Predicate]:
    """Predicates on two attributes that compare with few numbers, so that trying all events is possible."""
    name, number = st.sampled_from("ab"), st.integers(0, 4)
    return st.one_of(
        st.builds(Predicate, name, st.sampled_from(sorted(COMPARISONS)), st.tuples(number)),
        st.builds(Predicate, name, st.just(Operator.BETWEEN), st.tuples(number, number)),
        st.builds(Predicate, name, st.sampled_from(sorted(SETS)), st.lists(number, min_size=1, max_size=3)),
        st.builds(Predicate, name, st.sampled_from([Operator.IS_NULL, Operator.IS_NOT_NULL])),
    )


def plain_conjunctions(most: int) -> st.SearchStrategy[Expression]:
    """Conjunctions of up to `most` plain predicates."""
    return st.lists(plain_predicates(), min_size=1, max_size=most).map(lambda found: all_of(*found))
