"""Where in the text of an expression the fault stands that a schema has found.

An expression does not know its text. So the text is read once more, word by word, when there is an error to show.
"""

from __future__ import annotations

from collections.abc import Callable

from tamis.errors import ExpressionError, KindError, UnknownAttributeError
from tamis.language.dialect import split_words
from tamis.language.grammar import Reader
from tamis.language.values import Kind, kind_of


def place_fault(error: UnknownAttributeError | KindError, text: str, declared: Callable[[str], Kind]) -> None:
    """Note in an error where it is in a text. `declared` gives the kind of an attribute."""
    try:
        reader = Reader(text, split_words(text))
        reader.expression()
        position = _wrong_literal(reader, declared) if isinstance(error, KindError) else None
    except ExpressionError:  # The text has another dialect, or is not that of the expression.
        return
    if position is None:
        position = _name(reader, error.attribute)
    if position is not None:
        error.place_at(text, position)


def _wrong_literal(reader: Reader, declared: Callable[[str], Kind]) -> int | None:
    """The place of the first literal that is of another kind than its attribute."""
    for use in reader.uses:
        kind = declared(use.predicate.attribute)
        for literal in use.literals:
            if kind_of(literal.value) is not kind:
                return literal.start
    return None


def _name(reader: Reader, attribute: str | None) -> int | None:
    """The place of the first name of an attribute. Inside EXISTS, the alias of the earlier event stands before it."""
    for name in reader.names:
        if attribute in (name.attribute, ".".join(name.parts[1:])):
            return name.start
    return None
