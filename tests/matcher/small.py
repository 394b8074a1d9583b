"""Matchers with small limits, so that a few subscriptions and events are enough to freeze, merge and sweep."""

from __future__ import annotations

from typing import Any

import tamis
from tamis.engine.limits import Limits
from tamis.language.schema import Schema
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store


def matcher_with(limits: StoreLimits, index: str = "auto", schema: Any = None) -> tamis.Matcher[Any]:
    return matcher_over(new_store(index, None if schema is None else Schema.of(schema), limits=limits))


def small_matcher(
    index: str = "auto", schema: Any = None, *, delta_rows: int = 8, swept: int = 4
) -> tamis.Matcher[Any]:
    """A matcher with deltas of a few rows. It may sweep after a few removals."""
    engine = Limits(delta_rows=delta_rows)
    return matcher_with(StoreLimits(engine, gone_per_look=swept, fewest_to_sweep=swept), index, schema)
