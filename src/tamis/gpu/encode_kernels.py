"""Numbers as Arrow has them to the values of events: a warp for each event, a thread for each column or entry.

    wide table   columns of numbers ─┐
    long table   names and numbers ──┼─▶  CardEvents: what the kernel that matches reads
    the rest     encoded by threads ─┘

This is what `encoding.events.plain_columns` does on the processor. If a number is 2**53 or more, an attribute is not plain, or an
event has several numbers of one attribute, a kernel only notes that: then threads encode the table.
"""

from __future__ import annotations

from typing import Any

from tamis.encoding.dimensions.dimension_set import NOT_ASKED
from tamis.encoding.events.plain_columns import FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16
from tamis.encoding.events.plain_rows import NOT_PLAIN
from tamis.gpu import engine_functions as engine
from tamis.gpu.card_arrays import (
    BIT,
    CODE,
    COLUMN,
    DIMENSION,
    FREE,
    NO_BITS,
    VALIDITY_AT,
    VALUES_AT,
    CardEntries,
    CardEvents,
    CardNames,
    Cells,
)
from tamis.gpu.device_code import cuda, device
from tamis.gpu.names_table import HALF, PRIME, SEED
from tamis.gpu.warp import WARP, before, count, from_first, meet, votes
from tamis.kernels.bits import BYTE
from tamis.kernels.numbers import F64, I64, UP, I64s

_NAN = float("nan")
FILLED, WRONG = 0, 1
"""What kernels note: how many values there are, and whether some are not plain."""


@device
def _number(cells: Cells, at: int, code: int) -> Any:
    """A number of the type `code`. It is undefined if the value is null."""
    if code == INT64:
        return F64(cells.i8[UP(at)])
    if code == FLOAT64:
        return cells.f8[UP(at)]
    if code == INT32:
        return F64(cells.i4[UP(at)])
    if code == FLOAT32:
        return F64(cells.f4[UP(at)])
    if code == INT16:
        return F64(cells.i2[UP(at)])
    if code == INT8:
        return F64(cells.i1[UP(at)])
    if code == UINT8:
        return F64(cells.u1[UP(at)])
    if code == UINT16:
        return F64(cells.u2[UP(at)])
    return F64(cells.u4[UP(at)])


@device
def _is_there(cells: Cells, at: int, bit: int) -> bool:
    """Whether a value is not null. `at`: where the bits of its column are, or NO_BITS."""
    return at == NO_BITS or engine.has_bit_in_bytes(cells.u1, BYTE * at + bit)


@device
def _column_number(columns: I64s, c: int, row: int, cells: Cells) -> Any:
    """The number of a column in a row; NaN if it has none."""
    line = COLUMN * c
    if not _is_there(cells, columns[UP(line + VALIDITY_AT)], columns[UP(line + BIT)] + row):
        return F64(_NAN)
    return _number(cells, columns[UP(line + VALUES_AT)] + row, columns[UP(line + CODE)])


@device
def _put(there: bool, dimension: int, number: Any, at: int, lane: int, out: CardEvents, noted: I64s) -> int:
    """Write the numbers of a warp from `at` on; returns where the next ones go. All threads of the warp call this."""
    these = votes(there)
    if there:
        bits = engine.bits_of_number(number)
        place = at + before(these, lane)
        out.dimension[UP(place)], out.lo[UP(place)] = dimension, engine.code_of_bits(bits)
        if not engine.is_small(bits):
            noted[WRONG] = 1
    return at + I64(count(these))


@cuda.jit
def encode_columns(columns: I64s, cells: Cells, others: CardEvents, out: CardEvents, noted: I64s) -> None:
    """Encode the rows of a wide table, and add the values that `others` has for them."""
    lane, width = cuda.threadIdx.x % WARP, len(columns) // COLUMN
    event = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    while event < len(out.begin):
        total = I64(0)
        for first in range(0, width, WARP):
            there = False
            if first + lane < width:
                number = _column_number(columns, first + lane, event, cells)
                there = number == number
            total += I64(count(votes(there)))
        begin = I64(0)
        if len(others.begin) > 0:
            begin = others.begin[UP(event)]
            total += others.end[UP(event)] - begin
        at = I64(0)
        if lane == 0:
            at = cuda.atomic.add(noted, FILLED, total)
        at = I64(from_first(at))
        if lane == 0:
            out.begin[UP(event)], out.end[UP(event)] = at, at + total
        for first in range(0, width, WARP):
            there, number, c = False, F64(0), first + lane
            if c < width:
                number = _column_number(columns, c, event, cells)
                there = number == number
            dimension = I64(columns[UP(COLUMN * min(c, width - 1) + DIMENSION)])
            at = _put(there, dimension, number, at, lane, out, noted)
        if len(others.begin) > 0:
            for v in range(begin + lane, others.end[UP(event)], WARP):
                out.dimension[UP(at + v - begin)] = others.dimension[UP(v)]
                out.lo[UP(at + v - begin)] = others.lo[UP(v)]
        event += cuda.gridDim.x * cuda.blockDim.x // WARP


@device
def _name_end(entries: CardEntries, i: int, cells: Cells) -> int:
    """The offset of name i, where name i - 1 ends."""
    at = entries.name_end + i
    return cells.i8[UP(at)] if entries.name_bits > HALF else I64(cells.i4[UP(at)])


@device
def _is_name(cells: Cells, at: int, end: int, known: int, names: CardNames) -> bool:
    """Whether the bytes from `at` to `end` are a known name."""
    begin = names.start[UP(known)]
    if names.start[UP(known + 1)] - begin != end - at:
        return False
    same = True
    for i in range(end - at):
        same = same and cells.u1[UP(at + i)] == names.text[UP(begin + i)]
    return same


@device
def _dimension_of(cells: Cells, at: int, end: int, names: CardNames) -> int:
    """The dimension of the attribute whose name has these bytes; NOT_PLAIN, NOT_ASKED."""
    mark = I64(SEED)
    for i in range(at, end):
        mark = ((mark ^ I64(cells.u1[UP(i)])) * I64(PRIME)) & I64((1 << HALF) - 1)
    last = I64(len(names.table) - 1)
    place = mark & last
    while True:
        known = I64(names.table[UP(place)])
        if known == FREE:
            return I64(NOT_ASKED)
        if _is_name(cells, at, end, known, names):
            return I64(names.dimension[UP(known)])
        place = (place + 1) & last


@device
def _has_twice(begin: int, end: int, lane: int, out: CardEvents) -> bool:
    """Whether a value among those of this thread has the dimension of an earlier value of its event."""
    for v in range(begin + lane, end, WARP):
        for earlier in range(begin, v):
            if out.dimension[UP(earlier)] == out.dimension[UP(v)]:
                return True
    return False


@cuda.jit
def encode_entries(entries: CardEntries, names: CardNames, cells: Cells, out: CardEvents, noted: I64s) -> None:
    """Encode the entries of a long table. The values of an event lie where its entries do."""
    lane = cuda.threadIdx.x % WARP
    event = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    while event < len(out.begin):
        begin, end = cells.i8[UP(entries.start + event)], cells.i8[UP(entries.start + event + 1)]
        at = begin
        for first in range(begin, end, WARP):
            there, number, dimension, i = False, F64(0), I64(NOT_ASKED), first + lane
            if i < end:
                name_at, name_end = _name_end(entries, i, cells), _name_end(entries, i + 1, cells)
                dimension = I64(_dimension_of(cells, entries.names + name_at, entries.names + name_end, names))
                if dimension == NOT_PLAIN:
                    noted[WRONG] = 1
                elif dimension >= 0 and _is_there(cells, entries.validity, entries.bit + i):
                    number = _number(cells, entries.values + i, entries.code)
                    there = number == number
            at = _put(there, dimension, number, at, lane, out, noted)
        meet()
        if lane == 0:
            out.begin[UP(event)], out.end[UP(event)] = begin, at
        if _has_twice(begin, at, lane, out):
            noted[WRONG] = 1
        event += cuda.gridDim.x * cuda.blockDim.x // WARP
