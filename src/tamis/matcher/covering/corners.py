"""Clauses as events and as expressions, so that a matcher finds which clauses may cover which.

A clause that may be covered becomes an event, and a form that may cover becomes an expression. If the form covers the clause, the
event satisfies the expression. The reverse need not hold. The attributes of such events, for the attribute `a`:

    low a, high a      the ends of the sets of which `a` has a value; with two sets, lists
    mid a              the middle of these sets that are lists of values
    none number a      the numbers that `a` does not have; MANY if they are not single numbers
    has number a, absent number a, missing a, present a        ONE if the clause says so
    literals           the numbers of the literals that may follow from the clause
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard, TypeVar

from tamis.language.demand import Demand
from tamis.language.expression import Expression, Predicate, all_of, any_of
from tamis.language.implication import Clause, Form, Implications
from tamis.language.operators import Operator
from tamis.language.patterns_implied import example_of
from tamis.language.value_set import EVERYTHING, Cut, Span, ValueSet, complement, literal_at
from tamis.language.value_tests import attribute_of, positive_of
from tamis.language.values import Kind, Scalar, distinct
from tamis.matcher.covering.ends import highest, listed, lowest, points_of

MANY = True
ONE = 1
_LITERALS = "literals"

_KNOWN = 50_000
"""Demands whose events and expressions are remembered. Most sets of subscriptions repeat some demands often."""

T = TypeVar("T")

CornerEvent: TypeAlias = dict[str, Any]


class Corners:
    """Makes events and expressions, and numbers the literals of the expressions. All demands must live as long as this object."""

    def __init__(self, implications: Implications) -> None:
        self._implications = implications
        self._numbers: dict[Expression, int] = {}
        self._conditions: dict[tuple[str, int], list[Expression]] = {}
        self._values: dict[tuple[str, int], CornerEvent] = {}
        self._asked: set[str] = set()

    def expression(self, form: Form) -> Expression:
        """The expression of a form."""
        return any_of(*[all_of(*self._clause(clause)) for clause in form])

    def event(self, clause: Clause) -> CornerEvent:
        """The event of a clause, with the numbers of its own literals. All expressions must have been made."""
        event: CornerEvent = {}
        for name, demand in clause.demands:
            key = (name, id(demand))
            found = self._values.get(key)
            if found is None:
                made = dict(_values(name, demand))
                found = {own: values for own, values in made.items() if own in self._asked}
                _remember(self._values, key, found)
            event |= found
        numbers = [self._numbers[literal] for literal in clause.literals if literal in self._numbers]
        if numbers:
            event[_LITERALS] = numbers
        return event

    def patterns(self) -> dict[int, Expression]:
        """The literals that may follow from strings and from other patterns, by their numbers."""
        return {number: each for each, number in self._numbers.items() if self._may_follow(each)}

    def _may_follow(self, literal: Expression) -> bool:
        name = attribute_of(literal)
        return name is not None and (_is_positive(literal) or self._implications.is_single(name))

    def strings(self, clause: Clause) -> CornerEvent:
        """Strings of an event that satisfies the clause, if such are easily found: one for each of its sets and patterns."""
        found: dict[str, list[Any]] = {}
        for name, demand in clause.demands:
            for kind, needed in demand.kinds:
                if kind is Kind.STRING:
                    found[name] = [low for one in needed.sets if (low := lowest(one, kind)) is not None]
        for literal in clause.literals:
            if _is_positive(literal) and (example := example_of(literal)) is not None:
                found.setdefault(literal.attribute, []).append(example)
        return dict(found)

    def _clause(self, clause: Clause) -> list[Expression]:
        conditions = [condition for name, demand in clause.demands for condition in self._of_demand(name, demand)]
        for literal in sorted(clause.literals, key=str):
            number = self._numbers.setdefault(literal, len(self._numbers))
            conditions.append(_condition(_LITERALS, Operator.EQ, number))
        return conditions

    def _of_demand(self, name: str, demand: Demand) -> list[Expression]:
        """The conditions of a demand. They are made once, so that equal ones take memory once."""
        key = (name, id(demand))
        found = self._conditions.get(key)
        if found is None:
            conditions = list(_demanded(name, demand, single=self._implications.is_single(name)))
            self._asked.update(condition.attribute for condition in conditions)
            found = [*conditions]
            _remember(self._conditions, key, found)
        return found


def _remember(known: dict[tuple[str, int], T], key: tuple[str, int], value: T) -> None:
    if len(known) >= _KNOWN:
        known.clear()
    known[key] = value


def add_literals(event: CornerEvent, numbers: Iterable[int]) -> None:
    """Add the numbers of literals that may follow from the clause of an event."""
    event[_LITERALS] = sorted({*event.get(_LITERALS, ()), *numbers})


def _is_positive(literal: Expression) -> TypeGuard[Predicate]:
    return isinstance(literal, Predicate) and positive_of(literal) is literal


# Events


def _values(name: str, demand: Demand) -> Iterable[tuple[str, Any]]:
    """The attributes of the event of a demand, and their values."""
    for flag in _flags(name, demand):
        yield flag, ONE
    if demand.missing:
        for kind in Kind:
            yield f"absent {kind} {name}", ONE
    elif demand.kinds:
        yield f"present {name}", ONE
    ends: dict[str, list[Scalar]] = {}
    for kind, needed in demand.kinds:
        yield f"has {kind} {name}", ONE
        if needed.allowed is not EVERYTHING[kind]:
            yield f"none {kind} {name}", _outside(needed.allowed, kind)
        for one in needed.sets:
            low, high, values = lowest(one, kind), highest(one, kind), listed(one, kind)
            if low is not None and high is not None:
                ends.setdefault("low", []).append(low)
                ends.setdefault("high", []).append(high)
            if values is not None:
                ends.setdefault("mid", []).append(_middle(values))
    for place, found in ends.items():
        yield f"{place} {name}", found if len(found) > 1 else found[0]  # A plain value is read faster than a list.


def _flags(name: str, demand: Demand) -> list[str]:
    """What a demand says, apart from its kinds."""
    flags = [f"missing {name}"] if demand.missing else []
    flags += [f"present {name}"] if demand.present else []
    return flags + [f"absent {kind} {name}" for kind in demand.absent]


def _outside(allowed: ValueSet, kind: Kind) -> list[Any]:
    spans = list(complement(allowed, kind).spans())
    found: list[Any] = points_of(spans, kind)
    return found if len(found) == len(spans) else [*found, MANY]


def _middle(values: list[Scalar]) -> Scalar:
    return values[len(values) // 2]


# Expressions


def _demanded(name: str, demand: Demand, *, single: bool) -> Iterable[Predicate]:
    """The conditions that the event of a demand satisfies if it implies this demand."""
    for flag in _flags(name, demand):
        yield _condition(flag, Operator.EQ, ONE)
    for kind, needed in demand.kinds:
        for value in _ends_outside(needed.allowed, kind):
            yield _condition(f"none {kind} {name}", Operator.IN, *distinct((value, MANY)))
        if not needed.some:
            yield _condition(f"has {kind} {name}", Operator.EQ, ONE)
        for one in needed.some:
            yield from _ends_within(name, kind, one, single=single)


def _ends_outside(allowed: ValueSet, kind: Kind) -> list[Scalar]:
    """The lowest and the highest value that is not allowed."""
    if allowed is EVERYTHING[kind]:
        return []
    outside = complement(allowed, kind)
    ends = lowest(outside, kind), highest(outside, kind)
    return [*dict.fromkeys(value for value in ends if value is not None)]


def _ends_within(name: str, kind: Kind, one: ValueSet, *, single: bool) -> Iterable[Predicate]:
    """That both ends of a set are within another. Gaps are left out: two elements of a list may lie around them."""
    values = listed(one, kind)
    if values is not None:
        operator = Operator.EQ if len(values) == 1 else Operator.IN
        # If both ends are one value, so is the middle.
        for place in ("low", "high", "mid")[: 2 if len(values) == 1 else 3]:
            yield _condition(f"{place} {name}", operator, *values)
        return
    spans = list(one.spans())
    lo, hi = spans[0].lo, spans[-1].hi
    if kind is Kind.STRING and lo == EVERYTHING[kind].cuts[0]:
        lo = None
    yield from _between(f"low {name}", kind, lo, hi)
    yield from _between(f"high {name}", kind, None, hi)
    if lo is None and hi is None:
        yield _condition(f"has {kind} {name}", Operator.EQ, ONE)
    if single and (holes := points_of([Span(one.hi, other.lo) for one, other in itertools.pairwise(spans)], kind)):
        yield _condition(f"low {name}", Operator.NOT_IN, *holes)


def _between(name: str, kind: Kind, lo: Cut | None, hi: Cut | None) -> Iterable[Predicate]:
    if lo is not None:
        yield _condition(name, Operator.GT if lo[1] else Operator.GE, literal_at(lo[0], kind))
    if hi is not None:
        yield _condition(name, Operator.LE if hi[1] else Operator.LT, literal_at(hi[0], kind))


def _condition(name: str, operator: Operator, *values: Scalar) -> Predicate:
    return Predicate.unchecked(name, operator, values)
