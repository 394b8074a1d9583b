"""Clauses as events and as expressions, so that a matcher finds which clauses may cover which.

A clause that may be covered becomes an event, and a form that may cover becomes an expression. If the form covers the clause, the
event satisfies the expression. The reverse need not hold. The attributes of such events, for the attribute `a`:

    low a, high a      the ends of the sets of which `a` has a value
    none number a      the numbers that `a` does not have; MANY if they are not single numbers
    has number a, absent number a, missing a, present a        ONE if the clause says so
    literals           the numbers of the literals that may follow from the clause
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeAlias, TypeGuard

from tamis.language.demand import Demand, KindDemand
from tamis.language.expression import Expression, Predicate, all_of, any_of
from tamis.language.implication import Clause, Form, Implications
from tamis.language.operators import Operator
from tamis.language.patterns_implied import example_of
from tamis.language.value_set import EVERYTHING, Cut, Span, ValueSet, complement, literal_at
from tamis.language.value_tests import positive_of
from tamis.language.values import Kind, Scalar, distinct
from tamis.matcher.covering.ends import highest, lowest

MANY = True
ONE = 1
_LITERALS = "literals"

CornerEvent: TypeAlias = dict[str, list[Any]]


class Corners:
    """Makes events and expressions, and numbers the literals of the expressions."""

    def __init__(self, implications: Implications) -> None:
        self._implications = implications
        self._numbers: dict[Expression, int] = {}

    def expression(self, form: Form) -> Expression:
        """The expression of a form."""
        return any_of(*[all_of(*self._conditions(clause)) for clause in form])

    def event(self, clause: Clause) -> CornerEvent:
        """The event of a clause, with the numbers of its own literals. All expressions must have been made."""
        event: CornerEvent = {}
        for name, demand in clause.demands:
            _add_demand(event, name, demand)
        numbers = [self._numbers[literal] for literal in clause.literals if literal in self._numbers]
        if numbers:
            event[_LITERALS] = numbers
        return event

    def patterns(self) -> dict[int, Predicate]:
        """The positive literals by their numbers. They may follow from strings, and from other patterns."""
        return {number: each for each, number in self._numbers.items() if _is_positive(each)}

    def strings(self, clause: Clause, event: CornerEvent) -> CornerEvent:
        """Strings of an event that satisfies the clause, if such are easily found: one for each of its sets and patterns."""
        found: CornerEvent = {}
        for name, demand in clause.demands:
            if any(kind is Kind.STRING for kind, _ in demand.kinds):
                found[name] = [value for value in event.get(f"low {name}", ()) if isinstance(value, str)]
        for literal in clause.literals:
            if _is_positive(literal) and (example := example_of(literal)) is not None:
                found.setdefault(literal.attribute, []).append(example)
        return found

    def _conditions(self, clause: Clause) -> list[Expression]:
        conditions = [condition for name, demand in clause.demands for condition in self._demand(name, demand)]
        for literal in sorted(clause.literals, key=str):
            number = self._numbers.setdefault(literal, len(self._numbers))
            conditions.append(_condition(_LITERALS, Operator.EQ, number))
        return conditions

    def _demand(self, name: str, demand: Demand) -> Iterable[Expression]:
        for flag in _flags(name, demand):
            yield _condition(flag, Operator.EQ, ONE)
        for kind, needed in demand.kinds:
            outside = lowest(complement(needed.allowed, kind), kind)
            if outside is not None:
                yield _condition(f"none {kind} {name}", Operator.IN, *distinct((outside, MANY)))
            elif not needed.some:
                yield _condition(f"has {kind} {name}", Operator.EQ, ONE)
            for one in needed.some:
                yield from _ends_within(name, kind, one, single=self._implications.is_single(name))


def add_literals(event: CornerEvent, numbers: Iterable[int]) -> None:
    """Add the numbers of literals that may follow from the clause of an event."""
    event[_LITERALS] = sorted({*event.get(_LITERALS, ()), *numbers})


def _is_positive(literal: Expression) -> TypeGuard[Predicate]:
    return isinstance(literal, Predicate) and positive_of(literal) is literal


def _flags(name: str, demand: Demand) -> list[str]:
    """What a demand says, apart from its kinds."""
    flags = [f"missing {name}"] if demand.missing else []
    flags += [f"present {name}"] if demand.present else []
    return flags + [f"absent {kind} {name}" for kind in demand.absent]


def _add_demand(event: CornerEvent, name: str, demand: Demand) -> None:
    flags = _flags(name, demand)
    if demand.missing:
        flags += [f"absent {kind} {name}" for kind in Kind]
    elif demand.has_value and not demand.present:
        flags.append(f"present {name}")
    for flag in flags:
        event[flag] = [ONE]
    for kind, needed in demand.kinds:
        event[f"has {kind} {name}"] = [ONE]
        if needed.allowed is not EVERYTHING[kind]:
            _add_outside(event, f"none {kind} {name}", complement(needed.allowed, kind), kind)
        _add_ends(event, name, kind, needed)


def _add_outside(event: CornerEvent, name: str, outside: ValueSet, kind: Kind) -> None:
    spans = list(outside.spans())
    found: list[Any] = [literal_at(span.lo[0], kind) for span in spans if span.lo is not None and span.is_point]
    event[name] = found if len(found) == len(spans) else [*found, MANY]


def _add_ends(event: CornerEvent, name: str, kind: Kind, needed: KindDemand) -> None:
    for one in needed.sets:
        low, high = lowest(one, kind), highest(one, kind)
        if low is not None and high is not None:
            event.setdefault(f"low {name}", []).append(low)
            event.setdefault(f"high {name}", []).append(high)


def _ends_within(name: str, kind: Kind, one: ValueSet, *, single: bool) -> Iterable[Expression]:
    """That both ends of a set are within another. Gaps are left out: two elements of a list may lie around them."""
    spans = list(one.spans())
    points = [literal_at(span.lo[0], kind) for span in spans if span.lo is not None and span.is_point]
    if len(points) == len(spans):
        yield _condition(f"low {name}", Operator.IN, *points)
        yield _condition(f"high {name}", Operator.IN, *points)
        return
    lo, hi = spans[0].lo, spans[-1].hi
    if kind is Kind.STRING and lo == EVERYTHING[kind].cuts[0]:
        lo = None
    yield from _between(f"low {name}", kind, lo, hi)
    yield from _between(f"high {name}", kind, None, hi)
    if lo is None and hi is None:
        yield _condition(f"has {kind} {name}", Operator.EQ, ONE)
    if single and (holes := _holes(spans, kind)):
        yield _condition(f"low {name}", Operator.NOT_IN, *holes)


def _between(name: str, kind: Kind, lo: Cut | None, hi: Cut | None) -> Iterable[Expression]:
    if lo is not None:
        yield _condition(name, Operator.GT if lo[1] else Operator.GE, literal_at(lo[0], kind))
    if hi is not None:
        yield _condition(name, Operator.LE if hi[1] else Operator.LT, literal_at(hi[0], kind))


def _holes(spans: list[Span], kind: Kind) -> list[Scalar]:
    """The single values between two spans."""
    gaps = [Span(one.hi, other.lo) for one, other in itertools.pairwise(spans)]
    return [literal_at(gap.lo[0], kind) for gap in gaps if gap.lo is not None and gap.is_point]


def _condition(name: str, operator: Operator, *values: Scalar) -> Predicate:
    return Predicate.unchecked(name, operator, values)
