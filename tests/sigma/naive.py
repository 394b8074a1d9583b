"""Conditions of pySigma, decided one by one on an event: the meaning that conversions are compared with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from sigma.conditions import (
    ConditionAND,
    ConditionFieldEqualsValueExpression,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.types import (
    CompareOperators,
    SigmaBool,
    SigmaCasedString,
    SigmaCIDRExpression,
    SigmaCompareExpression,
    SigmaExists,
    SigmaExpansion,
    SigmaNull,
    SigmaNumber,
    SigmaString,
    SpecialChars,
)

Event = Mapping[str, Any]


def holds(condition: Any, event: Event) -> bool:
    """Whether a condition is true of an event without nested objects. There is no UNKNOWN."""
    match condition:
        case ConditionAND():
            return all(holds(each, event) for each in condition.args)
        case ConditionOR():
            return any(holds(each, event) for each in condition.args)
        case ConditionNOT():
            return not holds(condition.args[0], event)
        case ConditionFieldEqualsValueExpression():
            value = event.get(condition.field)
            values = [each for each in (value if isinstance(value, list) else [value]) if each is not None]
            return fits(condition.value, values)
        case ConditionValueExpression():
            texts = [text for value in event.values() for text in (value if isinstance(value, list) else [value])]
            return any(
                re.search(pattern_of(condition.value), written(text), re.IGNORECASE | re.DOTALL)
                for text in texts
                if text is not None
            )
    raise AssertionError(condition)


def fits(wanted: Any, values: list[Any]) -> bool:
    """Whether some value of an attribute is what a rule wants."""
    match wanted:
        case SigmaNull():
            return not values
        case SigmaExists():
            return bool(values) == bool(wanted)
        case SigmaExpansion():
            return any(fits(each, values) for each in wanted.values)
    return any(equal(wanted, value) for value in values)


def equal(wanted: Any, value: Any) -> bool:
    match wanted:
        case SigmaCIDRExpression():
            try:
                return ip_address(value) in wanted.network
            except (ValueError, TypeError):
                return False
        case SigmaCompareExpression():
            return isinstance(value, int | float) and not isinstance(value, bool) and compare(wanted, value)
        case SigmaCasedString():
            return isinstance(value, str) and bool(re.fullmatch(pattern_of(wanted), value, re.DOTALL))
        case SigmaString():
            if not isinstance(value, str) and wanted.contains_special():
                return wanted.s == [SpecialChars.WILDCARD_MULTI]
            return bool(re.fullmatch(pattern_of(wanted), written(value), re.DOTALL | re.IGNORECASE))
        case SigmaNumber() | SigmaBool():
            return written(value).lower() == str(wanted).lower()
    raise AssertionError(wanted)


def compare(wanted: SigmaCompareExpression, value: float) -> bool:
    bound = wanted.number.number
    return {
        CompareOperators.LT: value < bound,
        CompareOperators.LTE: value <= bound,
        CompareOperators.GT: value > bound,
        CompareOperators.GTE: value >= bound,
    }[wanted.op]


def written(value: Any) -> str:
    """A value as JSON writes it, without quotes; whole numbers as integers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def pattern_of(wanted: Any) -> str:
    if isinstance(wanted, SigmaNumber):
        return re.escape(str(wanted.number))
    signs = {SpecialChars.WILDCARD_MULTI: ".*", SpecialChars.WILDCARD_SINGLE: "."}
    return "".join(re.escape(part) if isinstance(part, str) else signs[part] for part in wanted.s)
