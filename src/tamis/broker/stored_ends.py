"""How far the tables go: the last event, the last meeting, the newest moment, and what has left the tables."""

from __future__ import annotations

from tamis.broker.tables import Tables

LAST_CHANGE = "moment"
"""The setting with the time of the last change of subscriptions, or of closing the broker after that."""


def last_moment(tables: Tables) -> int:
    """The newest moment that is stored: of an event, a change of subscriptions, a deletion, or of closing the broker.

    A clock may go back, but time does not go back behind this.
    """
    row = tables.one("SELECT published FROM events ORDER BY sequence DESC LIMIT 1")
    return max(0 if row is None else row[0], tables.setting(LAST_CHANGE) or 0, tables.setting("last_deletion") or 0)


def store_moment(tables: Tables, moment: int) -> None:
    """Store the latest moment that a broker has seen, when it is closed: what has begun or ended until then stays so."""
    if not tables.in_memory and moment > last_moment(tables):
        with tables.transaction():
            tables.put_setting(LAST_CHANGE, moment)


def last_deleted(tables: Tables) -> tuple[int, int]:
    """The last event and the last meeting that have left the tables."""
    return tables.setting("last_deleted_event") or 0, tables.setting("last_deleted_meeting") or 0


def end_of(tables: Tables) -> tuple[int, int]:
    """The last event and the last meeting, also if they have left the tables."""
    event, meeting = last_deleted(tables)
    return max(event, tables.last("events", "sequence")), max(meeting, tables.last("meetings"))


def reaches(end: tuple[int, int], deleted: tuple[int, int]) -> bool:
    """Whether queues up to `end` have counted all notes that have left the tables. Otherwise the queues must be made again, since
    the numbers of notes in the tables follow the numbers of notes that have left."""
    return end[0] >= deleted[0] and end[1] >= deleted[1]
