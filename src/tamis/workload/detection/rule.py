"""Rules: an AND of a log source, of selections and of NOT filters.

log source  what an event must be about; conditions that all rules of a source begin with
selection   conditions on one field or on several; one of them must hold
filter      lists of conditions; the filter excludes an event if each list has a condition that holds

logsource.category = 'c' AND (Image ILIKE '%\\x.exe' OR User ILIKE 'x') AND CommandLine ILIKE '% -y%' AND NOT (User ILIKE 'z')
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.language.expression import Expression, Not, Predicate, all_of, any_of
from tamis.language.operators import Operator
from tamis.workload.detection.fields import LOG_SOURCE, Field, Source
from tamis.workload.detection.texts import Shape


class Condition(NamedTuple):
    """One predicate, and a sample: a text that satisfies it at the right place, for example at the end for a suffix."""

    field: Field
    shape: Shape
    operator: Operator
    values: tuple[str, ...]
    escape: str | None
    sample: str

    def predicate(self) -> Expression:
        # Checks would take half of the time to make a workload.
        return Predicate.unchecked(self.field.name, self.operator, self.values, self.escape)


Conditions = list[Condition]


class Rule(NamedTuple):
    source: Source
    selections: list[Conditions]
    filters: list[list[Conditions]]

    def expression(self) -> Expression:
        terms: list[Expression] = [
            Predicate.unchecked(LOG_SOURCE + name, Operator.EQ, (value,), None)
            for name, value in self.source.log_source.items()
        ]
        terms += [_any(selection) for selection in self.selections]
        if self.filters:
            terms.append(Not(any_of(*[all_of(*[_any(each) for each in lists]) for lists in self.filters])))
        return all_of(*terms)


def _any(conditions: Conditions) -> Expression:
    return any_of(*[condition.predicate() for condition in conditions])
