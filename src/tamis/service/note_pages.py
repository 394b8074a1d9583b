"""Pages of notes as JSON text, within bounds of number and size. A page is all that a stream holds in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tamis.broker import Broker, Note
from tamis.broker.answer_json import note_json
from tamis.errors import RetentionError
from tamis.service.answers import json_bytes

PAGE_NOTES = 100
PAGE_BYTES = 256 * 1024
"""Bytes of one page. A page with one note may be longer."""
ANSWER_BYTES = 4 * 1024 * 1024
"""Bytes of the records of an answer. An answer with one record may be longer."""


class NoteText(NamedTuple):
    """A note as JSON text."""

    sequence: int
    text: str


class Page:
    """A page of an answer, as JSON. Each record is encoded alone: one call for all would stop the event loop for long."""

    def __init__(self, most: int) -> None:
        self.last = 0
        self.count = 0
        self._most = most
        self._size = 0
        self._parts: list[bytes] = []
        self._is_cut = False

    def add(self, number: int, record: Any) -> bool:
        """Add a record, unless the page would be too long. A page has one record at least."""
        part = json_bytes(record)
        self._size += len(part)
        if self._parts and self._size > ANSWER_BYTES:
            self._is_cut = True
            return False
        self._parts.append(part)
        self.last = number
        self.count += 1
        return True

    @property
    def is_last(self) -> bool:
        """Whether nothing comes after the page."""
        return self.count < self._most and not self._is_cut

    def text(self, after: str, name: str) -> bytes:
        """The object with the list of all records, and what stands `after` it."""
        return b"".join((f'{{"{name}":['.encode(), b",".join(self._parts), f"],{after}}}".encode()))


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
