"""When subscriptions begin and end. The next ones are found without looking at all."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, NamedTuple


class Turn(NamedTuple):
    """A subscription begins or ends at a moment."""

    moment: int
    is_start: bool
    number: int


class Schedule:
    """Beginnings and ends that lie ahead. A changed or removed subscription leaves its old ones here, so readers check each."""

    def __init__(self) -> None:
        self._ahead: list[Turn] = []

    def __len__(self) -> int:
        return len(self._ahead)

    def add(self, number: int, start: int | None, end: int | None) -> None:
        """Note when a subscription begins and ends; None where it does not."""
        if start is not None:
            heapq.heappush(self._ahead, Turn(start, True, number))
        if end is not None:
            heapq.heappush(self._ahead, Turn(end, False, number))

    def add_many(self, turns: Iterable[Sequence[Any]]) -> None:
        """Note many at once: moments, whether something begins, and numbers."""
        self._ahead += map(Turn._make, turns)
        heapq.heapify(self._ahead)

    @property
    def next(self) -> int | None:
        """The moment of the next beginning or end."""
        return self._ahead[0].moment if self._ahead else None

    def due(self, now: int) -> Iterator[tuple[int, list[Turn]]]:
        """Take out what is due, by moment."""
        taken = []
        while self._ahead and self._ahead[0].moment <= now:
            taken.append(heapq.heappop(self._ahead))
        for moment, turns in groupby(taken, key=lambda turn: turn.moment):
            yield moment, list(turns)
