"""Columns of numbers to rows of keys in one pass of a kernel, without a NumPy or Arrow operation for each column.

Most columns of a wide table are plain: they hold integers or floats, and all predicates on the attribute are about numbers. The
kernel reads the Arrow buffers of all plain columns at once, row by row:

    column           price        size      ...
    values           9.5 - 12.0   3 4 -           numbers of any width; - is undefined, the value is null
    validity         1 0 1        1 1 0           bits; no array if there are no nulls
    batch    row 0   (price, 9.5) (size, 3)
             row 1   (size, 4)

A long table, whose single column has entries (attribute, value), is read in the same way if all its values are numbers of such
attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import combined
from tamis.encoding.dimensions.dimension_set import NOT_ASKED
from tamis.encoding.dimensions.keys import code_of_bits, is_small
from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.bits import has_bit_in_bytes
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, UP, Bools, I8s, I32s, I64s, U8s
from tamis.kernels.packed import Packed, f4, f8, i1, i2, i4, i8, u1, u2, u4

_TYPES = (
    pa.int64(),
    pa.float64(),
    pa.int32(),
    pa.float32(),
    pa.int16(),
    pa.int8(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
)
INT64, FLOAT64, INT32, FLOAT32, INT16, INT8, UINT8, UINT16, UINT32 = range(len(_TYPES))
"""The codes of these types."""
_CODES = {kind.id: code for code, kind in enumerate(_TYPES)}
WIDTHS = [kind.bit_width // 8 for kind in _TYPES]
"""Code -> bytes of a value."""
_BITS = 8
_ARRAYS = 2
_VALUES, _VALIDITY = range(_ARRAYS)
"""The arrays of a column in `_Buffers.packed`."""


Numbers: TypeAlias = Sequence[int] | I32s
"""The dimension of each attribute, or NOT_ASKED."""


def is_plain(kind: pa.DataType) -> bool:
    """Whether this module can read columns of this type."""
    return kind.id in _CODES


class _Buffers(NamedTuple):
    """The columns as the kernel reads them."""

    packed: Packed
    """The values, from row 0 on, and the validity of each column."""
    bit: I64s
    """The bit of row 0 in the validity of each column."""
    code: U8s
    dimension: I32s


class _Values(NamedTuple):
    """The batch that a kernel writes, with unused room at the end."""

    start: I64s
    dimension: I32s
    key: I64s

    def batch(self, filled: int) -> EventBatch:
        keys = self.key[:filled]
        return EventBatch(self.start, self.dimension[:filled], keys, keys)


class RawColumn(NamedTuple):
    """A column as Arrow has it, for whoever reads it elsewhere."""

    values: U8s
    """The bytes of the values, from row 0 on."""
    validity: U8s
    """Bits; empty if no value is null."""
    bit: int
    """The bit of row 0 in the validity."""
    code: int


def raw_column(array: pa.Array) -> RawColumn:
    """The memory of a plain column that has values."""
    code, offset, count = _CODES[array.type.id], array.offset, len(array)
    validity, values = array.buffers()
    width, first = WIDTHS[code], offset // _BITS
    data = np.frombuffer(values, np.uint8)[offset * width : (offset + count) * width]
    bits = np.zeros(0, np.uint8)
    if validity is not None and array.null_count:
        bits = np.frombuffer(validity, np.uint8)[first : -(-(offset + count) // _BITS)]
    return RawColumn(data, bits, offset % _BITS, code)


class PlainColumns:
    """Columns of numbers, each with its dimension. `index` has their places in the table."""

    def __init__(self, table: pa.Table, index: Sequence[int], dimensions: Sequence[int]) -> None:
        self._table = table
        self.index: list[int] = []
        self.dimensions: list[int] = []
        self.arrays: list[pa.Array] = []
        """Keeps the buffers alive: the kernel has their addresses."""
        self.values = 0
        """How many values are there."""
        for dimension, number in sorted(zip(dimensions, index, strict=True)):
            array = combined(table.column(number))
            values = len(array) - array.null_count
            if values:  # a column without values may have no buffer
                self.index.append(number)
                self.dimensions.append(dimension)
                self.arrays.append(array)
                self.values += values
        self._buffers = _buffers(self.arrays, self.dimensions)

    def batch(self, first: int, last: int) -> tuple[EventBatch, list[int]]:
        """The keys of the rows from `first` up to `last`, and the columns of the table with numbers that are too large.

        If there are such columns, the batch must not be used.
        """
        columns = len(self.index)
        # One more: the kernel writes a value before it knows whether the value is null.
        room = min((last - first) * columns, self.values) + 1
        out = _Values(np.empty(last - first + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64))
        large = np.zeros(columns, np.bool_)
        batch = out.batch(_fill(self._buffers, first, out, large))
        return batch, [self.index[at] for at in np.flatnonzero(large).tolist()]

    def without(self, index: Sequence[int]) -> PlainColumns:
        """A copy without the given columns."""
        kept = [at for at, number in enumerate(self.index) if number not in index]
        return PlainColumns(self._table, [self.index[at] for at in kept], [self.dimensions[at] for at in kept])


def entries_batch(parents: I64s, codes: I32s, items: pa.Array, dimensions: Numbers, count: int) -> EventBatch | None:
    """The keys of `count` events, given as entries of an attribute and a number.

    `parents` has the event of each entry, ascending; `codes` its attribute; `items` its number. `dimensions` has the dimension of
    each attribute, or NOT_ASKED. None if a number is too large, or an event has several numbers of one attribute.
    """
    columns = _buffers([items], dimensions)
    room = len(items) + 1
    out = _Values(np.zeros(count + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int64))
    filled = _fill_entries(columns, parents, codes, out, np.full(len(dimensions), -1, np.int64))
    return None if filled < 0 else out.batch(filled)


def write_plain_keys(array: pa.Array, there: I8s, keys: I64s) -> bool:
    """Write which rows of a plain column have a number, 1 or 0, and their keys. Returns whether no number is too large."""
    there[:] = 0
    # A column without values may have no buffer.
    return array.null_count == len(array) or bool(_write_keys(_buffers([array], [0]), there, keys))


def _buffers(arrays: Sequence[pa.Array], dimensions: Numbers) -> _Buffers:
    flat: list[int] = []
    bits: list[int] = []
    codes: list[int] = []
    for array in arrays:
        offset, code = array.offset, _CODES[array.type.id]
        validity, values = array.buffers()
        flat += (values.address + offset * WIDTHS[code], len(array))
        flat += (validity.address, validity.size) if validity is not None and array.null_count else (0, 0)
        bits.append(offset)
        codes.append(code)
    return _Buffers(
        np.array(flat, np.int64), np.array(bits, np.int64), np.array(codes, np.uint8), np.array(dimensions, np.int32)
    )


@lean_kernel
def _fill(columns: _Buffers, first: int, out: _Values, large: Bools) -> int:
    """Write the values of the rows from `first` on. Returns the number of values."""
    at = 0
    for row in range(len(out.start) - 1):
        out.start[UP(row)] = at
        for c in range(len(columns.code)):
            here = _is_there(u1(columns.packed, _ARRAYS * c + _VALIDITY), columns.bit[UP(c)] + first + row)
            number = np.float64(_number(columns.packed, c, columns.code[UP(c)], UP(first + row)))
            here &= number == number
            bits = I64(number.view(np.int64))
            large[UP(c)] |= here and not is_small(bits)
            out.dimension[UP(at)] = columns.dimension[UP(c)]
            out.key[UP(at)] = code_of_bits(bits)
            at += here
    out.start[len(out.start) - 1] = at
    return at


@lean_kernel
def _write_keys(column: _Buffers, there: I8s, keys: I64s) -> bool:
    """Note the rows that have a number, and write their keys. Returns whether no number is too large."""
    validity, bit, code = u1(column.packed, _VALIDITY), column.bit[0], column.code[0]
    for row in range(len(keys)):
        number = np.float64(_number(column.packed, 0, code, UP(row)))
        if _is_there(validity, bit + row) and number == number:
            bits = I64(number.view(np.int64))
            if not is_small(bits):
                return False
            there[UP(row)], keys[UP(row)] = 1, code_of_bits(bits)
    return True


@lean_kernel
def _fill_entries(columns: _Buffers, parents: I64s, codes: I32s, out: _Values, latest: I64s) -> int:
    """Write the values of entries. Returns the number of values, or -1 if the entries cannot be encoded here."""
    start, dimensions, at = out.start, columns.dimension, 0
    validity, bit, code = u1(columns.packed, _VALIDITY), columns.bit[0], columns.code[0]
    for i in range(len(parents)):
        here = _is_there(validity, bit + i)
        number = np.float64(_number(columns.packed, 0, code, UP(i)))
        here &= number == number
        bits = I64(number.view(np.int64))
        attribute, event = UP(codes[UP(i)]), parents[UP(i)]
        if here:
            if latest[attribute] == event or not is_small(bits):
                return -1
            latest[attribute] = event
        out.dimension[UP(at)] = dimensions[attribute]
        out.key[UP(at)] = code_of_bits(bits)
        here &= dimensions[attribute] != NOT_ASKED
        at += here
        start[UP(event + 1)] += here
    for event in range(len(start) - 1):
        start[UP(event + 1)] += start[UP(event)]
    return at


@inlined
def _is_there(validity: U8s, place: int) -> int:
    """Whether a value is not null: 1 or 0. A column without nulls has no bits."""
    return I64(has_bit_in_bytes(validity, place)) if len(validity) > 0 else 1


@inlined
def _number(columns: Packed, c: int, code: int, row: int) -> np.float64:
    """The number of a column in a row. It is undefined if the value is null."""
    values = _ARRAYS * c + _VALUES
    if code == INT64:
        return np.float64(i8(columns, values)[row])
    if code == FLOAT64:
        return np.float64(f8(columns, values)[row])
    if code == INT32:
        return np.float64(i4(columns, values)[row])
    if code == FLOAT32:
        return np.float64(f4(columns, values)[row])
    if code == INT16:
        return np.float64(i2(columns, values)[row])
    if code == INT8:
        return np.float64(i1(columns, values)[row])
    if code == UINT8:
        return np.float64(u1(columns, values)[row])
    if code == UINT16:
        return np.float64(u2(columns, values)[row])
    return np.float64(u4(columns, values)[row])
