"""NNF and DNF keep the truth of an expression for every event, and their size is known before they are built."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.evaluate import evaluate, negation
from tamis.language.expression import FALSE, TRUE, And, Constant, Expression, Not, Or, Predicate, all_of, any_of
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.normal import (
    CLAUSE_LIMIT,
    dnf_size,
    negated_literal,
    to_dnf,
    to_nnf,
)
from tamis.language.operators import NEGATION, ORDER_COMPARISONS, POSITIVE
from tests.language.close_cases import events, expressions, history_leaves, predicates

A, B, C, D = (Predicate(name, "=", [1]) for name in "abcd")
NOT_A, NOT_B, NOT_C = (Predicate(name, "<>", [1]) for name in "abc")
BELOW = Predicate("a", "<", [3])
ANY = Quantified("a", "=", "any", "b")
EXISTS = Exists([Join("a", "=", "a")])


@pytest.mark.parametrize(
    ("expression", "normal"),
    [
        (A, A),
        (Not(A), NOT_A),
        (Not(NOT_A), A),
        (Not(Not(A)), A),
        (Not(Not(Not(A))), NOT_A),
        (Not(And([A, B])), Or([NOT_A, NOT_B])),
        (Not(Or([A, B])), And([NOT_A, NOT_B])),
        (Not(And([A, Or([B, Not(C)])])), Or([NOT_A, And([NOT_B, C])])),
        (Or([A, Not(And([B, C]))]), Or([A, NOT_B, NOT_C])),
        # On a list NOT (a < 3) is not a >= 3.
        (Not(BELOW), Not(BELOW)),
        (Not(Not(BELOW)), BELOW),
        (Not(ANY), Not(ANY)),
        (Not(EXISTS), Not(EXISTS)),
        (Not(Predicate("a", "is null")), Predicate("a", "is not null")),
        (Not(Predicate("a", "is not null")), Predicate("a", "is null")),
        (Not(Predicate("a", "in", [1, "x"])), Predicate("a", "not in", [1, "x"])),
        (Not(Predicate("a", "like", ["x!%"], escape="!")), Predicate("a", "not like", ["x!%"], escape="!")),
        # Constants
        (TRUE, TRUE),
        (Not(TRUE), FALSE),
        (And([A, TRUE]), A),
        (And([A, TRUE, B]), And([A, B])),
        (And([A, FALSE]), FALSE),
        (Or([A, TRUE]), TRUE),
        (Or([A, FALSE]), A),
        (And([TRUE, TRUE]), TRUE),
        (Or([FALSE, FALSE]), FALSE),
        (Or([A, And([B, FALSE])]), A),
        (Not(And([A, Not(FALSE)])), NOT_A),
    ],
)
def test_nnf(expression: Expression, normal: Expression) -> None:
    assert to_nnf(expression) == normal


def test_an_expression_in_nnf_does_not_change() -> None:
    expression = And([A, Or([NOT_B, Not(BELOW)])])
    assert to_nnf(expression) is expression


@given(predicates())
def test_every_predicate_has_its_negation(predicate: Predicate) -> None:
    opposite = negated_literal(predicate)
    assert negated_literal(opposite) == predicate
    if predicate.operator in ORDER_COMPARISONS:
        assert opposite == Not(predicate)
    else:
        assert isinstance(opposite, Predicate)
        assert opposite.operator in (NEGATION.get(predicate.operator), POSITIVE.get(predicate.operator))


def is_literal(node: Expression) -> bool:
    inner = node.operand if isinstance(node, Not) else node
    if isinstance(inner, Predicate):
        return inner is node or inner.operator in ORDER_COMPARISONS
    return isinstance(inner, Quantified | Exists)


def is_nnf(node: Expression) -> bool:
    return all(is_nnf(operand) for operand in node.operands) if isinstance(node, And | Or) else is_literal(node)


@given(expressions(history=True), st.lists(events(), max_size=3), st.lists(events(), max_size=2))
def test_nnf_keeps_every_truth(
    expression: Expression, some: list[dict[str, Any]], history: list[dict[str, Any]]
) -> None:
    normal = to_nnf(expression)
    assert isinstance(normal, Constant) or is_nnf(normal)
    assert normal.depth <= expression.depth
    for event in some:
        truth = evaluate(expression, event, history)
        assert evaluate(normal, event, history) is truth
        assert evaluate(to_nnf(Not(expression)), event, history) is negation(truth)


@given(expressions(history=True, max_leaves=8), st.lists(events(), max_size=3), st.lists(events(), max_size=2))
def test_dnf_keeps_every_truth(
    expression: Expression, some: list[dict[str, Any]], history: list[dict[str, Any]]
) -> None:
    dnf = to_dnf(expression)
    assert dnf is not None
    assert len(dnf) <= dnf_size(expression)
    assert all(is_literal(literal) for clause in dnf for literal in clause)
    for event in some:
        truth = evaluate(expression, event, history)
        assert evaluate(any_of(*[all_of(*clause) for clause in dnf]), event, history) is truth


@pytest.mark.parametrize(
    ("expression", "dnf"),
    [
        (A, [(A,)]),
        (TRUE, [()]),
        (FALSE, []),
        (Not(TRUE), []),
        (And([A, B]), [(A, B)]),
        (Or([A, B]), [(A,), (B,)]),
        (And([A, Or([B, C])]), [(A, B), (A, C)]),
        (Or([A, And([B, C])]), [(A,), (B, C)]),
        (And([Or([A, B]), Or([C, D])]), [(A, C), (A, D), (B, C), (B, D)]),
        (Not(And([A, BELOW])), [(NOT_A,), (Not(BELOW),)]),
        # Duplicates inside a clause, and clauses of the same literals
        (And([A, A]), [(A,)]),
        (Or([A, A]), [(A,)]),
        (And([A, Or([A, B])]), [(A,), (A, B)]),
        (Or([And([A, B]), And([B, A])]), [(A, B)]),
        (And([Or([A, B]), Or([B, A])]), [(A, B), (A,), (B,)]),
        # 1, 1.0 and TRUE differ.
        (
            Or([Predicate("a", "=", [1]), Predicate("a", "=", [True])]),
            [(Predicate("a", "=", [1]),), (Predicate("a", "=", [True]),)],
        ),
    ],
)
def test_dnf(expression: Expression, dnf: list[Any]) -> None:
    assert to_dnf(expression) == dnf


@pytest.mark.parametrize(
    ("expression", "dnf", "negated"),
    [
        (TRUE, 1, 0),
        (FALSE, 0, 1),
        (A, 1, 1),
        (Not(A), 1, 1),
        (And([A, B, C]), 1, 3),
        (Or([A, B, C]), 3, 1),
        (Not(And([A, B, C])), 3, 1),
        (And([Or([A, B]), Or([C, D, A])]), 6, 2),
        (Or([And([A, B]), And([C, D, A])]), 2, 6),
        (Or([A, And([B, Or([C, D])])]), 3, 2),
        (And([A, FALSE]), 0, 2),
    ],
)
def test_sizes(expression: Expression, dnf: int, negated: int) -> None:
    assert dnf_size(expression) == dnf
    assert dnf_size(Not(expression)) == negated


def pairs(count: int) -> Expression:
    """A conjunction of `count` disjunctions of two operands: 2^count clauses in DNF."""
    return all_of(*[any_of(Predicate(f"a{i}", "=", [1]), Predicate(f"b{i}", "=", [1])) for i in range(count)])


def test_a_dnf_that_would_be_too_large_is_counted_but_not_built() -> None:
    assert dnf_size(pairs(4_400)) == 2**4_400
    assert to_dnf(pairs(4_400)) is None
    clauses = to_dnf(Not(pairs(4_400)))
    assert clauses is not None
    assert len(clauses) == 4_400


def test_the_limit() -> None:
    clauses = to_dnf(pairs(6), limit=64)
    assert clauses is not None
    assert len(clauses) == 64
    assert to_dnf(pairs(6), limit=63) is None
    # Constants are folded before the clauses are counted.
    assert to_dnf(And([pairs(6), FALSE]), limit=0) == []
    assert to_dnf(Or([pairs(6), TRUE]), limit=1) == [()]


@pytest.mark.parametrize("count", [4_400, CLAUSE_LIMIT])
def test_flat_chains_are_not_too_large(count: int) -> None:
    leaves = [Predicate(f"a{i}", "=", [i]) for i in range(count)]
    assert to_dnf(And(leaves)) == [tuple(leaves)]
    assert to_dnf(Or(leaves)) == [(leaf,) for leaf in leaves]


@given(history_leaves())
def test_joins_with_the_history_are_literals(leaf: Expression) -> None:
    assert to_dnf(Not(leaf)) == [(Not(leaf),)]
