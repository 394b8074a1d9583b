"""Random events and expressions where SQL engines and we should agree, from a seed.

The common ground leaves out what the table "Where SQL engines differ" of the language lists, and no more:

- a double meets only integers that it holds exactly, so no engine has to round;
- letters whose lower case depends on the library (the Turkish I, the final sigma) are in no string, and upper() is not
  asked where there is an ß, which becomes SS in Python and Spark and stays as it is in DuckDB;
- regular expressions stay within what RE2 and Java read alike: no ``$``, which in Java also stands before a last line
  break, no ``\\b``, which older Javas apply to all letters, ``(?i)`` with ASCII only.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from tamis.language.expression import (
    FALSE,
    TRUE,
    CasePredicate,
    Expression,
    Not,
    Predicate,
    TruthTest,
    all_of,
    any_of,
)
from tamis.language.operators import (
    CASED,
    COMPARISONS,
    LIKES,
    NULL_TESTS,
    ORDER_COMPARISONS,
    PATTERNS,
    RANGES,
    SETS,
    Case,
    Operator,
)
from tamis.language.values import INT64_MAX, INT64_MIN, Kind
from tests.differential.attributes import DAY, INSTANT, PLAIN, REAL, TRANSLATED, WHOLE, Attribute, Event

EXACT = 2**53
"""Up to here every integer is a double."""

_HUGE = [EXACT, -EXACT, 2**60, INT64_MIN, INT64_MAX]
_FRACTIONS = [0.5, -0.5, 2.5, 0.1, 1 / 3, -0.0]
_EXTREMES = [1e300, -1e300, 5e-324, 1.7976931348623157e308, float(EXACT), float(EXACT + 2), float(2**63)]
_TEXTS = [
    "", "a", "ab", "abc", "B", "Ab", "é", "É", "ab%", "a_b", "a\\b", "a\\_", "!%", "it's", 'say "x"', "😀", "z😀", "\U0010ffff",
    "\ud7ff", "\ue000", "line\nbreak", "end\n", "tab\t", " a", "a ", "a\0b", "5", "true", "2026-11-14", "K", "straße", "e\u0301",
]  # fmt: skip
_ALWAYS = ["😀", "\uffff", "aB%_", "a\nb"]
_LETTERS = "aabbABcé😀\uffff%_\\'\"\n!"
_ESCAPES = "!\\#é%_'"
_REGEX_ATOMS = [
    "a", "b", "A", "é", "😀", ".", "[ab]", "[^a]", "[a-c]", r"\d", r"\s", r"\w", r"\\", "%", "'", "(ab|b)", r"\.",
]  # fmt: skip
_REGEXES = ["^a", r"b\z", r"\A\z", "a.*b", "(?i)AB", "o{2}", "^.", "(foo|bar)", "[a-c]+", "", r"^\W", "(?s)^.*b"]
_DAYS = [date(2026, 11, 14), date(2026, 11, 15), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31)]
_HOURS = [timedelta(), timedelta(hours=10), timedelta(microseconds=1), timedelta(hours=23, minutes=59, seconds=59)]
_ZONE = timezone(timedelta(hours=2))


class TypedCases:
    """A source of events and expressions; the same seed gives the same cases."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        # Few of each for one seed, so that literals and values often meet.
        self._huge = self._random.sample(_HUGE, 2)
        self._texts = [*_ALWAYS, *self._random.sample(_TEXTS, 8), *(self._letters() for _ in range(4))]

    def event(self) -> Event:
        """An event that lacks some attributes, has others as None, and never has ``nowhere``."""
        event: Event = {}
        for attribute in [*PLAIN, *TRANSLATED]:
            if attribute.name != "nowhere" and self._random.random() < 0.85:
                event[attribute.name] = self._values(attribute) if attribute.several else self._value(attribute)
        return event

    def expression(self, *, plain: bool) -> Expression:
        """An expression on a few attributes, so that predicates on one attribute meet.

        Of a plain one, engines can read the text that `to_sql` prints; others need a translation. Shallow trees are as
        frequent as deep ones, in which most predicates do not decide.
        """
        attributes = PLAIN if plain else [*PLAIN, *TRANSLATED, *TRANSLATED]
        weights = [3 if Kind.STRING in attribute.types else 1 for attribute in attributes]
        chosen = self._random.choices(attributes, weights, k=self._random.randint(1, 4))
        return self._tree(chosen, plain, self._random.randint(0, 3))

    def _tree(self, attributes: Sequence[Attribute], plain: bool, depth: int) -> Expression:
        chance = self._random.random()
        if depth == 0 or chance < 0.25:
            return self._predicate(self._random.choice(attributes), plain)
        if chance < 0.27:
            return self._random.choice([TRUE, FALSE])
        if chance < 0.45:
            return Not(self._tree(attributes, plain, depth - 1))
        if chance < 0.52:
            truth = self._random.choice([True, False, None])
            return TruthTest(self._tree(attributes, plain, depth - 1), truth, self._random.random() < 0.5)
        operands = [self._tree(attributes, plain, depth - 1) for _ in range(self._random.randint(2, 3))]
        return all_of(*operands) if chance < 0.76 else any_of(*operands)

    def _predicate(self, attribute: Attribute, plain: bool) -> Predicate:
        chance = self._random
        if chance.random() < 0.08:
            return Predicate(attribute.name, chance.choice(sorted(NULL_TESTS)))
        # Sometimes of a kind that the attribute never has.
        kinds = list(Kind) if not plain and chance.random() < 0.1 else list(attribute.types)
        kind = chance.choice(kinds)
        operators = set(COMPARISONS | SETS | RANGES)
        if kind is Kind.STRING:
            operators |= PATTERNS
        if kind is Kind.BOOLEAN:
            operators -= ORDER_COMPARISONS | RANGES
        operator = chance.choice(sorted(operators))
        if kind is Kind.STRING and operator in CASED and chance.random() < 0.35:
            return self._cased(attribute, operator)
        if operator in (Operator.RLIKE, Operator.NOT_RLIKE):
            return Predicate(attribute.name, operator, [self._regex()])
        if operator in PATTERNS:
            pattern, escape = self._like(fold=operator in (Operator.ILIKE, Operator.NOT_ILIKE))
            return Predicate(attribute.name, operator, [pattern], escape=escape)
        count = chance.randint(1, 5) if operator in SETS else 2 if operator in RANGES else 1
        literals = self._literals(attribute, kind, count)
        if operator in SETS and not plain and chance.random() < 0.2:
            literals += self._literals(attribute, chance.choice([other for other in Kind if other is not kind]), 2)
        return Predicate(attribute.name, operator, literals)

    def _cased(self, attribute: Attribute, operator: Operator) -> CasePredicate:
        """A predicate on lower(a) or upper(a), mostly with a literal in that case."""
        case = Case.LOWER if any("ß" in text for text in self._texts) else self._random.choice(list(Case))
        right = self._random.random() < 0.8
        if operator in LIKES:
            pattern, escape = self._like(fold=False)
            return CasePredicate(
                case,
                attribute.name,
                operator,
                [case.change(pattern) if right and not escape else pattern],
                escape=escape,
            )
        texts = [self._text() for _ in range(self._random.randint(1, 3) if operator in SETS else 1)]
        return CasePredicate(case, attribute.name, operator, [case.change(text) if right else text for text in texts])

    def _values(self, attribute: Attribute) -> list[Any]:
        return [self._value(attribute) for _ in range(self._random.randint(0, 4))]

    def _value(self, attribute: Attribute) -> Any:
        chance = self._random.random()
        if chance < 0.12:
            return None
        kind = self._random.choice(list(attribute.types))
        cell = attribute.types[kind]
        if cell == REAL and chance < 0.3:
            return self._random.choice([math.nan, math.nan, math.inf, -math.inf])
        return self._scalar(kind, cell)

    def _scalar(self, kind: Kind, cell: pa.DataType) -> Any:
        match kind:
            case Kind.NUMBER:
                return self._whole() if cell == WHOLE else self._real()
            case Kind.STRING:
                return self._text()
            case Kind.BOOLEAN:
                return self._random.random() < 0.5
            case Kind.TIMESTAMP:
                return self._time(cell)

    def _literals(self, attribute: Attribute, kind: Kind, count: int) -> list[Any]:
        """Literals for one predicate: with some doubles among them, engines compare all of them as doubles."""
        cell = attribute.types.get(kind)
        if cell == WHOLE and self._random.random() < 0.25:
            return [self._small() for _ in range(count)]
        if kind is Kind.TIMESTAMP:
            return [self._time(None) for _ in range(count)]
        return [self._scalar(kind, cell) for _ in range(count)]

    def _whole(self) -> int:
        if self._random.random() < 0.5:
            return self._random.randint(-3, 7)
        near = self._random.choice(self._huge) + self._random.randint(-2, 2)
        return min(max(near, INT64_MIN), INT64_MAX)

    def _small(self) -> int | float:
        return self._random.randint(-3, 7) if self._random.random() < 0.5 else self._random.choice(_FRACTIONS)

    def _real(self) -> int | float:
        chance = self._random.random()
        if chance < 0.3:
            return self._random.choice(_EXTREMES)
        if chance < 0.4:
            return self._random.choice([EXACT, EXACT - 1, -EXACT])
        return self._small() if chance < 0.8 else float(self._random.randint(-3, 7))

    def _text(self) -> str:
        return self._random.choice(self._texts) if self._random.random() < 0.9 else self._letters()

    def _letters(self) -> str:
        return "".join(self._random.choices(_LETTERS, k=self._random.randint(0, 4)))

    def _like(self, *, fold: bool) -> tuple[str, str | None]:
        """A pattern cut from a text, so that it often matches; sometimes with an escape, which it then needs."""
        escape = self._random.choice(_ESCAPES) if self._random.random() < 0.4 else None
        texts = [text for text in self._texts if escape is None or "%" in text or "_" in text]
        text = self._random.choice([text for text in texts if not fold or text.swapcase() != text])
        start = self._random.randint(0, len(text) // 2)
        piece = text[start : start + self._random.randint(1, 4)]
        if fold and self._random.random() < 0.7:
            piece = piece.swapcase()
        if escape is not None:
            piece = "".join(escape + symbol if symbol in ("%", "_", escape) else symbol for symbol in piece)
        wildcards = [symbol for symbol in ("%", "%", "_", "%%", "") if not symbol or symbol[0] != escape]
        return self._random.choice(wildcards) + piece + self._random.choice(wildcards), escape

    def _regex(self) -> str:
        if self._random.random() < 0.4:
            return self._random.choice(_REGEXES)
        pieces = [
            self._random.choice(_REGEX_ATOMS) + self._random.choice(["", "", "*", "+", "?", "{2}", "{1,2}"])
            for _ in range(self._random.randint(1, 3))
        ]
        start, end = self._random.choice(["", "", "^", r"\A"]), self._random.choice(["", "", r"\z"])
        return start + "".join(pieces) + end

    def _time(self, cell: pa.DataType | None) -> date:
        """A value for a column of that type; without a column, a literal: a date or a datetime, with or without zone."""
        day = self._random.choice(_DAYS)
        moment = datetime(day.year, day.month, day.day) + self._random.choice(_HOURS)
        if cell == DAY:
            return day
        if cell == INSTANT:
            zone = UTC if day.year in (1, 9999) else self._random.choice([UTC, _ZONE])
            return moment.replace(tzinfo=UTC).astimezone(zone)
        return day if self._random.random() < 0.3 else moment
