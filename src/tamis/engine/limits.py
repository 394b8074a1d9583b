"""Sizes at which the engine changes its ways, and sizes of its first buffers. All of them only decide how fast it is."""

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
    """Segments of one tier that are merged. A tier has segments this many times as large as the tier before."""
    most_merged: int = 1 << 22
    """Rows of the largest segment that is merged with others. A larger one is only built again."""
    large_merge: int = 1 << 17
    """Rows of the largest merge that is not large. Large merges have a thread of their own."""
    slots_at_once: int = 64
    """New slots that are made together for subscriptions that come alone."""
    changes_per_look: int = 512
    """Changes that come alone between two looks for parts to merge."""
    changes_per_break: int = 32
    """Calls that change something between two breaks, in which threads that merge can run."""
    event_matches: int = 1 << 14
    """Matches of a single event that the buffers of a thread first have room for."""
    event_rows: int = 1 << 16
    """Rows that a single event satisfies in one part, likewise."""
    event_dimensions: int = 256
    """Dimensions of a single event, likewise."""
    event_deltas: int = 8
    """Deltas of a version, likewise."""
    scratch: ScratchSizes = USUAL_SIZES
    """Sizes of the buffers for batches and segments at first."""
    brief_entries: int = 10_000
    """Entries that a single event may be expected to visit if it is to be matched without releasing the GIL."""


USUAL_LIMITS = Limits()
