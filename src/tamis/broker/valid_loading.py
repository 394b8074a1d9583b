"""Loading the valid events: from a file as far as it goes, then from the tables."""

from __future__ import annotations

from tamis.broker.checksums import checked
from tamis.broker.event_text import read_event
from tamis.broker.limits import BrokerLimits
from tamis.broker.tables import Tables
from tamis.broker.valid_events import ValidEvents
from tamis.broker.valid_file import SavedEvents
from tamis.language.event import flatten


def load_valid(tables: Tables, saved: SavedEvents | None, since: int, limits: BrokerLimits) -> ValidEvents:
    """The events that are valid at a moment or later. A damaged file is deleted."""
    valid = load_quickly(tables, saved, since, limits)
    if valid is None:
        valid = ValidEvents(few_to_know=limits.strings_to_know)
        _catch_up(valid, tables, 0, since)
    return valid


def load_quickly(tables: Tables, saved: SavedEvents | None, since: int, limits: BrokerLimits) -> ValidEvents | None:
    """The same; None if there is no good file, and the tables have so many valid events that reading them would take long."""
    contents = None
    if saved is not None:
        contents = saved.read()
        if contents is None:
            saved.delete()
    if saved is not None and contents is not None:
        valid = ValidEvents.restored(contents, limits.strings_to_know)
        _catch_up(valid, tables, saved.event, since)
        valid.forget(since)
        return valid
    sql = "SELECT count(*) FROM (SELECT 1 FROM events WHERE valid_until > ? LIMIT ?)"
    if tables.one(sql, (since, limits.valid_behind + 1))[0] > limits.valid_behind:
        return None
    valid = ValidEvents(few_to_know=limits.strings_to_know)
    # With the plus, SQLite goes through the valid events alone, by their ends, and sorts them.
    _catch_up(valid, tables, 0, since, "+sequence")
    return valid


def _catch_up(valid: ValidEvents, tables: Tables, after: int, since: int, number: str = "sequence") -> None:
    """Add the events of the tables that follow an event and are valid at a moment or later."""
    columns = "valid_until, sequence, event, event_checksum"
    sql = f"SELECT {columns} FROM events WHERE {number} > ? AND valid_until > ? ORDER BY {number}"
    for valid_until, *row in tables.rows(sql, (after, since)):
        sequence, text = checked(row)
        valid.add(sequence, flatten(read_event(text)), valid_until)
