"""A webhook, a batch of notes, a dead letter."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple, get_args

from tamis.service.note_pages import NoteText

State = Literal["active", "paused", "disabled"]
"""``paused`` by a user, ``disabled`` by the service after too many failures."""
STATES: tuple[State, ...] = get_args(State)
Kind = Literal["notes", "replay"]
"""New notes, or dead letters that are sent again."""

USUAL_BATCH = 100
MOST_IN_BATCH = 1_000


@dataclass(slots=True)
class Webhook:
    """What is known about a webhook. The store keeps all of it."""

    subscriber: str
    id: str
    """Part of the name of each message. It never changes."""
    url: str
    secret: str = field(repr=False)
    batch: int = USUAL_BATCH
    """The most notes of one message."""
    state: State = "active"
    reason: str = ""
    """Why the last try failed, or why the webhook is disabled."""
    tries: int = 0
    """Tries of the batch that is under way; 0: there was no failure."""
    next_try: float = 0.0
    """When the next try is due, in seconds since 1970."""
    retrying: Kind | None = None
    """What the batch that is under way consists of."""
    batch_last: int = 0
    """The last note of the batch that is under way, so that a repeated message has the same notes."""
    failures: int = 0
    """Batches in a row that became dead letters."""
    missed: int = 0
    """Notes that were dropped by retention before they were sent."""
    old_secret: str = field(default="", repr=False)
    """The secret before the last rotation."""
    old_until: float = 0.0
    """Until then, messages are signed with the old secret, too. In seconds since 1970."""

    def secrets(self, now: float) -> tuple[str, ...]:
        """The secrets that sign a message: the new one, and the old one for a time after a rotation."""
        return (self.secret, self.old_secret) if self.old_secret and now < self.old_until else (self.secret,)

    def rotate(self, secret: str, now: float, overlap: float) -> None:
        """Take a new secret. The old one is valid for `overlap` seconds more."""
        self.old_secret, self.old_until = (self.secret, now + overlap) if overlap else ("", 0.0)
        self.secret = secret

    def settle(self) -> bool:
        """Forget the failures of a batch that was delivered. Returns whether there were any."""
        had_any = self.tries > 0 or self.failures > 0 or bool(self.reason)
        self.begin_again()
        self.failures, self.reason = 0, ""
        return had_any

    def begin_again(self) -> None:
        """No batch is under way any more."""
        self.tries, self.next_try, self.retrying, self.batch_last = 0, 0.0, None, 0

    def become(self, other: Webhook) -> None:
        """Take over all values of another record."""
        for each in fields(self):
            setattr(self, each.name, getattr(other, each.name))

    def shown(self, dead_letters: int) -> dict[str, Any]:
        """The webhook for an answer, without the secret."""
        return {
            "subscriber": self.subscriber,
            "url": self.url,
            "state": self.state,
            "batch": self.batch,
            "tries": self.tries,
            "next_try": self.next_try or None,
            "reason": self.reason,
            "failures": self.failures,
            "missed": self.missed,
            "dead_letters": dead_letters,
            "old_secret_until": self.old_until if self.old_until > time.time() else None,
        }


class Batch(NamedTuple):
    """Notes that are sent in one message."""

    kind: Kind
    notes: list[NoteText]

    @property
    def first(self) -> int:
        return self.notes[0].sequence

    @property
    def last(self) -> int:
        return self.notes[-1].sequence

    def message(self, webhook: str) -> str:
        """The name of the message. A repeated message has the same name."""
        letter = "n" if self.kind == "notes" else "r"
        return f"{webhook}-{letter}{self.first}-{self.last}"

    def body(self, subscriber: str) -> bytes:
        """The message: JSON in ASCII."""
        name = json.dumps(subscriber)
        return f'{{"subscriber":{name},"notifications":[{",".join(each.text for each in self.notes)}]}}'.encode()


class DeadLetter(NamedTuple):
    """A note that could not be delivered."""

    sequence: int
    note: str
    """The note as JSON text."""
    tries: int
    reason: str
    moment: float
    """When it was given up, in seconds since 1970."""
    replaying: bool
    """Whether it waits to be sent again."""
