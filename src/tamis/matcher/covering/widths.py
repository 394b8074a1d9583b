"""How wide subscriptions are: the wider one is reported first.

The width of a clause is the product, over the sets that it names, of the share of the set among all places on its line. The
places are the ends of all sets there, and the gaps between them:

    ends of all sets      1     3     5
    places             0  1  2  3  4  5  6         a < 3 has 3 of 7 places,  a BETWEEN 1 AND 3 has 3 of 7

A clause that implies another is hardly ever wider. Widths are logarithms, since the products are small.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

from tamis.language.demand import Demand
from tamis.language.expression import Expression, Predicate
from tamis.language.implication import Clause, Form
from tamis.language.operators import Operator
from tamis.language.value_set import Cut, ValueSet
from tamis.language.values import Kind

_LITERAL = -4.0
"""The width of a pattern, a missing value, or another condition that is not a set."""


class Widths:
    """The widths of forms, all of which must be given at the start."""

    def __init__(self, forms: Iterable[Form]) -> None:
        keys: dict[tuple[str, Kind], set[Any]] = {}
        seen: set[tuple[str, int]] = set()
        for name, demand in (pair for form in forms for clause in form for pair in clause.demands):
            if (name, id(demand)) not in seen:
                seen.add((name, id(demand)))
                for kind, one in _sets(demand):
                    keys.setdefault((name, kind), set()).update(key for key, _ in one.cuts)
        self._places = {line: {key: place for place, key in enumerate(sorted(found))} for line, found in keys.items()}

    def of(self, form: Form) -> float:
        """The width of a form: that of its widest clause, as a logarithm. 0 is the width of TRUE."""
        return max(map(self.of_clause, form))

    def of_clause(self, clause: Clause) -> float:
        literals = sum(map(_literal_width, clause.literals))
        return literals + sum(self._demand(name, demand) for name, demand in clause.demands)

    def _demand(self, name: str, demand: Demand) -> float:
        shares = [math.log(self._share(name, kind, one)) for kind, one in _sets(demand)]
        other = demand.missing + demand.present + len(demand.absent) + len(demand.kinds)
        return sum(shares) + _LITERAL * other

    def _share(self, name: str, kind: Kind, one: ValueSet) -> float:
        places = self._places[name, kind]
        total = 2 * len(places) + 1

        def place(cut: Cut | None, end: int) -> int:
            return end if cut is None else 2 * places[cut[0]] + 1 + cut[1]

        return sum(place(span.hi, total) - place(span.lo, 0) for span in one.spans()) / total


def _literal_width(literal: Expression) -> float:
    """A long pattern is narrower than a short one."""
    if isinstance(literal, Predicate) and literal.operator in (Operator.LIKE, Operator.ILIKE):
        return _LITERAL - len(str(literal.values[0])) / 10
    return _LITERAL


def _sets(demand: Demand) -> Iterator[tuple[Kind, ValueSet]]:
    for kind, needed in demand.kinds:
        yield kind, needed.allowed
        for one in needed.some:
            yield kind, one
