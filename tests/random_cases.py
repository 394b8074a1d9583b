"""Random expressions and events in large numbers, from a seed.

Values come from small pools, so that predicates often hold, and the pools hold what is awkward: neighbours of 2**53, negative
zero, the ends of int64, strings that are prefixes of each other, non-ASCII letters, dates and timestamps of the same day.
"""

from __future__ import annotations

import math
import random
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

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
from tamis.language.operators import CASED, LIKES, SETS, Case, Operator
from tamis.language.values import Interval

ATTRIBUTES = ["a", "b", "c", "user.name", "user.geo.country", "odd name", "type"]

NUMBERS: list[Any] = [
    *range(-3, 8),
    0.5,
    -0.5,
    2.5,
    -0.0,
    1e300,
    -1e300,
    5e-324,
    2**53 - 1,
    2**53,
    2**53 + 1,
    2**53 + 2,
    float(2**53),
    float(2**53 + 2),
    -(2**53) - 1,
    -(2**53),
    2**60 + 1,
    2**60 + 2,
    float(2**60),
    2**63 - 1,
    -(2**63),
    float(2**63),
    -float(2**63),
    1.7976931348623157e308,
]
STRINGS = [
    "", "a", "ab", "abc", "abd", "b", "B", "Ab", "aB", "é", "É", "ab%", "a_b", "%", "_", "a\\b", "it's", 'say "x"',
    "😀", "z😀", "\U0010ffff", "\ud7ff", "\ue000", "ß", "ẞ", "İ", "ΑΣ", "ας", "foo bar", "bar", "foo", "line\nbreak", "tab\t",
    "SS", "AB", "FOO", "10.0.0.1", "10.200.0.0", "11.0.0.0", "::ffff:10.0.0.1", "2001:DB8::1", "::1", "010.0.0.1", "fe80::1%eth0",
]  # fmt: skip
NETWORKS = [
    "10.0.0.0/8", "10.0.0.1", "10.128.0.0/9", "0.0.0.0/0", "::/0", "2001:db8::/32", "::1/128", "::ffff:10.0.0.0/104",
    "255.255.255.255",
]  # fmt: skip
LIKE_PATTERNS = [
    "a%", "%b", "%b%", "%", "%%", "a_c", "_", "__", "ab", "", "%a%b%", "é%", "%É", "%ab%c", "a%%c", "_%", "%_", "😀%", "%foo%",
    "AB%", "%BAR", "%É%", "%ß", "i%",
]  # fmt: skip
ESCAPED_PATTERNS = [("a!_b", "!"), ("%!%", "!"), ("a\\%%", "\\"), ("!!%", "!"), ("ab!%", "!")]
REGEXES = ["a", "^a", "b$", "a.*c", "^$", "[a-c]+", "(foo|bar)", "\\d", "é", "(?i)AB", "^.$", "o{2}", "\\bfoo\\b"]
TIMES: list[Any] = [
    date(2026, 11, 14),
    date(2026, 11, 15),
    datetime(2026, 11, 14),
    datetime(2026, 11, 14, 10),
    datetime(2026, 11, 14, 10, 0, 0, 1),
    datetime(1969, 12, 31, 23, 59, 59, 999999),
    datetime(2026, 11, 14, 12, tzinfo=timezone(timedelta(hours=2))),
    datetime(2026, 11, 14, 10, tzinfo=UTC),
    date(1, 1, 1),
    date(9999, 12, 31),
]
_POOLS: list[list[Any]] = [NUMBERS, STRINGS, [True, False], TIMES]
_WEIGHTS = [5, 5, 1, 2]


class RandomCases:
    """A source of expressions and events; the same seed gives the same cases."""

    def __init__(self, seed: int, *, attributes: list[str] | None = None) -> None:
        self._random = random.Random(seed)
        self._attributes = attributes or ATTRIBUTES

    def literal(self) -> Any:
        return self._random.choice(self._random.choices(_POOLS, _WEIGHTS)[0])

    def predicate(self) -> Predicate:
        chance = self._random
        attribute = chance.choice(self._attributes)
        operator = chance.choice(list(Operator))
        if operator in CASED and chance.random() < 0.2:
            return self._case_predicate(attribute, operator)
        if operator is Operator.IP_IN:
            return Predicate(attribute, operator, chance.choices(NETWORKS, k=chance.randint(1, 3)))
        if operator in (Operator.IS_NULL, Operator.IS_NOT_NULL):
            return Predicate(attribute, operator)
        if operator in (Operator.RLIKE, Operator.NOT_RLIKE):
            return Predicate(attribute, operator, [chance.choice(REGEXES)])
        if operator in (Operator.LIKE, Operator.NOT_LIKE, Operator.ILIKE, Operator.NOT_ILIKE):
            if chance.random() < 0.2:
                pattern, escape = chance.choice(ESCAPED_PATTERNS)
                return Predicate(attribute, operator, [pattern], escape=escape)
            return Predicate(attribute, operator, [chance.choice(LIKE_PATTERNS)])
        if operator in (Operator.IN, Operator.NOT_IN):
            pool = chance.choices(_POOLS, _WEIGHTS)[0]
            values = [chance.choice(pool) for _ in range(chance.randint(1, 5))]
            if chance.random() < 0.15:
                values.append(self.literal())
            return Predicate(attribute, operator, values)
        ordered = chance.choices([NUMBERS, STRINGS, TIMES], [5, 5, 2])[0]
        if operator in (Operator.BETWEEN, Operator.NOT_BETWEEN):
            return Predicate(attribute, operator, [chance.choice(ordered), chance.choice(ordered)])
        if operator in (Operator.EQ, Operator.NE):
            return Predicate(attribute, operator, [self.literal()])
        return Predicate(attribute, operator, [chance.choice(ordered)])

    def _case_predicate(self, attribute: str, operator: Operator) -> CasePredicate:
        case = self._random.choice(list(Case))
        if operator in LIKES:
            # Mostly in the right case: the others never match.
            pattern = self._random.choice(LIKE_PATTERNS)
            pattern = case.change(pattern) if self._random.random() < 0.8 else pattern
            return CasePredicate(case, attribute, operator, [pattern])
        values = self._random.choices(STRINGS, k=self._random.randint(1, 4) if operator in SETS else 1)
        if self._random.random() < 0.8:
            values = [case.change(value) for value in values]
        return CasePredicate(case, attribute, operator, values)

    def expression(self, depth: int = 3) -> Expression:
        chance = self._random.random()
        if depth == 0 or chance < 0.35:
            return self.predicate()
        if chance < 0.37:
            return self._random.choice([TRUE, FALSE])
        if chance < 0.46:
            return Not(self.expression(depth - 1))
        if chance < 0.54:
            truth = self._random.choice([True, False, None])
            return TruthTest(self.expression(depth - 1), truth, self._random.random() < 0.5)
        operands = [self.expression(depth - 1) for _ in range(self._random.randint(2, 4))]
        return all_of(*operands) if chance < 0.77 else any_of(*operands)

    def value(self) -> Any:
        chance = self._random.random()
        if chance < 0.04:
            return math.nan
        if chance < 0.08:
            return None
        if chance < 0.2:
            return [
                self.value() if self._random.random() < 0.05 else self.literal()
                for _ in range(self._random.randint(0, 4))
            ]
        if chance < 0.27:
            pool = self._random.choice([NUMBERS, TIMES])
            ends = [self._random.choice(pool), self._random.choice(pool)]
            try:
                return Interval(*ends)
            except ValueError:
                return Interval(*reversed(ends))
        return self.literal()

    def event(self) -> dict[str, Any]:
        event: dict[str, Any] = {}
        for attribute in self._attributes:
            if self._random.random() < 0.6:
                value = self.value()
                if isinstance(value, list):
                    value = [element for element in value if not isinstance(element, list)]
                event[attribute] = value
        return event
