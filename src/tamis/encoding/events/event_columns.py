"""Arrow tables of events to columns, one or more for each attribute that predicates or the schema use.

A table has one of three forms: wide (a column per attribute), a single column ``map<string, V>``, or a single column
``list<struct<attribute, value>>``. V is any type of a wide column, or a variant: a struct with nullable fields among
`VARIANT_FIELDS`, one of them set. In a wide table, lists may hold variants if these have all of the fields.

    struct<b>                  attribute a.b
    map<string, V>             attribute a.key, for each key
    list<int64>                several values of a
    list<struct<b>>            several values of a.b; the same for lists within lists
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import (
    Column,
    Odd,
    Rows,
    chosen,
    combined,
    decoded_texts,
    is_full_variant,
    is_list,
    is_text,
    is_variant,
    list_places,
    plain_texts,
    typed,
)
from tamis.encoding.events.asked import EVERYTHING, Asked
from tamis.errors import TableError
from tamis.kernels.ranges import grouped
from tamis.language.event import GIVEN_TWICE


class _Field(NamedTuple):
    """A field of an object: its dotted name, its type, how to get its values, and the row of each value."""

    name: str
    kind: pa.DataType
    values: Callable[[], pa.Array]
    rows: Rows
    variants: bool
    """Whether a struct with some of the `VARIANT_FIELDS` is a value of any kind. A struct in a wide column is an object. A struct
    in a list is a value if it has all of the fields."""


class _Entries(NamedTuple):
    """The entries of a column of maps, or of lists of attributes and values: the row, name and value of each."""

    parents: Rows
    names: pa.Array
    values: pa.Array


def is_long(table: pa.Table) -> bool:
    """Whether a table has a single column with all attributes of each event."""
    if table.num_columns != 1:
        return False
    kind = table.schema.field(0).type
    return pa.types.is_map(kind) or _is_list_of_entries(kind)


def event_columns(
    table: pa.Table, among: Sequence[int] | None = None, asked: Asked = EVERYTHING
) -> Iterator[Column | Odd]:
    """The values of a table of events that predicates or the schema use, column by column. Rows ascend within a column.

    `among` are the columns to read, for a wide table. Without it, all columns of a table in any form are read.

    Raises
    ------
    TableError
        If the names of attributes are not strings.
    """
    if among is None and is_long(table):
        yield from _object(_entry_fields(None, entries(table), np.arange(len(table)), asked), asked)
        return
    rows = np.arange(len(table))
    fields = []
    for index in range(table.num_columns) if among is None else among:
        field = table.field(index)
        fields.append(_Field(field.name, field.type, partial(_column, table, index), rows, False))
    yield from _object(fields, asked)


def _column(table: pa.Table, index: int) -> pa.Array:
    return combined(table.column(index))


def is_wanted(name: str, kind: pa.DataType, asked: Asked) -> bool:
    """Whether a column of this name and type may have values to read."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return is_wanted(name, kind.value_type, asked)
    if pa.types.is_struct(kind) or pa.types.is_map(kind):
        return asked.leads_to(name) or (is_variant(kind) and asked.has(name))
    if is_list(kind):
        return is_wanted(name, kind.value_type, asked)
    return asked.has(name)


def entries(table: pa.Table) -> _Entries:
    """The entries of a long table.

    Raises
    ------
    TableError
        If the names of attributes are not strings.
    """
    column = combined(table.column(0))
    found = _map_entries(column) if pa.types.is_map(column.type) else _listed_entries(column)
    if not is_text(found.names.type):
        raise TableError(f"the names of attributes must be strings, not {found.names.type}")
    return found


def names_in(distinct: pa.Array) -> list[str | None]:
    """The distinct names of entries. None stands for a name that is not UTF-8, which no expression can contain."""
    try:
        names: list[str | None] = distinct.to_pylist()
        return names
    except UnicodeDecodeError:
        return decoded_texts(distinct)


def _object(fields: Iterable[_Field | Odd], asked: Asked) -> Iterator[Column | Odd]:
    """The columns of all fields of an object. If two fields give the same attribute, rows that have both are wrong."""
    given: dict[str, list[Rows]] = {}
    for field in fields:
        if isinstance(field, Odd):
            yield field
            continue
        if not is_wanted(field.name, field.kind, asked):
            continue
        fresh: dict[str, list[Rows]] = {}
        for found in _columns(field, asked):
            yield found
            if isinstance(found, Column):
                fresh.setdefault(found.attribute, []).append(found.rows)
        for attribute, parts in fresh.items():
            before = given.setdefault(attribute, [])
            if before:
                twice = np.intersect1d(np.concatenate(before), np.concatenate(parts))
                if len(twice):
                    yield Odd(attribute, twice, GIVEN_TWICE)
            before += parts


def _columns(field: _Field, asked: Asked) -> Iterator[Column | Odd]:
    """The columns of one field for which `is_wanted` is true."""
    name, kind, values, rows = field.name, field.kind, field.values(), field.rows
    if pa.types.is_run_end_encoded(kind):
        decoded = pc.run_end_decode(values)
        yield from _columns(field._replace(kind=decoded.type, values=lambda: decoded), asked)
    elif pa.types.is_dictionary(kind) and not is_text(kind) and not pa.types.is_null(kind.value_type):
        decoded = values.dictionary_decode()
        yield from _columns(field._replace(kind=decoded.type, values=lambda: decoded), asked)
    elif field.variants and is_variant(kind):
        for child in values.flatten():
            yield from typed(name, child, rows)
    elif pa.types.is_struct(kind):
        yield from _object(_struct_fields(name, values, rows, None, field.variants), asked)
    elif pa.types.is_map(kind):
        if is_text(kind.key_type):
            yield from _object(_entry_fields(name, _map_entries(values), rows, asked), asked)
    elif is_list(kind):
        yield from _elements(field, values, asked)
    else:
        yield from typed(name, values, rows)


def _elements(field: _Field, lists: pa.Array, asked: Asked) -> Iterator[Column | Odd]:
    """The columns of all elements of lists."""
    places, parents = list_places(lists)
    rows, kind = field.rows[parents], lists.type.value_type
    if not (pa.types.is_nested(kind) or pa.types.is_dictionary(kind)):
        yield from typed(field.name, chosen(lists.values, places), rows)
        return
    # Each element is an object of its own: an attribute that two elements have is not given twice.
    numbered = np.arange(len(places))
    inner: Iterator[Column | Odd]
    variants = field.variants or is_full_variant(kind)
    if pa.types.is_struct(kind) and not (variants and is_variant(kind)):
        inner = _object(_struct_fields(field.name, lists.values, numbered, places, field.variants), asked)
    else:
        elements = chosen(lists.values, places)
        own = field._replace(kind=kind, values=lambda: elements, rows=numbered, variants=variants)
        inner = _columns(own, asked)
    for found in inner:
        yield found._replace(rows=rows[found.rows])


def _struct_fields(name: str, structs: pa.Array, rows: Rows, places: Rows | None, variants: bool) -> Iterator[_Field]:
    """The fields of structs: of all structs, or of those at `places`."""

    def values(index: int) -> pa.Array:
        child = pc.struct_field(structs, [index])
        return child if places is None else chosen(child, places)

    for index, inner in enumerate(structs.type):
        if inner.name:
            yield _Field(f"{name}.{inner.name}", inner.type, partial(values, index), rows, variants)


def _entry_fields(name: str | None, found: _Entries, rows: Rows, asked: Asked) -> Iterator[_Field | Odd]:
    """Entries as fields, one for each distinct name to read. `name` is the name of the map, or None if the map is the event."""
    names = plain_texts(found.names)
    if names.null_count and name is None:
        nameless = np.flatnonzero(names.is_null().to_numpy(zero_copy_only=False))
        yield Odd(None, rows[np.unique(found.parents[nameless])], "an attribute's name is null")
    encoded = pc.dictionary_encode(names)
    codes = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy().astype(np.int64)
    order = grouped(codes)
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    kind, sorted_rows = found.values.type, rows[found.parents[order]]
    taken: list[pa.Array] = []

    def values(start: int, end: int) -> pa.Array:
        if not taken:
            taken.append(chosen(found.values, order))
        return taken[0].slice(start, end - start)

    for code, key in enumerate(names_in(encoded.dictionary)):
        own = key if name is None or not key else f"{name}.{key}"
        if own and is_wanted(own, kind, asked):
            start, end = int(bounds[code]), int(bounds[code + 1])
            yield _Field(own, kind, partial(values, start, end), sorted_rows[start:end], True)


def _map_entries(maps: pa.Array) -> _Entries:
    places, parents = list_places(maps)
    return _Entries(parents, chosen(maps.keys, places), chosen(maps.items, places))


def _listed_entries(lists: pa.Array) -> _Entries:
    places, parents = list_places(lists)
    fields = lists.values.flatten()
    names = [field.name for field in lists.type.value_type]
    attribute, value = (fields[names.index(name)] for name in ("attribute", "value"))
    return _Entries(parents, chosen(attribute, places), chosen(value, places))


def _is_list_of_entries(kind: pa.DataType) -> bool:
    """Whether a type is a list of attributes with their values."""
    if not is_list(kind) or not pa.types.is_struct(kind.value_type):
        return False
    return sorted(field.name for field in kind.value_type) == ["attribute", "value"]
