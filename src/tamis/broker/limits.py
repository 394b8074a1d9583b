"""Limits of a broker. Tests set small ones."""

from __future__ import annotations

from typing import NamedTuple


class BrokerLimits(NamedTuple):
    """Sizes that decide when something happens, not what happens."""

    notes_in_tail: int = 65_536
    """Notes that lie in a dictionary before they become a block of the queues."""
    blocks_to_merge: int = 8
    """Blocks of one size that become one."""
    changes_behind: int = 20_000
    """Changes of subscriptions that the saved matcher may lack. It is saved in the background after half as many."""
    changes_to_save: int = 1_000
    """Changes after which the matcher is saved when the broker is closed."""
    valid_behind: int = 20_000
    """New valid events after which all valid events are saved again, if they are also a quarter of all. As many are read from the
    tables when a folder is opened without a file of them."""
    valid_to_save: int = 1_000
    """The same when the broker is closed, if they are also a 32nd of all."""
    strings_to_know: int = 65_536
    """Strings of a saved column that get a dictionary at once. For 1,000,000 strings that would take half a second."""
    events_between_sweeps: int = 10_000
    """Events after which events that are too old leave the tables."""
    events_deleted_at_once: int = 500
    """Events that are deleted in one transaction."""
    pages_freed_at_once: int = 1_000
    """Free pages of the tables that are given back in one step."""
    rows_at_once: int = 20_000
    """Rows of a table that are read together."""
    names_to_look_for: int = 100
    """Attributes that are looked for in the text of an expression. If there are more, parsing it is quicker."""
    notes_at_once: int = 100
    """Notes of a subscriber that are read together."""
    log_pages: int = 4_096
    """Pages in SQLite's log at which SQLite copies it to the tables: 16 MB. SQLite's own 1,000 means more pauses."""


USUAL_BROKER_LIMITS = BrokerLimits()
