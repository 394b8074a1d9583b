"""Answers of a matcher compared with those of a scan, for tasks that change subscriptions."""

from __future__ import annotations

import pyarrow as pa

import tamis
from tamis.errors import ExperimentError


def check_matcher(matcher: tamis.Matcher[int], subscriptions: pa.Table, events: pa.Table) -> None:
    """Raise an ExperimentError unless a matcher finds what a scan of these subscriptions finds."""
    scan: tamis.Matcher[int] = tamis.Matcher(index="scan")
    scan.add_table(subscriptions)
    found, right = (_pairs(each.match_batch(events, 1)) for each in (matcher, scan))
    if found != right:
        raise ExperimentError(f"{len(found)} matches, but a scan finds {len(right)}: the answers are not equal")


def _pairs(table: pa.Table) -> list[tuple[int, int]]:
    """Matches as pairs of an event and a subscription, in order."""
    return sorted(zip(*(table.column(name).to_pylist() for name in ("event", "subscription")), strict=True))
