"""The backend for pySigma: rules as expressions of our language.

Sigma's conditions are true or false, ours may be UNKNOWN. Without `not`, UNKNOWN and false both mean no match. `not x` is
`(x) IS NOT TRUE`, so that a filter on a missing attribute filters nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeAlias

from sigma.conditions import (
    ConditionAND,
    ConditionNOT,
    ConditionOR,
    ConditionValueExpression,
)
from sigma.conversion.base import Backend
from sigma.conversion.state import ConversionState
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaFeatureNotSupportedByBackendError, SigmaValueError
from sigma.processing.pipeline import ProcessingPipeline
from sigma.rule import SigmaRule
from sigma.types import SigmaExpansion, SigmaQueryExpression

from tamis.errors import ExpressionError
from tamis.language.builder import attr
from tamis.language.expression import FALSE, TRUE, Expression, TruthTest, all_of
from tamis.language.parser import parse
from tamis.language.printer import TAMIS
from tamis.sigma import log_sources as sources
from tamis.sigma import values
from tamis.sigma.derived import AllValues, Derived, Related, TimePart

Field: TypeAlias = Any
"""A `ConditionFieldEqualsValueExpression`; the type of its value depends on the method that is called with it."""

Value: TypeAlias = Any
"""A `ConditionValueExpression`."""

EXPRESSION = "expression"
"""The format of objects instead of texts, for callers in Python."""


class TamisBackend(Backend):
    """Sigma rules as expressions of Tamis.

    Parameters
    ----------
    keyword_field : str, optional
        The attribute in which keywords are searched. Without it, rules with keywords are refused, unless `derive`.
    log_sources : "match", "ignore" or mapping
        Whether expressions ask for `logsource.product`, `logsource.category` and `logsource.service`, or what all events have.
    derive : bool
        Whether expressions may ask for computed attributes (`tamis.sigma.derived`), which are noted in `derived`.
    """

    name: ClassVar[str] = "Tamis"
    formats: ClassVar[dict[str, str]] = {
        "default": "Expressions of Tamis, one per rule",
        "jsonl": "Subscriptions for `tamis match`: JSON lines with id, expression, title, level and tags",
        EXPRESSION: "Expressions as objects, for programs in Python",
    }
    finalize_correlation_subqueries = True

    def __init__(
        self,
        processing_pipeline: ProcessingPipeline | None = None,
        collect_errors: bool = False,
        *,
        keyword_field: str | None = None,
        log_sources: sources.LogSources = "match",
        derive: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(processing_pipeline, collect_errors, **options)
        self.derived: set[Derived] = set()
        self._keyword_field = keyword_field
        self._log_sources = sources.checked(log_sources)
        self._derive = derive

    def convert_condition(self, cond: Any, state: ConversionState) -> Any:
        try:
            return super().convert_condition(cond, state)
        except ExpressionError as error:
            raise SigmaValueError(str(error)) from None
        except TypeError:
            # pySigma has no other error for a value that cannot stand here, such as null without a field.
            raise SigmaValueError(
                f"{type(getattr(cond, 'value', cond)).__name__} cannot stand without a field"
            ) from None

    def asked(self, rule: SigmaRule) -> dict[str, str] | None:
        """The log source that events must have, as attributes; None if no event of the run has it."""
        return sources.asked(rule.logsource, self._log_sources)

    def finish_query(self, rule: Any, query: Expression, state: ConversionState) -> Expression:
        source = sources.condition(self.asked(rule))
        return FALSE if source == FALSE else query if source == TRUE else all_of(source, query)

    # -- operators

    def convert_condition_or(self, cond: ConditionOR, state: ConversionState) -> Expression:
        return values.any_listed([self.convert_condition(arg, state) for arg in cond.args])

    def convert_condition_and(self, cond: ConditionAND, state: ConversionState) -> Expression:
        return all_of(*(self.convert_condition(arg, state) for arg in cond.args))

    def convert_condition_not(self, cond: ConditionNOT, state: ConversionState) -> Expression:
        return TruthTest(self.convert_condition(cond.args[0], state), True, negated=True)

    def convert_condition_as_in_expression(
        self, cond: ConditionOR | ConditionAND, state: ConversionState
    ) -> Expression:
        """Never asked: both `convert_or_as_in` and `convert_and_as_in` are off, and `any_listed` merges."""
        raise AssertionError("lists are merged by any_listed")

    # -- a field and a value

    def convert_condition_field_eq_val_str(self, cond: Field, state: ConversionState) -> Expression:
        return values.equal_string(cond.field, cond.value)

    convert_condition_field_eq_val_str_case_sensitive = convert_condition_field_eq_val_str

    def convert_condition_field_eq_val_num(self, cond: Field, state: ConversionState) -> Expression:
        return values.equal_number(cond.field, cond.value)

    def convert_condition_field_eq_val_bool(self, cond: Field, state: ConversionState) -> Expression:
        return values.equal_boolean(cond.field, cond.value.boolean)

    def convert_condition_field_eq_val_re(self, cond: Field, state: ConversionState) -> Expression:
        return values.matching(cond.field, cond.value)

    def convert_condition_field_eq_val_cidr(self, cond: Field, state: ConversionState) -> Expression:
        return attr(cond.field).ip_in(str(cond.value.network))

    def convert_condition_field_compare_op_val(self, cond: Field, state: ConversionState) -> Expression:
        return values.compared(cond.field, cond.value)

    def convert_condition_field_eq_val_null(self, cond: Field, state: ConversionState) -> Expression:
        return attr(cond.field).is_null()

    explicit_not_exists_expression = True

    def convert_condition_field_exists(self, cond: Field, state: ConversionState) -> Expression:
        return attr(cond.field).is_not_null()

    def convert_condition_field_not_exists(self, cond: Field, state: ConversionState) -> Expression:
        return attr(cond.field).is_null()

    def convert_condition_field_eq_field(self, cond: Field, state: ConversionState) -> Expression:
        relation = {
            (False, False): "equal",
            (True, False): "starts_with",
            (False, True): "ends_with",
            (True, True): "contains",
        }[cond.value.starts_with, cond.value.ends_with]
        return attr(self._derived(Related(relation, cond.field, cond.value.field), "compares two fields")).condition()

    def convert_condition_field_eq_val_timestamp_part(self, cond: Field, state: ConversionState) -> Expression:
        part = cond.value.timestamp_part.name.lower()
        name = self._derived(TimePart(part, cond.field), f"asks for the {part} of a time")
        return attr(name).isin([cond.value.number])

    def convert_condition_field_eq_query_expr(self, cond: Field, state: ConversionState) -> Expression:
        return parse(cond.value.finalize(field=TAMIS.name(cond.field)))

    # -- a value without a field

    def convert_condition_val(self, cond: Value, state: ConversionState) -> Any:
        if isinstance(cond.value, SigmaExpansion):
            return self.convert_condition_or(
                ConditionOR([ConditionValueExpression(value) for value in cond.value.values]), state
            )
        return super().convert_condition_val(cond, state)

    def convert_condition_val_str(self, cond: Value, state: ConversionState) -> Expression:
        return values.contained(self._keywords(), cond.value)

    convert_condition_val_num = convert_condition_val_str

    def convert_condition_val_re(self, cond: Value, state: ConversionState) -> Expression:
        return values.matching(self._keywords(), cond.value)

    def convert_condition_query_expr(self, cond: Value, state: ConversionState) -> Expression:
        assert isinstance(cond.value, SigmaQueryExpression)
        return parse(cond.value.finalize())

    def _keywords(self) -> str:
        if self._keyword_field is not None:
            return self._keyword_field
        return self._derived(
            AllValues(), "has keywords", "the option keyword_field names the attribute to search, and "
        )

    def _derived(self, derived: Derived, asks: str, otherwise: str = "") -> str:
        """The name of a computed attribute, or an error where nobody computes it."""
        if not self._derive:
            raise SigmaFeatureNotSupportedByBackendError(
                f"the rule {asks}, which an expression cannot do alone. Hint: {otherwise}`tamis sigma match` computes it"
            )
        self.derived.add(derived)
        return derived.name

    # -- what comes out

    def finalize_query(self, rule: Any, query: Any, index: int, state: ConversionState, output_format: str) -> Any:
        if output_format == EXPRESSION:  # Steps of a pipeline after the conversion are about texts.
            return query
        return super().finalize_query(rule, query, index, state, output_format)

    def finalize_query_default(self, rule: Any, query: Expression, index: int, state: ConversionState) -> str:
        return str(query)

    def finalize_query_jsonl(self, rule: SigmaRule, query: Expression, index: int, state: ConversionState) -> str:
        own = str(rule.id or rule.name or rule.title)
        subscription = {
            # Each condition of a rule is a subscription.
            "id": own if index == 0 else f"{own}#{index + 1}",
            "expression": str(query),
            "title": rule.title,
            "level": None if rule.level is None else str(rule.level),
            "tags": [str(tag) for tag in rule.tags],
        }
        return json.dumps(subscription, ensure_ascii=False)

    def finalize_output_jsonl(self, queries: list[str]) -> list[str]:
        return queries

    def finalize_output_expression(self, queries: list[Expression]) -> list[Expression]:
        return queries

    # -- correlations

    def convert_correlation_rule(
        self,
        rule: SigmaCorrelationRule,
        output_format: str | None = None,
        method: str | None = None,
        callback: Callable[..., Any] | None = None,
    ) -> list[Any]:
        error = SigmaFeatureNotSupportedByBackendError(
            "a correlation is about several events, an expression about one. Hint: `tamis sigma match` correlates",
            source=rule.source,
        )
        if not self.collect_errors:
            raise error
        failed: Any = rule
        self.errors.append((failed, error))
        return []

    def _no_correlation(
        self, rule: SigmaCorrelationRule, output_format: Any = None, method: str = "default"
    ) -> NoReturn:
        raise AssertionError("correlations are refused before")

    convert_correlation_event_count_rule = _no_correlation
    convert_correlation_value_count_rule = _no_correlation
    convert_correlation_value_sum_rule = _no_correlation
    convert_correlation_value_avg_rule = _no_correlation
    convert_correlation_value_percentile_rule = _no_correlation
    convert_correlation_value_median_rule = _no_correlation
    convert_correlation_temporal_rule = _no_correlation
    convert_correlation_temporal_ordered_rule = _no_correlation
    convert_correlation_extended_temporal_rule = _no_correlation
    convert_correlation_extended_temporal_ordered_rule = _no_correlation
