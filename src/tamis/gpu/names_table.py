"""The names of attributes in a hash table, which kernels search by the bytes of a name.

table    3  -  0  -  -  1  2  -        places of names, or FREE; a name is at its hash or behind it
text     price genre size ...          the bytes of all names
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tamis.encoding.events.plain_rows import KnownNames
from tamis.gpu.card_arrays import FREE, CardNames
from tamis.kernels.numbers import I32s, I64s, U8s

SEED, PRIME = 2166136261, 16777619
"""The constants of FNV-1a with 32 bits."""
HALF = 32
"""The bits of a hash."""
_FEWEST = 8
"""The least length of a table."""


def names_table(known: KnownNames) -> CardNames:
    """The table of attributes, and their dimensions."""
    names = known.names.cast(pa.large_string())
    _, offsets, data = names.buffers()
    start = np.frombuffer(offsets, np.int64)[names.offset : names.offset + len(names) + 1]
    text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(0, np.uint8)
    size = max(_FEWEST, 1 << (2 * len(names)).bit_length())
    table = _placed(_hashes(start, text), size)
    return CardNames(table, start.copy(), text.copy(), known.numbers[: len(names)].copy())


def _hashes(start: I64s, text: U8s) -> I64s:
    """The hash of each name, for all names at once, byte by byte."""
    lengths = np.diff(start)
    marks = np.full(len(lengths), SEED, np.int64)
    for at in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > at)
        byte = text[start[:-1][longer] + at].astype(np.int64)
        marks[longer] = ((marks[longer] ^ byte) * PRIME) & ((1 << HALF) - 1)
    return marks


def _placed(marks: I64s, size: int) -> I32s:
    """A table with the place of each name at its hash, or at the next free place."""
    table = np.full(size, FREE, np.int32)
    waiting, place = np.arange(len(marks)), marks & (size - 1)
    while len(waiting):
        free = table[place] == FREE
        table[place[free]] = waiting[free]  # Of names with the same place, the last one stays.
        rest = table[place] != waiting
        waiting, place = waiting[rest], (place[rest] + 1) & (size - 1)
    return table
