"""Normal forms: NOT at the leaves (NNF), and a disjunction of conjunctions (DNF).

A *literal of a clause* is a predicate, a quantified comparison or EXISTS, or the Not of one of them if no operator
negates it. Not stays before  <  <=  >  >=:  on a list, NOT (a < 3) is not a >= 3. All rewrites hold in three-valued
logic and for all values. So an expression and its normal forms have the same truth for every event.

Tests of truth values go to the leaves too: `(p AND q) IS TRUE` is `p IS TRUE AND q IS TRUE`. Then a literal may also be
a test of a quantified comparison, or of a positive predicate with literals of one kind.
"""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

from tamis.language.expression import (
    FALSE,
    TRUE,
    TRUTHS,
    And,
    Constant,
    Expression,
    Not,
    Or,
    Predicate,
    TruthTest,
    all_of,
    any_of,
    truth_test,
)
from tamis.language.joins import Exists
from tamis.language.operators import NEGATION, NULL_TESTS, POSITIVE
from tamis.language.values import kind_of

Clause: TypeAlias = tuple[Expression, ...]

CLAUSE_LIMIT = 10_000
"""The most clauses of a DNF, unless the caller gives another limit. Flat chains of thousands fit."""


def to_nnf(expression: Expression) -> Expression:
    """The expression with NOT pushed to the leaves and constants folded: a constant is left only as the whole."""
    return _nnf(expression, negated=False)


def negated_literal(literal: Expression) -> Expression:
    """The literal of a clause that is the negation of another."""
    if isinstance(literal, Not):
        return literal.operand
    if isinstance(literal, Predicate):
        operator = NEGATION.get(literal.operator) or POSITIVE.get(literal.operator)
        if operator is not None:
            return literal.with_operator(operator)
    if isinstance(literal, TruthTest):
        return TruthTest(literal.operand, literal.truth, not literal.negated)
    return Not(literal)


def dnf_size(expression: Expression) -> int:
    """How many clauses the DNF has at most, counted without building it; exact except for duplicates and constants."""
    return _size(expression, negated=False)


def to_dnf(expression: Expression, limit: int = CLAUSE_LIMIT) -> list[Clause] | None:
    """The distinct clauses of which one must hold; None if there would be more than `limit`.

    TRUE is one empty clause, FALSE is no clause.
    """
    normal = to_nnf(expression)
    return _distribute(normal) if dnf_size(normal) <= limit else None


def _nnf(node: Expression, negated: bool) -> Expression:
    if isinstance(node, Constant):
        return TRUE if node.value is not negated else FALSE
    if isinstance(node, Not):
        inner = _nnf(node.operand, not negated)
        return node if isinstance(inner, Not) and inner.operand is node.operand else inner
    if isinstance(node, And | Or):
        operands = [_nnf(operand, negated) for operand in node.operands]
        if all(new is old and not isinstance(new, Constant) for new, old in zip(operands, node.operands, strict=True)):
            return node
        return _folded(operands, conjunction=isinstance(node, And) is not negated)
    if isinstance(node, TruthTest):
        return _tested(node.operand, TRUTHS - node.accepted if negated else node.accepted)
    return negated_literal(node) if negated else node


_Truths: TypeAlias = frozenset[bool | None]


def _tested(node: Expression, accepted: _Truths) -> Expression:
    """An expression in NNF that is TRUE if the truth of a node is one of those accepted, else FALSE."""
    if accepted in (TRUTHS, frozenset()):
        return TRUE if accepted else FALSE
    match node:
        case Constant():
            return TRUE if node.value in accepted else FALSE
        case Not():
            return _tested(node.operand, _negated(accepted))
        case TruthTest():
            inner = frozenset(truth for truth in TRUTHS if (truth in node.accepted) in accepted)
            return _tested(node.operand, inner)
        case And() | Or():
            return _tested_operands(node, accepted)
        case Predicate() if node.operator not in NULL_TESTS:
            return _tested_predicate(node, accepted)
        case Predicate() | Exists():  # never UNKNOWN
            if {True, False} <= accepted or accepted == {None}:
                return TRUE if True in accepted else FALSE
            return node if True in accepted else negated_literal(node)
    return truth_test(node, accepted)


def _tested_operands(node: And | Or, accepted: _Truths) -> Expression:
    """AND is TRUE if all operands are TRUE, and FALSE if one is FALSE. "Not TRUE" and "not FALSE" are the reverse."""
    if accepted == {None}:
        return _folded([_tested(node, TRUTHS - {truth}) for truth in (True, False)], conjunction=True)
    if accepted == {True, False}:
        return _folded([_tested(node, frozenset({truth})) for truth in (True, False)], conjunction=False)
    operands = [_tested(operand, accepted) for operand in node.operands]
    return _folded(operands, conjunction=(True in accepted) is isinstance(node, And))


def _tested_predicate(predicate: Predicate, accepted: _Truths) -> Expression:
    positive = POSITIVE.get(predicate.operator)
    if positive is not None:
        return _tested(predicate.with_operator(positive), _negated(accepted))
    kinds = predicate.kinds
    if len(kinds) > 1:
        # Only IN has literals of several kinds: an OR over the kinds.
        parts = [
            predicate.with_literals([each for each in predicate.values if kind_of(each) is kind]) for kind in kinds
        ]
        return _tested(any_of(*parts), accepted)
    return truth_test(predicate, accepted)


def _negated(truths: _Truths) -> _Truths:
    """The truths of an expression's negation."""
    return frozenset(None if truth is None else not truth for truth in truths)


def _folded(operands: list[Expression], conjunction: bool) -> Expression:
    """AND or OR of operands. A constant that decides it is the result; the other constant is left out."""
    rest = [operand for operand in operands if not isinstance(operand, Constant)]
    if any(isinstance(operand, Constant) and operand.value is not conjunction for operand in operands):
        return FALSE if conjunction else TRUE
    return all_of(*rest) if conjunction else any_of(*rest)


def _size(node: Expression, negated: bool) -> int:
    if isinstance(node, Constant):
        return int(node.value is not negated)
    if isinstance(node, Not):
        return _size(node.operand, not negated)
    if isinstance(node, And | Or):
        sizes = [_size(operand, negated) for operand in node.operands]
        return math.prod(sizes) if isinstance(node, And) is not negated else sum(sizes)
    if isinstance(node, TruthTest) and not isinstance(normal := to_nnf(node), TruthTest):
        return _size(normal, negated)
    return 1


def _distribute(node: Expression) -> list[Clause]:
    """The clauses of a node in NNF."""
    if isinstance(node, Constant):
        return [()] if node.value else []
    if not isinstance(node, And | Or):
        return [(node,)]
    parts = [_distribute(operand) for operand in node.operands]
    if isinstance(node, Or):
        return _without_duplicates(list(itertools.chain.from_iterable(parts)))
    # Every clause of the product has one clause from each operand.
    product = itertools.product(*parts)
    return _without_duplicates([tuple(dict.fromkeys(itertools.chain.from_iterable(choice))) for choice in product])


def _without_duplicates(clauses: list[Clause]) -> list[Clause]:
    """The clauses, but of clauses with the same literals only the first."""
    seen: dict[frozenset[Expression], Clause] = {}
    for clause in clauses:
        seen.setdefault(frozenset(clause), clause)
    return list(seen.values())
