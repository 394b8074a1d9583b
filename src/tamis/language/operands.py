"""The operands of predicates in SQL text: attributes' names and literals.

Literals that are written as strings or numbers are numbered in the order of the text. Their places are kept, so that `template`
can put other literals there.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import NamedTuple, NoReturn

from tamis.language.alternatives import OPERANDS
from tamis.language.checks import check_attribute
from tamis.language.cursor import SUPPORTED, Cursor
from tamis.language.dialect import NAME, NUMBER, QUOTED, STRING, Word
from tamis.language.literals import is_number, read_date, read_decimal, read_integer, read_timestamp
from tamis.language.operators import Case
from tamis.language.spark_numbers import SPARK_SUFFIXES, read_spark_number
from tamis.language.values import Scalar, check_literal
from tamis.language.words import CONTEXTUAL, KEYWORDS, RESERVED

_BOOLEANS = {"TRUE": True, "FALSE": False}
_DATED: dict[str, Callable[[str], date]] = {
    "DATE": read_date,
    "TIMESTAMP": read_timestamp,
    "TIMESTAMPTZ": read_timestamp,
}
NUMBERS = "numbers are written like 5, -1.5 and 2e3"
_NAMES = CONTEXTUAL | {NAME, QUOTED}
_PARTS = KEYWORDS | {NAME, QUOTED}
_MORE_NUMBER = _PARTS | {NUMBER, "."}


class LiteralPlace(NamedTuple):
    """The text of a literal is ``source[start:end]``. `form` says how it is read: a key of `template.FORMS`."""

    form: str
    start: int
    end: int


class Literal(NamedTuple):
    """A literal that was read. `number` counts the places of literals; it is None for TRUE and FALSE."""

    value: Scalar
    start: int
    number: int | None


class Name(NamedTuple):
    """A name as it is written: parts with dots between them."""

    parts: tuple[str, ...]
    start: int

    @property
    def attribute(self) -> str:
        return ".".join(self.parts)

    def below(self, alias: str) -> str | None:
        """The attribute of the earlier event that `h.x` names; None for a name that does not begin with the alias."""
        return ".".join(self.parts[1:]) if len(self.parts) > 1 and self.parts[0] == alias else None


class Subject(NamedTuple):
    """What a predicate is on: an attribute, or its lower or upper case."""

    attribute: str
    case: Case | None = None

    def __str__(self) -> str:
        return self.attribute if self.case is None else f"{self.case}({self.attribute})"


class Operands(Cursor):
    """Reads names and literals, in Spark's forms if `spark` says so.

    `places` collects the places of literals, `names` all names.
    """

    def __init__(self, text: str, words: list[Word], *, spark: bool = False) -> None:
        super().__init__(text, words)
        self.spark = spark
        self.places: list[LiteralPlace] = []
        self.names: list[Name] = []

    def is_name(self) -> bool:
        """Whether a name begins here: with a word that is not reserved, or with a reserved one before a dot."""
        kind = self.kind
        if kind == NAME:
            return True
        if kind in _DATED:
            return self.kind_after(1) != STRING
        return kind in _NAMES or (kind in RESERVED and self.kind_after(1) == "." and self.kind_after(2) in _PARTS)

    def is_literal(self) -> bool:
        """Whether a literal begins here, or NULL, which is refused with a reason of its own."""
        kind = self.kind
        if kind in (STRING, NUMBER):
            return True
        if kind in _DATED:
            return self.kind_after(1) == STRING
        if kind in ("-", "+", "."):
            return self.kind_after(1) in (NUMBER, ".")
        return kind in ("TRUE", "FALSE", "NULL") and not self.is_name()

    def name(self) -> Name:
        """The name that begins here."""
        first = self.take()
        parts = [first.text]
        while self.take_if("."):
            if self.kind not in _PARTS:
                self.refuse(
                    "a part of the name is missing after the dot", hint="quote a part with other characters: a.`5 b`"
                )
            parts.append(self.take().text)
        name = Name(tuple(parts), first.start)
        self.names.append(name)
        self.located(first.start, lambda: check_attribute(name.attribute))
        return name

    def literal(self, taker: str = "") -> Literal:
        """The literal that stands here. `taker` is the word that needs it; the message names it if there is no literal."""
        word = self.word
        if not self.is_literal():
            self._refuse_no_literal(taker)
        if word.kind in _BOOLEANS:
            self.at += 1
            return Literal(_BOOLEANS[word.kind], word.start, None)
        if word.kind == "NULL":
            self.refuse("NULL is not a literal here", hint="write IS NULL or IS NOT NULL")
        if word.kind in _DATED:
            self.at += 1
            day = self.take()
            return self._placed(
                word.kind, day, word.start, self.located(day.start, lambda: _DATED[word.kind](day.text))
            )
        if word.kind == STRING:
            text = self._string()
            return self._placed(STRING, word, word.start, self.located(word.start, lambda: check_literal(text)))
        return self._number()

    def _string(self) -> str:
        """The text of a string. In Spark, strings that follow each other are one string."""
        text = self.take().text
        while self.spark and self.kind == STRING:
            text += self.take().text
        return text

    def _number(self) -> Literal:
        start = self.word.start
        negative = self.take_if("-")
        if not negative:
            self.take_if("+")
        word = self.take()
        if word.kind == ".":
            # The tokenizer gives .5 as two words.
            digits = self.take()
            word = Word(NUMBER, self.text[word.start : digits.end], word.start, digits.end)
        text = word.text
        if self.spark and self.word.start == word.end and self.word.text.upper() in SPARK_SUFFIXES and is_number(text):
            suffix = self.take().text
            value = self.located(start, lambda: read_spark_number(text, suffix, negative=negative))
            return self._placed("spark", word, start, value)
        if not is_number(text) or (self.word.start == word.end and self.kind in _MORE_NUMBER):
            self.refuse("this is not a number", word.start, NUMBERS)
        read = read_integer if text.isdigit() else read_decimal
        value = self.located(start, lambda: read(text, negative=negative))
        form = "integer" if text.isdigit() else "decimal"
        return self._placed(f"-{form}" if negative else form, word, start, value)

    def _placed(self, form: str, word: Word, start: int, value: Scalar) -> Literal:
        self.places.append(LiteralPlace(form, word.start, word.end))
        return Literal(value, start, len(self.places) - 1)

    def _refuse_no_literal(self, taker: str) -> NoReturn:
        after = f" after {taker}" if taker else ""
        if self.is_name():
            word = self.word
            alternative = OPERANDS.get(word.text.upper()) if word.kind != QUOTED else None
            name = self.name().attribute
            if alternative is not None and name == word.text:
                self.refuse(alternative.reason.replace("{}", name), word.start, alternative.hint)
            hint = f"a string is written in single quotes: '{name}'"
            hint = f"double quotes hold a name; {hint}" if word.kind == QUOTED else hint
            self.refuse(f"a literal is expected{after}, not the attribute {name}", word.start, hint)
        self.refuse(f"a literal is missing{after}", hint=SUPPORTED)
