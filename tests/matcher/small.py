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


def small_limits(delta_rows: int = 8, swept: int = 4) -> StoreLimits:
    """Limits for deltas of a few rows, and for sweeps after a few removals."""
    return StoreLimits(Limits(delta_rows=delta_rows), gone_per_look=swept, fewest_to_sweep=swept)


def small_matcher(
    index: str = "auto", schema: Any = None, *, delta_rows: int = 8, swept: int = 4
) -> tamis.Matcher[Any]:
    return matcher_with(small_limits(delta_rows, swept), index, schema)
