"""Loading the valid events: from a file as far as it goes, then from the tables."""

from __future__ import annotations

from tamis.broker.checksums import checked
from tamis.broker.event_text import read_event
from tamis.broker.tables import Tables
from tamis.broker.valid_events import ValidEvents
from tamis.broker.valid_file import SavedEvents
from tamis.language.event import flatten


def load_valid(tables: Tables, saved: SavedEvents | None, since: int, few_to_know: int) -> ValidEvents:
    """The events that are valid at a moment or later. A damaged file is deleted."""
    if saved is not None:
        contents = saved.read()
        if contents is not None:
            valid = ValidEvents.restored(contents, few_to_know)
            _catch_up(valid, tables, saved.event, since)
            valid.forget(since)
            return valid
        saved.delete()
    valid = ValidEvents(few_to_know=few_to_know)
    _catch_up(valid, tables, 0, since)
    return valid


def _catch_up(valid: ValidEvents, tables: Tables, after: int, since: int) -> None:
    """Add the events of the tables that follow an event and are valid at a moment or later."""
    columns = "valid_until, sequence, event, event_checksum"
    sql = f"SELECT {columns} FROM events WHERE sequence > ? AND valid_until > ? ORDER BY sequence"
    for valid_until, *row in tables.rows(sql, (after, since)):
        sequence, text = checked(row)
        valid.add(sequence, flatten(read_event(text)), valid_until)
