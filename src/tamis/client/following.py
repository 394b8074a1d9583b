"""Notes as they come, over a stream that is opened again when it breaks."""

from __future__ import annotations

import json

from tamis.broker import Note
from tamis.client.answers import note_of
from tamis.client.exchange import Failure, Reply, Request, failed, wait_after
from tamis.client.problems import error_in
from tamis.client.writing import path_of, query_of

SILENCE = 45.0
"""Seconds without a byte after which a stream is broken. The service sends something every 15 seconds."""


class Following:
    """Where a stream of notes has come to."""

    def __init__(self, subscriber: str, after: int, tries: int) -> None:
        self._path = path_of("subscribers", subscriber, "stream")
        self._after = after
        self._tries = tries
        self._failures = 0

    def request(self) -> Request:
        """The request that opens the stream where it has come to."""
        return Request("GET", self._path, query_of(after=self._after), patience=SILENCE)

    def note_in(self, event: str, data: str) -> Note | None:
        """The note in a server-sent event, if there is one.

        Raises
        ------
        TamisError
            The event says why the stream cannot go on.
        """
        self._failures = 0
        if not data:
            return None
        if event == "problem":
            document = json.loads(data)
            raise error_in(document, document["status"], {})
        note = note_of(json.loads(data))
        self._after = note.sequence
        return note

    def wait(self, answer: Reply | Failure) -> float:
        """Seconds until the stream is opened again. An answer with status 200 is a stream that has ended.

        Raises
        ------
        TamisError
            It is of no use to open it again.
        """
        self._failures += 1
        request = self.request()
        ended = isinstance(answer, Reply) and answer.status == 200
        wait = wait_after(request, Failure("", sent=True) if ended else answer, self._failures)
        if wait is None or self._failures >= self._tries:
            raise failed(request, Failure("the stream ends", sent=True) if ended else answer)
        return wait
