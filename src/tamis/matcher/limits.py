"""Limits of a store. They change how fast it is, and no result."""

from __future__ import annotations

from typing import NamedTuple

from tamis.earlier.block_summary import BLOCK
from tamis.earlier.prefilter import FROM
from tamis.earlier.shelf import FEW
from tamis.encoding.events.mapping_encoder import FEW as FEW_MAPPINGS
from tamis.engine.limits import USUAL_LIMITS, Limits


class StoreLimits(NamedTuple):
    """The limits of one store. Tests make them small."""

    engine: Limits = USUAL_LIMITS
    gone_per_look: int = 1024
    """Removed subscriptions after which the store of the engine checks whether constants and dimensions are due to be swept."""
    fewest_to_sweep: int = 256
    """Removed subscriptions from which on the store of an index may be swept."""
    rows_at_once: int = 1 << 16
    """Rows of a table that are encoded at a time, since encoding takes several times the memory of its result."""
    share_bytes: int = 1 << 19
    """Bytes of a table that are worth a thread of their own to encode. Two threads with 0.2 MB each took 1.3 times as long as one
    thread. With 0.9 MB each, they took 0.7 times as long."""
    json_share_bytes: int = 1 << 17
    """The same for reading JSON lines, which takes longer."""
    mappings_at_once: int = 1 << 14
    """Mappings that one thread encodes while the other threads match those before them."""
    few_mappings: int = FEW_MAPPINGS
    """Mappings from which on a batch of them is encoded by column."""
    events_at_once: int = 4096
    """Events that `match_iter` matches at a time."""
    ids_per_lookup: int = 4
    """Ids that can be laid out in the time that finding one id for a result takes."""
    pending_in_engine: int = 256
    """The most subscriptions, added one by one, that wait to be compiled together."""
    pending_in_index: int = 4096
    """The same in the store of an index, which inserts many conjunctions together faster than one by one."""
    scanned_history: int = FEW
    """Earlier events of one key that are gathered again for each event that asks about them."""
    history_block: int = BLOCK
    """Earlier events of a block, which has a summary."""
    history_stretch: int = 16
    """Pairs of a row and a rest that are worth deciding together, on average for each stretch of a batch."""
    prefilter_from: int = FROM
    """Distinct needs of subscriptions from which on the pre-filter skips those that no event can satisfy."""


USUAL_STORE_LIMITS = StoreLimits()
