"""Changing subscriptions: they are entered into the matcher, then stored. If storing fails, the matcher is changed back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tamis.broker.state import State
from tamis.broker.tables import SubscriberRow, SubscriptionRow
from tamis.errors import DuplicateIdError, ExpressionError, IdTypeError, OptionError, UnknownIdError, shortened
from tamis.language.values import is_well_formed
from tamis.matcher.expression_reader import ExpressionReader


class NotGiven:
    """Stands for an argument that was not given, where None has a meaning."""

    def __repr__(self) -> str:
        return "(as before)"


NOT_GIVEN = NotGiven()


class Wanted(NamedTuple):
    """A subscription as one call gives it. What is not given stays as it was."""

    subscriber: str
    name: str
    expression: str | NotGiven = NOT_GIVEN
    weight: float | NotGiven = NOT_GIVEN
    valid_from: int | NotGiven | None = NOT_GIVEN
    valid_until: int | NotGiven | None = NOT_GIVEN


NEW_WEIGHT = 1.0


def checked_name(name: object, what: str) -> str:
    """A name of a subscriber or a subscription.

    Raises
    ------
    IdTypeError
    """
    if not isinstance(name, str):
        raise IdTypeError(f"the name of a {what} must be a str, not {type(name).__name__}: {shortened(name)}")
    if not name:
        raise IdTypeError(f"the name of a {what} must be a string with at least one character, not {shortened(name)}")
    if not is_well_formed(name):
        raise IdTypeError(f"the name of a {what} must be Unicode text, but {shortened(name)} holds a lone surrogate")
    return str(name)


class Subscribing:
    """Changes of subscriptions. The caller holds the lock."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._expressions = ExpressionReader(None, keeps_history=state.history is not None)

    def put(self, wanted: Sequence[Wanted]) -> None:
        """Add or change subscriptions, all or none.

        Raises
        ------
        UnknownIdError
            A subscription without an expression does not exist yet.
        OptionError, DuplicateIdError, ExpressionError
        """
        names = Counter((each.subscriber, each.name) for each in wanted)
        if len(names) < len(wanted):
            raise DuplicateIdError(next(name for name, count in names.items() if count > 1), twice=True)
        now = self._state.now()
        subscribers = self._subscribers(wanted)
        before: list[SubscriptionRow | None] = []
        after: list[SubscriptionRow] = []
        number = max(1, len(self._state.subscriber_of))
        for change, each in enumerate(wanted, self._state.change + 1):
            subscriber = subscribers[each.subscriber].number
            old = self._state.tables.subscription(subscriber, each.name)
            before.append(old)
            after.append(_changed(each, subscriber, old, number, change, now))
            number += old is None
        fresh = [row._replace(removed=0) for row in subscribers.values() if row.removed or self._is_new(row)]
        self._store(before, after, fresh, now)

    def _is_new(self, row: SubscriberRow) -> bool:
        return row.number > self._state.subscriber

    def _subscribers(self, wanted: Iterable[Wanted]) -> dict[str, SubscriberRow]:
        """The rows of subscribers, with new ones for new names."""
        found: dict[str, SubscriberRow] = {}
        fresh = self._state.subscriber
        for each in wanted:
            if each.subscriber not in found:
                row = self._state.tables.subscriber(each.subscriber)
                if row is None:
                    fresh += 1
                    row = SubscriberRow(fresh, each.subscriber, 0, 0, 0, 0)
                found[each.subscriber] = row
        return found

    def change(self, rows: Sequence[SubscriptionRow], **fields: Any) -> None:
        """Change fields of subscriptions: pause, resume, remove them."""
        now = self._state.now()
        change = self._state.change
        after = [row._replace(**fields, change=change + place) for place, row in enumerate(rows, 1)]
        self._store(rows, after, [], now)

    def remove_subscriber(self, subscriber: SubscriberRow) -> None:
        """Remove a subscriber with all its subscriptions. Its notes cannot be read any more."""
        rows = list(self._state.tables.subscriptions("subscriber = ? AND removed = 0", (subscriber.number,)))
        total, change = self._state.queues.total(subscriber.number), self._state.change
        after = [row._replace(removed=1, paused=0, change=change + place) for place, row in enumerate(rows, 1)]
        gone = subscriber._replace(cursor=total, dropped=total, removed=1)
        self._store(rows, after, [gone], self._state.moment)
        self._state.removals += 1

    def _store(
        self,
        before: Sequence[SubscriptionRow | None],
        after: Sequence[SubscriptionRow],
        subscribers: Sequence[SubscriberRow],
        now: int,
    ) -> None:
        """Enter changes into the matcher and the tables, and tell what comes of it."""
        state = self._state
        with state.changing():
            with self._naming(after):
                for row in after:
                    if not state.is_active(row):
                        self._expressions.read(row.expression)
                undo = _entered(state, before, after)
            try:
                active = {row.number: row.expression for row in after if state.is_active(row)}
                meetings = state.meet(active, now, state.meeting + 1)
                with state.changes_stored(len(after), now):
                    state.tables.put_subscribers(subscribers)
                    state.tables.put_subscriptions(after)
                    state.put_meetings(meetings)
            except BaseException:
                _entered(state, *undo)
                raise
            state.subscriber = max([state.subscriber, *(row.number for row in subscribers)])
            state.know_numbers()
            for old, row in zip(before, after, strict=True):
                if old is None or old.removed or _bounds(old) != _bounds(row):
                    state.plan(row)
            state.tell_meetings(meetings)

    @contextmanager
    def _naming(self, rows: Sequence[SubscriptionRow]) -> Iterator[None]:
        """Name a wrong subscription as users do. The matcher knows its number."""
        try:
            yield
        except ExpressionError as error:
            names = {row.number: row.name for row in rows}
            error.subscription = names.get(error.subscription) if len(rows) > 1 else None  # type: ignore[call-overload]
            raise

    def find(self, subscriber: str, name: str) -> SubscriptionRow:
        """The row of a subscription.

        Raises
        ------
        UnknownIdError
        """
        found = self.subscriber(subscriber)
        row = self._state.tables.subscription(found.number, checked_name(name, "subscription"))
        if row is None or row.removed:
            raise UnknownIdError((subscriber, name))
        return row

    def subscriber(self, name: str) -> SubscriberRow:
        """The row of a subscriber.

        Raises
        ------
        UnknownIdError
        """
        row = self._state.tables.subscriber(checked_name(name, "subscriber"))
        if row is None or row.removed:
            raise UnknownIdError(name, "subscriber")
        return row


def _entered(
    state: State, before: Sequence[SubscriptionRow | None], after: Sequence[SubscriptionRow | None]
) -> tuple[Sequence[SubscriptionRow | None], Sequence[SubscriptionRow | None]]:
    """Bring the matcher from one state of subscriptions to another. Returns what takes this back.

    Raises
    ------
    ExpressionError
        Nothing has changed then.
    """
    awake = [row for row in after if row is not None and state.is_active(row)]
    fresh = [row for row in awake if row.number not in state.matcher]
    other = [row for row in awake if row.number in state.matcher]
    state.wake(fresh)
    try:
        state.alter(other)
    except BaseException:
        state.rest(row.number for row in fresh)
        raise
    kept = {row.number for row in awake}
    state.rest(row.number for row in (*before, *after) if row is not None and row.number not in kept)
    return after, before


def _bounds(row: SubscriptionRow) -> tuple[int | None, int | None, int]:
    """When a subscription begins and ends, and whether it has begun."""
    return row.valid_from, row.valid_until, row.started


def _changed(
    wanted: Wanted, subscriber: int, old: SubscriptionRow | None, number: int, change: int, now: int
) -> SubscriptionRow:
    """The row of a subscription after a call."""
    is_new = old is None or bool(old.removed)
    if is_new and isinstance(wanted.expression, NotGiven):
        raise UnknownIdError((wanted.subscriber, wanted.name))
    base = old if old is not None and not old.removed else None
    expression = wanted.expression
    if isinstance(expression, NotGiven):
        assert base is not None
        expression = base.expression
    weight = wanted.weight
    if isinstance(weight, NotGiven):
        weight = NEW_WEIGHT if base is None else base.weight
    valid_from, valid_until = wanted.valid_from, wanted.valid_until
    if isinstance(valid_from, NotGiven):
        valid_from = None if base is None else base.valid_from
    if isinstance(valid_until, NotGiven):
        valid_until = None if base is None else base.valid_until
    if valid_from is not None and valid_until is not None and valid_from >= valid_until:
        raise OptionError(f"`valid_from` of {shortened((wanted.subscriber, wanted.name))} must be before `valid_until`")
    started = int(valid_from is None or valid_from <= now)
    paused = 0 if base is None else base.paused
    number = number if old is None else old.number
    return SubscriptionRow(
        number, subscriber, wanted.name, expression, weight, valid_from, valid_until, started, paused, 0, change
    )
