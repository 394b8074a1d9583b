"""Rules of pySigma as rules of ours. An error concerns one rule, and the correlations that refer to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sigma.collection import SigmaCollection
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaCorrelationRuleError, SigmaValueError
from sigma.rule import SigmaRule

from tamis.errors import FileError
from tamis.language.expression import any_of
from tamis.sigma.backend import EXPRESSION, TamisBackend
from tamis.sigma.correlations import Correlation, correlation_of, referenced
from tamis.sigma.documents import Document
from tamis.sigma.parsing import Parsed
from tamis.sigma.rule import Rule


class Conversion:
    """Converts rules that were read together.

    Attributes
    ----------
    rules : dict
        The converted rules by id.
    correlations : dict
        The converted correlations by id, each after those that it refers to.
    refused : list of FileError
    """

    def __init__(self, backend: TamisBackend, read: Iterable[tuple[Document, Parsed]]) -> None:
        self.rules: dict[str, Rule] = {}
        self.correlations: dict[str, Correlation] = {}
        self.refused: list[FileError] = []
        self._backend = backend
        pairs = list(read)
        self._documents = {id(one): document for document, one in pairs}
        # Filters are added to the rules that they are about.
        self._collection = SigmaCollection([one for _, one in pairs], resolve_references=False)
        self._ids = self._own_ids()
        self._failed: set[int] = set()
        backend.init_processing_pipeline(EXPRESSION)
        for one in self._collection.rules:
            if isinstance(one, SigmaRule) and id(one) in self._ids:
                self._convert(one)
        for one in self._collection.rules:
            if isinstance(one, SigmaCorrelationRule) and id(one) in self._ids:
                self._correlate(one, ())

    def _own_ids(self) -> dict[int, str]:
        """The id of each rule, by the identity of its object; a rule whose id is taken is refused."""
        owners: dict[str, Document] = {}
        ids = {}
        for one in self._collection.rules:
            document = self._documents[id(one)]
            own = str(one.id or one.name or f"{document.path}:{document.line}")
            first = owners.setdefault(own, document)
            if first is document:
                ids[id(one)] = own
            else:
                self.refused.append(document.error(f"the id {own} is already that of {first.path}:{first.line}"))
        return ids

    def _convert(self, rule: SigmaRule) -> None:
        document, own = self._documents[id(rule)], self._ids[id(rule)]
        try:
            self._backend.convert_rule(rule, EXPRESSION)
            expressions = rule.get_conversion_result()
            if not expressions:
                raise SigmaValueError("the processing pipeline leaves nothing of the condition")
        except Exception as error:  # a rule or a pipeline that pySigma did not expect
            self._refuse(rule, document.wrong(error))
            return
        self.rules[own] = Rule(
            id=own,
            title=rule.title,
            level=None if rule.level is None else str(rule.level),
            tags=tuple(str(tag) for tag in rule.tags),
            log_source=self._backend.asked(rule) or {},
            expression=any_of(*expressions),
            path=document.path,
            line=document.line,
        )

    def _correlate(self, rule: SigmaCorrelationRule, above: tuple[int, ...]) -> None:
        """Convert a correlation after those that it refers to. `above` are those that refer to it."""
        own = self._ids[id(rule)]
        if own in self.correlations or id(rule) in self._failed:
            return
        document = self._documents[id(rule)]
        try:
            if id(rule) in above:
                raise SigmaCorrelationRuleError("the correlation refers to itself")
            for other in referenced(rule, self._collection):
                if isinstance(other, SigmaCorrelationRule) and id(other) in self._ids:
                    self._correlate(other, (*above, id(rule)))
                if id(other) in self._failed or id(other) not in self._ids:
                    raise SigmaCorrelationRuleError(f"it refers to '{other.title}', which is refused itself")
            self._backend.last_processing_pipeline.apply(rule)
            made = correlation_of(rule, own, self._ids, document.path, document.line)
        except Exception as error:  # as above
            self._refuse(rule, document.wrong(error))
            return
        self.correlations[own] = made

    def _refuse(self, rule: Any, error: FileError) -> None:
        if id(rule) not in self._failed:
            self._failed.add(id(rule))
            self.refused.append(error)


def chosen(
    rules: dict[str, Rule], correlations: dict[str, Correlation], wanted: Iterable[str]
) -> tuple[list[Rule], list[Correlation]]:
    """The wanted rules and correlations, and all that the wanted correlations refer to. Those are not reported by themselves,
    unless the correlation says so."""
    reported = set(wanted)
    kept = set(reported)
    for own in reversed(correlations):
        if own in kept:
            kept.update(correlations[own].rules)
    for each in correlations.values():
        if each.id in kept and not each.generates:
            reported.difference_update(each.rules)
    return (
        [rule.with_reported(rule.id in reported) for rule in rules.values() if rule.id in kept],
        [each.with_reported(each.id in reported) for each in correlations.values() if each.id in kept],
    )
