"""Writes arrays of any memory layout as bytes of a container."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from tamis.errors import SnapshotError, shortened
from tamis.kernels.numbers import U8s
from tamis.storage.checksum import Checksum
from tamis.storage.layout import DTYPES, Entry, padded

PIECE_BYTES = 2**20
"""Bytes to checksum and write at a time: few enough to stay in the processor's cache between the two steps."""


def write_array(stream: BinaryIO, name: str, array: npt.NDArray[Any], path: str, piece: int = PIECE_BYTES) -> Entry:
    """Write an array at the end of the file, `piece` bytes at a time."""
    dtype = _stored_dtype(name, array, path)
    start = stream.tell()
    total = Checksum()
    for data in _pieces(array, dtype, piece):
        total.update(data)
        stream.write(data.data)
    return Entry(name, dtype, array.shape, start, array.size * dtype.itemsize, total.value())


def _stored_dtype(name: str, array: npt.NDArray[Any], path: str) -> np.dtype[Any]:
    if not isinstance(name, str):
        raise SnapshotError(f"the name of an array must be a string, not {shortened(name)}", path=path)
    if not isinstance(array, np.ndarray):
        raise SnapshotError(f"{shortened(name)} is not a NumPy array but a {type(array).__name__}", path=path)
    dtype = DTYPES.get(array.dtype.str.replace(">", "<"))
    if dtype is None:
        stored = "only booleans, integers and floats of 32 or 64 bits can be stored"
        raise SnapshotError(f"array {shortened(name)} has the dtype {array.dtype}; {stored}", path=path)
    return dtype


def _pieces(array: npt.NDArray[Any], dtype: np.dtype[Any], piece_bytes: int) -> Iterator[U8s]:
    """The bytes of an array in C order, piece by piece. Only arrays in another order are copied."""
    flat = array.reshape(-1) if array.flags.c_contiguous else array.flat
    step = piece_bytes // dtype.itemsize
    for first in range(0, array.size, step):
        piece = np.ascontiguousarray(flat[first : first + step], dtype)
        yield padded(piece.view(np.uint8))
