"""Arrow tables as arrays of bytes, in Arrow's stream format, which can be read without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.kernels.numbers import U8s

COLUMN = "values"
"""The name of the single column of a table that `to_bytes` made from an array."""


def to_bytes(data: pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray) -> U8s:
    """A table as bytes, which `container.write` accepts as an array. An Arrow array becomes a table with one column, `values`.

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
    """The table that was given to `to_bytes`. It shares the bytes and keeps them alive.

    Raises
    ------
    pyarrow.ArrowInvalid
        If the bytes are not a table.
    """
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()
