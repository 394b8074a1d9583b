"""Arrow tables as arrays of bytes, in Arrow's own stream format, which is read without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.numbers import U8s

COLUMN = "values"
"""The one column of a table that was made of an array."""


def to_bytes(data: pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray) -> U8s:
    """A table as bytes, to be written like any array; an array is taken for a table with the one column `values`.

    Examples
    --------
    >>> import pyarrow
    >>> from_bytes(to_bytes(pyarrow.array(["ann", "ben"])))["values"].to_pylist()
    ['ann', 'ben']
    """
    table = data if isinstance(data, pa.Table | pa.RecordBatch) else pa.table({COLUMN: data})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    return np.frombuffer(sink.getvalue(), np.uint8)


def from_bytes(data: npt.NDArray[Any]) -> pa.Table:
    """The table that `to_bytes` was given. It keeps the bytes alive and shares them.

    Raises
    ------
    pyarrow.ArrowInvalid
        When they are not a table.
    """
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()
