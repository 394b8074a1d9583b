"""An expression that is given on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.cli.json_text import JsonError, read_json
from tamis.errors import ExpressionError

if TYPE_CHECKING:
    from tamis.language.expression import Expression


def read_expression(text: str) -> Expression:
    """The expression of SQL text, or of the JSON form, which begins with a bracket.

    Raises
    ------
    ExpressionError
    """
    from tamis.language.reading import to_expression

    if not text.lstrip().startswith("["):
        return to_expression(text)
    try:
        return to_expression(read_json(text))
    except JsonError as error:
        raise ExpressionError(str(error)) from None
