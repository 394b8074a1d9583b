"""Expressions in the JSON form, which `json_form` describes and reads."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from tamis.errors import ExpressionError
from tamis.language.expression import CasePredicate, Expression, Not, Predicate, TruthTest
from tamis.language.joins import Exists, Quantified
from tamis.language.json_form import ATTRIBUTE, EXISTS, NOT_EXISTS, TEST_KEYS
from tamis.language.normal import CLAUSE_LIMIT, Clause, dnf_size, to_dnf
from tamis.language.operators import LISTS
from tamis.language.reading import to_expression
from tamis.language.values import Scalar


def to_json(expression: Any) -> list[Any]:
    """Write an expression in its JSON form, which is the disjunctive normal form.

    `expression` may also be SQL text or another JSON form. The result is a list of predicates if there is one clause, else a
    list of lists.

    Raises
    ------
    ExpressionError
        The expression cannot be read, or the form would have more than `CLAUSE_LIMIT` clauses.
    """
    expression = to_expression(expression)
    clauses = to_dnf(expression)
    if clauses is None:
        size = dnf_size(expression)
        # Python refuses to write out integers of thousands of digits.
        count = f"{size:,}" if size < 10**12 else f"more than 10^{(size.bit_length() - 1) * 3 // 10}"
        raise ExpressionError(
            f"the JSON form of this expression would have {count} clauses (at most {CLAUSE_LIMIT:,}). "
            "Hint: keep it as SQL text"
        )
    if not clauses:
        return [False]
    written = [_write_clause(clause) for clause in clauses]
    return written[0] if len(written) == 1 else written


def _write_clause(clause: Clause) -> list[Any]:
    return [_write_item(literal) for literal in clause] if clause else [True]


def _write_item(literal: Expression) -> Any:
    if isinstance(literal, Not):
        item = _write_item(literal.operand)
        return {NOT_EXISTS: item[EXISTS]} if isinstance(item, dict) else [item[0], f"not {item[1]}", *item[2:]]
    if isinstance(literal, TruthTest):
        return {TEST_KEYS[literal.truth, literal.negated]: _write_item(literal.operand)}
    if isinstance(literal, Quantified):
        return [literal.attribute, str(literal.operator), {str(literal.quantifier): literal.earlier}]
    if isinstance(literal, Exists):
        joins = [[join.earlier, str(join.operator), {ATTRIBUTE: join.attribute}] for join in literal.joins]
        return {EXISTS: [*joins, *[_write_predicate(condition) for condition in literal.conditions]]}
    assert isinstance(literal, Predicate)
    return _write_predicate(literal)


def _write_predicate(predicate: Predicate) -> list[Any]:
    values = [_write_literal(value) for value in predicate.values]
    subject = (
        {str(predicate.case): predicate.attribute} if isinstance(predicate, CasePredicate) else predicate.attribute
    )
    written: list[Any] = [subject, str(predicate.operator)]
    if predicate.operator in LISTS:
        return [*written, values]
    return [*written, *values, *([predicate.escape] if predicate.escape is not None else [])]


def _write_literal(value: Scalar) -> Any:
    if isinstance(value, datetime):
        return {"timestamp": value.isoformat(sep=" ")}
    return {"date": value.isoformat()} if isinstance(value, date) else value
