"""Subscriptions of Parquet files. A row is a line, and counts from 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tamis.cli.parquet_rows import ParquetRows
from tamis.cli.subscription_lines import Read, Subscription
from tamis.errors import ExpressionError, FileError, IdTypeError, OptionError, TableError

if TYPE_CHECKING:
    import pyarrow as pa


def subscription_tables(rows: ParquetRows) -> Iterator[tuple[int, pa.Table]]:
    """Tables that `Matcher.add_table` reads, each with the number of its first row.

    Raises
    ------
    FileError
        If the file is damaged, or lacks the right columns.
    """
    from tamis.matcher.matcher import Matcher

    try:
        Matcher().add_table(rows.schema.empty_table())
    except (TableError, OptionError) as error:
        raise FileError(str(error), path=rows.name) from None
    form = "expression" if "expression" in rows.schema.names else "predicates"
    weight = ["weight"] if "weight" in rows.schema.names else []
    return rows.tables(columns=["id", form, *weight])


def read_rows(rows: ParquetRows) -> Iterator[Read]:
    """The rows one by one."""
    from tamis.matcher.ids import plain_id

    for first, table in subscription_tables(rows):
        source = source_of(table)
        for row, identifier in enumerate(table["id"].to_pylist()):
            try:
                plain = plain_id(identifier)
            except IdTypeError as error:
                yield rows.error(first + row, "id is null" if identifier is None else str(error))
                continue
            try:
                yield Subscription(first + row, plain, source(row))
            except (TableError, ExpressionError) as error:
                reason = error.reason if isinstance(error, TableError) else str(error)
                yield Subscription(first + row, plain, ExpressionError(reason))


def source_of(table: pa.Table) -> Callable[[int], Any]:
    """A function from a row number to the expression of the row."""
    from tamis.encoding.expressions.predicate_rows import WrongRowsError
    from tamis.encoding.expressions.predicate_table import read_predicates

    if "expression" in table.column_names:
        texts = table["expression"].to_pylist()

        def text(row: int) -> str:
            if texts[row] is None:
                raise TableError("expression is null")
            return str(texts[row])

        return text
    column = table["predicates"]
    try:
        return read_predicates(column).expression
    except (WrongRowsError, TableError):
        pass  # some row is wrong

    def conjunction(row: int) -> Any:
        try:
            return read_predicates(column.slice(row, 1)).expression(0)
        except WrongRowsError as wrong:
            raise wrong.errors[0] from None

    return conjunction
