"""Arrow tables of events to columns: one attribute, its values without nulls, and the row of each value.

Three forms are read: wide (a column per attribute; structs are flattened to dotted names, lists are several values), a
single column ``map<string, V>``, and a single column ``list<struct<attribute, value>>``. V is a scalar, a list of scalars,
or a struct with nullable fields among `VARIANT_FIELDS`, one of them set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.runs import grouped, run_indices
from tamis.errors import EventError, TableError
from tamis.language.values import INT64_MAX, INT64_MIN, Kind, is_moment

VARIANT_FIELDS = ("integer", "number", "string", "boolean", "timestamp")
"""The fields of a struct that stands for a value of any kind."""

Rows = npt.NDArray[np.int64]

_Source = tuple[str, pa.Array, Rows]
"""An attribute, values of any type, and the row of each."""


class Column(NamedTuple):
    """Values of one attribute and kind: NumPy for numbers, booleans and microseconds, Arrow for strings, also as a dictionary."""

    attribute: str
    kind: Kind
    rows: Rows
    values: Any


def is_long(table: pa.Table) -> bool:
    """Whether a table has a single column with all attributes of each event."""
    if table.num_columns != 1:
        return False
    kind = table.schema.field(0).type
    return pa.types.is_map(kind) or (is_list(kind) and pa.types.is_struct(kind.value_type))


def event_columns(table: pa.Table, among: Sequence[int] | None = None) -> Iterator[Column]:
    """All values of a table of events, column by column; rows ascend within a column.

    `among` are the columns of a wide table that are wanted; without it all are, of a table in any of the forms.

    Raises
    ------
    TableError
        For a column of a type that has no meaning as an event's value.
    EventError
        When an attribute is given twice, or an integer is beyond 64 bits.
    """
    given: dict[str, list[Column]] = {}
    for attribute, values, rows in _sources(table, among):
        if not attribute:
            raise EventError("an attribute's name cannot be empty", rows=np.unique(rows) if len(rows) else None)
        columns = list(typed(attribute, values, rows))
        before = given.setdefault(attribute, [])
        if before and columns:
            # A struct's field and a column with its dotted name: right, as long as no row has both.
            earlier, now = (np.concatenate([column.rows for column in part]) for part in (before, columns))
            twice = np.intersect1d(earlier, now)
            if len(twice):
                raise EventError("the attribute is given twice", rows=twice, attribute=attribute)
        before += columns
        yield from columns


def _sources(table: pa.Table, among: Sequence[int] | None) -> Iterator[_Source]:
    """The attributes of a table, with Arrow values and the row of each."""
    rows = np.arange(table.num_rows, dtype=np.int64)
    if among is None and is_long(table):
        yield from _paired(rows, *entries(table))
        return
    for index in range(len(table.column_names)) if among is None else among:
        yield from _flattened(table.field(index).name, combined(table.column(index)), rows)


def combined(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _flattened(name: str, values: pa.Array, rows: Rows) -> Iterator[_Source]:
    """Structs and maps to dotted names; everything else as it is."""
    if pa.types.is_struct(values.type):
        for field, child in zip(values.type, values.flatten(), strict=True):
            yield from _flattened(_dotted(name, field.name, rows), child, rows)
    elif pa.types.is_map(values.type):
        for attribute, items, item_rows in _paired(rows, *_map_parts(values)):
            yield _dotted(name, attribute, item_rows), items, item_rows
    else:
        yield name, values, rows


def _dotted(name: str, inner: str, rows: Rows) -> str:
    if not inner:
        inside = np.unique(rows) if len(rows) else None
        raise EventError(f"an attribute's name cannot be empty inside {name!r}", rows=inside)
    return f"{name}.{inner}"


def entries(table: pa.Table) -> tuple[Rows, pa.Array, pa.Array]:
    """The entries of a long table: the row of each, attribute, value."""
    only, column = table.schema.field(0), combined(table.column(0))
    return _map_parts(column) if pa.types.is_map(only.type) else _entry_parts(column, only.name)


def _map_parts(maps: pa.Array) -> tuple[Rows, pa.Array, pa.Array]:
    """The entries of a map column: the row of each, key, item."""
    places, parents = list_places(maps)
    return parents, chosen(maps.keys, places), chosen(maps.items, places)


def _entry_parts(lists: pa.Array, name: str) -> tuple[Rows, pa.Array, pa.Array]:
    """The entries of a column of lists of structs: the row of each, attribute, value."""
    names = [field.name for field in lists.type.value_type]
    if sorted(names) != ["attribute", "value"]:
        raise TableError(
            f"the only column {name!r} is a list of structs with the fields {names}; "
            "events need the fields 'attribute' and 'value'"
        )
    places, parents = list_places(lists)
    fields = dict(zip(names, lists.values.flatten(), strict=True))
    return parents, chosen(fields["attribute"], places), chosen(fields["value"], places)


def _paired(rows: Rows, parents: Rows, keys: pa.Array, items: pa.Array) -> Iterator[_Source]:
    """Entries of (attribute, value), sorted apart by attribute."""
    if not is_text(keys.type):
        raise TableError(f"names of attributes are strings, not {keys.type}")
    keys = plain_texts(keys)
    if keys.null_count:
        nameless = np.flatnonzero(keys.is_null().to_numpy(zero_copy_only=False))
        raise EventError("an attribute's name is null", rows=rows[np.unique(parents[nameless])])
    encoded = pc.dictionary_encode(keys)
    codes = encoded.indices.to_numpy().astype(np.int64)
    order = grouped(codes)
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    sorted_items, sorted_rows = chosen(items, order), rows[parents[order]]
    for code, attribute in enumerate(encoded.dictionary.to_pylist()):
        start, end = int(bounds[code]), int(bounds[code + 1])
        yield attribute, sorted_items.slice(start, end - start), sorted_rows[start:end]


def list_places(lists: pa.Array) -> tuple[Rows, Rows]:
    """Of every element of a column of lists or maps: its place in the child array, and the row of its list.

    Arrow's own functions disagree about lists that are null and yet have elements, which are left out here.
    """
    kind = lists.type
    if pa.types.is_fixed_size_list(kind):
        starts = (lists.offset + np.arange(len(lists), dtype=np.int64)) * kind.list_size
        counts = np.full(len(lists), kind.list_size, np.int64)
    elif pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        starts, counts = lists.offsets.to_numpy().astype(np.int64), lists.sizes.to_numpy().astype(np.int64)
    else:
        offsets = lists.offsets.to_numpy().astype(np.int64)
        starts, counts = offsets[:-1], np.diff(offsets)
    if lists.null_count:
        counts = np.where(lists.is_valid().to_numpy(zero_copy_only=False), counts, 0)
    return run_indices(starts, counts), np.repeat(np.arange(len(lists), dtype=np.int64), counts)


def chosen(values: pa.Array, places: npt.NDArray[Any]) -> pa.Array:
    """The values at some places, without a copy where they stand in a row."""
    if len(places) == 0:
        return values.slice(0, 0)
    if places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all():
        return values.slice(int(places[0]), len(places))
    return without_views(values).take(pa.array(places))


def without_views(values: pa.Array) -> pa.Array:
    """Strings in a form that Arrow's functions know: for views, which polars gives, it has few."""
    kind = values.type
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.DictionaryArray.from_arrays(values.indices, values.dictionary.cast(pa.large_string()))
    if pa.types.is_struct(kind) and kind.num_fields:
        fields = [without_views(child) for child in values.flatten()]
        return pa.StructArray.from_arrays(fields, names=[field.name for field in kind], mask=values.is_null())
    if is_list(kind) and without_views(values.values.slice(0, 0)).type != kind.value_type:
        places, parents = list_places(values)
        counts = np.bincount(parents, minlength=len(values))
        offsets = pa.array(np.append(0, np.cumsum(counts)), pa.int64())
        return pa.LargeListArray.from_arrays(
            offsets, chosen(without_views(values.values), places), mask=values.is_null()
        )
    return values


def plain_texts(values: pa.Array) -> pa.Array:
    """Strings as strings, where they come as a dictionary or as views."""
    plain = without_views(values)
    return plain.dictionary_decode() if pa.types.is_dictionary(plain.type) else plain


def compact_texts(values: pa.Array) -> pa.Array:
    """Strings as strings, or as a dictionary if that is what they come as and it has no needless entries."""
    plain = without_views(values)
    if pa.types.is_dictionary(plain.type) and len(plain.dictionary) <= len(plain) and not plain.dictionary.null_count:
        return plain
    return plain_texts(plain)


def typed(attribute: str, values: pa.Array, rows: Rows) -> Iterator[Column]:
    """The values of an attribute as columns of one kind each, nulls and NaNs left out."""
    kind = values.type
    if pa.types.is_null(kind) or (pa.types.is_dictionary(kind) and pa.types.is_null(kind.value_type)):
        return
    if pa.types.is_run_end_encoded(kind):
        values = pc.run_end_decode(values)
        kind = values.type
    if is_text(kind):
        values = compact_texts(values)
        kind = values.type
    elif pa.types.is_dictionary(kind):
        values, kind = values.dictionary_decode(), kind.value_type
    if is_list(kind):
        element = kind.value_type
        if is_list(element) or (pa.types.is_struct(element) and not is_variant(element)) or pa.types.is_map(element):
            raise TableError(f"column {attribute!r}: a list holds scalars, not {element}")
        places, parents = list_places(values)
        yield from typed(attribute, chosen(values.values, places), rows[parents])
        return
    if is_variant(kind):
        for child in values.flatten():
            yield from typed(attribute, child, rows)
        return
    if values.null_count:
        present = values.is_valid().to_numpy(zero_copy_only=False)
        values, rows = values.drop_null(), rows[present]
    if pa.types.is_decimal(kind) and kind.scale <= 0:
        integers, fits = _integers(values)
        if len(integers):
            yield Column(attribute, Kind.NUMBER, rows[fits], integers)
        values, rows = values.filter(pa.array(~fits)), rows[~fits]
    found, plain = plain_values(attribute, values, rows)
    if found is Kind.NUMBER and plain.dtype == np.float64 and np.isnan(plain).any():
        number = ~np.isnan(plain)
        plain, rows = plain[number], rows[number]
    if found is Kind.TIMESTAMP and not is_moment(plain).all():
        far = np.unique(rows[~is_moment(plain)])
        raise EventError("a timestamp is not within the years 1 to 9999", rows=far, attribute=attribute)
    if len(rows):
        yield Column(attribute, found, rows, plain)


def plain_values(attribute: str, values: pa.Array, rows: Rows) -> tuple[Kind, Any]:
    """The kind of a column of scalars, and its values in the form that `Column` holds."""
    kind = values.type
    if pa.types.is_boolean(kind):
        return Kind.BOOLEAN, values.to_numpy(zero_copy_only=False)
    if is_text(kind):
        return Kind.STRING, values if pa.types.is_dictionary(kind) else values.cast(pa.large_string())
    if pa.types.is_integer(kind):
        if kind == pa.uint64() and len(values):
            beyond = np.flatnonzero(values.to_numpy() > INT64_MAX)
            if len(beyond):
                raise EventError("an integer is beyond 64 bits", rows=np.unique(rows[beyond]), attribute=attribute)
        return Kind.NUMBER, values.cast(pa.int64()).to_numpy()
    if pa.types.is_floating(kind):
        return Kind.NUMBER, values.cast(pa.float64()).to_numpy()
    if pa.types.is_decimal(kind):
        # By way of text: Arrow's own conversion of decimals is not always to the nearest double.
        return Kind.NUMBER, values.cast(pa.string()).cast(pa.float64()).to_numpy()
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Kind.TIMESTAMP, _microseconds(attribute, values)
    raise TableError(
        f"column {attribute!r}: {kind} has no meaning as an event's value; use numbers, strings, booleans, "
        "timestamps or dates, lists of these, or structs"
    )


def _integers(decimals: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Decimals without fraction that fit in 64 bits, exactly, and which they are; the others are taken as doubles."""
    numbers = [int(value) for value in decimals.to_pylist()]
    fits = np.array([INT64_MIN <= number <= INT64_MAX for number in numbers], np.bool_)
    return np.array([number for number in numbers if INT64_MIN <= number <= INT64_MAX], np.int64), fits


def _microseconds(attribute: str, values: pa.Array) -> npt.NDArray[np.int64]:
    try:
        if pa.types.is_date(values.type):
            values = values.cast(pa.timestamp("us"))
        zone = values.type.tz
        # Finer than microseconds is cut off, towards the past.
        if values.type.unit == "ns":
            return np.asarray(values.cast(pa.int64()).to_numpy() // 1000, np.int64)
        return np.asarray(values.cast(pa.timestamp("us", zone)).cast(pa.int64()).to_numpy(), np.int64)
    except pa.ArrowInvalid as error:
        raise EventError(f"a timestamp is out of range: {error}", attribute=attribute) from None


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_variant(kind: pa.DataType) -> bool:
    """Whether a type is a struct that stands for a value of any kind."""
    return pa.types.is_struct(kind) and kind.num_fields > 0 and all(field.name in VARIANT_FIELDS for field in kind)


def is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )
