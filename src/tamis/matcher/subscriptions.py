"""The subscriptions of a matcher: reading and changing them, as in a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Generic, Literal, TypeVar, overload

import numpy as np

from tamis.errors import TableError
from tamis.language.schema import Schema
from tamis.language.values import is_iterable
from tamis.matcher.bulk_add import add_expressions, add_rows
from tamis.matcher.event_input import arrow_errors, as_table
from tamis.matcher.expression_reader import ExpressionReader, kept
from tamis.matcher.ids import IdT, plain_id
from tamis.matcher.options import plain_weight
from tamis.matcher.pickling import pickled, unpickled
from tamis.matcher.rejected import OnError, Rejected
from tamis.matcher.replacing import replace_expressions, replace_read
from tamis.matcher.store import Store
from tamis.matcher.subscription import Subscription

T = TypeVar("T")


class Subscriptions(Generic[IdT]):
    """The subscriptions of a `Matcher`: an expression and a weight for each id. The next event sees every change."""

    _schema: Schema | None
    _store: Store[Any]
    _reader: ExpressionReader

    def add(self, id: IdT, expression: Any, weight: float = 0.0) -> None:
        """Add a subscription.

        Parameters
        ----------
        id : str or int
            The name of the subscription. The ids of a matcher are all str or all int.
        expression : str, Expression or list
            SQL text, an expression built with `tamis.attr`, or the JSON form.
        weight : float
            With `k`, matching returns only the subscriptions with the largest weights.

        Raises
        ------
        DuplicateIdError, IdTypeError, ExpressionError, OptionError
        """
        read = self._reader.read(expression)
        weighs = plain_weight(weight)
        store = self._store
        with store.changing():
            store.add_one(store.ids.check_one(id), read, kept(expression, read), weighs)

    @overload
    def add_many(
        self,
        ids: Iterable[IdT],
        expressions: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        on_error: Literal["raise"] = "raise",
    ) -> None: ...

    @overload
    def add_many(
        self,
        ids: Iterable[IdT],
        expressions: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        on_error: Literal["collect"],
    ) -> list[Rejected]: ...

    def add_many(
        self,
        ids: Iterable[IdT],
        expressions: Iterable[Any],
        weights: Iterable[float] | None = None,
        *,
        on_error: OnError = "raise",
    ) -> list[Rejected] | None:
        """Add many subscriptions.

        Parameters
        ----------
        ids, expressions, weights : iterables of the same length
            Ids, expressions and weights as for `add`, one of each for each subscription.
        on_error : "raise" or "collect"
            With "raise", one wrong subscription is an error, and none is added. With "collect", all others are added. If an id
            is given twice, the first counts, even if its expression is wrong.

        Returns
        -------
        list of Rejected
            With "collect", the wrong subscriptions, in order. With "raise", None.

        Raises
        ------
        DuplicateIdError, IdTypeError, ExpressionError, OptionError
            The error names the subscription.
        """
        # The iterables may use the matcher, so they are read before the lock is taken.
        identifiers, given = _listed(ids), _listed(expressions)
        weighs = None if weights is None else _listed(weights)
        with self._store.changing():
            rejected = add_expressions(self._store, self._reader, identifiers, given, weighs, on_error)
        return rejected if on_error == "collect" else None

    @overload
    def add_table(self, table: Any, *, on_error: Literal["raise"] = "raise") -> None: ...

    @overload
    def add_table(self, table: Any, *, on_error: Literal["collect"]) -> list[Rejected]: ...

    def add_table(self, table: Any, *, on_error: OnError = "raise") -> list[Rejected] | None:
        """Add the subscriptions of an Arrow table.

        Parameters
        ----------
        table : pyarrow.Table, pyarrow.RecordBatch or anything with the Arrow PyCapsule protocol
            With the columns ``id`` and either ``expression`` (SQL text) or ``predicates``: ``list<struct<attribute:
            string, operator: string, values: list<V>>>``, a conjunction. A column ``weight`` is optional.
        on_error : "raise" or "collect"
            As for `add_many`. A table with wrong columns is an error in both cases.

        Returns
        -------
        list of Rejected
            As for `add_many`.

        Raises
        ------
        TableError, DuplicateIdError, IdTypeError, ExpressionError, OptionError
        """
        arrow = as_table(table)
        if arrow is None:
            raise TableError(f"an Arrow table is needed, not {type(table).__name__}")
        with arrow_errors(), self._store.changing():
            rejected = add_rows(self._store, self._reader, arrow, on_error)
        return rejected if on_error == "collect" else None

    def replace(self, id: IdT, expression: Any, weight: float | None = None) -> None:
        """Replace the expression of a subscription. If something is wrong, nothing changes.

        The subscription keeps its place among the ids, and its weight unless you give a new one.

        Raises
        ------
        UnknownIdError, IdTypeError, ExpressionError, OptionError
        """
        self.replace_many([id], [expression], None if weight is None else [weight])

    def replace_many(
        self, ids: Iterable[IdT], expressions: Iterable[Any], weights: Iterable[float] | None = None
    ) -> None:
        """Replace the expressions of many subscriptions in one step: all of them, or none if something is wrong.

        The subscriptions keep their places among the ids, and their weights unless you give new ones.

        Raises
        ------
        UnknownIdError, DuplicateIdError, IdTypeError, ExpressionError, OptionError
            The error names the subscription.
        """
        identifiers, given = _listed(ids), _listed(expressions)
        weighs = None if weights is None else _listed(weights)
        with self._store.changing():
            replace_expressions(self._store, self._reader, identifiers, given, weighs)

    def upsert(self, id: IdT, expression: Any, weight: float | None = None) -> None:
        """Add a subscription, or replace the one with this id. A replaced one keeps its weight unless you give a new one.

        Raises
        ------
        IdTypeError, ExpressionError, OptionError
        """
        read = self._reader.read(expression)
        weighs = None if weight is None else plain_weight(weight)
        store = self._store
        with store.changing():
            if id in store.ids:
                replace_read(store, [plain_id(id)], [expression], [read], None if weighs is None else [weighs])
            else:
                store.add_one(store.ids.check_one(id), read, kept(expression, read), weighs or 0.0)

    def remove(self, id: IdT) -> None:
        """Remove a subscription.

        A finalizer may call this, even while another call is running. The removal then takes effect when the next call begins.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        self._store.remove_or_defer(id, must_be_there=True)

    def discard(self, id: IdT) -> bool:
        """Remove a subscription if it exists. Returns whether it existed. A finalizer may call this, as with `remove`.

        Raises
        ------
        IdTypeError
        """
        return self._store.remove_or_defer(id, must_be_there=False)

    def remove_many(self, ids: Iterable[IdT]) -> None:
        """Remove many subscriptions in one step: all of them, or none if one does not exist. Ids may be given twice.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        identifiers = _listed(ids)
        with self._store.changing():
            known = list(dict.fromkeys(self._store.ids.check_known(identifiers)))
            if known:
                self._store.remove_many(known)

    def clear(self) -> None:
        """Remove all subscriptions. The schema and the statistics of events stay."""
        with self._store.changing():
            self._store.clear()

    def __len__(self) -> int:
        self._store.catch_up()
        return len(self._store)

    def __contains__(self, id: object) -> bool:
        self._store.catch_up()
        return id in self._store.ids

    def ids(self) -> list[IdT]:
        """The ids of all subscriptions at this moment, in order of addition. A replaced one keeps its place."""
        with self._store.changing():
            ids: list[Any] = self._store.ids.listed()
            return ids

    def __iter__(self) -> Iterator[IdT]:
        """Iterate over the `ids()` of this moment. Later changes do not affect the iteration."""
        return iter(self.ids())

    def __getitem__(self, id: IdT) -> Subscription[IdT]:
        """The subscription of an id, see `get`.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        with self._store.changing():
            return self._subscription(self._store.ids.slot(id))

    @overload
    def get(self, id: IdT, default: None = None) -> Subscription[IdT] | None: ...

    @overload
    def get(self, id: IdT, default: T) -> Subscription[IdT] | T: ...

    def get(self, id: IdT, default: T | None = None) -> Subscription[IdT] | T | None:
        """The subscription of an id, with its `expression`, `text` and `weight`; `default` if no subscription has the id.

        Raises
        ------
        IdTypeError
        """
        with self._store.changing():
            slot = self._store.ids.find(id)
            return default if slot is None else self._subscription(slot)

    def _subscription(self, slot: int) -> Subscription[Any]:
        identifier = self._store.ids.name(np.array([slot]))[0]
        weight = self._store.weights(np.array([slot])).item()
        return Subscription(identifier, self._store.sources.expression(slot), weight)

    def __repr__(self) -> str:
        count, size = len(self._store), self._store.nbytes
        return f"<tamis.Matcher: {count:,} subscription{'' if count == 1 else 's'}, {_size(size)}>"

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_store": pickled(self._store)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._store = unpickled(state["_store"], self._schema)


def _listed(given: Any) -> Any:
    """The items of an iterable as a list; anything else as it is."""
    return list(given) if is_iterable(given) else given


def _size(count: int) -> str:
    """A number of bytes in words."""
    for unit, bytes_each in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_each:
            return f"{count / bytes_each:.1f} {unit}"
    return f"{count} bytes"
