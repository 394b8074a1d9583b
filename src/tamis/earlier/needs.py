"""What a subscription needs of the earlier events: a condition on them alone, without which no event satisfies it.

    price < 10 AND author = ANY (SELECT author FROM history)          some event has an author
    price < 10 AND EXISTS (... h.price = price AND h.stock = 0)       some event has a price below 10, and some has stock 0
    price < 10 AND price >= ALL (SELECT price FROM history)           no event has another price than one below 10
    author = 'Verne' AND NOT EXISTS (... h.author = author)           no event has the author 'Verne'

A *constraint* says that some event is in certain states of one attribute, or that none is. A need is a conjunction of clauses,
and each clause a disjunction of constraints. Without clauses, nothing is needed. A need may always be weaker than the truth:
clauses may go, and constraints may gain states under "some", or lose them under "none".

A need holds for events that have at most one value, and no Interval, of each attribute that the joins compare (`compared`).
Earlier events with several values or an Interval count as if they were in the states of every "some", and of no "none".

Constraints on several attributes of one EXISTS become one constraint for each attribute. Other events may satisfy them, so this
is weaker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from tamis.earlier.implied import Values, joined, surely_joined
from tamis.language.expression import And, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists, Quantified
from tamis.language.operators import INVERSE, MIRRORED, Operator, Quantifier
from tamis.language.scalar_set import ANYTHING, ScalarSet, common_states, read_scalar_set, states_around
from tamis.language.value_set import EVERYTHING, ValueSet, complement
from tamis.language.values import Kind

MOST_CLAUSES = 8
"""The most clauses of a need. More are dropped."""
MOST_CONSTRAINTS = 8
"""The most constraints of a clause. A longer clause is dropped."""


class Constraint(NamedTuple):
    """Some retained event is in these states of an attribute, or none is."""

    attribute: str
    is_some: bool
    missing: bool
    """Whether an event without the attribute is in."""
    values: tuple[tuple[Kind, ValueSet], ...]

    def __str__(self) -> str:
        states = ScalarSet(self.missing, dict(self.values))
        if self.is_some or not self.missing:
            return f"{'some' if self.is_some else 'no'} earlier event has {self.attribute} {_in_words(states)}"
        return f"every earlier event has {self.attribute} {_in_words(replace(_others(states.values), missing=False))}"


Need: TypeAlias = tuple[frozenset[Constraint], ...]
NOTHING: Need = ()
_Known: TypeAlias = Mapping[str, ScalarSet]
"""The states of attributes of the new event, as far as they are known."""


def need_of(expression: Expression, beside: Expression | None = None, *, one_history: bool) -> Need:
    """What an expression in NNF needs, if it stands in a conjunction beside another expression.

    Unless all events share `one_history`, an event may have another history than most events, so nothing is needed of all.
    """
    known: _Known = {}
    if beside is not None:
        known = _narrowed(known, beside.operands if isinstance(beside, And) else (beside,))
    need = _need(expression, known)
    if not one_history:
        need = tuple(clause for clause in need if all(each.is_some for each in clause))
    return need


def compared(expression: Expression) -> frozenset[str]:
    """The attributes of the new event that joins compare."""
    return frozenset(name for node in expression.walk() if node.is_join for name in node.own_attributes())


def _narrowed(known: _Known, literals: Iterable[Expression]) -> _Known:
    """What is known if these literals are TRUE, as far as they are literals."""
    found = dict(known)
    for literal in literals:
        predicate = literal.operand if isinstance(literal, Not | TruthTest) else literal
        if isinstance(predicate, Predicate):
            states = read_scalar_set(literal)
            before = found.get(predicate.attribute, ANYTHING)
            found[predicate.attribute] = common_states([before, states_around(literal) if states is None else states])
    return found


def _need(node: Expression, known: _Known) -> Need:
    match node:
        case And():
            narrowed = _narrowed(known, node.operands)
            clauses = [clause for each in node.operands if each.needs_history() for clause in _need(each, narrowed)]
            return tuple(dict.fromkeys(clauses))[:MOST_CLAUSES]
        case Or():
            return _either([_need(each, known) for each in node.operands])
        case Quantified():
            return _quantified(node, known, negated=False)
        case Exists():
            return _exists(node, known)
        case Not(operand=Quantified() as join):
            return _quantified(join, known, negated=True)
        case Not(operand=Exists() as join):
            return _not_exists(join, known)
        case TruthTest(operand=Quantified() as join) if node.accepted in ({True}, {False}):
            return _quantified(join, known, negated=False in node.accepted)
    return NOTHING


def _either(needs: list[Need]) -> Need:
    """What is needed if one of the needs is there."""
    if any(need == NOTHING for need in needs):
        return NOTHING
    found: list[frozenset[Constraint]] = [frozenset()]
    for need in needs:
        both = dict.fromkeys(one | other for one in found for other in need)
        found = [clause for clause in both if len(clause) <= MOST_CONSTRAINTS][:MOST_CLAUSES]
    return tuple(found)


def _quantified(join: Quantified, known: _Known, *, negated: bool) -> Need:
    """TRUE of ANY needs an event for which the comparison may be TRUE. FALSE of ANY needs that it is FALSE for all."""
    operator = INVERSE[join.operator] if negated else join.operator
    states = joined(MIRRORED[operator], known.get(join.attribute, ANYTHING))
    if (join.quantifier is Quantifier.ANY) is not negated:
        return (frozenset([_constraint(join.earlier, True, ScalarSet(False, states))]),)
    return (frozenset([_constraint(join.earlier, False, _others(states))]),)


def _exists(join: Exists, known: _Known) -> Need:
    """Some event for which all comparisons may be TRUE."""
    states: dict[str, list[ScalarSet]] = {}
    for each in join.joins:
        found = joined(each.operator, known.get(each.attribute, ANYTHING))
        states.setdefault(each.earlier, []).append(ScalarSet(False, found))
    for condition in join.conditions:
        read = read_scalar_set(condition)
        states.setdefault(condition.attribute, []).append(states_around(condition) if read is None else read)
    needs = [frozenset([_constraint(name, True, common_states(sets))]) for name, sets in states.items()]
    return tuple(needs[:MOST_CLAUSES])


def _not_exists(join: Exists, known: _Known) -> Need:
    """No event for which all comparisons are certain to be TRUE, if they are about one attribute of earlier events."""
    names = {each.earlier for each in join.joins} | {condition.attribute for condition in join.conditions}
    states = [
        ScalarSet(False, surely_joined(each.operator, known.get(each.attribute, ANYTHING))) for each in join.joins
    ]
    read = [read_scalar_set(condition) for condition in join.conditions]
    states += [each for each in read if each is not None]
    if len(names) != 1 or None in read or not (common := common_states(states)):
        return NOTHING
    [name] = names
    return (frozenset([_constraint(name, False, common)]),)


def _others(values: Values) -> ScalarSet:
    """All states but some values."""
    found = {kind: complement(values[kind], kind) if kind in values else EVERYTHING[kind] for kind in Kind}
    return ScalarSet(True, {kind: others for kind, others in found.items() if others})


def _constraint(attribute: str, is_some: bool, states: ScalarSet) -> Constraint:
    values = tuple((kind, states.values[kind]) for kind in Kind if kind in states.values)
    return Constraint(attribute, is_some, states.missing, values)


def _in_words(states: ScalarSet) -> str:
    if states.values == EVERYTHING:
        return "with any value or none" if states.missing else "with some value"
    parts = ["missing"] if states.missing else []
    for kind, values in states.values.items():
        is_any = values == EVERYTHING[kind]
        parts += [f"with any {kind.value}"] if is_any else [_said(*span, kind) for span in values.spans()]
    return " or ".join(parts) if parts else "in no state"


def _said(lo: tuple[object, bool] | None, hi: tuple[object, bool] | None, kind: Kind) -> str:
    """A span in words."""
    if lo is not None and hi is not None and lo[0] == hi[0]:
        return f"= {lo[0]!r}"
    if kind is Kind.STRING and lo == ("", False):
        lo = None
    low = "" if lo is None else f"{Operator.GT if lo[1] else Operator.GE} {lo[0]!r}"
    high = "" if hi is None else f"{Operator.LE if hi[1] else Operator.LT} {hi[0]!r}"
    return " and ".join(part for part in (low, high) if part) or f"any {kind.value}"
