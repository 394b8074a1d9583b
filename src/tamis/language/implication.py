"""Which expressions follow from others: whether every event that satisfies the one satisfies the other.

An expression is read into a *form*, its clauses in a normal form: what each clause demands of each attribute (`demand`), and
literals that are compared as they are. A form implies another if each of its clauses implies a clause of the other.

    price < 10 AND genre = 'crime'      implies      price < 20
    a = 1                               implies      a IN (1, 2) OR b = 3
    (a = 1 OR a = 2) AND b LIKE 'x%'    and          b LIKE 'x%' AND a IN (2, 1)       have the same form

What is claimed holds for all events and for all histories. Some implications are not found: a clause may follow from several
clauses together, RLIKE may follow from another pattern, or an expression may have more than FORM_LIMIT clauses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Container, Iterable, Sequence, Set
from typing import NamedTuple, TypeAlias, TypeVar

from tamis.language.demand import Demand, Mode, ValueTest, demand_implies, demand_of
from tamis.language.evaluate import Truth, evaluate_flat
from tamis.language.expression import And, Constant, Expression, Or, Predicate
from tamis.language.normal import negated_literal, to_nnf
from tamis.language.patterns_implied import pattern_implies, prefix_implies
from tamis.language.scalar_set import ScalarSet, finite_states
from tamis.language.value_set import EVERYTHING, ValueSet, points, prefix_of, union
from tamis.language.value_tests import Part, alternatives, attribute_of, positive_of
from tamis.language.values import Kind, Scalar

FORM_LIMIT = 64
"""The most clauses of a form. An expression with more is one literal, which implies only itself."""

_PATTERNS_KNOWN = 10_000
"""Pairs of patterns whose implication is remembered."""


class Clause(NamedTuple):
    """What a clause demands of each attribute, in the order of their names, and its other literals."""

    demands: tuple[tuple[str, Demand], ...]
    literals: frozenset[Expression]


Form: TypeAlias = tuple[Clause, ...]
"""The clauses of an expression, of which one must hold. No clause implies another. FALSE has none."""


_PartsT = TypeVar("_PartsT", bound=Iterable[object])


class _TooManyClausesError(Exception):
    pass


class Implications:
    """Reads forms and compares them. It remembers what it has read, so that equal parts take memory once.

    Parameters
    ----------
    scalars
        The attributes that have at most one value, and no Interval, in every event; None for all attributes. By default no
        attribute, so that what is found holds for all events.
    """

    def __init__(self, scalars: Container[str] | None = ()) -> None:
        self._scalars = scalars
        self._parts: dict[Expression, list[Part]] = {}
        self._demands: dict[tuple[ValueTest, ...], Demand | None] = {}
        self._patterns: dict[tuple[Expression, Predicate], bool] = {}

    def is_single(self, attribute: str) -> bool:
        """Whether an attribute has at most one value."""
        return self._scalars is None or attribute in self._scalars

    def read(self, expression: Expression) -> Form:
        """The form of an expression."""
        normal = to_nnf(expression)
        try:
            parts = self._distributed(normal)
        except _TooManyClausesError:
            parts = [(normal,)]
        return _widest([clause for part in parts if (clause := self._clause(part)) is not None], self)

    def forget(self) -> None:
        """Free the memory of what was read. Forms stay as they are."""
        self._parts.clear()
        self._demands.clear()

    def implies(self, narrow: Form, wide: Form) -> bool:
        """Whether every event that satisfies the first form satisfies the second. May be False where that is so."""
        return all(any(self.clause_implies(clause, other) for other in wide) for clause in narrow)

    def clause_implies(self, narrow: Clause, wide: Clause) -> bool:
        if len(wide.demands) > len(narrow.demands):
            return False
        found = dict(narrow.demands)
        for name, demand in wide.demands:
            own = found.get(name)
            if own is None or not (own is demand or demand_implies(own, demand)):
                return False
        return all(self._literal_follows(literal, found, narrow.literals) for literal in wide.literals)

    # Reading

    def _distributed(self, node: Expression) -> list[Part]:
        """The clauses of a node in NNF."""
        if isinstance(node, Constant):
            return [()] if node.value else []
        if isinstance(node, Or):
            parts = _united([part for operand in node.operands for part in self._distributed(operand)])
            return _few(parts, len(parts))
        if isinstance(node, And):
            operands = [self._distributed(operand) for operand in node.operands]
            product = _few(itertools.product(*operands), math.prod(map(len, operands)))
            return [tuple(itertools.chain.from_iterable(choice)) for choice in product]
        found = self._parts.get(node)
        if found is None:
            name = attribute_of(node)
            found = self._parts[node] = alternatives(node, single=name is not None and self.is_single(name))
        return found

    def _clause(self, part: Part) -> Clause | None:
        """A clause in its normal form; None if no event satisfies it."""
        tests: dict[str, list[ValueTest]] = {}
        literals: dict[Expression, None] = {}
        for item in part:
            if isinstance(item, ValueTest):
                tests.setdefault(item.attribute, []).append(item)
            else:
                literals[item] = None
        if any(_negation(literal) in literals for literal in literals):
            return None
        demands: dict[str, Demand] = {}
        for name in sorted(tests):
            demand = self._demand(name, tests[name])
            if demand is not None and literals:
                demand = self._without_denied(name, demand, tests[name], list(literals))
            if demand is None:
                return None
            demands[name] = demand
        for literal in list(literals):
            if self._literal_follows(literal, demands, literals.keys() - {literal}):
                del literals[literal]
        return Clause(tuple(demands.items()), frozenset(literals))

    def _demand(self, name: str, tests: Sequence[ValueTest]) -> Demand | None:
        key = tuple(tests)
        if key not in self._demands:
            self._demands[key] = demand_of(key, single=self.is_single(name))
        return self._demands[key]

    def _without_denied(
        self, name: str, demand: Demand, tests: list[ValueTest], literals: list[Expression]
    ) -> Demand | None:
        """The demand without listed strings that contradict literals: `a IN ('x', 'y') AND a NOT LIKE '%y'`."""
        about = [literal for literal in literals if attribute_of(literal) == name]
        left: list[ValueTest] = []
        for one in _string_sets(demand) if about else ():
            strings = _listed(one)
            if strings is not None:
                kept = [text for text in strings if not any(self._denies(name, each, text) for each in about)]
                left.append(ValueTest(name, Mode.SOME, Kind.STRING, points(kept)))
        return self._demand(name, [*tests, *left]) if left else demand

    def _denies(self, name: str, literal: Expression, text: str) -> bool:
        """Whether a literal is not TRUE, whatever other values there are, if a string is a value."""
        truth = _truth(name, literal, text)
        # On a list another element may satisfy a positive predicate. A negative one speaks of all elements.
        return truth is not True if self.is_single(name) else truth is False and positive_of(literal) is not literal

    # Comparing

    def _literal_follows(self, literal: Expression, demands: dict[str, Demand], literals: Set[Expression]) -> bool:
        """Whether a literal follows from demands and other literals of a clause."""
        if literal in literals:
            return True
        name = attribute_of(literal)
        if name is None or name not in demands:
            return False
        predicate = literal if isinstance(literal, Predicate) and positive_of(literal) is literal else None
        if predicate is None and not self.is_single(name):
            return False
        if predicate is not None and any(self._pattern_implies(other, predicate) for other in literals):
            return True
        for one in _string_sets(demands[name]):
            strings = _listed(one)
            if strings is not None and all(_truth(name, literal, text) is True for text in strings):
                return True
            if predicate is not None and _prefix_follows(one, predicate):
                return True
        return False

    def _pattern_implies(self, narrow: Expression, wide: Predicate) -> bool:
        """Whether a pattern follows from another literal. Clauses of one expression often have the same literals."""
        if not isinstance(narrow, Predicate) or narrow.attribute != wide.attribute:
            return False
        key = (narrow, wide)
        found = self._patterns.get(key)
        if found is None:
            if len(self._patterns) >= _PATTERNS_KNOWN:
                self._patterns.clear()
            found = self._patterns[key] = positive_of(narrow) is narrow and pattern_implies(narrow, wide)
        return found


def _few(parts: _PartsT, count: int) -> _PartsT:
    """The parts, if they are not too many."""
    if count > FORM_LIMIT:
        raise _TooManyClausesError
    return parts


def _negation(literal: Expression) -> Expression | None:
    """The negation of a literal; None for a whole expression that is taken as a literal."""
    return None if isinstance(literal, And | Or) else negated_literal(literal)


def _widest(clauses: list[Clause], implications: Implications) -> Form:
    """The clauses that imply no other clause."""
    distinct = list(dict.fromkeys(clauses))
    if len(distinct) < 2:
        return tuple(distinct)
    kept: list[Clause] = []
    for clause in distinct:
        if not any(implications.clause_implies(clause, other) for other in kept):
            kept = [other for other in kept if not implications.clause_implies(other, clause)]
            kept.append(clause)
    return tuple(kept)


def _united(parts: list[Part]) -> list[Part]:
    """The parts of an OR. All SOME of the same attribute and kind become one part: `a = 1 OR a = 2` is `a IN (1, 2)`."""
    sets: dict[ValueTest, list[ValueSet]] = {}
    others: dict[Part, None] = {}
    for part in parts:
        first = part[0] if len(part) == 1 else None
        if isinstance(first, ValueTest) and first.mode is Mode.SOME and first.values is not None:
            sets.setdefault(first._replace(values=None), []).append(first.values)
        else:
            others[part] = None
    return [*[(test._replace(values=union(found)),) for test, found in sets.items()], *others]


def _string_sets(demand: Demand) -> tuple[ValueSet, ...]:
    """Sets each of which has a string among the values."""
    return next((needed.sets for kind, needed in demand.kinds if kind is Kind.STRING), ())


def _listed(one: ValueSet) -> list[str] | None:
    """The strings of a set; None if they are infinitely many."""
    if one == EVERYTHING[Kind.STRING]:
        return None
    states: list[Scalar | None] | None = finite_states(ScalarSet(False, {Kind.STRING: one}))
    return None if states is None else [str(state) for state in states]


def _prefix_follows(one: ValueSet, predicate: Predicate) -> bool:
    prefixes = [prefix_of(span) for span in one.spans()]
    return all(prefix is not None and prefix_implies(prefix, predicate) for prefix in prefixes)


def _truth(name: str, literal: Expression, text: str) -> Truth:
    return evaluate_flat(literal, {name: (text,)})
