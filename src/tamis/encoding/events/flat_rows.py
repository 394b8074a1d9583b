"""Rows of Arrow tables as flat events, read as the engine reads them. The reference evaluator takes such events."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import pyarrow as pa

from tamis.encoding.columns import Column, Odd, combined
from tamis.encoding.dimensions.dimension_set import parents_of
from tamis.encoding.events.asked import EVERYTHING, Asked
from tamis.encoding.events.event_columns import is_long
from tamis.encoding.events.event_table import checked_columns
from tamis.encoding.events.plain_columns import is_plain
from tamis.language.event import FlatEvent, Refused
from tamis.language.values import Kind, from_microseconds


def with_columns_of(table: pa.Table, attributes: Collection[str]) -> tuple[pa.Table, list[int] | None]:
    """A table with only the columns that may have values of some attributes, and the places of these columns.

    A table with all attributes in one column stays as it is, and has no places.
    """
    if is_long(table):
        return table, None
    wanted = {*attributes}
    wanted.update(parent for name in attributes for parent in parents_of(name))
    chosen = table.select([at for at, name in enumerate(table.column_names) if name in wanted])
    return chosen, list(range(chosen.num_columns))


def plain_column(table: pa.Table, attribute: str) -> pa.Array | None:
    """The only column that may have values of an attribute, if it is one of plain numbers. Then no value is wrong."""
    places = table.schema.get_all_field_indices(attribute)
    if len(places) != 1 or any(table.schema.get_all_field_indices(name) for name in parents_of(attribute)):
        return None
    [place] = places
    return combined(table.column(place)) if is_plain(table.schema.field(place).type) else None


def asked_columns(table: pa.Table, attributes: Collection[str]) -> Iterator[Column | Odd]:
    """`checked_columns` of some attributes. Other columns take no time."""
    chosen, among = with_columns_of(table, attributes)
    yield from checked_columns(chosen, Asked.names(attributes), None, among)


def asked_rows(table: pa.Table, rows: Sequence[int], attributes: Collection[str]) -> list[FlatEvent]:
    """Some rows with only some attributes."""
    chosen, among = with_columns_of(table, attributes)
    if not chosen.num_columns:
        return [{} for _ in rows]
    part = chosen if len(rows) == len(table) else chosen.take(pa.array(rows, pa.int64()))
    return _refused(*_flat_rows(part, Asked.names(attributes), among))


def flat_rows(table: pa.Table, asked: Asked) -> tuple[list[FlatEvent], list[Odd]]:
    """The rows with the attributes that are asked about, and the wrong values, which the rows lack.

    Raises
    ------
    TableError
        If the table does not hold events.
    """
    return _flat_rows(table, asked, None)


def _flat_rows(table: pa.Table, asked: Asked, among: list[int] | None) -> tuple[list[FlatEvent], list[Odd]]:
    events: list[FlatEvent] = [{} for _ in range(len(table))]
    wrong: list[Odd] = []
    for column in checked_columns(table, asked, None, among):
        if isinstance(column, Odd):
            wrong.append(column)
            continue
        name = column.attribute
        values = column.values.to_pylist() if isinstance(column.values, pa.Array) else column.values.tolist()
        if column.kind is Kind.TIMESTAMP:
            values = list(map(from_microseconds, values))
        for row, value in zip(column.rows.tolist(), values, strict=True):
            event = events[row]
            event[name] = (*event.get(name, ()), value)
    return events, wrong


def flat_events(table: pa.Table, asked: Asked = EVERYTHING) -> list[FlatEvent]:
    """The rows with the attributes that are asked about. A wrong value becomes an error when an expression asks about it.

    Raises
    ------
    TableError
        If the table does not hold events.
    """
    return _refused(*flat_rows(table, asked))


def _refused(events: list[FlatEvent], wrong: list[Odd]) -> list[FlatEvent]:
    for odd in wrong:
        if odd.attribute is not None:
            for row in odd.rows.tolist():
                events[row][odd.attribute] = Refused(odd.reason)
    return events
