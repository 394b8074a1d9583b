"""Arrow columns of events: values of one attribute without nulls, and the row of each value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import EventError, shortened
from tamis.kernels.numbers import Bools, I64s
from tamis.kernels.ranges import span_indices
from tamis.language.values import INT64_MAX, INT64_MIN, Kind, is_moment

VARIANT_FIELDS = ("integer", "number", "string", "boolean", "timestamp")
"""The fields of a struct that stands for a value of any kind."""

Rows = I64s

_FAR = "a timestamp is not within the years 1 to 9999"
_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds in the units of timestamps that are not finer."""
_DAY = 86_400_000_000


class Column(NamedTuple):
    """Values of one attribute and kind: NumPy for numbers, booleans and microseconds, Arrow for strings, also as a dictionary."""

    attribute: str
    kind: Kind
    rows: Rows
    values: Any


class Odd(NamedTuple):
    """Rows whose value of an attribute is wrong, if an expression asks about it. The attribute is None if its name is wrong."""

    attribute: str | None
    rows: Rows
    reason: str

    def error(self) -> EventError:
        return EventError(self.reason, rows=np.unique(self.rows), attribute=self.attribute)

    def note(self, problems: dict[int, str]) -> None:
        """Note the problem of each row. If a row has a problem already, the first one stays."""
        problem = str(EventError(self.reason, attribute=self.attribute))
        for row in np.unique(self.rows).tolist():
            problems.setdefault(row, problem)


def decoded_texts(texts: pa.Array) -> list[str | None]:
    """Strings of a column without nulls; None for each that is not UTF-8."""
    return [_decoded(text) for text in texts.cast(pa.large_binary()).to_pylist()]


def _decoded(text: bytes) -> str | None:
    try:
        return text.decode()
    except UnicodeDecodeError:
        return None


def integers(values: I64s) -> pa.Array:
    """A column over an array, without a copy. `pa.array` would first import pandas, which takes some tenths of a second."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)], null_count=0)


def combined(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


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
    return span_indices(starts, counts), np.repeat(np.arange(len(lists), dtype=np.int64), counts)


def chosen(values: pa.Array, places: npt.NDArray[Any]) -> pa.Array:
    """The values at some places, without a copy if the places are consecutive."""
    if _are_consecutive(places):
        return values.slice(int(places[0]) if len(places) else 0, len(places))
    return without_views(values).take(pa.array(places))


def chosen_rows(column: pa.ChunkedArray, rows: npt.NDArray[Any]) -> pa.ChunkedArray:
    """The same for a column. A copy in one piece is made only if the rows are not consecutive."""
    if _are_consecutive(rows):
        return column.slice(int(rows[0]) if len(rows) else 0, len(rows))
    return pa.chunked_array([chosen(combined(column), rows)])


def _are_consecutive(places: npt.NDArray[Any]) -> bool:
    return len(places) == 0 or bool(places[-1] - places[0] == len(places) - 1 and (np.diff(places) == 1).all())


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


def typed(attribute: str, values: pa.Array, rows: Rows) -> Iterator[Column | Odd]:
    """Scalars of an attribute as columns of one kind each, nulls and NaNs left out."""
    kind = values.type
    if pa.types.is_null(kind) or (pa.types.is_dictionary(kind) and pa.types.is_null(kind.value_type)):
        return
    if is_text(kind):
        values = compact_texts(values)
        kind = values.type
    elif not has_kind(kind):  # Arrow has few functions for such types.
        present = values.is_valid().to_numpy(zero_copy_only=False)
        if present.any():
            yield Odd(attribute, rows[present], _no_value(kind))
        return
    if values.null_count:
        present = values.is_valid().to_numpy(zero_copy_only=False)
        values, rows = values.drop_null(), rows[present]
    if pa.types.is_decimal(kind) and kind.scale <= 0:
        integers, fits = _integers(values)
        if len(integers):
            yield Column(attribute, Kind.NUMBER, rows[fits], integers)
        values, rows = values.filter(pa.array(~fits)), rows[~fits]
    if not len(rows):
        return
    try:
        found, plain = kind_and_values(attribute, values, np.arange(len(rows)))
    except EventError as error:
        wrong = np.zeros(len(rows), np.bool_)
        wrong[slice(None) if error.rows is None else error.rows] = True
        yield Odd(attribute, rows[wrong], error.reason)
        if not wrong.all():
            yield from typed(attribute, values.filter(pa.array(~wrong)), rows[~wrong])
        return
    if found is Kind.NUMBER and plain.dtype == np.float64 and np.isnan(plain).any():
        number = ~np.isnan(plain)
        plain, rows = plain[number], rows[number]
    if found is Kind.TIMESTAMP and not is_moment(plain).all():
        near = is_moment(plain)
        yield Odd(attribute, rows[~near], _FAR)
        plain, rows = plain[near], rows[near]
    if len(rows):
        yield Column(attribute, found, rows, plain)


def kind_and_values(attribute: str, values: pa.Array, rows: Rows) -> tuple[Kind, Any]:
    """The kind of a column of scalars without nulls, and its values in the form that `Column` holds.

    Raises
    ------
    EventError
        It names the rows with values outside the language: all rows if the type of the column is wrong.
    """
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
        return Kind.TIMESTAMP, _microseconds(attribute, values, rows)
    raise EventError(_no_value(kind), rows=np.unique(rows), attribute=attribute)


def has_kind(kind: pa.DataType) -> bool:
    """Whether a type is one of scalars that are values of the language."""
    types = pa.types
    return bool(
        is_text(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )


def _no_value(kind: pa.DataType) -> str:
    return (
        f"{shortened(kind, quoted=False)} is not a value of the language; "
        "use numbers, strings, booleans, timestamps or dates, lists of these, or structs"
    )


def _integers(decimals: pa.Array) -> tuple[I64s, Bools]:
    """The decimals that fit in 64 bits, as exact integers, and which these are. The others are taken as doubles."""
    numbers = [int(value) for value in decimals.to_pylist()]
    fits = np.array([INT64_MIN <= number <= INT64_MAX for number in numbers], np.bool_)
    return np.array([number for number in numbers if INT64_MIN <= number <= INT64_MAX], np.int64), fits


def _microseconds(attribute: str, values: pa.Array, rows: Rows) -> I64s:
    kind = values.type
    if pa.types.is_date32(kind):
        counts, unit = values.cast(pa.int32()).to_numpy().astype(np.int64), _DAY
    else:
        counts = values.cast(pa.int64()).to_numpy()
        if pa.types.is_timestamp(kind) and kind.unit == "ns":
            return np.asarray(counts // 1000, np.int64)  # Finer than microseconds is cut off, towards the past.
        unit = _MICROSECONDS[kind.unit if pa.types.is_timestamp(kind) else "ms"]
    beyond = (counts > INT64_MAX // unit) | (counts < INT64_MIN // unit)
    if beyond.any():
        raise EventError(_FAR, rows=np.unique(rows[beyond]), attribute=attribute)
    return np.asarray(counts * unit, np.int64)


def is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_variant(kind: pa.DataType) -> bool:
    """Whether a type is a struct that stands for a value of any kind."""
    return pa.types.is_struct(kind) and kind.num_fields > 0 and all(field.name in VARIANT_FIELDS for field in kind)


def is_full_variant(kind: pa.DataType) -> bool:
    """Whether a type is such a struct with a field for every kind, so that it cannot be an object."""
    return is_variant(kind) and kind.num_fields == len(VARIANT_FIELDS)


def is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    )
