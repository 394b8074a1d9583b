"""The operators of predicates, and what relates them to each other."""

from __future__ import annotations

from enum import StrEnum

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

    # Enum's own is written in Python, and a dictionary of operators is asked for every predicate that comes.
    __hash__ = str.__hash__


NEGATION: dict[Operator, Operator] = {
    Operator.EQ: Operator.NE,
    Operator.IN: Operator.NOT_IN,
    Operator.BETWEEN: Operator.NOT_BETWEEN,
    Operator.LIKE: Operator.NOT_LIKE,
    Operator.ILIKE: Operator.NOT_ILIKE,
    Operator.RLIKE: Operator.NOT_RLIKE,
    Operator.IS_NULL: Operator.IS_NOT_NULL,
}
"""Positive operator -> its negation. The comparisons `<  <=  >  >=` have none: on a list, NOT (a < 3) is not a >= 3.
Nor has ip_in, which is a function in SQL text."""

POSITIVE: dict[Operator, Operator] = {negative: positive for positive, negative in NEGATION.items()}
"""Negative operator -> the positive one it negates. (IS NOT NULL counts as the negation of IS NULL.)"""

OPPOSITE: dict[Operator, Operator] = NEGATION | POSITIVE
"""Operator -> what NOT makes of it, where that is an operator."""

COMPARISONS = frozenset({Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE})
ORDER_COMPARISONS = frozenset({Operator.LT, Operator.LE, Operator.GT, Operator.GE})
PATTERNS = frozenset(
    {Operator.LIKE, Operator.NOT_LIKE, Operator.ILIKE, Operator.NOT_ILIKE, Operator.RLIKE, Operator.NOT_RLIKE}
)
LIKES = PATTERNS - {Operator.RLIKE, Operator.NOT_RLIKE}
NULL_TESTS = frozenset({Operator.IS_NULL, Operator.IS_NOT_NULL})
SETS = frozenset({Operator.IN, Operator.NOT_IN})
RANGES = frozenset({Operator.BETWEEN, Operator.NOT_BETWEEN})
CASED = frozenset({Operator.EQ, Operator.NE, Operator.LIKE, Operator.NOT_LIKE}) | SETS
"""The operators that may follow lower(a) and upper(a)."""

MIRRORED: dict[Operator, Operator] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The operator with its sides exchanged: `5 < a` is `a > 5`."""


INVERSE: dict[Operator, Operator] = {
    Operator.EQ: Operator.NE,
    Operator.NE: Operator.EQ,
    Operator.LT: Operator.GE,
    Operator.GE: Operator.LT,
    Operator.LE: Operator.GT,
    Operator.GT: Operator.LE,
}
"""The comparison that holds for two scalars when the other does not: `v < ALL (a)` is `NOT (v >= ANY (a))`."""


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
    try:
        return Operator("<>" if folded == "!=" else folded)
    except ValueError:
        known = "  ".join(Operator)
        raise ExpressionError(f"unknown operator {shortened(text)}; the operators are: {known}") from None
