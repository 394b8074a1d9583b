"""What follows from several predicates on one attribute whose value is a scalar.

For a match, only TRUE counts. So on a scalar a predicate is a set of states (`ScalarSet`). AND is an intersection: `a > 0 AND
a >= 5` is `a >= 5`, and `a < 3 AND a > 5` holds for nothing. OR is a union: `a = 1 OR a = 2` is `a IN (1, 2)`. On a list, or on
an Interval (the set of its points), this does not hold: two elements may satisfy two predicates. Patterns that are not spans
(`LIKE '%x'`, RLIKE) only tell that the value is a string.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tamis.errors import shortened
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent
from tamis.language.expression import (
    FALSE,
    TRUE,
    And,
    CasePredicate,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.normal import negated_literal, to_nnf
from tamis.language.scalar_set import (
    ANYTHING,
    NO_STATE,
    ScalarSet,
    any_state,
    can_equal,
    common_states,
    finite_states,
    read_scalar_set,
    states_around,
    states_of,
    write_scalar_set,
)
from tamis.language.value_set import EVERYTHING
from tamis.language.values import Scalar


class Finding(StrEnum):
    """What there is to say about an expression."""

    CONTRADICTION = "contradiction"
    NEVER_EQUAL = "never equal"
    ANY_VALUE = "any value of a kind"
    NEVER = "never matches"
    ALWAYS = "matches every event"


@dataclass(frozen=True, slots=True)
class Remark:
    """A finding about a part of an expression; ``str()`` says it in words."""

    finding: Finding
    expression: Expression
    attribute: str = ""

    def __str__(self) -> str:
        if self.finding is Finding.CONTRADICTION:
            one = f"no single value of {self.attribute} satisfies it" if self.attribute else "it contradicts itself"
            return f"contradiction: {_shortened(str(self.expression))}: {one}"
        if self.finding is Finding.NEVER_EQUAL:
            assert isinstance(self.expression, CasePredicate)
            case, possible = self.expression.case, can_equal(self.expression)
            wrong = next(value for value in self.expression.values if value not in possible)
            text = _shortened(str(self.expression))
            return f"{text}: {case}({self.attribute}) is never {shortened(wrong)}, which is not in {case} case"
        if self.finding is Finding.ANY_VALUE:
            return f"{_shortened(str(self.expression))} is true for every value of this kind: it only tests the kind"
        return str(self.finding)


@dataclass(frozen=True, slots=True)
class Simplified:
    """An expression that matches the same events as long as the attributes are scalar, and remarks about it."""

    expression: Expression
    remarks: tuple[Remark, ...]


def simplify(expression: Expression, *, scalars: Container[str] | None = None) -> Simplified:
    """Intersect and unite the predicates on each scalar attribute.

    Parameters
    ----------
    scalars
        The attributes that have at most one value, and no Interval, in every event; None for all attributes.

    Returns
    -------
    Simplified
        Its expression is TRUE for the same events as the given one. For other events it may be UNKNOWN instead of FALSE, or
        FALSE instead of UNKNOWN.
    """
    work = _Work(scalars)
    part = work.part(to_nnf(expression))
    remarks = list(work.remarks)
    if isinstance(part.expression, Constant):
        finding = Finding.ALWAYS if part.expression.value else Finding.NEVER
        remarks.append(Remark(finding, expression))
    return Simplified(part.expression, tuple(remarks))


class _Pattern(NamedTuple):
    """An expression on one attribute that is not a union of spans, and a set of states outside which it is not TRUE."""

    expression: Expression
    states: ScalarSet


@dataclass(frozen=True, slots=True)
class _Part:
    """A subexpression. If it is about one scalar attribute, it is TRUE when the attribute is in `states` and all
    `patterns` hold. Without an attribute, nothing is known about it."""

    expression: Expression
    attribute: str | None = None
    states: ScalarSet = NO_STATE
    patterns: tuple[_Pattern, ...] = ()


class _Work:
    """One pass over an expression in NNF, from the leaves up."""

    def __init__(self, scalars: Container[str] | None) -> None:
        self.scalars = scalars
        self.remarks: list[Remark] = []

    def part(self, node: Expression) -> _Part:
        if isinstance(node, And | Or):
            parts = [self.part(operand) for operand in node.operands]
            return self._conjunction(parts) if isinstance(node, And) else self._disjunction(parts)
        return self._leaf(node)

    def _leaf(self, leaf: Expression) -> _Part:
        predicate = leaf.operand if isinstance(leaf, Not | TruthTest) else leaf
        if not isinstance(predicate, Predicate):
            return _Part(leaf)
        name = predicate.attribute
        wrong_case = isinstance(predicate, CasePredicate) and len(can_equal(predicate)) < len(predicate.values)
        if wrong_case:
            self.remarks.append(Remark(Finding.NEVER_EQUAL, predicate, name))
        if self.scalars is not None and name not in self.scalars:
            return _Part(leaf)
        states = read_scalar_set(leaf)
        if states is None:
            around = states_around(leaf)
            return _Part(leaf, name, around, (_Pattern(leaf, around),))
        if states:
            return _Part(leaf, name, states)
        return _Part(FALSE) if wrong_case else self._contradiction([leaf], name)

    def _conjunction(self, parts: list[_Part]) -> _Part:
        if any(part.expression == FALSE for part in parts):
            return _Part(FALSE)
        groups = _groups(part for part in parts if part.expression != TRUE)
        unknown = [group[0].expression for group in groups if group[0].attribute is None]
        if denial := _denial(unknown):
            return self._contradiction(denial, "")
        met = [self._meet(group) for group in groups]
        if any(part.expression == FALSE for part in met):
            return _Part(FALSE)
        return met[0] if len(met) == 1 else _Part(all_of(*[part.expression for part in met]))

    def _disjunction(self, parts: list[_Part]) -> _Part:
        if any(part.expression == TRUE for part in parts):
            return _Part(TRUE)
        united = [self._unite(group) for group in _groups(part for part in parts if part.expression != FALSE)]
        if any(part.expression == TRUE for part in united):
            return _Part(TRUE)
        return united[0] if len(united) == 1 else _Part(any_of(*[part.expression for part in united]))

    def _meet(self, group: list[_Part]) -> _Part:
        """The conjunction of parts about one attribute."""
        name = group[0].attribute
        if name is None or len(group) == 1:
            return group[0]
        whole = [part.expression for part in group]
        states = common_states([part.states for part in group])
        patterns = tuple({pattern.expression: pattern for part in group for pattern in part.patterns}.values())
        if _denial([pattern.expression for pattern in patterns]):
            return self._contradiction(whole, name)
        if patterns and (candidates := finite_states(states)) is not None:
            states, patterns = _satisfying(name, candidates, patterns), ()
        if not states:
            return self._contradiction(whole, name)
        expression = _shorter(_write(name, states, patterns), all_of(*dict.fromkeys(whole)))
        return _Part(expression, name, states, patterns)

    def _unite(self, group: list[_Part]) -> _Part:
        """The disjunction of parts about one attribute."""
        name = group[0].attribute
        if name is None or len(group) == 1:
            return group[0]
        exact = [part for part in group if not part.patterns]
        states = any_state([part.states for part in exact])
        # A pattern that adds no state to those of the rest adds nothing.
        others = [part for part in group if part.patterns and any_state([states, part.states]) != states]
        if states == ANYTHING:
            return _Part(TRUE)
        expression = any_of(*dict.fromkeys(part.expression for part in exact))
        self._remark_any_value(name, exact, states)
        expression = _shorter(write_scalar_set(name, states), expression)
        if not others:
            return _Part(expression, name, states)
        either = any_of(*dict.fromkeys([*([expression] if exact else []), *[part.expression for part in others]]))
        states = any_state([states, *[part.states for part in others]])
        return _Part(either, name, states, (_Pattern(either, states),))

    def _contradiction(self, clause: Iterable[Expression], attribute: str) -> _Part:
        self.remarks.append(Remark(Finding.CONTRADICTION, all_of(*clause), attribute))
        return _Part(FALSE)

    def _remark_any_value(self, name: str, parts: list[_Part], states: ScalarSet) -> None:
        for kind, values in states.values.items():
            if values == EVERYTHING[kind] and all(part.states.values.get(kind) != values for part in parts):
                of_kind = [part.expression for part in parts if kind in part.states.values]
                self.remarks.append(Remark(Finding.ANY_VALUE, any_of(*of_kind), name))


def _groups(parts: Iterable[_Part]) -> list[list[_Part]]:
    """The parts grouped by attribute. Parts without an attribute are grouped by expression."""
    groups: dict[str | Expression, list[_Part]] = {}
    for part in parts:
        groups.setdefault(part.expression if part.attribute is None else part.attribute, []).append(part)
    return list(groups.values())


def _denial(literals: list[Expression]) -> list[Expression]:
    """A literal and its negation, which are never TRUE together, if both are there."""
    known = set(literals)
    for literal in literals:
        if not isinstance(literal, And | Or) and (opposite := negated_literal(literal)) in known:
            return [literal, opposite]
    return []


def _satisfying(name: str, candidates: list[Scalar | None], patterns: tuple[_Pattern, ...]) -> ScalarSet:
    """The candidates for which all patterns hold."""
    condition = all_of(*[pattern.expression for pattern in patterns])
    events: list[tuple[Scalar | None, FlatEvent]]
    events = [(value, {} if value is None else {name: (value,)}) for value in candidates]
    return states_of([value for value, event in events if evaluate_flat(condition, event) is True])


def _write(name: str, states: ScalarSet, patterns: tuple[_Pattern, ...]) -> Expression:
    """The conjunction of the patterns and of what they do not say themselves."""
    written = [pattern.expression for pattern in patterns]
    if not patterns or states != common_states([pattern.states for pattern in patterns]):
        written.append(write_scalar_set(name, states))
    return all_of(*written)


def _shorter(one: Expression, other: Expression) -> Expression:
    """The first, if it has fewer leaves than the second and is not nested deeper; else the second, as it was written."""
    return one if one.depth <= other.depth and _leaves(one) < _leaves(other) else other


def _leaves(expression: Expression) -> int:
    return sum(not node.operands for node in expression.walk())


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:150]} ... {text[-40:]}"
