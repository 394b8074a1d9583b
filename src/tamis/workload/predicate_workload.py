"""PredicateWorkload: subscriptions that are conjunctions, as Arrow or as flat arrays."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.workload.ads import AdDraws, AdsConfig
from tamis.workload.alerts import AlertDomain, AlertDraws, AlertsConfig
from tamis.workload.arrays import EventArrays, PredicateArrays, concatenate
from tamis.workload.domain import Domain, IntegerDomain, PaperDomain
from tamis.workload.draw import SUBSCRIPTION_BLOCK, Draws
from tamis.workload.fabret import FabretConfig, FabretDraws
from tamis.workload.grams import GRAM_NAMES, DerivedGramDraws, DerivedGramsConfig, GramDomain, GramDraws, GramsConfig
from tamis.workload.keywords import KeywordDraws, KeywordsConfig
from tamis.workload.papers import PaperDraws
from tamis.workload.prefixes import PrefixDraws, PrefixesConfig
from tamis.workload.products import ProductDraws, ProductsConfig
from tamis.workload.styles import PredicateConfig
from tamis.workload.tatbul import TatbulConfig, TatbulDraws
from tamis.workload.workload import Workload

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.workload.arrow import ArrowForm


class PredicateWorkload(Workload):
    """The workload of every style but detection."""

    config: PredicateConfig

    def __init__(self, config: PredicateConfig) -> None:
        self.config = config
        self._domain, self._draws = _made_of(config)

    @property
    def attribute_names(self) -> list[str]:
        """The names of the attributes, by their numbers in the flat arrays. In the papers' styles the most popular come first."""
        return list(self._domain.names)

    def arrays(self, block: int | None = None) -> PredicateArrays:
        """The subscriptions of one block, or of all, as flat arrays. See `tamis.workload.arrays`."""
        blocks = range(self.blocks) if block is None else (block,)
        for each in blocks:
            self._check_block(each)
        arrays = concatenate([self._draws.subscriptions(each) for each in blocks])
        attribute = np.repeat(arrays.attribute, np.diff(arrays.literal_ptr))
        return arrays._replace(literals=self._domain.numbers(attribute, arrays.literals))

    def event_arrays(self, count: int | None = None) -> EventArrays:
        """`events` as flat arrays."""
        return self._numbers(self._draws.events(np.arange(self._event_count(count))))

    def other_event_arrays(self, count: int | None = None) -> EventArrays:
        """`other_events` as flat arrays."""
        return self._numbers(self._draws.other_events(np.arange(self._other_event_count(count))))

    @property
    def subscription_schema(self) -> pa.Schema:
        return self._arrow.subscription_schema

    def _event_schema(self, wide: bool) -> pa.Schema:
        return self._arrow.wide_schema if wide else self._arrow.event_schema

    @cached_property
    def _arrow(self) -> ArrowForm:
        from tamis.workload.arrow import ArrowForm

        return ArrowForm(self._domain)

    def _subscription_batch(self, block: int) -> pa.RecordBatch:
        arrays = self._draws.subscriptions(block)
        ids = block * SUBSCRIPTION_BLOCK + np.arange(len(arrays.ptr) - 1)
        return self._arrow.subscriptions(ids, arrays)

    def _event_batch(self, rows: range, wide: bool, other: bool) -> pa.RecordBatch:
        draw = self._draws.other_events if other else self._draws.events
        form = self._arrow.wide_events if wide else self._arrow.events
        return form(draw(np.array(rows)))

    def _numbers(self, events: EventArrays) -> EventArrays:
        return events._replace(value=self._domain.numbers(events.attribute, events.value))


def _made_of(config: PredicateConfig) -> tuple[Domain, Draws]:
    match config:
        case AlertsConfig():
            return AlertDomain(config), AlertDraws(config)
        case FabretConfig():
            return IntegerDomain(config.dimensions), FabretDraws(config)
        case TatbulConfig():
            return IntegerDomain(config.dimensions), TatbulDraws(config)
        case AdsConfig():
            return IntegerDomain(config.dimensions), AdDraws(config)
        case GramsConfig():
            return GramDomain(), GramDraws(config)
        case DerivedGramsConfig():
            return IntegerDomain(len(GRAM_NAMES), GRAM_NAMES), DerivedGramDraws(config)
        case KeywordsConfig():
            keywords = KeywordDraws(config)
            return keywords.domain(), keywords
        case ProductsConfig():
            products = ProductDraws(config)
            return products.domain(), products
        case PrefixesConfig():
            prefixes = PrefixDraws(config)
            return prefixes.domain(), prefixes
    domain = PaperDomain(config)
    return domain, PaperDraws(config, domain)
