"""What makes a predicate well formed: the right number and kinds of literals, a readable pattern."""

from __future__ import annotations

import functools
import sys
from typing import NamedTuple

from tamis.errors import ExpressionError, LiteralError, shortened
from tamis.language.like import LikePattern
from tamis.language.operators import (
    COMPARISONS,
    NULL_TESTS,
    ORDER_COMPARISONS,
    PATTERNS,
    RANGES,
    SETS,
    Operator,
)
from tamis.language.values import Kind, Scalar, is_well_formed, kinds_of

_ORDERED = ORDER_COMPARISONS | RANGES
_REGEXES = (Operator.RLIKE, Operator.NOT_RLIKE)


class _Takes(NamedTuple):
    """How many literals an operator takes, and in words."""

    low: int
    high: int
    words: str


_TAKES: dict[Operator, _Takes] = {
    **dict.fromkeys(COMPARISONS | PATTERNS, _Takes(1, 1, "one literal")),
    **dict.fromkeys(RANGES, _Takes(2, 2, "two literals")),
    **dict.fromkeys(SETS, _Takes(1, sys.maxsize, "at least one literal")),
    **dict.fromkeys(NULL_TESTS, _Takes(0, 0, "no literal")),
}


def check_predicate(attribute: str, operator: Operator, values: tuple[Scalar, ...], escape: str | None) -> None:
    """Raise an ExpressionError that says what the operator takes, unless the literals are that."""
    check_attribute(attribute)
    takes = _TAKES[operator]
    if not takes.low <= len(values) <= takes.high:
        raise ExpressionError(f"{operator.upper()} takes {takes.words}, not {len(values)} (attribute {attribute!r})")
    kinds = kinds_of(values)
    if operator in _ORDERED:
        if Kind.BOOLEAN in kinds:
            raise LiteralError(f"booleans have no order: {attribute} {operator} ... Hint: use = or <>")
        if len(kinds) > 1:
            raise LiteralError(f"the ends of {operator.upper()} are of one kind, not {' and '.join(kinds)}")
    if operator in PATTERNS:
        if kinds != (Kind.STRING,):
            raise LiteralError(f"{operator.upper()} takes a string pattern, not {values[0]!r}")
        pattern = str(values[0])
        if operator in _REGEXES:
            check_regex(pattern)
        else:
            LikePattern.read(pattern, escape)
    if escape is not None and (operator not in PATTERNS or operator in _REGEXES):
        raise ExpressionError(f"ESCAPE belongs to LIKE and ILIKE, not to {operator.upper()}")


def check_attribute(name: object) -> None:
    """An attribute's name is any non-empty Unicode string."""
    if not isinstance(name, str):
        raise ExpressionError(f"an attribute's name is a string, not {name!r}")
    if not name:
        raise ExpressionError("an attribute's name cannot be empty")
    if not is_well_formed(name):
        raise ExpressionError(f"the attribute's name {name!r} holds a lone surrogate and is not a Unicode string")


@functools.lru_cache(maxsize=4096)
def check_regex(pattern: str) -> None:
    """Raise a LiteralError unless RE2 can read the pattern."""
    import re2

    try:
        re2.compile(pattern, _quiet())
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise LiteralError(
            f"RLIKE cannot read the pattern {shortened(pattern)}: {shortened(reason, quoted=False)}. "
            "Hint: the syntax is RE2's (no look-around, no back-references)"
        ) from None


@functools.cache
def _quiet() -> object:
    import re2

    options = re2.Options()
    options.log_errors = False
    return options
