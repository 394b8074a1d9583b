"""Limits of a store. They change how fast it is, and no result."""

from __future__ import annotations

from typing import NamedTuple

from tamis.engine.limits import USUAL_LIMITS, Limits


class StoreLimits(NamedTuple):
    """The limits of one store. Tests make them small."""

    engine: Limits = USUAL_LIMITS
    gone_per_look: int = 1024
    """Removed subscriptions after which the store of the engine checks whether constants and dimensions are due to be swept."""
    fewest_to_sweep: int = 256
    """Removed subscriptions from which on the store of an index may be swept."""
    share_bytes: int = 1 << 19
    """Bytes of a table that are worth a thread of their own to encode: two shares of 0.2 MB took 1.3 times as long as one thread,
    two of 0.9 MB took 0.7 times as long."""
    events_at_once: int = 4096
    """Events that `match_iter` matches at a time."""
    ids_per_lookup: int = 4
    """Ids that can be laid out in the time that finding one id for a result takes."""


USUAL_STORE_LIMITS = StoreLimits()
