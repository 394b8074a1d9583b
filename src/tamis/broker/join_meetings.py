"""Subscriptions with joins meet stored events: each event is compared with its own history, the events that were retained then.

The columns of `ValidEvents` find the candidates: the events that satisfy the constant part of an expression. A store of its own
goes through the events of one key after the other, from one candidate to the next:

    events of a key     1  2  3  4  5  6  ............  40 41 42
    candidates             2        5                   40    42
    steps               read the history of 2           read the history of 40
                        decide 2, retain 3 and 4        decide 40, retain 41
                        decide 5                        decide 42

If the next candidate is so far away that its history has other events, the history is read from the tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby, islice
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.history_table import HistoryRow, HistoryTable
from tamis.broker.valid_events import ValidEvents
from tamis.earlier.join_table import necessary
from tamis.earlier.retained import RetainedContents
from tamis.kernels.numbers import I64s
from tamis.language.event import FlatEvent
from tamis.language.expression import Expression
from tamis.language.values import Kind, from_microseconds
from tamis.matcher.history_store import HistoryStore
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tamis.matcher.matcher import Matcher, matcher_over

_TOGETHER = 1000
"""Events that are decided together."""


class _Step(NamedTuple):
    """An event to decide, or to retain only. `number` is None in an event that only lets time pass."""

    number: int | None
    event: FlatEvent
    is_candidate: bool


def meet_joins(
    table: HistoryTable, valid: ValidEvents, wanted: Mapping[int, Expression], moment: int
) -> dict[int, I64s]:
    """The numbers of the events that are valid at a moment and satisfy each expression, ascending."""
    candidates = valid.meet({number: necessary(each) for number, each in wanted.items()}, moment)
    found: dict[int, list[int]] = {number: [] for number in wanted}
    past = _Past(table, wanted)
    rows = table.stored(np.unique(np.concatenate(list(candidates.values()))).tolist())
    for _, shelf in groupby(sorted(rows, key=_place), key=_place):
        past.decide(list(shelf), found)
    return {number: np.sort(np.array(events, np.int64)) for number, events in found.items()}


def _place(row: HistoryRow) -> tuple[str, str, Any]:
    """Sorts rows by key. Keys of one kind can be compared."""
    return ("", "", 0) if row.kind is None else ("key", row.kind, row.key)


class _Past:
    """The history of one stored event after the other."""

    def __init__(self, table: HistoryTable, wanted: Mapping[int, Expression]) -> None:
        self._table = table
        self._store = HistoryStore(table.history, None, USUAL_STORE_LIMITS)
        matcher: Matcher[int] = matcher_over(self._store)
        matcher.add_many(list(wanted), list(wanted.values()))

    def decide(self, rows: list[HistoryRow], found: dict[int, list[int]]) -> None:
        """Note which subscriptions some events of one key satisfy. The events are in order."""
        if rows[0].kind is None:  # Their histories are empty, and they are in no other history.
            groups = [[row] for row in rows]
        else:
            between = self._table.numbers_between(rows[0], rows[-1])
            groups = self._groups(rows, np.searchsorted(between, [row.sequence for row in rows]))
        for group in groups:
            events, newest = self._table.before(group[0]), group[0].newest
            self._store.restore_retained(RetainedContents(events, newest, self._table.time_kind, 0))
            self._go(self._steps(group), found)

    def _groups(self, rows: list[HistoryRow], places: I64s) -> list[list[HistoryRow]]:
        """The candidates in groups: the next one is near if no more events lie in between than a history may have."""
        rows_kept = self._table.history.rows
        near = rows_kept or _TOGETHER + max(len(self._table.before(row)) for row in (rows[0], rows[-1]))
        ends = np.flatnonzero(np.diff(places) > near) + 1
        return [rows[start:end] for start, end in zip([0, *ends], [*ends, len(rows)], strict=True)]

    def _steps(self, group: list[HistoryRow]) -> Iterator[_Step]:
        wanted = {row.sequence: row for row in group}
        for number, event in self._table.events_between(group[0], group[-1]):
            row = wanted.get(number)
            time = None if row is None else self._moment(row)
            if time is not None:
                yield _Step(None, time, is_candidate=False)
            yield _Step(number, event, is_candidate=row is not None)

    def _moment(self, row: HistoryRow) -> FlatEvent | None:
        """An event that drops what is too old because of events with other keys: they have made the largest time larger."""
        history = self._table.history
        if history.order is None or history.key is None or row.newest is None:
            return None
        value = from_microseconds(int(row.newest)) if self._table.time_kind is Kind.TIMESTAMP else row.newest
        return {history.order: (value,)}

    def _go(self, steps: Iterator[_Step], found: dict[int, list[int]]) -> None:
        while some := list(islice(steps, _TOGETHER)):
            decided = self._store.decide([step.event for step in some], [not step.is_candidate for step in some])
            for step, each in zip(some, decided, strict=True):
                for subscription in each.ids:
                    assert step.number is not None
                    found[subscription].append(step.number)
