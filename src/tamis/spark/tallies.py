"""What a task counts: events, candidates, matches, fetched files, and seconds by phase. This module does not use Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

Tally = dict[str, float]

EVENTS, CANDIDATES, MATCHES = "events", "candidates", "matches"
"""Events that were matched, once for each group of segments; entries of the index that they visited; their matches."""
OPENED, FETCHED, FETCHED_BYTES = "segments opened", "files fetched", "bytes fetched"
"""Segments that a process mapped; files that came from a store, and their sizes."""
HITS = "cache hits"
"""Files of a store that a process needed and found on its host."""
OPENING, MATCHING, NAMING = "seconds opening", "seconds matching", "seconds naming"
"""Time of all tasks together. Opening includes fetching and waiting for other processes; naming is making rows of ids."""
SECONDS = (OPENING, MATCHING, NAMING)
BUILT = "shards built"
"""Buckets of subscriptions that tasks have finished."""
NAMES = (EVENTS, CANDIDATES, MATCHES, OPENED, FETCHED, FETCHED_BYTES, HITS, OPENING, MATCHING, NAMING)


@contextmanager
def timed(tally: Tally, phase: str) -> Iterator[None]:
    """Add the time of a block to a phase."""
    begun = time.perf_counter()
    try:
        yield
    finally:
        tally[phase] = tally.get(phase, 0.0) + time.perf_counter() - begun


def count(tally: Tally, name: str, number: float) -> None:
    """Add to a count."""
    tally[name] = tally.get(name, 0) + number
