"""DuckDB and Spark SQL behind one interface: the truth of expressions, and the rows that WHERE keeps.

Planning a query costs far more than running it over a few rows, so one query asks for many expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

import duckdb
import pyarrow as pa

from tamis.language.evaluate import Truth

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_ONCE = 50
_Answer = TypeVar("_Answer")


class Engine(Protocol):
    """An engine that holds one table of events, numbered by its column ``row``."""

    @property
    def dialect(self) -> str: ...

    def load(self, events: pa.Table) -> None:
        """Replace the events."""

    def truths(self, texts: Sequence[str]) -> list[list[Truth]]:
        """For each expression, its truth for each event."""

    def kept(self, texts: Sequence[str]) -> list[list[int]]:
        """For each expression, the rows that ``WHERE`` keeps."""


class DuckDB:
    dialect = "duckdb"

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        connection.execute("SET threads = 1; SET TimeZone = 'UTC'")

    def load(self, events: pa.Table) -> None:
        self._connection.register("arrow", events)
        self._connection.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM arrow")
        self._connection.unregister("arrow")

    def truths(self, texts: Sequence[str]) -> list[list[Truth]]:
        return _in_parts(texts, lambda part: _columns(self._table(_truths_query(part, "events"))))

    def kept(self, texts: Sequence[str]) -> list[list[int]]:
        return _in_parts(texts, lambda part: _rows(self._table(_kept_query(part, "events")), len(part)))

    def _table(self, query: str) -> pa.Table:
        return self._connection.sql(query).to_arrow_table()


class Spark:
    """Spark has two ways to run an expression, and each is asked one of the two questions.

    A table that came from Python is small enough for the optimizer to interpret the expressions itself. Of a table
    behind a checkpoint it knows nothing and compiles code, as it does for tables of any size.
    """

    dialect = "spark"

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def load(self, events: pa.Table) -> None:
        frame = self._session.createDataFrame(events)
        frame.createOrReplaceTempView("known_events")
        # One partition, since each is a task of its own for every expression.
        frame.coalesce(1).localCheckpoint().createOrReplaceTempView("events")

    def truths(self, texts: Sequence[str]) -> list[list[Truth]]:
        return _in_parts(texts, lambda part: _columns(self._table(_truths_query(part, "known_events"))))

    def kept(self, texts: Sequence[str]) -> list[list[int]]:
        return _in_parts(texts, lambda part: _rows(self._table(_kept_query(part, "events")), len(part)))

    def _table(self, query: str) -> pa.Table:
        return self._session.sql(query).toArrow()


def _truths_query(texts: Sequence[str], table: str) -> str:
    columns = ", ".join(f"({text}) AS truth_{number}" for number, text in enumerate(texts))
    return f"SELECT row, {columns} FROM {table} AS event ORDER BY row"


def _kept_query(texts: Sequence[str], table: str) -> str:
    return " UNION ALL ".join(
        f"SELECT {number} AS expression, row FROM {table} AS event WHERE {text}" for number, text in enumerate(texts)
    )


def _in_parts(texts: Sequence[str], question: Callable[[Sequence[str]], list[_Answer]]) -> list[_Answer]:
    starts = range(0, len(texts), _AT_ONCE)
    return [answer for start in starts for answer in question(texts[start : start + _AT_ONCE])]


def _columns(table: pa.Table) -> list[list[Truth]]:
    return [column.to_pylist() for column in table.columns[1:]]


def _rows(table: pa.Table, count: int) -> list[list[int]]:
    rows: list[list[int]] = [[] for _ in range(count)]
    for kept in table.to_pylist():
        rows[kept["expression"]].append(kept["row"])
    return rows
