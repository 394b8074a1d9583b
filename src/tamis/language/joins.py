"""The nodes of the expression tree that ask about earlier events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tamis.errors import ExpressionError, shortened
from tamis.language.checks import check_attribute
from tamis.language.expression import Expression, Predicate
from tamis.language.operators import COMPARISONS, Operator, Quantifier, read_operator
from tamis.language.printer import Printer


class Quantified(Expression):
    """A comparison of the event's attribute with that of some or all earlier events: `x < ANY (SELECT y FROM history)`."""

    __slots__ = ("attribute", "earlier", "operator", "quantifier")
    is_join = True

    def __init__(self, attribute: str, operator: Operator | str, quantifier: Quantifier | str, earlier: str) -> None:
        self.attribute = check_attribute(attribute)
        self.operator = _comparison(operator)
        self.quantifier = _quantifier(quantifier)
        self.earlier = check_attribute(earlier)
        self.depth = 1
        self.operands = ()

    def _identity(self) -> Any:
        return (self.attribute, self.operator, self.quantifier, self.earlier)

    def own_attributes(self) -> Iterable[str]:
        return (self.attribute,)

    def written(self, printer: Printer) -> str:
        return printer.quantified(self.attribute, self.operator, self.quantifier, self.earlier)


class Join:
    """One comparison inside EXISTS: the earlier event's attribute, operator, the new event's attribute."""

    __slots__ = ("attribute", "earlier", "operator")

    def __init__(self, earlier: str, operator: Operator | str, attribute: str) -> None:
        self.earlier = check_attribute(earlier)
        self.operator = _comparison(operator)
        self.attribute = check_attribute(attribute)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Join) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[str, Operator, str]:
        return (self.earlier, self.operator, self.attribute)

    def __repr__(self) -> str:
        return f"<Join h.{self.earlier} {self.operator} {self.attribute}>"


class Exists(Expression):
    """Some earlier event satisfies all `joins` with the new event and all `conditions` on itself."""

    __slots__ = ("conditions", "joins")
    is_join = True

    def __init__(self, joins: Iterable[Join] = (), conditions: Iterable[Predicate] = ()) -> None:
        self.joins = tuple(joins)
        self.conditions = tuple(conditions)
        self.depth = 1
        self.operands = ()
        for part in (*self.joins, *self.conditions):
            if not isinstance(part, Join | Predicate):
                raise ExpressionError(
                    f"EXISTS takes joins with earlier events and predicates on them, not {shortened(part)}"
                )

    def _identity(self) -> Any:
        return (self.joins, self.conditions)

    def own_attributes(self) -> Iterable[str]:
        return [join.attribute for join in self.joins]

    def written(self, printer: Printer) -> str:
        joins = [
            f"{printer.earlier(join.earlier)} {join.operator} {printer.current(join.attribute)}" for join in self.joins
        ]
        conditions = [each.written_of(printer, printer.earlier(each.attribute)) for each in self.conditions]
        return printer.exists(joins + conditions)


def _comparison(operator: Operator | str) -> Operator:
    found = operator if isinstance(operator, Operator) else read_operator(operator)
    if found not in COMPARISONS:
        raise ExpressionError(f"earlier events can be compared with  =  <>  <  <=  >  >=,  not with {found!r}")
    return found


def _quantifier(text: Quantifier | str) -> Quantifier:
    try:
        return Quantifier(text if isinstance(text, str) else "")
    except ValueError:
        raise ExpressionError(f"a quantifier must be ANY or ALL, not {shortened(text)}") from None
