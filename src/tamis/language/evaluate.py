"""The reference evaluator: it defines what a subscription means.

It is three-valued and as plain as the definition of the language. Every index is tested against it.
A truth is True, False or None, which is SQL's UNKNOWN. Only True is a match.

A value is taken as the set of its points: a scalar has one, an Interval all from `lo` to `hi`. A positive predicate
holds when SOME point of SOME element satisfies it, a negative one is the negation of its positive form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tamis.errors import ExpressionError
from tamis.language.addresses import address_text, network_range
from tamis.language.checks import compile_regex
from tamis.language.event import FlatEvent, Value, flatten, flatten_history, kind_of_value, refuse_asked
from tamis.language.expression import And, CasePredicate, Constant, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.like import LikePattern
from tamis.language.operators import POSITIVE, Operator, Quantifier
from tamis.language.values import Interval, Kind, Scalar, compare, kind_of

Truth: TypeAlias = bool | None

_Ends: TypeAlias = tuple[Scalar, Scalar]
"""The lowest and the highest point of a value."""


def matches(expression: Any, event: Mapping[str, Any], history: Iterable[Mapping[str, Any]] = ()) -> bool:
    """Whether the expression is TRUE for the event, as under SQL's WHERE."""
    return evaluate(expression, event, history) is True


def evaluate(expression: Any, event: Mapping[str, Any], history: Iterable[Mapping[str, Any]] = ()) -> Truth:
    """The truth of an expression for an event: True, False, or None for UNKNOWN.

    Parameters
    ----------
    expression : str, Expression or list
        SQL text, an expression, or the JSON form of one.
    event
        A mapping from attributes to values.
    history
        The earlier events, which ANY, ALL and EXISTS ask about; `event` is not one of them.

    Raises
    ------
    EventError
        An attribute of the expression has a value outside the language, even if this does not decide the result.

    >>> evaluate("price < 10", {"price": 12.5})
    False
    >>> evaluate("price < 10", {}) is None
    True
    """
    from tamis.language.reading import to_expression

    read = to_expression(expression)
    return evaluate_flat(read, *flatten_asked(read, event, history))


def flatten_asked(
    expression: Expression, event: Mapping[str, Any], history: Iterable[Mapping[str, Any]]
) -> tuple[FlatEvent, list[FlatEvent]]:
    """An event and its history in their normal form, in which the expression finds no value outside the language.

    Raises
    ------
    EventError
    """
    earlier, flat = flatten_history(history), flatten(event)
    refuse_asked(flat, lambda: frozenset(expression.attributes()))
    for row, each in enumerate(earlier):
        refuse_asked(each, lambda: asked_of_history(expression), row)
    return flat, earlier


def asked_of_history(expression: Expression) -> set[str]:
    """The attributes of earlier events that an expression asks about."""
    names: set[str] = set()
    for node in expression.walk():
        if isinstance(node, Quantified):
            names.add(node.earlier)
        elif isinstance(node, Exists):
            names.update(join.earlier for join in node.joins)
            names.update(condition.attribute for condition in node.conditions)
    return names


def evaluate_flat(expression: Expression, event: FlatEvent, history: Sequence[FlatEvent] = ()) -> Truth:
    """`evaluate` for events that are flat already; an attribute with a value outside the language counts as missing."""
    match expression:
        case Constant():
            return expression.value
        case Predicate():
            return _predicate(expression, event)
        case Quantified():
            return _quantified(expression, event, history)
        case Exists():
            return any(_joins(expression, event, earlier) is True for earlier in history)
        case And() | Or() | Not() | TruthTest():
            return combined(expression, lambda operand: evaluate_flat(operand, event, history))
    raise ExpressionError(f"{type(expression).__name__} is not an expression")


def combined(expression: And | Or | Not | TruthTest, truth: Callable[[Expression], Truth]) -> Truth:
    """The truth of an expression with operands. `truth` gives that of an operand."""
    match expression:
        case And():
            return conjunction(map(truth, expression.operands))
        case Or():
            return disjunction(map(truth, expression.operands))
        case Not():
            return negation(truth(expression.operand))
        case TruthTest():
            return truth(expression.operand) in expression.accepted


def negation(truth: Truth) -> Truth:
    """NOT: UNKNOWN stays UNKNOWN."""
    return None if truth is None else not truth


def conjunction(truths: Iterable[Truth]) -> Truth:
    """AND: FALSE if one is FALSE, else UNKNOWN if one is UNKNOWN, else TRUE."""
    result: Truth = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def disjunction(truths: Iterable[Truth]) -> Truth:
    """OR: TRUE if one is TRUE, else UNKNOWN if one is UNKNOWN, else FALSE."""
    result: Truth = False
    for truth in truths:
        if truth is True:
            return True
        if truth is None:
            result = None
    return result


def _predicate(predicate: Predicate, event: FlatEvent) -> Truth:
    values = event.get(predicate.attribute, ())
    if predicate.operator is Operator.IS_NULL:
        return not values
    if predicate.operator is Operator.IS_NOT_NULL:
        return bool(values)
    positive = POSITIVE.get(predicate.operator)
    if positive is not None:
        return negation(_predicate(predicate.with_operator(positive), event))
    return disjunction(some_satisfies(predicate, kind, values) for kind in predicate.kinds)


def some_satisfies(predicate: Predicate, kind: Kind, values: tuple[Value, ...]) -> Truth:
    """Whether some element of that kind satisfies the predicate's literals of that kind; UNKNOWN if there is none.

    Only an address is an element for ip_in.
    """
    elements = [value for value in values if kind_of_value(value) is kind]
    if predicate.operator is Operator.IP_IN:
        elements = [address for value in elements if (address := address_text(str(value))) is not None]
    if isinstance(predicate, CasePredicate):
        elements = [predicate.case.change(str(value)) for value in elements]
    if not elements:
        return None
    literals = [literal for literal in predicate.values if kind_of(literal) is kind]
    return any(satisfies(element, predicate, literals) for element in elements)


def satisfies(element: Value, predicate: Predicate, literals: list[Scalar]) -> bool:
    """Whether one element satisfies a positive predicate with these literals, which are all of the element's kind."""
    first = literals[0]
    match predicate.operator:
        case Operator.IN:
            return any(_holds(_ends(element), Operator.EQ, _ends(literal)) for literal in literals)
        case Operator.BETWEEN:
            lo, hi = literals
            return compare(lo, hi) <= 0 and _holds(_ends(element), Operator.EQ, (lo, hi))
        case Operator.LIKE:
            return LikePattern.read(str(first), predicate.escape).matches(str(element))
        case Operator.ILIKE:
            return LikePattern.read(str(first), predicate.escape, True).matches(str(element).lower())
        case Operator.IP_IN:
            ranges = map(network_range, map(str, literals))
            return any(first <= str(element) < beyond for first, beyond in ranges)
        case Operator.RLIKE:
            return compile_regex(str(first)).search(str(element)) is not None
        case _:
            return _holds(_ends(element), predicate.operator, _ends(first))


def _holds(left: _Ends, operator: Operator, right: _Ends) -> bool:
    """Whether some point of `left` and some point of `right`, of one kind, satisfy a positive comparison."""
    left_lo, left_hi = left
    right_lo, right_hi = right
    match operator:
        case Operator.EQ:
            return compare(left_lo, right_hi) <= 0 and compare(right_lo, left_hi) <= 0
        case Operator.LT:
            return compare(left_lo, right_hi) < 0
        case Operator.LE:
            return compare(left_lo, right_hi) <= 0
        case Operator.GT:
            return compare(left_hi, right_lo) > 0
        case Operator.GE:
            return compare(left_hi, right_lo) >= 0
    raise ExpressionError(f"{operator} is not a positive comparison")


def _ends(value: Value) -> _Ends:
    return (value.lo, value.hi) if isinstance(value, Interval) else (value, value)


def _quantified(expression: Quantified, event: FlatEvent, history: Sequence[FlatEvent]) -> Truth:
    """ANY is an OR over the earlier events and ALL an AND, so over none they are FALSE and TRUE."""
    values = event.get(expression.attribute, ())
    truths = (_compare(values, expression.operator, earlier.get(expression.earlier, ())) for earlier in history)
    return disjunction(truths) if expression.quantifier is Quantifier.ANY else conjunction(truths)


def _joins(expression: Exists, event: FlatEvent, earlier: FlatEvent) -> Truth:
    """Whether one earlier event satisfies all joins with the event and all conditions on itself."""

    def join(condition: Join) -> Truth:
        return _compare(earlier.get(condition.earlier, ()), condition.operator, event.get(condition.attribute, ()))

    return conjunction(
        [
            *(join(condition) for condition in expression.joins),
            *(_predicate(condition, earlier) for condition in expression.conditions),
        ]
    )


def _compare(left: tuple[Value, ...], operator: Operator, right: tuple[Value, ...]) -> Truth:
    """A comparison of two attributes: SOME pair of elements of one kind; UNKNOWN if there is no such pair."""
    if operator is Operator.NE:
        return negation(_compare(left, Operator.EQ, right))
    pairs = [(one, other) for one in left for other in right if _comparable(one, operator, other)]
    if not pairs:
        return None
    return any(_holds(_ends(one), operator, _ends(other)) for one, other in pairs)


def _comparable(left: Value, operator: Operator, right: Value) -> bool:
    kind = kind_of_value(left)
    return kind is kind_of_value(right) and (kind is not Kind.BOOLEAN or operator is Operator.EQ)
