"""The calls of a broker that change subscriptions and list them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from tamis.broker.answers import Change, StandingSubscription
from tamis.broker.arguments import listed, plain_number
from tamis.broker.moments import read_moment
from tamis.broker.session import Session
from tamis.broker.subscribing import NOT_GIVEN, NotGiven, Wanted, checked_name
from tamis.broker.table_rows import row_events
from tamis.broker.tables import SubscriptionRow
from tamis.errors import OptionError, shortened
from tamis.matcher.event_input import as_table
from tamis.matcher.options import plain_weight


class SubscriptionCalls(Session):
    """Subscribing, pausing, removing."""

    def subscribe(
        self,
        subscriber: str,
        name: str,
        expression: Any = NOT_GIVEN,
        *,
        weight: float | NotGiven = NOT_GIVEN,
        valid_from: datetime | NotGiven | None = NOT_GIVEN,
        valid_until: datetime | NotGiven | None = NOT_GIVEN,
    ) -> None:
        """Add a subscription, or change the one with this name: what is not given stays.

        The subscription meets the stored events that are still valid, and all later events.

        Parameters
        ----------
        subscriber, name : str
            Who is told, and the name of the subscription among its own.
        expression : str, Expression or list
            As for `Matcher.add`.
        weight : float
            With `k`, only the subscriptions with the largest weights are told. By default 1.
        valid_from, valid_until : datetime, optional
            The subscription is valid from the first moment on, and before the second. Without a zone they are UTC. None: no
            bound.

        Raises
        ------
        ExpressionError, OptionError, IdTypeError
        UnknownIdError
            There is no such subscription, and no expression is given.
        """
        wanted = self._wanted(subscriber, name, expression, weight, valid_from, valid_until)
        self._subscribe([wanted])

    def subscribe_many(self, subscriptions: Iterable[Any]) -> None:
        """Add or change subscriptions in one step: all of them, or none if one is wrong.

        Parameters
        ----------
        subscriptions : list of mappings, or Arrow table
            With ``subscriber``, ``name`` and the other parameters of `subscribe`. What is not given stays. In a table, null
            counts as not given.

        Raises
        ------
        DuplicateIdError
            Two of them have the same subscriber and name.
        ExpressionError, OptionError, IdTypeError, UnknownIdError, TableError
        """
        table = as_table(subscriptions)
        rows = listed(subscriptions, "subscriptions") if table is None else row_events(table)
        self._subscribe([self._wanted(**words_of(row, place)) for place, row in enumerate(rows)])

    def _subscribe(self, wanted: Sequence[Wanted]) -> None:
        with self._writing():
            self._subscribing.put(wanted)
            self._after_change()

    def _wanted(
        self,
        subscriber: Any,
        name: Any,
        expression: Any = NOT_GIVEN,
        weight: Any = NOT_GIVEN,
        valid_from: Any = NOT_GIVEN,
        valid_until: Any = NOT_GIVEN,
    ) -> Wanted:
        """A subscription as it was given, checked."""
        if not isinstance(expression, NotGiven | str):
            expression = str(self._expressions.read(expression))
        return Wanted(
            checked_name(subscriber, "subscriber"),
            checked_name(name, "subscription"),
            expression if isinstance(expression, NotGiven) else str(expression),
            NOT_GIVEN if isinstance(weight, NotGiven) else plain_weight(weight),
            NOT_GIVEN if isinstance(valid_from, NotGiven) else read_moment(valid_from, "valid_from"),
            NOT_GIVEN if isinstance(valid_until, NotGiven) else read_moment(valid_until, "valid_until"),
        )

    @contextmanager
    def _changing(self, subscriber: str, name: str) -> Iterator[SubscriptionRow]:
        """Hold the lock, for a call that changes a subscription. What begins until now has begun in the row."""
        with self._writing():
            self._state.now()
            yield self._subscribing.find(subscriber, name)
            self._after_change()

    def unsubscribe(self, subscriber: str, name: str) -> None:
        """Remove a subscription. Notes that were told stay.

        Raises
        ------
        UnknownIdError
        """
        with self._changing(subscriber, name) as row:
            self._subscribing.change([row], removed=1, paused=0)

    def pause(self, subscriber: str, name: str) -> None:
        """Let events pass a subscription by, until `resume`.

        Raises
        ------
        UnknownIdError
        """
        with self._changing(subscriber, name) as row:
            if not row.paused:
                self._subscribing.change([row], paused=1)

    def resume(self, subscriber: str, name: str) -> None:
        """Wake a paused subscription. It meets the stored events that are still valid.

        Raises
        ------
        UnknownIdError
        """
        with self._changing(subscriber, name) as row:
            if row.paused:
                self._subscribing.change([row], paused=0)

    def remove_subscriber(self, subscriber: str) -> None:
        """Remove a subscriber with all its subscriptions and notes.

        If the name comes back, its notes count on from the last number.

        Raises
        ------
        UnknownIdError
        """
        with self._writing():
            self._state.now()
            self._subscribing.remove_subscriber(self._subscribing.subscriber(subscriber))
            self._after_change()

    def subscriptions(self, subscriber: str | None = None) -> Iterator[StandingSubscription]:
        """The subscriptions of a subscriber, or of all, in the order in which they first came.

        Raises
        ------
        UnknownIdError
        """
        with self._looking():
            number = None if subscriber is None else self._subscribing.subscriber(subscriber).number
        condition, values = ("", ()) if number is None else (" AND subscriber = ?", (number,))
        return map(self._reading.standing, self._reading.rows(f"removed = 0{condition} ORDER BY number", values))

    def changes(self, after: int = 0, *, limit: int | None = None) -> Iterator[Change]:
        """The subscriptions that have changed after a number, each with its last change, in order of the changes.

        `tamis.spark.update_stream` takes rows with these fields as columns. `limit` is the
        most changes that are looked up.
        """
        number = plain_number(after, "after")
        most = -1 if limit is None else plain_number(limit, "limit")
        with self._looking():
            pass
        return map(self._reading.change, self._reading.rows("change > ? ORDER BY change LIMIT ?", (number, most)))


_WORDS = frozenset(("subscriber", "name", "expression", "weight", "valid_from", "valid_until"))


def words_of(row: Any, place: int) -> dict[str, Any]:
    """The arguments of `subscribe` in a mapping.

    Raises
    ------
    OptionError
    """
    if not isinstance(row, Mapping):
        raise OptionError(f"subscription {place} must be a mapping, not {shortened(row)}")
    unknown = [name for name in row if name not in _WORDS]
    missing = [name for name in ("subscriber", "name") if name not in row]
    if unknown:
        raise OptionError(
            f"subscription {place} has no field {unknown[0]!r}; the fields are: {', '.join(sorted(_WORDS))}"
        )
    if missing:
        raise OptionError(f"subscription {place} needs {missing[0]!r}")
    return dict(row)
