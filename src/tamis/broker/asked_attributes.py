"""The attributes that subscriptions ask about now.

The matcher knows those of all subscriptions that it ever had. When some have left it, the texts of the others are read, up to the
first one for each attribute. Later, only what has changed is read. Nobody waits meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tamis.broker.limits import BrokerLimits
from tamis.broker.reading import Reading
from tamis.language.reading import to_expression
from tamis.language.values import INT64_MAX


class Asked(NamedTuple):
    """What the matcher says at a moment."""

    names: frozenset[str]
    """All attributes that it knows."""
    rests: int
    """How often subscriptions had left it."""
    change: int
    moment: int


class AskedAttributes:
    """Looks up which attributes are still asked about, and remembers it."""

    def __init__(self, reading: Reading, limits: BrokerLimits) -> None:
        self._reading, self._limits = reading, limits
        self._known: tuple[Asked | None, frozenset[str]] = None, frozenset()
        """The last question, and its answer."""

    def names(self, asked: Asked) -> set[str]:
        """The attributes of the subscriptions that events meet."""
        (last, known), after = self._known, 0
        missing, found = set(asked.names), set[str]()
        if last is not None and last.rests == asked.rests:  # What was asked about still is.
            found |= known
            missing -= found
            after = last.change
        for text in self._texts(asked.moment, after):
            if not missing:
                break
            if (
                len(missing) > self._limits.names_to_look_for
                or "`" in text
                or any(name.rpartition(".")[2] in text for name in missing)
            ):
                own = to_expression(text).attributes() & missing
                found |= own
                missing -= own
        self._known = asked, frozenset(found)
        return found

    def _texts(self, moment: int, after: int) -> Iterator[str]:
        """The expressions of subscriptions that have changed after a change and are awake at a moment."""
        sql = (
            "SELECT change, expression FROM subscriptions WHERE change > ? AND removed = 0 AND paused = 0 "
            "AND (started = 1 OR valid_from <= ?) AND coalesce(valid_until, ?) > ? ORDER BY change LIMIT ?"
        )
        while rows := self._reading.select(sql, (after, moment, INT64_MAX, moment, self._limits.rows_at_once)):
            for _, text in rows:
                yield text
            after = rows[-1][0]
