"""A container: any number of named arrays and a little JSON in one file. The bottom layer of snapshots.

`write` streams arrays to a file that appears completely or not at all. `open` maps the file into memory and reads its directory.
An array is a view of the mapped bytes. All processes that have the file open share these bytes. The first call of
`Container.array` checks the array. `tamis.storage.layout` draws the bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from io import BytesIO
from json import dumps
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.errors import SnapshotError, did_you_mean, shortened
from tamis.kernels.numbers import U8s
from tamis.storage.array_bytes import write_array
from tamis.storage.checksum import checksum
from tamis.storage.file_bytes import file_bytes, memory_bytes
from tamis.storage.layout import (
    ADVICE,
    HEADER_SIZE,
    Directory,
    Entry,
    Header,
    Json,
    directory_bytes,
    padded,
    padded_size,
    read_directory,
)
from tamis.storage.replacing import replacing
from tamis.storage.tables import from_bytes


def write(
    path: str | os.PathLike[str], arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Json] | None = None
) -> None:
    """Write arrays to a file. The new file replaces an old one only when all its bytes are on disk.

    Parameters
    ----------
    path : path
        The file. Its folder must exist.
    arrays : mapping of str to array
        Booleans, integers and floats of 32 or 64 bits, of any shape and layout. `write` takes one array after another, so a
        mapping may create each array on request. `write` holds no second copy.
    meta : mapping, optional
        Any JSON object. `Container.meta` returns it.

    Raises
    ------
    SnapshotError
        If an array or `meta` cannot be stored, or the file cannot be written. An old file is then unchanged.
    """
    name = os.fsdecode(path)
    _refuse_big_endian(name)
    meta_text = _meta_text({} if meta is None else meta, name)
    with replacing(name) as stream:
        _write(stream, arrays, meta_text, name)


def to_bytes(arrays: Mapping[str, npt.NDArray[Any]], meta: Mapping[str, Json], name: str) -> bytes:
    """The bytes that `write` would write. Errors name them `name`.

    Raises
    ------
    SnapshotError
    """
    _refuse_big_endian(name)
    stream = BytesIO()
    _write(stream, arrays, _meta_text(meta, name), name)
    return stream.getvalue()


def of_bytes(data: bytes, name: str) -> Container:
    """Open the bytes that `to_bytes` returned.

    Raises
    ------
    SnapshotError
        As for `open`.
    """
    _refuse_big_endian(name)
    header, aligned = memory_bytes(data, name)
    return Container(name, aligned, read_directory(aligned, header, name))


def _write(stream: BinaryIO, arrays: Mapping[str, npt.NDArray[Any]], meta_text: str, name: str) -> None:
    stream.write(bytes(HEADER_SIZE))
    entries = [write_array(stream, key, array, name) for key, array in arrays.items()]
    text = directory_bytes(entries, meta_text)
    directory = padded(np.frombuffer(text, np.uint8))
    header = Header(stream.tell(), len(text), checksum(directory))
    stream.write(directory.data)
    stream.seek(0)
    stream.write(header.packed())


def open(path: str | os.PathLike[str], mmap: bool = True) -> Container:
    """Open a file that `write` made.

    Parameters
    ----------
    path : path
        The file.
    mmap : bool
        Whether to map the file into memory, which takes no time. Otherwise the whole file is read; afterwards it may be
        truncated, or its disk may be removed.

    Raises
    ------
    SnapshotError
        If the file does not exist, is not a container, has an unsupported version, is truncated, or has a damaged directory.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/alerts.snapshot"
    >>> write(path, {"start": np.array([0, 2, 5])}, {"subscriptions": 2})
    >>> with open(path) as container:
    ...     container.meta, container.array("start").tolist()
    ({'subscriptions': 2}, [0, 2, 5])
    """
    name = os.fsdecode(path)
    _refuse_big_endian(name)
    header, data = file_bytes(name, mapped=mmap)
    return Container(name, data, read_directory(data, header, name))


class Container:
    """A file of arrays, open for reading.

    The arrays keep the file's bytes alive, so they stay valid after the container is closed or dropped. Any number of threads may
    read. If two threads need the same check at the same time, both make it.
    """

    def __init__(self, path: str, data: U8s, directory: Directory) -> None:
        self.path = path
        self._data: U8s | None = data
        self._directory = directory
        self._checked: set[str] = set()

    @property
    def meta(self) -> dict[str, Any]:
        """The `meta` given to `write`, after a round trip through JSON."""
        return self._directory.meta

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arrays, in the order in which `write` wrote them."""
        return tuple(self._directory.entries)

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array, read-only and without a copy. The first call for an array checks it.

        Raises
        ------
        SnapshotError
            If the array is damaged, no array has this name, or the container is closed.
        """
        data, entry = self._bytes(), self._entry(name)
        if name not in self._checked:
            self._check(data, entry)
        return data[entry.start : entry.start + entry.size].view(entry.dtype).reshape(entry.shape)

    def table(self, name: str) -> pa.Table:
        """The Arrow table in an array that `tamis.storage.tables.to_bytes` returned, without a copy.

        Raises
        ------
        SnapshotError
            As for `array`, and when the array is not a table.
        """
        array = self.array(name)
        try:
            return from_bytes(array)
        except (pa.ArrowException, OSError):
            raise SnapshotError(
                f"array {shortened(name)} is not a table: read it with array()", path=self.path
            ) from None

    def verify(self) -> None:
        """Check all arrays now, including arrays that were checked before.

        Raises
        ------
        SnapshotError
            If an array is damaged, or the container is closed.
        """
        data = self._bytes()
        for entry in self._directory.entries.values():
            self._check(data, entry)

    def close(self) -> None:
        """Refuse further arrays. The file is closed when the last array is freed."""
        self._data = None

    def __enter__(self) -> Container:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        state = ", closed" if self._data is None else ""
        return f"Container({shortened(self.path)}, {len(self._directory.entries)} arrays{state})"

    def _bytes(self) -> U8s:
        if self._data is None:
            raise SnapshotError("is closed: open it again", path=self.path)
        return self._data

    def _entry(self, name: str) -> Entry:
        entry = self._directory.entries.get(name)
        if entry is None:
            hint = did_you_mean(name, list(self._directory.entries))
            raise SnapshotError(f"has no array {shortened(name)}{hint}", path=self.path)
        return entry

    def _check(self, data: U8s, entry: Entry) -> None:
        if checksum(data[entry.start : entry.start + padded_size(entry.size)]) != entry.checksum:
            raise SnapshotError(f"array {shortened(entry.name)} is damaged: {ADVICE}", path=self.path)
        self._checked.add(entry.name)


def _meta_text(meta: Mapping[str, Json], path: str) -> str:
    try:
        return dumps(dict(meta), allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise SnapshotError(f"`meta` cannot be written as JSON: {error}", path=path) from None


def _refuse_big_endian(path: str) -> None:
    if sys.byteorder != "little":
        raise SnapshotError("snapshots are read and written on little-endian machines only", path=path)
