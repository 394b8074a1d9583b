"""A place in the words of a text, and how to refuse what stands there."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from tamis.errors import ExpressionError
from tamis.language.dialect import END, Word, parse_error
from tamis.language.operators import INFIX
from tamis.language.words import FUNCTION_NAMES

_T = TypeVar("_T")

SUPPORTED = (
    f"use comparisons with literals, {', '.join(INFIX)}, IS NULL, IS TRUE, IS DISTINCT FROM, "
    f"{', '.join(FUNCTION_NAMES)}, ANY, ALL and EXISTS, "
    "joined with AND, OR, NOT and parentheses"
)


class Cursor:
    """Goes through the words of a text once, from left to right. It never passes the last word, END."""

    def __init__(self, text: str, words: list[Word]) -> None:
        self.text = text
        self.words = words
        self.at = 0

    @property
    def word(self) -> Word:
        return self.words[self.at]

    @property
    def kind(self) -> str:
        return self.words[self.at].kind

    def kind_after(self, count: int) -> str:
        """The kind of a later word; END if it lies beyond the end."""
        return self.words[min(self.at + count, len(self.words) - 1)].kind

    def take(self) -> Word:
        """This word, going on to the next."""
        word = self.words[self.at]
        if word.kind != END:
            self.at += 1
        return word

    def take_if(self, kind: str) -> bool:
        """Whether this word is of the kind; if so, go on to the next."""
        if self.words[self.at].kind != kind:
            return False
        self.at += 1
        return True

    def expect(self, kind: str, reason: str, hint: str = SUPPORTED) -> None:
        """Pass a word that must stand here."""
        if not self.take_if(kind):
            self.refuse(reason, hint=hint)

    def refuse(self, reason: str, start: int | None = None, hint: str = SUPPORTED) -> NoReturn:
        """Raise a ParseError at a place of the text, by default at this word."""
        raise parse_error(reason, self.text, self.word.start if start is None else start, hint)

    def located(self, start: int, make: Callable[[], _T]) -> _T:
        """Call `make` and return its result. An ExpressionError of it becomes a ParseError at `start`."""
        try:
            return make()
        except ExpressionError as error:
            reason, _, hint = str(error).partition(" Hint: ")
            self.refuse(reason if reason.endswith("...") else reason.removesuffix("."), start, hint)
