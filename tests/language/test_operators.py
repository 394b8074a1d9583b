from __future__ import annotations

import pytest

from tamis.errors import ExpressionError
from tamis.language.alternatives import OTHER_FUNCTION
from tamis.language.builder import Attribute
from tamis.language.cursor import SUPPORTED
from tamis.language.expression import Predicate
from tamis.language.functions import FUNCTIONS
from tamis.language.operators import (
    CALLED,
    CHECKED,
    COMPARED,
    COMPARISONS,
    DISTINCT,
    INVERSE,
    LISTS,
    MIRRORED,
    NULL_TESTS,
    PATTERNS,
    RANGES,
    ROWS,
    SETS,
    TABLE,
    Operator,
    read_operator,
)
from tamis.language.parser import parse
from tamis.language.predicate_reader import CASES
from tamis.language.words import CONTEXTUAL, FUNCTION_NAMES, RESERVED


def test_every_operator_is_in_the_table_once() -> None:
    listed = [operator for row in TABLE for operator in (row.operator, row.negation) if operator is not None]
    assert sorted(listed) == sorted(Operator)


def test_every_operator_has_one_form() -> None:
    forms = [COMPARISONS, SETS, RANGES, PATTERNS, NULL_TESTS, CALLED]
    assert sorted(operator for form in forms for operator in form) == sorted(Operator)


def test_sets_of_operators() -> None:
    assert set(Operator) - COMPARED == PATTERNS | NULL_TESTS | {Operator.IP_IN}
    assert {Operator.RLIKE, Operator.NOT_RLIKE, Operator.IP_IN} == CHECKED
    assert SETS | {Operator.IP_IN} == DISTINCT
    assert SETS | RANGES | {Operator.IP_IN} == LISTS


def test_mirrored_and_inverse_are_their_own_inverses() -> None:
    for table in (MIRRORED, INVERSE):
        assert set(table) == COMPARISONS
        assert all(table[table[operator]] is operator for operator in table)


@pytest.mark.parametrize("operator", Operator)
def test_operators_are_read_as_they_are_written(operator: Operator) -> None:
    assert read_operator(f" {operator.upper()} ") is operator


def test_other_spellings() -> None:
    assert read_operator("!=") is Operator.NE
    # In SQL text only.
    assert parse("a REGEXP 'x'") == parse("a RLIKE 'x'")
    with pytest.raises(ExpressionError, match="unknown operator 'regexp'"):
        read_operator("regexp")


@pytest.mark.parametrize("operator", sorted(CALLED))
def test_the_example_of_a_function_can_be_read(operator: Operator) -> None:
    read = parse(ROWS[operator].example)
    assert isinstance(read, Predicate)
    assert read.operator is operator


@pytest.mark.parametrize("operator", sorted(CALLED))
def test_functions_are_methods_of_the_builder(operator: Operator) -> None:
    assert callable(getattr(Attribute, operator))


def test_messages_name_all_functions() -> None:
    other_spellings = {"startswith", "endswith"}
    assert set(FUNCTION_NAMES) - CASES == set(FUNCTIONS) - other_spellings
    for name in FUNCTION_NAMES:
        assert name in SUPPORTED
        assert name in OTHER_FUNCTION.hint


def test_reserved_words() -> None:
    words = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "IS", "NULL", "TRUE", "FALSE"}
    assert words == RESERVED
    assert "REGEXP" in CONTEXTUAL
