"""Literals of clauses as tests of the values of one attribute (`demand`).

A literal becomes alternatives: parts of clauses of which one must hold. `a IN (1, 'x')` has two, one for each kind. If the
attribute has at most one value, NONE and ABSENT are not needed: `a <> 5` is SOME of all numbers but 5.

Patterns that are not spans, `ip_in`, `lower(a)`, `upper(a)` and joins with earlier events stay literals. Beside most of them is a
test of what they imply: that there is a string.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tamis.language.demand import Mode, ValueTest
from tamis.language.expression import CasePredicate, Expression, Not, Predicate, TruthTest
from tamis.language.like import LikePattern
from tamis.language.normal import negated_literal
from tamis.language.operators import POSITIVE, Operator
from tamis.language.scalar_set import may_be_unknown, read_scalar_set
from tamis.language.value_set import EVERYTHING, NOTHING, ValueSet, complement, starting_with
from tamis.language.values import Kind

Part: TypeAlias = tuple[ValueTest | Expression, ...]
"""A part of a clause: tests and literals that must all hold."""

_TRUTHS = (True, False, None)


def alternatives(literal: Expression, *, single: bool) -> list[Part]:
    """The parts of which one must hold, exactly when the literal is TRUE. `single`: the attribute has at most one value."""
    if isinstance(literal, TruthTest):
        return _tested(literal, single)
    predicate = positive_of(literal)
    if predicate is None:
        return [(literal,)]
    name = predicate.attribute
    if predicate.operator is Operator.IS_NULL:
        return [(ValueTest(name, Mode.MISSING if predicate is literal else Mode.PRESENT),)]
    states = read_scalar_set(predicate)
    if states is None:
        around = _strings_around(predicate) if predicate is literal else EVERYTHING[Kind.STRING]
        return [(literal, ValueTest(name, Mode.SOME, Kind.STRING, around))]
    sets = {kind: states.values.get(kind, NOTHING) for kind in predicate.kinds}
    if predicate is literal:
        return _some(name, sets.items())
    if not single:
        return [tuple(ValueTest(name, Mode.NONE, kind, values) for kind, values in sets.items())]
    # Of two kinds, a single value has one, and the predicate is UNKNOWN for the other.
    return _some(name, [(kind, complement(values, kind)) for kind, values in sets.items()]) if len(sets) == 1 else []


def positive_of(literal: Expression) -> Predicate | None:
    """The positive predicate of a literal, which may be the negation of it; None for joins with earlier events.

    The literal is positive if the result is the literal itself.
    """
    inner = literal.operand if isinstance(literal, Not) else literal
    if not isinstance(inner, Predicate):
        return None
    positive = POSITIVE.get(inner.operator)
    return inner if positive is None else inner.with_operator(positive)


def attribute_of(literal: Expression) -> str | None:
    """The attribute that a literal is about; None if it is about earlier events, or a whole expression."""
    predicate = positive_of(literal.operand if isinstance(literal, TruthTest) else literal)
    return None if predicate is None else predicate.attribute


def _some(name: str, sets: Iterable[tuple[Kind, ValueSet]]) -> list[Part]:
    return [(ValueTest(name, Mode.SOME, kind, values),) for kind, values in sets if values]


def _tested(test: TruthTest, single: bool) -> list[Part]:
    """A test of truth values: its operand is a join, or a positive predicate with literals of one kind."""
    operand, accepted = test.operand, test.accepted
    if isinstance(operand, Predicate) and accepted == {True, False} and read_scalar_set(operand) is not None:
        [kind] = operand.kinds
        return _some(operand.attribute, [(kind, EVERYTHING[kind])])
    found: list[Part] = []
    for truth in _TRUTHS:
        if truth in accepted:
            found += _with_truth(operand, truth, single)
    return found


def _with_truth(operand: Expression, truth: bool | None, single: bool) -> list[Part]:
    if truth is not None:
        return alternatives(operand if truth else negated_literal(operand), single=single)
    if not isinstance(operand, Predicate) or may_be_unknown(operand):
        return [(TruthTest(operand, None),)]
    [kind] = operand.kinds
    if not single:
        return [(ValueTest(operand.attribute, Mode.ABSENT, kind),)]
    others = [(other, values) for other, values in EVERYTHING.items() if other is not kind]
    return [(ValueTest(operand.attribute, Mode.MISSING),), *_some(operand.attribute, others)]


def _strings_around(pattern: Predicate) -> ValueSet:
    """A span of strings outside which a pattern does not hold."""
    if pattern.operator is Operator.LIKE and not isinstance(pattern, CasePredicate):
        parts = LikePattern.read(str(pattern.values[0]), pattern.escape).parts
        if parts and isinstance(parts[0], str):
            return starting_with(parts[0])
    return EVERYTHING[Kind.STRING]
