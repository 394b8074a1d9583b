"""The text of an expression for an engine whose table comes from `attributes.engine_table`.

What the rules of the language say about lists and mixed kinds is written out in the engine's own words: SOME element
through a lambda, the column of the literal's kind, NULL where the attribute has no value of that kind.
"""

from __future__ import annotations

from dataclasses import dataclass

from tamis.language.engine_sql import PRINTERS, to_sql
from tamis.language.expression import And, CasePredicate, Constant, Expression, Not, Or, Predicate, TruthTest
from tamis.language.operators import NULL_TESTS, POSITIVE, Operator
from tamis.language.values import Kind, kind_of
from tests.differential.attributes import ATTRIBUTES, Attribute

_ELEMENT = "element"


@dataclass(frozen=True)
class Words:
    """How a dialect says what our language has no words for."""

    quote: str
    some: str
    """Whether some element of {column} meets the {condition}, one that is NULL never does."""
    contains: str
    """Whether {column} has the element {literal}."""


WORDS = {
    "duckdb": Words(
        '"', "len([element for element in {column} if {condition}]) > 0", "list_contains({column}, {literal})"
    ),
    "spark": Words(
        "`",
        "exists(filter({column}, element -> element IS NOT NULL), element -> {condition})",
        "coalesce(array_contains({column}, {literal}), FALSE)",
    ),
}


def engine_text(expression: Expression, dialect: str) -> str:
    """The text that asks the engine for the truth of the expression: that of `to_sql` wherever it means the same."""
    return _translated(expression, dialect) if needs_translation(expression) else to_sql(expression, dialect)


def needs_translation(expression: Expression) -> bool:
    """Whether a predicate asks about an attribute that is not plain, or for a kind that its column has not."""
    return any(
        not ATTRIBUTES[node.attribute].plain or not ATTRIBUTES[node.attribute].types.keys() >= set(node.kinds)
        for node in expression.walk()
        if isinstance(node, Predicate)
    )


def _translated(expression: Expression, dialect: str) -> str:
    match expression:
        case Constant():
            return "TRUE" if expression.value else "FALSE"
        case Predicate():
            return _predicate(expression, dialect)
        case TruthTest():
            words = PRINTERS[dialect].truth(expression.truth, expression.negated)
            return f"(({_translated(expression.operand, dialect)}) {words})"
        case Not():
            return f"NOT ({_translated(expression.operand, dialect)})"
        case And() | Or():
            word = " AND " if isinstance(expression, And) else " OR "
            return word.join(f"({_translated(operand, dialect)})" for operand in expression.operands)
    raise TypeError(f"{type(expression).__name__} has no translation")


def _predicate(node: Predicate, dialect: str) -> str:
    attribute = ATTRIBUTES[node.attribute]
    if node.operator in NULL_TESTS:
        present = " OR ".join(f"coalesce({_present(attribute, kind, dialect)}, FALSE)" for kind in attribute.types)
        return f"({present})" if node.operator is Operator.IS_NOT_NULL else f"NOT ({present})"
    operator = POSITIVE.get(node.operator, node.operator)
    some = " OR ".join(
        _some(attribute, kind, node.with_operator(operator).with_literals(_of_kind(node, kind), node.escape), dialect)
        for kind in node.kinds
    )
    return f"NOT ({some})" if node.negative else f"({some})"


def _of_kind(node: Predicate, kind: Kind) -> list[object]:
    return [value for value in node.values if kind_of(value) is kind]


def _some(attribute: Attribute, kind: Kind, node: Predicate, dialect: str) -> str:
    """The truth of a positive predicate with literals of one kind."""
    if kind not in attribute.types:
        return "CAST(NULL AS BOOLEAN)"
    words, column = WORDS[dialect], _column(attribute, kind, dialect)
    if not attribute.several:
        bare = node.operator is Operator.EQ and node.values == (True,) and kind is Kind.BOOLEAN
        return column if bare else _on(attribute.column(kind), node, dialect)
    if node.operator is Operator.EQ and not isinstance(node, CasePredicate):
        found = words.contains.format(column=column, literal=PRINTERS[dialect].literal(node.values[0]))
    else:
        found = words.some.format(column=column, condition=_on(_ELEMENT, node, dialect))
    return f"CASE WHEN {_present(attribute, kind, dialect)} THEN {found} END"


def _present(attribute: Attribute, kind: Kind, dialect: str) -> str:
    """Whether the attribute has a value of a kind; NULL counts as no."""
    column = _column(attribute, kind, dialect)
    if not attribute.several:
        return f"{column} IS NOT NULL"
    return WORDS[dialect].some.format(column=column, condition=f"{_ELEMENT} IS NOT NULL")


def _on(name: str, node: Predicate, dialect: str) -> str:
    if isinstance(node, CasePredicate):
        return to_sql(CasePredicate(node.case, name, node.operator, node.values, escape=node.escape), dialect)
    return to_sql(Predicate(name, node.operator, node.values, escape=node.escape), dialect)


def _column(attribute: Attribute, kind: Kind, dialect: str) -> str:
    quote = WORDS[dialect].quote
    return f"{quote}{attribute.column(kind)}{quote}"
