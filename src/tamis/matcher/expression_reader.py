"""Expressions as users give them, read and checked."""

from __future__ import annotations

from typing import Any

from tamis.errors import HistoryError
from tamis.language.expression import Expression
from tamis.language.reading import to_expression
from tamis.language.schema import Schema


class ExpressionReader:
    """Reads expressions for a matcher, and checks them against its schema, if it has one."""

    def __init__(self, schema: Schema | None, *, keeps_history: bool = False) -> None:
        self.schema = schema
        self._keeps_history = keeps_history

    def read(self, given: Any) -> Expression:
        """The expression of SQL text, of the JSON form, or of the builder.

        Raises
        ------
        ExpressionError
        """
        read = given if isinstance(given, Expression) else to_expression(given)
        if self.schema is not None or read.needs_history():
            self.check(read, given if isinstance(given, str) else None)
        return read

    def check(self, expression: Expression, text: str | None = None) -> None:
        """Refuse an expression that needs earlier events if there are none, or that does not keep to the schema.

        With the `text` of the expression, errors show the place.

        Raises
        ------
        ExpressionError
        """
        if not self._keeps_history and expression.needs_history():
            raise HistoryError(
                "ANY, ALL and EXISTS compare with earlier events, but none are kept here. "
                "Hint: Matcher(history=tamis.History(rows=10_000)) keeps them, as tamis.open(folder, history=...) does, and "
                "tamis.evaluate(expression, event, history) takes them as a list"
            )
        if self.schema is not None:
            self.schema.check(expression, text)


def kept(given: Any, read: Expression) -> str | Expression:
    """The form in which a store keeps an expression: the text if it came as text, which is smaller."""
    return given if isinstance(given, str) else read
