"""Anything that stands for an expression, read into one."""

from __future__ import annotations

from typing import Any

from tamis.errors import ExpressionError, shortened
from tamis.language.builder import Attribute
from tamis.language.expression import Expression
from tamis.language.json_form import from_json


def to_expression(source: Any) -> Expression:
    """The expression that a source stands for: SQL text, the builder's expressions and attributes, or the JSON form.

    Raises
    ------
    ExpressionError
        When it cannot be read, or is of none of these forms.
    """
    if isinstance(source, Expression):
        return source
    if isinstance(source, Attribute):
        return source.condition()
    if isinstance(source, str):
        from tamis.language.parser import parse

        return parse(source)
    if isinstance(source, list | tuple):
        return from_json(source)
    if isinstance(source, dict):
        return from_json([source])
    raise ExpressionError(
        f"{shortened(source)} ({type(source).__name__}) is not an expression. "
        "Hint: use SQL text, attr(...) comparisons, or the JSON form, a list of [attribute, operator, value]"
    )
