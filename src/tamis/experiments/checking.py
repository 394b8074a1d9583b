"""Answers of a matcher compared with those of a scan, for tasks that change subscriptions."""

from __future__ import annotations

import pyarrow as pa

import tamis
from tamis.errors import ExperimentError


def check_matcher(matcher: tamis.Matcher[int], subscriptions: pa.Table, events: pa.Table) -> None:
    """Raise an ExperimentError unless a matcher finds what a scan of these subscriptions finds."""
    scan: tamis.Matcher[int] = tamis.Matcher(index="scan")
    scan.add_table(subscriptions)
    for event, (found, right) in enumerate(
        zip(matcher.match_batch(events, 1), scan.match_batch(events, 1), strict=True)
    ):
        if sorted(found) != sorted(right):
            raise ExperimentError(
                f"event {event}: {len(found)} matches, but a scan finds {len(right)}: the answers are not equal"
            )
