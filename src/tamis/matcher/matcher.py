"""The matcher: subscriptions come and go, events are matched against all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.columns import combined, is_text
from tamis.encoding.events import EncodedEvents
from tamis.encoding.predicate_table import PredicateTable, read_predicates
from tamis.errors import ExpressionError, HistoryError, TableError
from tamis.index.registry import find_index
from tamis.language.event import flatten
from tamis.language.explain import Explanation, explain
from tamis.language.expression import Expression
from tamis.language.reading import to_expression
from tamis.language.schema import Schema
from tamis.language.values import is_iterable
from tamis.matcher.ids import Id, plain_id
from tamis.matcher.reading import arrow_errors, as_table, read_events
from tamis.matcher.sources import GivenExpressions, TableRows
from tamis.matcher.store import Store


class Matcher:
    """Matches events against standing Boolean expressions.

    Parameters
    ----------
    index : str
        The name of an index, see `tamis.indexes()`; ``"auto"`` is the best that Tamis has.
    schema : Schema, mapping or pyarrow.Schema, optional
        The attributes and their kinds. With a schema, an expression on an unknown attribute or with a literal of the
        wrong kind is an error, and so is an event with a value of the wrong kind.

    Examples
    --------
    >>> matcher = Matcher()
    >>> matcher.add("cheap-classics", "price BETWEEN 20 AND 40 AND genre = 'classics'")
    >>> matcher.match({"price": 26, "genre": "classics"})
    ['cheap-classics']
    """

    def __init__(self, index: str = "auto", schema: Any = None) -> None:
        self._schema = None if schema is None else Schema.of(schema)
        self._store = Store(find_index(index), self._schema.scalars if self._schema is not None else ())

    def add(self, id: Id, expression: Any) -> None:
        """Add a subscription.

        Parameters
        ----------
        id : str or int
            Its name; the ids of a matcher are all str or all int.
        expression : str, Expression or list
            SQL text, an expression built with `tamis.attr`, or the JSON form.

        Raises
        ------
        DuplicateIdError, IdTypeError, ExpressionError
        """
        identifiers = self._store.ids.check_new([id])
        read = self._read(expression)
        self._store.add_one(identifiers[0], read, GivenExpressions([_kept(expression, read)]))

    def add_many(self, ids: Iterable[Id], expressions: Iterable[Any]) -> None:
        """Add many subscriptions: all, or none if one of them is wrong.

        Raises
        ------
        DuplicateIdError, IdTypeError, ExpressionError
            The error names the subscription.
        """
        identifiers = self._store.ids.check_new(ids)
        if not is_iterable(expressions):
            raise ExpressionError(f"expressions are a list, one for each id, not {type(expressions).__name__}")
        given = list(expressions)
        if len(given) != len(identifiers):
            raise ExpressionError(f"{len(identifiers)} ids for {len(given)} expressions")
        read = []
        for identifier, expression in zip(identifiers, given, strict=True):
            try:
                read.append(self._read(expression))
            except ExpressionError as error:
                error.subscription = identifier
                raise
        block = GivenExpressions([_kept(*pair) for pair in zip(given, read, strict=True)])
        self._store.add(identifiers, self._store.compile(read), block)

    def add_table(self, table: Any) -> None:
        """Add the subscriptions of an Arrow table: all, or none if one of them is wrong.

        Parameters
        ----------
        table : pyarrow.Table, pyarrow.RecordBatch or anything with the Arrow PyCapsule protocol
            With the columns ``id`` and either ``expression`` (SQL text) or ``predicates``: ``list<struct<attribute:
            string, operator: string, values: list<V>>>``, a conjunction.

        Raises
        ------
        TableError, DuplicateIdError, IdTypeError, ExpressionError
        """
        arrow = as_table(table)
        if arrow is None:
            raise TableError(f"an Arrow table is needed, not {type(table).__name__}")
        names = arrow.column_names
        forms = [name for name in ("expression", "predicates") if names.count(name) == 1]
        if names.count("id") != 1 or len(forms) != 1:
            raise TableError(f"the columns must be 'id' and either 'expression' or 'predicates'; they are {names}")
        with arrow_errors():
            identifiers = self._store.ids.check_new(_ids_of(arrow.column("id")))
            if forms[0] == "expression":
                self.add_many(identifiers, _texts_of(arrow.column("expression")))
            else:
                self._add_predicates(identifiers, read_predicates(arrow.column("predicates")))

    def _add_predicates(self, identifiers: list[Id], predicates: PredicateTable) -> None:
        if self._schema is not None:
            outside = predicates.row_outside(self._schema)
            if outside is not None:
                self._check(predicates.expression(outside), identifiers[outside])
        self._store.add(identifiers, self._store.compile_rows(predicates, identifiers), TableRows(predicates))

    def remove(self, id: Id) -> None:
        """Remove a subscription.

        Raises
        ------
        UnknownIdError, IdTypeError
        """
        self._store.ids.slot(id)
        self._store.remove(plain_id(id))

    def replace(self, id: Id, expression: Any) -> None:
        """Give a subscription another expression; if that is wrong, the old one stays.

        Raises
        ------
        UnknownIdError, IdTypeError, ExpressionError
        """
        self._store.ids.slot(id)
        read = self._read(expression)
        clauses = self._store.compile([read])
        self._store.replace(plain_id(id), clauses, GivenExpressions([_kept(expression, read)]))

    def __len__(self) -> int:
        return len(self._store)

    def __contains__(self, id: object) -> bool:
        return id in self._store.ids

    def match(self, event: Mapping[str, Any]) -> list[Id]:
        """The ids of all subscriptions that an event satisfies, in no particular order.

        Raises
        ------
        EventError
        """
        flat = flatten(event)
        if self._schema is not None:
            self._schema.check_event(flat)
        _, slots = self._store.match(self._store.encode([flat]))
        return self._store.ids.name(slots)

    def match_batch(self, events: Any) -> pa.Table:
        """All matches of a batch: a table with the columns ``event`` (the row, int64) and ``subscription`` (the id).

        Parameters
        ----------
        events : list of mappings, pyarrow.Table, pyarrow.RecordBatch, or anything with the Arrow PyCapsule protocol
            A table has one column per attribute (null: missing; structs flattened; lists: several values), or a single
            column ``map<string, V>`` or ``list<struct<attribute, value>>``.

        Raises
        ------
        EventError, TableError
        """
        rows, slots = self._store.match(self._encode(events))
        return pa.table({"event": pa.array(rows, pa.int64()), "subscription": self._store.ids.column(slots)})

    def count_batch(self, events: Any) -> npt.NDArray[np.int64]:
        """How many subscriptions each event of a batch satisfies."""
        encoded = self._encode(events)
        rows, _ = self._store.match(encoded)
        return np.bincount(rows, minlength=len(encoded.batch.start) - 1).astype(np.int64)

    def explain(self, id: Id, event: Mapping[str, Any]) -> Explanation:
        """Why an event does or does not satisfy a subscription: the truth of every part, and the values it saw.

        Raises
        ------
        UnknownIdError, IdTypeError, EventError
        """
        return explain(self._store.sources.expression(self._store.ids.slot(id)), event)

    def stats(self) -> dict[str, Any]:
        """Figures about what the matcher holds and has done.

        ``mismatched`` counts how often an event had an attribute, but no value of a kind that some predicate on it asks
        for: a string where a predicate compares with a number, say.
        """
        return self._store.stats()

    def _read(self, expression: Any) -> Expression:
        read = to_expression(expression)
        self._check(read)
        return read

    def _check(self, expression: Expression, identifier: Id | None = None) -> None:
        try:
            if expression.needs_history():
                raise HistoryError(
                    "ANY, ALL and EXISTS compare with earlier events, and a Matcher keeps none. "
                    "Hint: tamis.evaluate(expression, event, history) takes them as a list"
                )
            if self._schema is not None:
                self._schema.check(expression)
        except ExpressionError as error:
            error.subscription = identifier
            raise

    def _encode(self, events: Any) -> EncodedEvents:
        read = read_events(events)
        if isinstance(read, pa.Table):
            with arrow_errors():
                return self._store.encode_table(read, self._schema)
        if self._schema is not None:
            for row, event in enumerate(read):
                self._schema.check_event(event, row)
        return self._store.encode(read)


def _kept(given: Any, read: Expression) -> str | Expression:
    """What is kept of an expression to explain it later: its text if it came as text, which is smaller."""
    return given if isinstance(given, str) else read


def _texts_of(column: pa.ChunkedArray) -> list[str]:
    if not is_text(column.type):
        raise TableError(f"the column 'expression' must be strings, not {column.type}")
    if column.null_count:
        raise TableError(f"row {column.is_null().to_pylist().index(True)}: expression is null")
    texts: list[str] = column.to_pylist()
    return texts


def _ids_of(column: pa.ChunkedArray) -> list[Any]:
    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        raise TableError(f"the column 'id' must be strings or integers, not {column.type}")
    if column.null_count:
        raise TableError(f"row {column.is_null().to_pylist().index(True)}: id is null")
    ids: list[Any] = combined(column).to_pylist()
    return ids
