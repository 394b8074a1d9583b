"""The definition of a history, as plain as possible: a list of all events that were retained, looked through for each event."""

from __future__ import annotations

from copy import copy
from datetime import date, timedelta
from typing import Any, NamedTuple

import tamis
from tamis.language.event import FlatEvent, flatten
from tamis.language.values import Interval, kind_of, to_microseconds


class _Kept(NamedTuple):
    time: Any
    number: int
    key: Any
    event: FlatEvent


class ReferenceHistory:
    """What `tamis.History` says, for events in order of arrival."""

    def __init__(self, history: tamis.History) -> None:
        self._history = history
        self._kept: list[_Kept] = []
        self._newest: Any = None
        self._kind: Any = None
        self._count = 0
        if history.age is not None:
            self._kind = "timestamp" if isinstance(history.age, timedelta) else "number"

    def copied(self) -> ReferenceHistory:
        """The same history, which changes on its own."""
        other = copy(self)
        vars(other)["_kept"] = list(self._kept)
        return other

    def before(self, event: dict[str, Any]) -> list[FlatEvent]:
        """The history of an event that comes now."""
        flat = flatten(event)
        time = self._time(flat)
        if self._history.order is not None and time is not None:
            self._kind = self._kind or kind_of(flat[self._history.order][0])
            self._newest = time if self._newest is None else max(time, self._newest)
        self._kept = [each for each in self._kept if not self._is_old(each.time)]
        key = self._key(flat)
        return [] if key is None else [each.event for each in self._kept if each.key == key]

    def add(self, event: dict[str, Any]) -> None:
        flat = flatten(event)
        time, key = self._time(flat), self._key(flat)
        if time is None or key is None or self._is_old(time):
            return
        self._kept.append(_Kept(time, self._count, key, flat))
        self._count += 1
        same = sorted([each for each in self._kept if each.key == key], key=lambda each: (each.time, each.number))
        if self._history.rows is not None and len(same) > self._history.rows:
            self._kept.remove(same[0])

    def __len__(self) -> int:
        return len(self._kept)

    def _is_old(self, time: Any) -> bool:
        age = self._history.age
        if age is None or self._newest is None:
            return False
        limit = age // timedelta(microseconds=1) if isinstance(age, timedelta) else age
        return bool(self._newest - time > limit)

    def _time(self, flat: FlatEvent) -> Any:
        if self._history.order is None:
            return 0
        values = flat.get(self._history.order, ())
        if len(values) != 1 or isinstance(values[0], Interval):
            return None
        kind = kind_of(values[0])
        if (
            kind not in ("number", "timestamp")
            or self._kind not in (None, kind)
            or values[0] in (float("inf"), -float("inf"))
        ):
            return None
        return to_microseconds(values[0]) if isinstance(values[0], date) else values[0]

    def _key(self, flat: FlatEvent) -> Any:
        if self._history.key is None:
            return "all"
        values = flat.get(self._history.key, ())
        if len(values) != 1 or isinstance(values[0], Interval):
            return None
        value = values[0]
        return kind_of(value), to_microseconds(value) if isinstance(value, date) else value
