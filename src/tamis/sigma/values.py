"""Values of Sigma rules as predicates of our language.

Sigma has no kinds: `EventID: 4624` means a number or its text, and texts are compared without regard to case. In JSON a value
has a kind, so equality asks for each kind that has the same text:

    4624      EventID IN (4624, '4624')
    'true'    Initiated OR lower(Initiated) = 'true'
    'cmd*'    Image ILIKE 'cmd%'                        patterns are about strings only
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from sigma.exceptions import SigmaPlaceholderError, SigmaValueError
from sigma.types import (
    CompareOperators,
    Placeholder,
    SigmaCasedString,
    SigmaCompareExpression,
    SigmaNumber,
    SigmaRegularExpression,
    SigmaString,
    SpecialChars,
)

from tamis.language.builder import attr
from tamis.language.expression import CasePredicate, Expression, Or, Predicate, any_of
from tamis.language.operators import Operator
from tamis.language.quoting import ESCAPE

_WILDCARDS = {SpecialChars.WILDCARD_MULTI: "%", SpecialChars.WILDCARD_SINGLE: "_"}
_BOOLEANS = {"true": True, "false": False}
_COMPARISONS = {
    CompareOperators.LT: Operator.LT,
    CompareOperators.LTE: Operator.LE,
    CompareOperators.GT: Operator.GT,
    CompareOperators.GTE: Operator.GE,
    CompareOperators.NEQ: Operator.NE,
}


def equal_string(field: str, value: SigmaString) -> Expression:
    """A string, perhaps with wildcards. Only plain strings are also compared with numbers and booleans."""
    refuse_placeholders(value)
    cased = isinstance(value, SigmaCasedString)
    if value.contains_special():
        return _like(field, value, cased=cased)
    text = plain_text(value)
    if cased:
        return attr(field) == text
    if text.lower() in _BOOLEANS:
        return equal_boolean(field, _BOOLEANS[text.lower()])
    number = _number(text)
    if number is not None:
        return attr(field).isin([number, text])
    # The text of a literal without letters is found without folding the case of values.
    return attr(field).lower() == text.lower() if text.lower() != text.upper() else attr(field) == text


def equal_number(field: str, value: SigmaNumber) -> Expression:
    """A number, or a string with its text."""
    return attr(field).isin([value.number, str(value.number)])


def equal_boolean(field: str, value: bool) -> Expression:
    """A boolean, or a string with its text in any case."""
    return (attr(field) == value) | (attr(field).lower() == str(value).lower())


def contained(field: str, value: SigmaString | SigmaNumber) -> Expression:
    """Some value of the attribute contains the string: what a keyword asks for."""
    if isinstance(value, SigmaNumber):
        return attr(field).contains(str(value.number))
    refuse_placeholders(value)
    if not value.startswith(SpecialChars.WILDCARD_MULTI):
        value = SpecialChars.WILDCARD_MULTI + value
    if not value.endswith(SpecialChars.WILDCARD_MULTI):
        value = value + SpecialChars.WILDCARD_MULTI
    return _like(field, value, cased=isinstance(value, SigmaCasedString))


def matching(field: str, value: SigmaRegularExpression) -> Expression:
    """A regular expression, found anywhere in the string."""
    if value.contains_placeholder():
        _refuse_placeholder(value.regexp)
    flags = "".join(sorted(value.sigma_to_re_flag[flag] for flag in value.flags))
    pattern = value.regexp.to_plain_regex()
    return attr(field).rlike(f"(?{flags}){pattern}" if flags else pattern)


def compared(field: str, value: SigmaCompareExpression) -> Expression:
    """A number on one side of a bound."""
    return Predicate(field, _COMPARISONS[value.op], (value.number.number,))


def refuse_placeholders(value: SigmaString) -> None:
    """Raise an error if a placeholder is left that no processing pipeline has replaced."""
    if value.contains_placeholder():
        _refuse_placeholder(value)


def plain_text(value: SigmaString) -> str:
    """The text of a string without wildcards."""
    return "".join(part for part in value.s if isinstance(part, str))


def any_listed(operands: Iterable[Expression]) -> Expression:
    """OR, with equalities of one attribute in one IN: lists of hundreds of values stay short."""
    merged: dict[object, Expression | list[Predicate]] = {}
    for operand in _flat(operands):
        if isinstance(operand, Predicate) and operand.operator in (Operator.EQ, Operator.IN):
            case = operand.case if isinstance(operand, CasePredicate) else None
            same = merged.setdefault((case, operand.attribute), [])
            assert isinstance(same, list)
            same.append(operand)
        else:
            merged.setdefault(operand, operand)
    return any_of(*(_listed(each) if isinstance(each, list) else each for each in merged.values()))


def _flat(operands: Iterable[Expression]) -> Iterable[Expression]:
    for operand in operands:
        yield from operand.operands if isinstance(operand, Or) else (operand,)


def _listed(same: list[Predicate]) -> Expression:
    first = same[0]
    if len(same) == 1:
        return first
    values = [value for predicate in same for value in predicate.values]
    if isinstance(first, CasePredicate):
        return CasePredicate(first.case, first.attribute, Operator.IN, values)
    return Predicate(first.attribute, Operator.IN, values)


def _like(field: str, value: SigmaString, *, cased: bool) -> Expression:
    if all(part is SpecialChars.WILDCARD_MULTI for part in value.s):
        return attr(field).is_not_null()
    texts = [part for part in value.s if isinstance(part, str)]
    escape = ESCAPE if any(symbol in text for text in texts for symbol in "%_") else None
    pattern = "".join(_quoted(part, escape) if isinstance(part, str) else _wildcard(part) for part in value.s)
    return attr(field).like(pattern, escape) if cased else attr(field).ilike(pattern, escape)


def _quoted(text: str, escape: str | None) -> str:
    return text if escape is None else "".join(escape + each if each in ("%", "_", escape) else each for each in text)


def _wildcard(part: SpecialChars | Placeholder) -> str:
    assert isinstance(part, SpecialChars)
    return _WILDCARDS[part]


def _number(text: str) -> int | float | None:
    """The number that is written like this, as JSON writers write it; None for other texts."""
    try:
        number = SigmaNumber(text).number
    except SigmaValueError:
        return None
    return number if str(number) == text and abs(number) < 2**63 else None


def _refuse_placeholder(value: SigmaString) -> NoReturn:
    names = ", ".join(f"%{part.name}%" for part in value.s if isinstance(part, Placeholder))
    raise SigmaPlaceholderError(
        f"no processing pipeline says what {names} stands for. Hint: a pipeline with `value_placeholders` and `vars`"
    )
