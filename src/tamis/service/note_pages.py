"""Pages of notes as JSON text, within bounds of number and size. A page is all that a stream holds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tamis.broker import Broker, Note
from tamis.broker.answer_json import note_json
from tamis.errors import RetentionError
from tamis.service.answers import json_bytes

PAGE_NOTES = 100
PAGE_BYTES = 256 * 1024
"""Bytes of one page. A page with one note may be longer."""


class NoteText(NamedTuple):
    """A note as JSON text."""

    sequence: int
    text: str


def read_page(broker: Broker, subscriber: str, after: int, most: int = PAGE_NOTES) -> list[NoteText]:
    """The next notes after a number. It runs in a thread.

    Raises
    ------
    UnknownIdError
    RetentionError
        The next note was dropped.
    """
    return within(_texts(broker.notifications(subscriber, after)), most)


def within(notes: Iterator[NoteText], most: int) -> list[NoteText]:
    """The first notes, as many as a page may have."""
    found: list[NoteText] = []
    size = 0
    try:
        for each in notes:
            size += len(each.text)
            if found and size > PAGE_BYTES:
                break
            found.append(each)
            if len(found) == most:
                break
    except RetentionError:
        if not found:
            raise
    return found


def _texts(notes: Iterator[Note]) -> Iterator[NoteText]:
    return (NoteText(note.sequence, json_bytes(note_json(note)).decode()) for note in notes)
