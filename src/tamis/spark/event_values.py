"""Which rows of matches belong to one event."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.kernels.numbers import Bools, I64s


def run_starts(columns: Sequence[pa.Array]) -> I64s:
    """The rows that differ from the row before. A NaN differs from every value."""
    length = len(columns[0])
    differs = np.zeros(max(0, length - 1), bool)
    for column in columns:
        differs |= _differs(column)
    return np.flatnonzero(np.append(np.ones(min(1, length), bool), differs))


def _differs(column: pa.Array) -> Bools:
    before, after = column[:-1], column[1:]
    try:
        found = pc.fill_null(pc.not_equal(before, after), pc.xor(before.is_null(), after.is_null()))
    except pa.ArrowNotImplementedError:  # structs, maps, lists
        try:
            found = [one != other for one, other in pairwise(column.to_pylist())]
        except (ValueError, OverflowError):  # a value that `ColumnReader` refuses
            found = [True] * len(before)
    return np.array(found, bool)
