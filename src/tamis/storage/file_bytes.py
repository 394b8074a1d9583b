"""The bytes of a container's file, mapped into memory or read."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from mmap import ACCESS_READ
from mmap import mmap as memory_map

import numpy as np

from tamis.errors import SnapshotError
from tamis.kernels.numbers import U8s
from tamis.storage.layout import ADVICE, ALIGNMENT, HEADER_SIZE, Header, read_header


def file_bytes(path: str, *, mapped: bool) -> tuple[Header, U8s]:
    """The checked header of a file, and all its bytes, read-only. If the header is wrong, no other bytes are read.

    Raises
    ------
    SnapshotError
        If the file does not exist or cannot be read, or its header is wrong.
    """
    _check_regular(path)
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            header = read_header(stream.read(HEADER_SIZE), size, path)
            return header, _mapped(stream, size, path) if mapped else _loaded(stream, size, path)
    except OSError as error:
        raise _cannot_read(path, error) from None


def memory_bytes(given: bytes, name: str) -> tuple[Header, U8s]:
    """`file_bytes` for the bytes of a file in memory. Errors name them `name`.

    Raises
    ------
    SnapshotError
    """
    header = read_header(given[:HEADER_SIZE], len(given), name)
    data = _aligned(len(given))
    data[:] = given
    return header, np.frombuffer(data.toreadonly(), np.uint8)


def _check_regular(path: str) -> None:
    """Accept only a regular file. Opening a pipe, for example, would wait for its writer."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise SnapshotError("there is no such file: name a file that Tamis has written", path=path or "''") from None
    except (OSError, ValueError) as error:
        raise _cannot_read(path, error) from None
    if stat.S_ISDIR(mode):
        raise SnapshotError("is a folder: name a file in it", path=path)
    if not stat.S_ISREG(mode):
        raise SnapshotError("is a pipe or a device: name a file", path=path)


def _mapped(stream: BufferedReader, size: int, path: str) -> U8s:
    try:
        data = memory_map(stream.fileno(), size, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        raise SnapshotError(f"cannot be mapped into memory, try mmap=False: {error}", path=path) from None
    return np.frombuffer(data, np.uint8)


def _loaded(stream: BufferedReader, size: int, path: str) -> U8s:
    """All bytes of a file, in memory that is aligned like a mapped file."""
    data = _aligned(size)
    stream.seek(0)
    if stream.readinto(data) != size:
        raise SnapshotError(f"was cut off while it was read: {ADVICE}", path=path)
    return np.frombuffer(data.toreadonly(), np.uint8)


def _aligned(size: int) -> memoryview:
    """Room for `size` bytes, aligned like a mapped file."""
    room = np.empty(size + ALIGNMENT, np.uint8)
    start = -room.ctypes.data % ALIGNMENT
    return room[start : start + size].data


def _cannot_read(path: str, error: OSError | ValueError) -> SnapshotError:
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return SnapshotError(f"cannot be read: {reason}", path=path)
