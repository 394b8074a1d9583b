"""The order in which events leave: by time, and by arrival if times are equal.

in order    the events whose time is not below that of the event before them: they leave as they came
late        a heap of the others
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from typing import Any, Generic, NamedTuple, TypeVar

Time = int | float
"""The time of an event; microseconds if it is a timestamp."""

T = TypeVar("T")


class Due(NamedTuple, Generic[T]):
    """An event that leaves in its turn."""

    time: Time
    number: int
    shelf: T


class Leaving(Generic[T]):
    """Events with times. The event with the lowest time leaves first, of equal ones the first to arrive."""

    def __init__(self) -> None:
        self._in_order: deque[Due[T]] = deque()
        self._late: list[tuple[Time, int, Due[T]]] = []

    def __len__(self) -> int:
        return len(self._in_order) + len(self._late)

    def has_late(self) -> bool:
        """Whether some event came late."""
        return bool(self._late)

    def times(self) -> Iterator[Time]:
        """The times of the events that came in order."""
        return (due.time for due in self._in_order)

    def add(self, time: Time, number: int, shelf: T) -> None:
        """Note an event. Numbers ascend."""
        due = Due(time, number, shelf)
        if self._in_order and time < self._in_order[-1].time:
            heappush(self._late, (time, number, due))
        else:
            self._in_order.append(due)

    def first(self) -> Due[T]:
        """The event to leave first. There must be one."""
        if self._late and (not self._in_order or self._late[0][:2] < self._in_order[0][:2]):
            return self._late[0][2]
        return self._in_order[0]

    def pop(self) -> Due[T]:
        """Forget the event to leave first."""
        first = self.first()
        if self._in_order and first is self._in_order[0]:
            self._in_order.popleft()
        else:
            heappop(self._late)
        return first

    def keep(self, is_there: Callable[[Due[T]], Any]) -> None:
        """Forget the events that are not there any more."""
        self._in_order = deque(filter(is_there, self._in_order))
        self._late = [each for each in self._late if is_there(each[2])]
        heapify(self._late)
