"""Sets of states of a scalar attribute: missing, or a value of one of four kinds. Predicates become such sets, and back.

A literal of a clause is TRUE for some states of its attribute. So if the value is a scalar, AND is an intersection of sets and OR
a union. LIKE with a general pattern, ILIKE and RLIKE are no unions of spans, and are not read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tamis.language.expression import (
    FALSE,
    TRUE,
    CasePredicate,
    Expression,
    Not,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.like import LikePattern, LikeShape
from tamis.language.operators import POSITIVE, SOME_STRINGS, Operator
from tamis.language.quoting import quoted
from tamis.language.value_set import (
    AFTER,
    BEFORE,
    EVERYTHING,
    NOTHING,
    Span,
    ValueSet,
    above,
    below,
    between,
    complement,
    intersection,
    literal_at,
    points,
    prefix_of,
    starting_with,
    union,
)
from tamis.language.values import Kind, Scalar, kind_of, kinds_of


@dataclass(frozen=True, slots=True)
class ScalarSet:
    """States of one attribute. `values` has an entry for each kind of which some value is in."""

    missing: bool
    values: dict[Kind, ValueSet]

    def __bool__(self) -> bool:
        """Whether there is any state in the set."""
        return self.missing or bool(self.values)


NO_STATE = ScalarSet(False, {})
MISSING = ScalarSet(True, {})
PRESENT = ScalarSet(False, EVERYTHING)
ANYTHING = ScalarSet(True, EVERYTHING)
ANY_STRING = ScalarSet(False, {Kind.STRING: EVERYTHING[Kind.STRING]})


def any_state(sets: Sequence[ScalarSet]) -> ScalarSet:
    """The states that are in some of the sets."""
    found = {kind: [one.values[kind] for one in sets if kind in one.values] for kind in Kind}
    values = {kind: union(parts) for kind, parts in found.items() if parts}
    return ScalarSet(any(one.missing for one in sets), values)


def common_states(sets: Sequence[ScalarSet]) -> ScalarSet:
    """The states that are in all of the sets."""
    kinds = [kind for kind in Kind if all(kind in one.values for one in sets)]
    values = {kind: intersection([one.values[kind] for one in sets]) for kind in kinds}
    return ScalarSet(all(one.missing for one in sets), {kind: one for kind, one in values.items() if one})


def finite_states(states: ScalarSet) -> list[Scalar | None] | None:
    """The states one by one, None for missing; or None if they are infinitely many."""
    found: list[Scalar | None] = [None] if states.missing else []
    for kind, one in states.values.items():
        for span in one.spans():
            if span.lo is None or not span.is_point:
                return None
            found.append(literal_at(span.lo[0], kind))
    return found


def states_of(states: Sequence[Scalar | None]) -> ScalarSet:
    """Exactly these states; None is missing."""
    values = [value for value in states if value is not None]
    by_kind = {kind: [value for value in values if kind_of(value) is kind] for kind in kinds_of(values)}
    return ScalarSet(None in states, {kind: points(found) for kind, found in by_kind.items()})


def read_scalar_set(literal: Expression) -> ScalarSet | None:
    """The states for which a predicate, or the Not or a test of one, is TRUE; None for patterns that are not spans."""
    if isinstance(literal, Not):
        return _negation(literal.operand)
    if isinstance(literal, TruthTest):
        parts = [_with_truth(literal.operand, truth) for truth in literal.accepted]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return any_state(known)
        # A string is UNKNOWN to no pattern, so all strings satisfy the one or the other.
        return ANY_STRING if literal.accepted == {True, False} and not may_be_unknown(literal.operand) else None
    assert isinstance(literal, Predicate)
    if literal.operator is Operator.IS_NULL:
        return MISSING
    if literal.operator is Operator.IS_NOT_NULL:
        return PRESENT
    positive = POSITIVE.get(literal.operator)
    if positive is not None:
        return _negation(literal.with_operator(positive))
    values = {}
    for kind in literal.kinds:
        found = _read(literal, kind, [value for value in literal.values if kind_of(value) is kind])
        if found is None:
            return None
        if found:
            values[kind] = found
    return ScalarSet(False, values)


def states_around(literal: Expression) -> ScalarSet:
    """The states outside which a literal with a pattern is never TRUE."""
    return ANYTHING if isinstance(literal, TruthTest) and None in literal.accepted else ANY_STRING


def can_equal(predicate: CasePredicate) -> list[Scalar]:
    """The literals that a changed string can be equal to, or a pattern that it can match."""
    if predicate.operator in (Operator.LIKE, Operator.NOT_LIKE):
        pattern = LikePattern.read(str(predicate.values[0]), predicate.escape)
        return list(predicate.values) if predicate.case.change(pattern.literal) == pattern.literal else []
    return [value for value in predicate.values if predicate.case.change(str(value)) == value]


def _with_truth(predicate: Expression, truth: bool | None) -> ScalarSet | None:
    """The states for which a positive predicate with literals of one kind has a truth; None for patterns."""
    assert isinstance(predicate, Predicate)
    if truth is not None:
        return read_scalar_set(predicate) if truth else _negation(predicate)
    if may_be_unknown(predicate):
        return None
    others = {kind: one for kind, one in EVERYTHING.items() if kind not in predicate.kinds}
    return ScalarSet(True, others)


def may_be_unknown(predicate: Expression) -> bool:
    """Whether a predicate is UNKNOWN for some strings, as ip_in is for strings that are not addresses."""
    return isinstance(predicate, Predicate) and predicate.operator in SOME_STRINGS


def _negation(predicate: Expression) -> ScalarSet | None:
    """NOT of a positive predicate: TRUE for values of its kind that are not in the set. With two kinds, one is always UNKNOWN."""
    assert isinstance(predicate, Predicate)
    positive = read_scalar_set(predicate)
    if positive is None:
        return None
    if len(predicate.kinds) > 1:
        return NO_STATE
    kind = predicate.kinds[0]
    rest = complement(positive.values[kind], kind) if kind in positive.values else EVERYTHING[kind]
    return ScalarSet(False, {kind: rest} if rest else {})


def _read(predicate: Predicate, kind: Kind, literals: list[Scalar]) -> ValueSet | None:
    if isinstance(predicate, CasePredicate):
        return None if can_equal(predicate) else NOTHING
    first = literals[0]
    match predicate.operator:
        case Operator.EQ | Operator.IN:
            return points(literals)
        case Operator.LT:
            return below(first, BEFORE, kind)
        case Operator.LE:
            return below(first, AFTER, kind)
        case Operator.GE:
            return above(first, BEFORE)
        case Operator.GT:
            return above(first, AFTER)
        case Operator.BETWEEN:
            return between(*literals)
        case Operator.LIKE:
            return _read_like(LikePattern.read(str(first), predicate.escape))
        case _:
            return None


def _read_like(pattern: LikePattern) -> ValueSet | None:
    match pattern.shape:
        case LikeShape.EXACT:
            return points([pattern.literal])
        case LikeShape.PREFIX | LikeShape.ANYTHING:
            return starting_with(pattern.literal)
        case _:
            return None


def write_scalar_set(attribute: str, states: ScalarSet) -> Expression:
    """An expression that is TRUE for exactly these states of a scalar attribute, in few predicates."""
    if states == ANYTHING:
        return TRUE
    if states == PRESENT:
        return Predicate(attribute, Operator.IS_NOT_NULL)
    alternatives: list[Expression] = [Predicate(attribute, Operator.IS_NULL)] if states.missing else []
    listed: list[Scalar] = []
    for kind, one in states.values.items():
        listed += [literal_at(span.lo[0], kind) for span in one.spans() if span.lo is not None and span.is_point]
        alternatives += _write_blocks(attribute, kind, _blocks(one))
    if listed:
        alternatives.append(Predicate(attribute, Operator.IN if len(listed) > 1 else Operator.EQ, listed))
    return any_of(*alternatives) if alternatives else FALSE


@dataclass(frozen=True, slots=True)
class _Block:
    """A span with single points left out: `a > 0 AND a NOT IN (5, 7)`."""

    span: Span
    holes: list[Any]


def _blocks(one: ValueSet) -> list[_Block]:
    """The spans of a set that are more than a point, those with only a point between them joined."""
    blocks: list[_Block] = []
    for span in one.spans():
        last = blocks[-1] if blocks else None
        if span.is_point:
            continue
        if last is not None and span.lo is not None and last.span.hi == (span.lo[0], BEFORE) and span.lo[1] is AFTER:
            last.holes.append(span.lo[0])
            blocks[-1] = _Block(Span(last.span.lo, span.hi), last.holes)
        else:
            blocks.append(_Block(span, []))
    return blocks


def _write_blocks(attribute: str, kind: Kind, blocks: list[_Block]) -> list[Expression]:
    start = next(EVERYTHING[kind].spans()).lo
    match blocks:
        case [_Block(Span(lo, (first, False)), []), _Block(Span((last, True), None), [])] if lo == start:
            ends = [literal_at(first, kind), literal_at(last, kind)]
            return [Predicate(attribute, Operator.NOT_BETWEEN, ends)]
    return [_write_block(attribute, kind, block, start) for block in blocks]


def _write_block(attribute: str, kind: Kind, block: _Block, start: Any) -> Expression:
    lo, hi = block.span
    parts: list[Expression] = []
    if kind is Kind.STRING and lo is not None and prefix_of(block.span) is not None:
        if lo[0] or not block.holes:
            pattern, escape = quoted(lo[0], after="%")
            parts.append(Predicate(attribute, Operator.LIKE, [pattern], escape=escape))
    else:
        parts += _write_ends(attribute, kind, None if lo == start else lo, hi)
    if block.holes:
        operator = Operator.NOT_IN if len(block.holes) > 1 else Operator.NE
        parts.append(Predicate(attribute, operator, [literal_at(key, kind) for key in block.holes]))
    if parts:
        return all_of(*parts)
    # "Is a number" has no predicate of its own.
    zero = literal_at(0, kind)
    return any_of(Predicate(attribute, Operator.LT, [zero]), Predicate(attribute, Operator.GE, [zero]))


def _write_ends(attribute: str, kind: Kind, lo: Any, hi: Any) -> list[Expression]:
    if lo is not None and hi is not None and lo[1] is BEFORE and hi[1] is AFTER:
        return [Predicate(attribute, Operator.BETWEEN, [literal_at(lo[0], kind), literal_at(hi[0], kind)])]
    parts: list[Expression] = []
    if lo is not None:
        parts.append(Predicate(attribute, Operator.GT if lo[1] else Operator.GE, [literal_at(lo[0], kind)]))
    if hi is not None:
        parts.append(Predicate(attribute, Operator.LE if hi[1] else Operator.LT, [literal_at(hi[0], kind)]))
    return parts
