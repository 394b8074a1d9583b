"""Matching written for DuckDB and for polars. For each, we tried two ways and use the faster one.

DuckDB joins tables in one query:

    bounds          subscription | attribute | low | high      one row per interval of a predicate
    sizes           subscription | size                        the number of predicates of a subscription
    values          event | attribute | value                  one row per value of an event

An event matches a subscription if the number of its values within bounds of the subscription equals the number of predicates. The
bounds of one predicate do not overlap, and a subscription has one predicate per attribute, so no value counts twice.

polars has one expression per subscription and computes it for all events at once. In polars, the join takes several times as
long. In DuckDB, one filter per subscription is no faster than the join.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa

_LOWEST, _HIGHEST = -(2**31), 2**31 - 1
_BOUNDS: dict[str, Callable[[list[int]], list[tuple[int, int]]]] = {
    "=": lambda values: [(values[0], values[0])],
    "<": lambda values: [(_LOWEST, values[0] - 1)],
    "<=": lambda values: [(_LOWEST, values[0])],
    ">": lambda values: [(values[0] + 1, _HIGHEST)],
    ">=": lambda values: [(values[0], _HIGHEST)],
    "between": lambda values: [(values[0], values[1])],
    "in": lambda values: [(value, value) for value in set(values)],
}
"""Operator -> a function from literals to bounds of whole numbers."""

_EXPRESSIONS: dict[str, Callable[[Any, list[int]], Any]] = {
    "=": lambda column, values: column == values[0],
    "<": lambda column, values: column < values[0],
    "<=": lambda column, values: column <= values[0],
    ">": lambda column, values: column > values[0],
    ">=": lambda column, values: column >= values[0],
    "between": lambda column, values: column.is_between(values[0], values[1]),
    "in": lambda column, values: column.is_in(values),
}
"""Operator -> a function from a column and literals to an expression of polars."""

_TOGETHER = 100
"""Expressions that polars computes at a time. 500 take the same time per expression."""

_QUERY = """
SELECT event, subscription FROM (
    SELECT event, subscription, count(*) AS found
    FROM "values" JOIN bounds ON "values".attribute = bounds.attribute AND value BETWEEN low AND high
    GROUP BY event, subscription
) JOIN sizes USING (subscription)
WHERE found = size
"""


class DuckDB:
    """The join in DuckDB, with one thread. It joins DuckDB's own tables, so no conversion is measured."""

    def __init__(self, subscriptions: pa.Table) -> None:
        import duckdb

        self._connection = duckdb.connect(config={"threads": 1})
        bounds, sizes = [], []
        for row in subscriptions.to_pylist():
            sizes.append((row["id"], len(row["predicates"])))
            for predicate in row["predicates"]:
                for low, high in _BOUNDS[predicate["operator"]](predicate["values"]):
                    bounds.append((row["id"], predicate["attribute"], low, high))
        self._store("bounds", ["subscription", "attribute", "low", "high"], bounds)
        self._store("sizes", ["subscription", "size"], sizes)

    def take(self, events: pa.Table) -> None:
        """Store events, given as lists of attributes and values."""
        values = [
            (event, pair["attribute"], pair["value"])
            for event, pairs in enumerate(events.column("event").to_pylist())
            for pair in pairs
        ]
        self._store("values", ["event", "attribute", "value"], values)

    def match(self) -> pa.Table:
        """The pairs of event and subscription."""
        return self._connection.sql(_QUERY).to_arrow_table()

    def _store(self, name: str, names: list[str], rows: list[tuple[Any, ...]]) -> None:
        table = pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))
        self._connection.register("given", table)
        self._connection.execute(f'CREATE OR REPLACE TABLE "{name}" AS SELECT * FROM given')
        self._connection.unregister("given")


class Polars:
    """The expressions in polars, with one thread unless polars was imported before."""

    def __init__(self, subscriptions: pa.Table) -> None:
        os.environ.setdefault("POLARS_MAX_THREADS", "1")
        import polars

        self._library = polars
        self._ids = subscriptions.column("id").to_pylist()
        self._expressions = [self._expression(each) for each in subscriptions.column("predicates").to_pylist()]
        self._events = polars.DataFrame()

    def _expression(self, predicates: list[dict[str, Any]]) -> Any:
        """The numbers of the events that satisfy all predicates."""
        column = self._library.col
        parts = [_EXPRESSIONS[each["operator"]](column(each["attribute"]), each["values"]) for each in predicates]
        return reduce(and_, parts).arg_true().implode()

    def take(self, events: pa.Table) -> None:
        """Store events, given with a column per attribute."""
        self._events = self._library.DataFrame(events)

    def match(self) -> pa.Table:
        """The pairs of event and subscription."""
        parts = []
        for first in range(0, len(self._ids), _TOGETHER):
            ids = [str(number) for number in self._ids[first : first + _TOGETHER]]
            expressions = self._expressions[first : first + _TOGETHER]
            found = self._events.select(each.alias(name) for name, each in zip(ids, expressions, strict=True))
            long = found.unpivot(variable_name="subscription", value_name="event").explode("event").drop_nulls()
            parts.append(long.select("event", self._library.col("subscription").cast(int)))
        return self._library.concat(parts).to_arrow()
