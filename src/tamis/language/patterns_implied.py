"""Which patterns follow from other patterns and from strings: `LIKE '%b%'` follows from `LIKE 'abc%'` and from `= 'abc'`.

Predicates here are positive ones that are not spans: LIKE with a general pattern, ILIKE, RLIKE, `ip_in`, `lower(a)`, `upper(a)`.
"""

from __future__ import annotations

from tamis.language.addresses import network_range
from tamis.language.expression import CasePredicate, Predicate
from tamis.language.like import ANY_RUN, LikePattern
from tamis.language.operators import Case, Operator
from tamis.language.quoting import quoted
from tamis.language.scalar_set import can_equal


def pattern_implies(narrow: Predicate, wide: Predicate) -> bool:
    """Whether each string that satisfies the first satisfies the second. May be False where that is so."""
    if narrow == wide:
        return True
    if narrow.attribute != wide.attribute or _case(narrow) != _case(wide):
        return False
    match narrow.operator, wide.operator:
        case (Operator.LIKE, Operator.LIKE) | (Operator.ILIKE, Operator.ILIKE):
            return _like(wide).covers(_like(narrow))
        case (Operator.EQ | Operator.IN, Operator.EQ | Operator.IN):
            return set(narrow.values) <= set(wide.values)
        case (Operator.EQ | Operator.IN, Operator.LIKE):
            return all(_like(wide).matches(str(value)) for value in narrow.values)
        case (Operator.IP_IN, Operator.IP_IN):
            around = [network_range(str(network)) for network in wide.values]
            inside = [network_range(str(network)) for network in narrow.values]
            return all(any(lo <= first and last <= hi for lo, hi in around) for first, last in inside)
    return False


def prefix_implies(prefix: str, wide: Predicate) -> bool:
    """Whether each string with a prefix satisfies the predicate. May be False where that is so."""
    if wide.operator is not Operator.LIKE or _case(wide) is not None:
        return False
    return _like(wide).covers(LikePattern.read(*quoted(prefix, after=ANY_RUN)))


def example_of(pattern: Predicate) -> str | None:
    """A string that satisfies a predicate, if one is easily found."""
    match pattern.operator:
        case Operator.LIKE | Operator.ILIKE:
            parts = _like(pattern).parts
            return "".join(part if isinstance(part, str) else "" if part.symbol == ANY_RUN else "a" for part in parts)
        case Operator.EQ | Operator.IN if isinstance(pattern, CasePredicate):
            return next(map(str, can_equal(pattern)), None)
        case Operator.IP_IN:
            return str(pattern.values[0]).partition("/")[0]
    return None


def _case(predicate: Predicate) -> Case | None:
    return predicate.case if isinstance(predicate, CasePredicate) else None


def _like(predicate: Predicate) -> LikePattern:
    return LikePattern.read(str(predicate.values[0]), predicate.escape, predicate.operator is Operator.ILIKE)
