"""Expressions written in Python.

    attr("price").between(20, 40) & (attr("genre") == "classics")
    attr("price") < history("price").any()
    exists(history("author") == attr("author"), history("genre") == "crime")

Comparisons build expressions instead of comparing, so ``and``, ``or``, ``not`` and ``in`` cannot be used on them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Generic, NoReturn, TypeVar, overload

from tamis.errors import ExpressionError, LiteralError, shortened
from tamis.language.checks import check_attribute
from tamis.language.expression import CasePredicate, Condition, Expression, Not, Predicate, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import MIRRORED, Case, Operator, Quantifier
from tamis.language.quoting import quoted
from tamis.language.values import is_iterable

Built = TypeVar("Built")

_NO_LISTS = (str, bytes, bytearray, memoryview, Mapping)

_ONLY_INSIDE_EXISTS = (
    "a comparison of history(...) is allowed only inside exists(). "
    'Hint: exists(history("a") == attr("a"), history("b") > 5)'
)


def attr(name: str) -> Attribute:
    """An attribute of the event.

    >>> attr("price").between(20, 40) & (attr("genre") == "classics")
    <And price BETWEEN 20 AND 40 AND genre = 'classics'>
    """
    return Attribute(name)


def history(name: str) -> EarlierAttribute:
    """An attribute of earlier events. Use it in `exists`, or compare with its ``any()`` or ``all()``."""
    return EarlierAttribute(name)


def exists(*terms: EarlierTerm) -> Exists:
    """Whether some earlier event satisfies all terms. A term compares `history(...)` with a literal or an `attr(...)`."""
    for term in terms:
        if not isinstance(term, EarlierTerm):
            raise ExpressionError(
                f"exists() takes comparisons of history(...), not {shortened(term)}. "
                'Hint: exists(history("a") == attr("a"), history("b") > 5)'
            )
    parts = [term.part for term in terms]
    return Exists(
        [part for part in parts if isinstance(part, Join)],
        [part for part in parts if isinstance(part, Predicate)],
    )


class _Comparable(ABC, Generic[Built]):
    """Something whose comparisons build: ``==`` and the others call `_compare`."""

    __slots__ = ()

    @abstractmethod
    def _compare(self, operator: Operator, other: Any) -> Any:
        """Build the comparison with a literal or another name."""

    # A comparison with history(...) is a term of exists(), whatever stands on the other side.
    @overload  # type: ignore[override]
    def __eq__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __eq__(self, other: object) -> Built: ...
    def __eq__(self, other: object) -> Any:
        return self._compare(Operator.EQ, other)

    @overload  # type: ignore[override]
    def __ne__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __ne__(self, other: object) -> Built: ...
    def __ne__(self, other: object) -> Any:
        return self._compare(Operator.NE, other)

    @overload
    def __lt__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __lt__(self, other: object) -> Built: ...
    def __lt__(self, other: object) -> Any:
        return self._compare(Operator.LT, other)

    @overload
    def __le__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __le__(self, other: object) -> Built: ...
    def __le__(self, other: object) -> Any:
        return self._compare(Operator.LE, other)

    @overload
    def __gt__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __gt__(self, other: object) -> Built: ...
    def __gt__(self, other: object) -> Any:
        return self._compare(Operator.GT, other)

    @overload
    def __ge__(self, other: EarlierAttribute) -> EarlierTerm: ...
    @overload
    def __ge__(self, other: object) -> Built: ...
    def __ge__(self, other: object) -> Any:
        return self._compare(Operator.GE, other)

    # By identity: == builds an expression, so it cannot tell whether two names are equal.
    __hash__ = object.__hash__


class _Subject(_Comparable[Built]):
    """The subject of predicates: a name, or its lower or upper case."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = check_attribute(name)

    @abstractmethod
    def _predicate(self, operator: Operator, values: Iterable[Any], escape: str | None = None) -> Built:
        """Build the predicate with an operator and literals."""

    def __bool__(self) -> NoReturn:
        raise ExpressionError(
            f"{self!r} has no truth value in Python. "
            "Hint: combine expressions with &, | and ~ (in parentheses), not with and, or and not"
        )

    def isin(self, values: Iterable[Any]) -> Built:
        return self._predicate(Operator.IN, _literals(values))

    def not_in(self, values: Iterable[Any]) -> Built:
        return self._predicate(Operator.NOT_IN, _literals(values))

    def like(self, pattern: str, escape: str | None = None) -> Built:
        return self._predicate(Operator.LIKE, (pattern,), escape)

    def not_like(self, pattern: str, escape: str | None = None) -> Built:
        return self._predicate(Operator.NOT_LIKE, (pattern,), escape)

    def startswith(self, text: str) -> Built:
        return self._like_plain(text, after="%")

    def endswith(self, text: str) -> Built:
        return self._like_plain(text, before="%")

    def contains(self, text: str) -> Built:
        return self._like_plain(text, before="%", after="%")

    def _like_plain(self, text: str, *, before: str = "", after: str = "") -> Built:
        if not isinstance(text, str):
            raise LiteralError(f"startswith, endswith and contains take a string, not {shortened(text)}")
        pattern, escape = quoted(text, before=before, after=after)
        return self._predicate(Operator.LIKE, (pattern,), escape)

    def _literal(self, value: Any) -> Any:
        if value is None:
            raise LiteralError(f"comparing with None is never true. Hint: use {self!r}.is_null() or .is_not_null()")
        return value


class _Named(_Subject[Built]):
    """A name on which predicates are built: of the event or of earlier ones."""

    __slots__ = ()

    def between(self, lo: Any, hi: Any) -> Built:
        return self._predicate(Operator.BETWEEN, (lo, hi))

    def not_between(self, lo: Any, hi: Any) -> Built:
        return self._predicate(Operator.NOT_BETWEEN, (lo, hi))

    def ilike(self, pattern: str, escape: str | None = None) -> Built:
        return self._predicate(Operator.ILIKE, (pattern,), escape)

    def not_ilike(self, pattern: str, escape: str | None = None) -> Built:
        return self._predicate(Operator.NOT_ILIKE, (pattern,), escape)

    def rlike(self, pattern: str) -> Built:
        return self._predicate(Operator.RLIKE, (pattern,))

    def not_rlike(self, pattern: str) -> Built:
        return self._predicate(Operator.NOT_RLIKE, (pattern,))

    def ip_in(self, *networks: str) -> Built:
        """The address lies in one of the networks: ``attr("source").ip_in("10.0.0.0/8", "2001:db8::/32")``."""
        return self._predicate(Operator.IP_IN, networks)

    def is_null(self) -> Built:
        return self._predicate(Operator.IS_NULL, ())

    def is_not_null(self) -> Built:
        return self._predicate(Operator.IS_NOT_NULL, ())

    def condition(self) -> Built:
        """The attribute alone as a condition: ``a``, which is short for ``a = TRUE``."""
        return self._predicate(Operator.EQ, (True,))


class Attribute(_Named[Expression], Condition):
    """An attribute of the event. Compare it with literals, or with attributes of earlier events."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"attr({self.name!r})"

    def _predicate(self, operator: Operator, values: Iterable[Any], escape: str | None = None) -> Expression:
        return Predicate(self.name, operator, values, escape=escape)

    def _compare(self, operator: Operator, other: Any) -> Any:
        if isinstance(other, Attribute):
            raise ExpressionError(
                f"two attributes of one event cannot be compared: {self!r} and {other!r}. "
                "Hint: compare with a literal, or with history(...).any()"
            )
        if isinstance(other, QuantifiedAttribute):
            return Quantified(self.name, operator, other.quantifier, other.name)
        if isinstance(other, EarlierAttribute):
            return EarlierTerm(Join(other.name, MIRRORED[operator], self.name))
        return self._predicate(operator, (self._literal(other),))

    def lower(self) -> CasedAttribute:
        """The attribute in lower case: ``attr("genre").lower() == "crime"``."""
        return CasedAttribute(Case.LOWER, self.name)

    def upper(self) -> CasedAttribute:
        """The attribute in upper case."""
        return CasedAttribute(Case.UPPER, self.name)

    def is_true(self) -> TruthTest:
        """``a IS TRUE``, which is never UNKNOWN."""
        return self.condition().is_true()

    def is_false(self) -> TruthTest:
        """``a IS FALSE``, which is never UNKNOWN."""
        return self.condition().is_false()

    def is_unknown(self) -> TruthTest:
        """``a IS UNKNOWN``: the attribute has no boolean."""
        return self.condition().is_unknown()

    def is_distinct_from(self, value: Any) -> TruthTest:
        """``a IS DISTINCT FROM v``: unequal, missing, or of another kind."""
        return TruthTest(self._predicate(Operator.EQ, (self._literal(value),)), True, negated=True)

    def is_not_distinct_from(self, value: Any) -> TruthTest:
        """``a IS NOT DISTINCT FROM v``: equal, and FALSE rather than UNKNOWN where the attribute is missing."""
        return TruthTest(self._predicate(Operator.EQ, (self._literal(value),)), True)

    def __and__(self, other: Expression | Attribute) -> Expression:
        return self.condition() & other

    def __or__(self, other: Expression | Attribute) -> Expression:
        return self.condition() | other

    def __rand__(self, other: object) -> Expression:
        return self.condition().__rand__(other)

    def __ror__(self, other: object) -> Expression:
        return self.condition().__ror__(other)

    def __invert__(self) -> Expression:
        return Not(self.condition())


class CasedAttribute(_Subject[Expression]):
    """`attr(...).lower()` or `.upper()`. Compare it with ``==`` and ``!=``, or use a method such as `isin` or `like`."""

    __slots__ = ("case",)

    def __init__(self, case: Case, name: str) -> None:
        super().__init__(name)
        self.case = case

    def __repr__(self) -> str:
        return f"attr({self.name!r}).{self.case}()"

    def _predicate(self, operator: Operator, values: Iterable[Any], escape: str | None = None) -> Expression:
        return CasePredicate(self.case, self.name, operator, values, escape=escape)

    def _compare(self, operator: Operator, other: Any) -> Any:
        if isinstance(other, _Comparable):
            raise ExpressionError(f"{self!r} must be compared with a string, not with {other!r}")
        return self._predicate(operator, (self._literal(other),))


class EarlierAttribute(_Named["EarlierTerm"]):
    """An attribute of the earlier events."""

    __slots__ = ()

    def is_true(self) -> EarlierTerm:
        """The attribute is TRUE. Nothing negates a term of `exists`, so ``IS TRUE`` and ``= TRUE`` are the same here."""
        return self.condition()

    def __repr__(self) -> str:
        return f"history({self.name!r})"

    def any(self) -> QuantifiedAttribute:
        """The attribute of some earlier event: ``attr("price") < history("price").any()``."""
        return QuantifiedAttribute(Quantifier.ANY, self.name)

    def all(self) -> QuantifiedAttribute:
        """The attribute of every earlier event."""
        return QuantifiedAttribute(Quantifier.ALL, self.name)

    def _predicate(self, operator: Operator, values: Iterable[Any], escape: str | None = None) -> EarlierTerm:
        return EarlierTerm(Predicate(self.name, operator, values, escape=escape))

    def _compare(self, operator: Operator, other: Any) -> Any:
        if isinstance(other, EarlierAttribute | QuantifiedAttribute):
            raise ExpressionError(f"two attributes of earlier events cannot be compared: {self!r} and {other!r}")
        if isinstance(other, Attribute):
            return EarlierTerm(Join(self.name, operator, other.name))
        return self._predicate(operator, (self._literal(other),))


class QuantifiedAttribute(_Comparable[Expression]):
    """`history(...).any()` or `.all()`. Compare it with an `attr(...)`, on either side."""

    __slots__ = ("name", "quantifier")

    def __init__(self, quantifier: Quantifier, name: str) -> None:
        self.quantifier = quantifier
        self.name = name

    def __repr__(self) -> str:
        return f"history({self.name!r}).{self.quantifier}()"

    def _compare(self, operator: Operator, other: Any) -> Any:
        if not isinstance(other, Attribute):
            raise ExpressionError(
                f"{self!r} must be compared with an attribute of the event, not with {shortened(other)}. "
                f'Hint: attr("...") < {self!r}, or exists(history({self.name!r}) ...) for a literal'
            )
        return Quantified(other.name, MIRRORED[operator], self.quantifier, self.name)


class EarlierTerm:
    """One term of `exists`. It is not an expression by itself, because it is about an earlier event."""

    __slots__ = ("part",)

    def __init__(self, part: Join | Predicate) -> None:
        self.part = part

    def __repr__(self) -> str:
        return f"<EarlierTerm {self.part!r}>"

    def __bool__(self) -> NoReturn:
        raise ExpressionError(_ONLY_INSIDE_EXISTS)

    def __and__(self, other: object) -> NoReturn:
        raise ExpressionError(_ONLY_INSIDE_EXISTS)

    __rand__ = __or__ = __ror__ = __and__

    def __invert__(self) -> NoReturn:
        raise ExpressionError(_ONLY_INSIDE_EXISTS)


def _literals(values: Any) -> list[Any]:
    # Iterating over these would give characters, bytes and keys.
    if isinstance(values, _NO_LISTS) or not is_iterable(values):
        raise ExpressionError(
            f"isin and not_in take a list of literals, not {shortened(values)} ({type(values).__name__}). "
            'Hint: attr("a").isin([1, 2])'
        )
    return list(values)
