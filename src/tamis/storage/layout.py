"""The bytes of a container: a header, the arrays, a directory.

    0          64                     a multiple of 64 each
    | header   | array 0 | array 1 | ...    | directory |
      start, size and checksum of  -------->  meta; for every array: name, dtype, shape, checksum

All numbers are little-endian. Every part starts at a multiple of 64 bytes and is padded with zeros to the next multiple. Its
checksum covers the padding too, so a checksum covers every byte of the file. Arrays follow one another without gaps, so the
directory does not need their starts. `docs/snapshot-format.md` describes the format for authors of other readers.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from tamis.errors import SnapshotError, shortened
from tamis.kernels.numbers import U8s
from tamis.storage.checksum import checksum

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None

VERSION = 1
"""The format version that this code writes and reads."""

ALIGNMENT = 64
# The first byte is not text, and the last two do not survive a conversion of line ends.
MAGIC = b"\xf3TAMIS\r\n"
_HEADER = struct.Struct("<8sI4xQQQ16xQ")
HEADER_SIZE = _HEADER.size
_CHECKSUM_SIZE = 8

_CODES = ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8")
DTYPES = {code: np.dtype(code) for code in _CODES}
# NumPy's own limits.
_MOST_DIMENSIONS = 64
_MOST_BYTES = 2**63 - 1

ADVICE = "restore it from a copy, or write the snapshot again"


class Header(NamedTuple):
    """The start, size and checksum of the directory."""

    start: int
    size: int
    checksum: int

    def packed(self, version: int = VERSION) -> bytes:
        """The header of a file in a version of the format."""
        blank = _HEADER.pack(MAGIC, version, *self, 0)
        return blank[:-_CHECKSUM_SIZE] + _header_checksum(blank).to_bytes(_CHECKSUM_SIZE, "little")


class Entry(NamedTuple):
    """An array in the file: `size` bytes from `start`, without the padding."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    size: int
    checksum: int


class Directory(NamedTuple):
    """The contents of the file. The entries are in the order of their bytes."""

    meta: dict[str, Any]
    entries: dict[str, Entry]


def padded_size(size: int) -> int:
    return size + -size % ALIGNMENT


def padded(data: U8s) -> U8s:
    """The bytes, padded with zeros to a multiple of 64. No copy is made if no padding is needed."""
    missing = -len(data) % ALIGNMENT
    return np.concatenate((data, np.zeros(missing, np.uint8))) if missing else data


def read_header(head: bytes, size: int, path: str) -> Header:
    """Read the header of a file of `size` bytes.

    Raises
    ------
    SnapshotError
        If the file is not a container, has an unsupported version, a damaged header, or another length than its header says.
    """
    _check_kind(head, path)
    if int.from_bytes(head[-_CHECKSUM_SIZE:], "little") != _header_checksum(head):
        raise SnapshotError(f"its header is damaged: {ADVICE}", path=path)
    _, version, *place, _ = _HEADER.unpack(head)
    _check_version(version, path)
    header = Header(*place)
    expected = header.start + padded_size(header.size)
    if size < expected:
        raise SnapshotError(f"is cut off: it has {size:,} of {expected:,} bytes; {ADVICE}", path=path)
    if size > expected:
        raise SnapshotError(f"has {size - expected:,} extra bytes at the end: {ADVICE}", path=path)
    return header


def _check_kind(head: bytes, path: str) -> None:
    if not head:
        raise SnapshotError(f"is empty: {ADVICE}", path=path)
    if not MAGIC.startswith(head[: len(MAGIC)]):
        begins = f"it begins with {shortened(head[: len(MAGIC)])}"
        raise SnapshotError(f"is not a snapshot of Tamis, {begins}: name a file that Tamis has written", path=path)
    if len(head) < HEADER_SIZE:
        raise SnapshotError(f"is cut off within its header, after {len(head)} bytes: {ADVICE}", path=path)


def _check_version(version: int, path: str) -> None:
    if version == VERSION:
        return
    advice = (
        "use a newer Tamis, or write the snapshot with this one" if version > VERSION else "write the snapshot again"
    )
    raise SnapshotError(f"has format version {version}, but this Tamis reads version {VERSION}: {advice}", path=path)


def _header_checksum(header: bytes) -> int:
    """The checksum of a header. Zeros replace the field for the checksum."""
    blank = header[:-_CHECKSUM_SIZE] + bytes(_CHECKSUM_SIZE)
    return checksum(np.frombuffer(blank, np.uint8))


def directory_bytes(entries: list[Entry], meta: str) -> bytes:
    """The directory as JSON. `meta` is already JSON."""
    rows = [[e.name, e.dtype.str, list(e.shape), f"{e.checksum:016x}"] for e in entries]
    return f'{{"meta": {meta}, "arrays": {json.dumps(rows)}}}'.encode()


def read_directory(data: U8s, header: Header, path: str) -> Directory:
    """Read the directory of a file, given all its bytes.

    Raises
    ------
    SnapshotError
        If the directory is damaged, or contradicts itself or the file.
    """
    section = data[header.start :]
    if checksum(section) != header.checksum:
        raise SnapshotError(f"its directory is damaged: {ADVICE}", path=path)
    try:
        content = json.loads(section[: header.size].tobytes())
        meta, rows = content["meta"], content["arrays"]
        entries = _entries(rows)
        end = entries[-1].start + padded_size(entries[-1].size) if entries else HEADER_SIZE
        directory = Directory(meta, {entry.name: entry for entry in entries})
        sound = isinstance(meta, dict) and end == header.start and len(directory.entries) == len(entries)
    except (KeyError, RecursionError, TypeError, ValueError):
        sound = False
    if not sound:
        raise SnapshotError("its directory is not valid: name a file that Tamis has written", path=path)
    return directory


def _entries(rows: list[Any]) -> list[Entry]:
    entries = []
    start = HEADER_SIZE
    for name, code, shape, digits in rows:
        dtype = DTYPES[code]
        if not isinstance(name, str) or len(shape) > _MOST_DIMENSIONS:
            raise ValueError
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError
        # NumPy refuses shapes that would be too large if they were not empty.
        if math.prod(length or 1 for length in shape) * dtype.itemsize > _MOST_BYTES:
            raise ValueError
        size = math.prod(shape) * dtype.itemsize
        entries.append(Entry(name, dtype, tuple(shape), start, size, int(digits, 16)))
        start += padded_size(size)
    return entries
