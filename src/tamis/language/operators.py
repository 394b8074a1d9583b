"""The table of operators, and sets and dictionaries that are made from it.

One row holds for an operator and for its negation. Other modules read the sets and dictionaries below the table.
docs/language.md lists what a new operator needs besides its row ("Adding an operator").
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from tamis.errors import ExpressionError, shortened


class Operator(StrEnum):
    """The operators of predicates, spelled as in SQL."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    IN = "in"
    NOT_IN = "not in"
    BETWEEN = "between"
    NOT_BETWEEN = "not between"
    LIKE = "like"
    NOT_LIKE = "not like"
    ILIKE = "ilike"
    NOT_ILIKE = "not ilike"
    RLIKE = "rlike"
    NOT_RLIKE = "not rlike"
    IS_NULL = "is null"
    IS_NOT_NULL = "is not null"
    IP_IN = "ip_in"

    # Enum's own hash is written in Python, and every predicate is looked up in dictionaries of operators.
    __hash__ = str.__hash__


class Form(Enum):
    """How an operator is written in SQL text."""

    COMPARISON = auto()  # a < 5
    SET = auto()  # a IN (1, 2)
    RANGE = auto()  # a BETWEEN 2 AND 5
    PATTERN = auto()  # a LIKE 'x%'
    NULL_TEST = auto()  # a IS NULL
    FUNCTION = auto()  # ip_in(a, '10.0.0.0/8')


class Literals(Enum):
    """Which literals an operator takes. `checks` says what is wrong with others."""

    NONE = auto()
    ANY = auto()  # of any kind
    ORDERED = auto()  # of one kind that has an order
    LIKE = auto()  # a string with % and _, and an escape
    REGEX = auto()  # a string that RE2 can read
    NETWORK = auto()  # strings, each a network


class Takes(NamedTuple):
    """How many literals an operator takes, and in words."""

    low: int
    high: int
    words: str


_NO_LITERAL = Takes(0, 0, "no literal")
_ONE = Takes(1, 1, "one literal")
_TWO = Takes(2, 2, "two literals")
_SOME = Takes(1, sys.maxsize, "at least one literal")


class Row(NamedTuple):
    """What there is to know about an operator and its negation."""

    operator: Operator
    form: Form
    literals: Literals
    takes: Takes
    negation: Operator | None = None
    """The operator that NOT makes of it. The comparisons `<  <=  >  >=` have none: on a list, NOT (a < 3) is not a >= 3."""
    mirrored: Operator | None = None
    """The comparison with its sides exchanged, if it is another one: `5 < a` is `a > 5`."""
    inverse: Operator | None = None
    """The comparison that holds for two scalars when this one does not, if it is not the negation."""
    cased: bool = False
    """Whether it may follow lower(a) and upper(a)."""
    synonym: str = ""
    """Another keyword for it in SQL text."""
    example: str = ""
    """A call in SQL text, for hints; only functions have one."""
    strings: str = ""
    """The only strings that it asks about, with an article. It is UNKNOWN for other strings."""
    duckdb: str = ""
    """The function by which DuckDB writes it."""
    spark: str = ""
    """The function by which Spark writes it."""


TABLE: tuple[Row, ...] = (
    Row(Operator.EQ, Form.COMPARISON, Literals.ANY, _ONE, negation=Operator.NE, cased=True),
    Row(Operator.LT, Form.COMPARISON, Literals.ORDERED, _ONE, mirrored=Operator.GT, inverse=Operator.GE),
    Row(Operator.LE, Form.COMPARISON, Literals.ORDERED, _ONE, mirrored=Operator.GE, inverse=Operator.GT),
    Row(Operator.GT, Form.COMPARISON, Literals.ORDERED, _ONE, mirrored=Operator.LT, inverse=Operator.LE),
    Row(Operator.GE, Form.COMPARISON, Literals.ORDERED, _ONE, mirrored=Operator.LE, inverse=Operator.LT),
    Row(Operator.IN, Form.SET, Literals.ANY, _SOME, negation=Operator.NOT_IN, cased=True),
    Row(Operator.BETWEEN, Form.RANGE, Literals.ORDERED, _TWO, negation=Operator.NOT_BETWEEN),
    Row(Operator.LIKE, Form.PATTERN, Literals.LIKE, _ONE, negation=Operator.NOT_LIKE, cased=True),
    Row(Operator.ILIKE, Form.PATTERN, Literals.LIKE, _ONE, negation=Operator.NOT_ILIKE),
    Row(
        Operator.RLIKE,
        Form.PATTERN,
        Literals.REGEX,
        _ONE,
        negation=Operator.NOT_RLIKE,
        synonym="REGEXP",
        duckdb="regexp_matches",
    ),
    Row(Operator.IS_NULL, Form.NULL_TEST, Literals.NONE, _NO_LITERAL, negation=Operator.IS_NOT_NULL),
    Row(
        Operator.IP_IN,
        Form.FUNCTION,
        Literals.NETWORK,
        _SOME,
        example="ip_in(a, '10.0.0.0/8', '2001:db8::/32')",
        strings="an address",
    ),
)

NEGATION: dict[Operator, Operator] = {row.operator: row.negation for row in TABLE if row.negation is not None}
"""Positive operator -> its negation."""

POSITIVE: dict[Operator, Operator] = {negative: positive for positive, negative in NEGATION.items()}
"""Negative operator -> the positive one it negates. (IS NOT NULL counts as the negation of IS NULL.)"""

NEGATIVE = frozenset(POSITIVE) - {Operator.IS_NOT_NULL}
"""The negations of positive forms. IS NOT NULL is a positive test of presence."""

OPPOSITE: dict[Operator, Operator] = NEGATION | POSITIVE
"""Operator -> what NOT makes of it, where that is an operator."""

_POSITIVE_ROWS = {row.operator: row for row in TABLE}
ROWS: dict[Operator, Row] = {each: _POSITIVE_ROWS[POSITIVE.get(each, each)] for each in Operator}
"""Operator -> its row, which is also that of its negation."""


def _where(chosen: Callable[[Row], bool]) -> frozenset[Operator]:
    """The operators, negations included, whose rows are chosen."""
    return frozenset(operator for operator, row in ROWS.items() if chosen(row))


COMPARISONS = _where(lambda row: row.form is Form.COMPARISON)
SETS = _where(lambda row: row.form is Form.SET)
RANGES = _where(lambda row: row.form is Form.RANGE)
PATTERNS = _where(lambda row: row.form is Form.PATTERN)
NULL_TESTS = _where(lambda row: row.form is Form.NULL_TEST)
CALLED = _where(lambda row: row.form is Form.FUNCTION)
"""The operators that are functions in SQL text."""

COMPARED = COMPARISONS | SETS | RANGES
"""The operators whose literals are compared with values of their own kinds."""

ORDERED = _where(lambda row: row.literals is Literals.ORDERED)
ORDER_COMPARISONS = COMPARISONS & ORDERED
LIKES = _where(lambda row: row.literals is Literals.LIKE)
"""The operators that may have an escape."""

CHECKED = _where(lambda row: row.literals not in (Literals.NONE, Literals.ANY, Literals.ORDERED, Literals.LIKE))
"""The operators whose literals can be of the right kind and still be wrong."""

CASED = _where(lambda row: row.cased)
"""The operators that may follow lower(a) and upper(a)."""

DISTINCT = _where(lambda row: row.takes is _SOME)
"""The operators that take any number of literals, and keep each literal once."""

LISTS = _where(lambda row: row.takes.high > 1)
"""The operators whose literals are a list in the JSON form."""

SOME_STRINGS: dict[Operator, str] = {operator: row.strings for operator, row in ROWS.items() if row.strings}
"""Operator -> the only strings that it asks about."""

MIRRORED: dict[Operator, Operator] = {each: ROWS[each].mirrored or each for each in Operator if each in COMPARISONS}
"""The comparison with its sides exchanged: `5 < a` is `a > 5`."""

INVERSE: dict[Operator, Operator] = {
    **{each: opposite for each, opposite in OPPOSITE.items() if each in COMPARISONS},
    **{row.operator: row.inverse for row in TABLE if row.inverse is not None},
}
"""The comparison that holds for two scalars when the other does not: `v < ALL (a)` is `NOT (v >= ANY (a))`."""

SPELLINGS: dict[str, Operator] = {**{operator.value: operator for operator in Operator}, "!=": Operator.NE}
"""How operators are spelled in Python and in the JSON form, in lower case."""

INFIX: dict[str, Operator] = {
    row.operator.upper(): row.operator for row in TABLE if row.operator in SETS | RANGES | PATTERNS
}
"""Keyword -> the positive operator that it begins, after the attribute."""

SYNONYMS: dict[str, Operator] = {row.synonym: row.operator for row in TABLE if row.synonym}
"""Other keywords of SQL text -> the positive operator."""

OPERATOR_WORDS = frozenset(
    word for each in COMPARED | PATTERNS | NULL_TESTS for word in each.upper().split() if word.isalpha()
)
"""The words of the operators that are not functions."""


class Case(StrEnum):
    """The functions that change the case of a string."""

    LOWER = "lower"
    UPPER = "upper"

    def change(self, text: str) -> str:
        return text.lower() if self is Case.LOWER else text.upper()


class Quantifier(StrEnum):
    ANY = "any"
    ALL = "all"


def read_operator(text: object) -> Operator:
    """The operator that a text spells, in any case; `!=` is `<>`."""
    folded = " ".join(text.lower().split()) if isinstance(text, str) else ""
    operator = SPELLINGS.get(folded)
    if operator is None:
        known = "  ".join(Operator)
        raise ExpressionError(f"unknown operator {shortened(text)}; the operators are: {known}")
    return operator
