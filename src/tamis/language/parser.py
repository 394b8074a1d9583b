"""From SQL text to an expression.

`parse` reads a text whose shape it has seen before by filling in the literals (see `shapes`); `parse_afresh` reads
every word. Both give the same expression and the same errors.
"""

from __future__ import annotations

from tamis.errors import ExpressionError
from tamis.language.expression import Expression


def parse(text: str, *, dialect: str = "tamis") -> Expression:
    """Read the SQL text of an expression.

    Parameters
    ----------
    text : str
        One condition, as after WHERE in SQL.
    dialect : {"tamis", "spark"}
        The syntax of literals. In "spark" a backslash is an escape in strings and in LIKE, and double quotes hold a
        string, not a name.

    Raises
    ------
    ParseError
        The text cannot be read. The error has the position and a hint.
    NestingError
        Parentheses and NOTs are nested too deep.

    Examples
    --------
    >>> parse("price BETWEEN 20 AND 40 AND genre = 'classics'").attributes() == {"price", "genre"}
    True
    """
    if isinstance(dialect, str) and dialect == "tamis":
        from tamis.language.shapes import parse_by_shape

        return parse_by_shape(check_text(text))
    return parse_afresh(text, dialect=dialect)


def parse_afresh(text: str, *, dialect: str = "tamis") -> Expression:
    """`parse` without the memory of shapes."""
    from tamis.language.grammar import read

    return read(check_text(text), dialect).expression


def check_text(text: object) -> str:
    """The text as a plain str."""
    if not isinstance(text, str):
        raise ExpressionError(f"the text of an expression must be a str, not {type(text).__name__}")
    return text if type(text) is str else str.__str__(text)
