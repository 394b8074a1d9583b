"""Limits of a broker. Tests set small ones."""

from __future__ import annotations

from typing import NamedTuple


class BrokerLimits(NamedTuple):
    """Sizes that decide when something happens, not what happens."""

    notes_in_tail: int = 65_536
    """Notes that lie in a dictionary before they become a block of the queues."""
    changes_behind: int = 20_000
    """Changes of subscriptions after which the matcher is saved again."""
    changes_to_save: int = 1_000
    """Changes after which the matcher is saved when the broker is closed."""
    events_between_sweeps: int = 10_000
    """Events after which events that are too old leave the tables."""
    rows_at_once: int = 20_000
    """Rows of a table that are read together."""
    notes_at_once: int = 100
    """Notes of a subscriber that are read together."""


USUAL_BROKER_LIMITS = BrokerLimits()
