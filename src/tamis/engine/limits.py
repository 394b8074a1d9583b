"""Limits of the engine, and sizes of its first buffers. They change how fast it is, and no result."""

from __future__ import annotations

from typing import NamedTuple

from tamis.engine.matching.thread_scratch import USUAL_SIZES, ScratchSizes


class Limits(NamedTuple):
    """The limits of one engine. Tests make them small, so that a few rows are enough to see everything."""

    delta_rows: int = 1 << 14
    """Rows of a full delta. An event looks at only a few of them, and building smaller deltas more often takes longer."""
    delta_apart: int = 4096
    """Rows apart that make a delta full. Every event looks at all of them, in some 5 microseconds."""
    segment_rows: int = 4096
    """Rows of one call that become a segment at once. Fewer rows go into the delta, where events find them as fast. Then the
    kernels that build and match segments need not be compiled, which takes twice as long as all other compiling."""
    segment_apart: int = 1024
    """Rows apart in one call that also make its rows a segment: in a delta, every event looks at all of them."""
    tier_rows: int = 4096
    """Rows of the largest segment of the first tier."""
    fan: int = 4
    """Segments merged at a time when a tier is full. Each tier has segments this many times as large as the tier before."""
    most_merged: int = 1 << 22
    """Rows of the largest segment that is merged with others. A larger one is only built again."""
    large_merge: int = 1 << 17
    """Merges with more rows than this are large. Large merges have a thread of their own."""
    slots_at_once: int = 64
    """New slots that are made together for subscriptions that come alone."""
    changes_per_look: int = 512
    """Single changes after which the engine looks for parts to merge."""
    changes_per_break: int = 32
    """Calls of a writer between two breaks. Threads that merge run in these breaks."""
    event_matches: int = 1 << 14
    """First room for the matches of a single event, in the buffers of a thread."""
    event_rows: int = 1 << 16
    """First room for the rows of one part that a single event satisfies."""
    event_dimensions: int = 256
    """First room for the dimensions of a single event."""
    event_deltas: int = 8
    """First room for the deltas of a version."""
    scratch: ScratchSizes = USUAL_SIZES
    """First sizes of the buffers for batches and segments."""
    brief_entries: int = 10_000
    """A single event keeps the GIL if it is expected to visit at most this many entries."""


USUAL_LIMITS = Limits()
