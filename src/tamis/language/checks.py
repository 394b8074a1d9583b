"""What makes a predicate well formed: the right number and kinds of literals, a readable pattern."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tamis.errors import ExpressionError, LiteralError, shortened
from tamis.language.addresses import check_network
from tamis.language.like import LikePattern, check_character
from tamis.language.operators import (
    CALLED,
    CASED,
    LIKES,
    ORDERED,
    PATTERNS,
    ROWS,
    Case,
    Literals,
    Operator,
)
from tamis.language.values import Kind, Scalar, is_well_formed, kinds_of

_TAKES = {operator: row.takes for operator, row in ROWS.items()}

_ARGUMENTS: dict[Literals, Callable[[Scalar], None]] = {Literals.NETWORK: check_network}
"""What checks one literal of an operator that is a function."""


def check_predicate(attribute: str, operator: Operator, values: tuple[Scalar, ...], escape: str | None) -> None:
    """Raise an ExpressionError unless the operator takes these literals. The message says what it takes."""
    check_escape(operator, escape)
    takes = _TAKES[operator]
    if not takes.low <= len(values) <= takes.high:
        raise ExpressionError(
            f"{operator.upper()} takes {takes.words}, not {len(values)} (attribute {shortened(attribute)})"
        )
    kinds = kinds_of(values)
    if operator in ORDERED:
        if Kind.BOOLEAN in kinds:
            raise LiteralError(f"booleans have no order: {attribute} {operator} ... Hint: use = or <>")
        if len(kinds) > 1:
            raise LiteralError(f"the ends of {operator.upper()} must be of one kind, not {' and '.join(kinds)}")
    if operator in PATTERNS:
        if kinds != (Kind.STRING,):
            raise LiteralError(f"{operator.upper()} takes a string pattern, not {shortened(values[0])}")
        pattern = str(values[0])
        if operator in LIKES:
            LikePattern.read(pattern, escape)
        else:
            compile_regex(pattern)
    if operator in CALLED:
        for value in values:
            check_argument(operator, value)


def check_argument(operator: Operator, value: Scalar) -> None:
    """Raise a LiteralError unless an operator that is a function takes the literal."""
    _ARGUMENTS[ROWS[operator].literals](value)


def check_cased(case: Case, attribute: str, operator: Operator, values: tuple[Scalar, ...]) -> None:
    """Raise an ExpressionError unless an operator and its literals may follow lower(a) or upper(a)."""
    if operator not in CASED:
        raise ExpressionError(
            f"{case}({attribute}) works with =, <>, IN and LIKE, not with {operator.upper()}. {_uncased(operator)}"
        )
    for value in values:
        if not isinstance(value, str):
            raise LiteralError(f"{case}({attribute}) must be compared with a string, not with {shortened(value)}")


def _uncased(operator: Operator) -> str:
    if operator in LIKES:
        return "Hint: ILIKE ignores case by itself"
    if operator in PATTERNS:
        return "Hint: a pattern that begins with (?i) ignores case"
    return "Hint: apply the operator to the attribute itself"


def check_escape(operator: Operator, escape: object) -> None:
    """An escape is one character, and belongs to LIKE and ILIKE."""
    if escape is None:
        return
    if operator not in LIKES:
        raise ExpressionError(f"ESCAPE belongs to LIKE and ILIKE, not to {operator.upper()}")
    check_character(escape)


def check_attribute(name: object) -> str:
    """The name as a plain str. An attribute's name is any non-empty Unicode string."""
    if not isinstance(name, str):
        raise ExpressionError(f"an attribute's name must be a string, not {shortened(name)}")
    if not name:
        raise ExpressionError("an attribute's name cannot be empty")
    if not is_well_formed(name):
        raise ExpressionError(
            f"the attribute's name {shortened(name)} holds a lone surrogate and is not a Unicode string"
        )
    # A subclass may have a hash of its own, under which no event would have the attribute.
    return name if type(name) is str else str.__str__(name)


@functools.lru_cache(maxsize=4096)
def compile_regex(pattern: str) -> Any:
    """The pattern of an RLIKE, compiled by RE2.

    RE2's limit of memory stays at its default, 8 MB. A search that needs more goes on without the automaton: slower, with the
    same result. A pattern that compiles within 8 MB fits many times into the sets that the index searches with.

    Raises
    ------
    LiteralError
        When RE2 cannot read it.
    """
    import re2

    try:
        return re2.compile(pattern, _quiet())
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
