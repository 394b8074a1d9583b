"""All forms of expressions are read."""

from __future__ import annotations

from typing import Any

import pytest

from tamis.errors import ExpressionError, ParseError
from tamis.language.builder import attr, history
from tamis.language.expression import And, Predicate
from tamis.language.joins import Exists
from tamis.language.reading import to_expression

EXPRESSION = And([Predicate("price", "between", [20, 40]), Predicate("genre", "=", ["classics"])])


@pytest.mark.parametrize(
    "source",
    [
        EXPRESSION,
        "price BETWEEN 20 AND 40 AND genre = 'classics'",
        attr("price").between(20, 40) & (attr("genre") == "classics"),
        [["price", "between", [20, 40]], ["genre", "=", "classics"]],
        (("price", "between", (20, 40)), ("genre", "=", "classics")),
    ],
)
def test_three_ways_to_write_an_expression(source: Any) -> None:
    assert to_expression(source) == EXPRESSION


def test_an_expression_is_returned_as_it_is() -> None:
    assert to_expression(EXPRESSION) is EXPRESSION


def test_an_attribute_is_short_for_being_true() -> None:
    assert to_expression(attr("paid")) == Predicate("paid", "=", [True])


def test_an_object_alone() -> None:
    assert to_expression({"exists": [["a", "=", 1]]}) == Exists([], [Predicate("a", "=", [1])])


@pytest.mark.parametrize("source", [None, 5, True, b"a = 1", object(), history("a"), history("a") == 1, {1, 2}])
def test_refused(source: object) -> None:
    with pytest.raises(ExpressionError, match="is not an expression"):
        to_expression(source)


def test_each_form_has_its_own_errors() -> None:
    with pytest.raises(ParseError):
        to_expression("price BETWEEN")
    with pytest.raises(ExpressionError, match=r"at \[0\]"):
        to_expression([["price", "between", 5]])
