"""Correlation rules: what they ask for, and which of them cannot be asked of a batch of events.

A correlation looks at a window of time that ends at an event. So only conditions are taken that such a window decides: at least
so many events, values or rules. "Fewer than" would hold at the first event of each group, and "not" needs a window that is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sigma.collection import SigmaCollection
from sigma.correlations import (
    CorrelationConditionAND,
    CorrelationConditionOR,
    SigmaCorrelationCondition,
    SigmaCorrelationConditionOperator,
    SigmaCorrelationRule,
    SigmaExtendedCorrelationCondition,
    SigmaRuleReference,
)
from sigma.exceptions import SigmaCorrelationRuleError, SigmaFeatureNotSupportedByBackendError

COUNTS = ("event_count", "value_count", "value_sum", "value_avg")
TEMPORAL = ("temporal", "temporal_ordered")

Present = frozenset[str]
"""The ids of the rules that have an event in a window."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A correlation rule whose references are resolved to ids.

    Attributes
    ----------
    kind : str
        One of COUNTS or TEMPORAL.
    rules : tuple of str
        The ids of the rules and correlations that it refers to; of temporal_ordered, in their order.
    fields : mapping
        By id of a rule: the attributes of its events that tell groups apart.
    names : tuple of str
        What these attributes are called in results: as in `group-by`.
    microseconds : int
        The length of the window.
    bound : float
        What a count, sum or average must reach.
    above : bool
        Whether it must be larger than the bound.
    values : tuple of str
        The attributes whose values are counted or summed.
    complete : callable or None
        Of temporal ones: whether the rules that have events in the window are enough.
    """

    id: str
    title: str
    level: str | None
    tags: tuple[str, ...]
    path: str
    line: int
    kind: str
    rules: tuple[str, ...]
    fields: Mapping[str, tuple[str, ...]]
    names: tuple[str, ...]
    microseconds: int
    bound: float
    above: bool
    values: tuple[str, ...]
    complete: Callable[[Present], bool] | None
    generates: bool
    """Whether matches of the rules that it refers to are results, too."""
    reported: bool = True

    def reached(self, number: float) -> bool:
        """Whether a count, sum or average is enough."""
        return number > self.bound if self.above else number >= self.bound

    def with_reported(self, reported: bool) -> Correlation:
        """The same correlation, reported or not."""
        return replace(self, reported=reported)

    def needed(self) -> frozenset[str]:
        """All attributes that it reads."""
        return frozenset(self.values).union(*self.fields.values())


def referenced(rule: SigmaCorrelationRule, collection: SigmaCollection) -> list[Any]:
    """The rules that a correlation refers to. An error of pySigma if one is not there."""
    rule.resolve_rule_references(collection)
    return [reference.rule for reference in rule.referenced_rules]


def correlation_of(
    rule: SigmaCorrelationRule, own_id: str, ids: Mapping[int, str], path: str, line: int
) -> Correlation:
    """A correlation with the ids of its rules, by the identity of the objects of pySigma.

    Raises
    ------
    SigmaError
        When it cannot be asked of a batch of events.
    """
    kind = rule.type.name.lower()
    if kind not in (*COUNTS, *TEMPORAL):
        raise _refused(f"{kind} is not supported: medians and percentiles of windows are not computed")
    references = {reference.reference: ids[id(reference.rule)] for reference in rule.referenced_rules}
    # Of an ordered one, a rule may be several steps.
    rules = tuple(ids[id(reference.rule)] for reference in rule.referenced_rules)
    group_by = tuple(rule.group_by or ())
    bound, above, complete = 0.0, False, None
    condition = rule.condition
    if isinstance(condition, SigmaExtendedCorrelationCondition):
        if kind == "temporal_ordered" and not _is_chain(condition.parsed):
            raise _refused("a condition of temporal_ordered must be names that are joined by `and`")
        complete = _test(condition.parsed, references)
    else:
        bound, above = _bound(condition)
        if kind == "temporal":
            complete = _enough(bound, above)
        elif kind == "temporal_ordered" and bound + above < len(rules):
            raise _refused("temporal_ordered needs all of its rules: leave the condition out")
    return Correlation(
        id=own_id,
        title=rule.title,
        level=None if rule.level is None else str(rule.level),
        tags=tuple(str(tag) for tag in rule.tags),
        path=path,
        line=line,
        kind=kind,
        rules=rules,
        fields={each: _fields(rule, group_by, each, ids) for each in rules},
        names=group_by,
        microseconds=rule.timespan.seconds * 1_000_000,
        bound=bound,
        above=above,
        values=_values(condition),
        complete=complete,
        generates=rule.generate,
    )


def _bound(condition: SigmaCorrelationCondition) -> tuple[float, bool]:
    operator = condition.op
    if operator not in (SigmaCorrelationConditionOperator.GTE, SigmaCorrelationConditionOperator.GT):
        raise _refused(
            f"the condition {operator.name.lower()} is not decided by the events up to now; only gte and gt are"
        )
    return condition.count, operator is SigmaCorrelationConditionOperator.GT


def _values(condition: Any) -> tuple[str, ...]:
    given = getattr(condition, "fieldref", None)
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def _fields(
    rule: SigmaCorrelationRule, group_by: tuple[str, ...], own_id: str, ids: Mapping[int, str]
) -> tuple[str, ...]:
    """The attributes of events of one rule that tell groups apart: aliases stand for an attribute of each rule."""
    aliases = {alias.alias: alias.mapping for alias in rule.aliases}
    found = []
    for name in group_by:
        if name not in aliases:
            found.append(name)
            continue
        own = [field for reference, field in aliases[name].items() if _id_of(reference, rule, ids) == own_id]
        if not own:
            raise SigmaCorrelationRuleError(f"the alias {name} has no field for the rule {own_id}")
        found.append(own[0])
    return tuple(found)


def _id_of(reference: SigmaRuleReference, rule: SigmaCorrelationRule, ids: Mapping[int, str]) -> str | None:
    """The id of the rule that an alias names; None for a rule that the correlation does not refer to."""
    same = (each for each in rule.referenced_rules if each.reference == reference.reference)
    names = (each for each in rule.referenced_rules if reference.reference in (each.rule.name, str(each.rule.id)))
    found = next(same, None) or next(names, None)
    return None if found is None else ids[id(found.rule)]


def _enough(bound: float, above: bool) -> Callable[[Present], bool]:
    return lambda present: len(present) > bound if above else len(present) >= bound


def _test(node: Any, references: Mapping[str, str]) -> Callable[[Present], bool]:
    """The test of a condition such as `a and (b or c)`."""
    if isinstance(node, SigmaRuleReference):
        own = references[node.reference]
        return lambda present: own in present
    if not isinstance(node, CorrelationConditionAND | CorrelationConditionOR):
        raise _refused("`not` asks for rules without events, which is not decided before the window is over")
    tests = [_test(argument, references) for argument in node.args]
    joined = all if isinstance(node, CorrelationConditionAND) else any
    return lambda present: joined(test(present) for test in tests)


def _is_chain(node: Any) -> bool:
    return isinstance(node, SigmaRuleReference) or (
        isinstance(node, CorrelationConditionAND) and all(isinstance(each, SigmaRuleReference) for each in node.args)
    )


def _refused(reason: str) -> SigmaFeatureNotSupportedByBackendError:
    return SigmaFeatureNotSupportedByBackendError(reason)
