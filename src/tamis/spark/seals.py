"""Seals: the size and the checksum of a file, as text. A manifest has the seals of files that executors copy to their disks."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from tamis.kernels.numbers import U8s
from tamis.storage.checksum import Checksum
from tamis.storage.layout import padded

_PIECE = 1 << 20
"""Bytes read at a time: a whole number of the checksum's steps, few enough for the processor's cache."""


def seal_of(path: Path) -> str:
    """The seal of a file: ``<bytes>-<XXH64 of its bytes, padded with zeros>``."""
    total, size = Checksum(), 0
    with open(path, "rb", buffering=0) as stream:
        while piece := stream.read(_PIECE):
            # A short read would put zeros into the middle.
            while len(piece) < _PIECE and (more := stream.read(_PIECE - len(piece))):
                piece += more
            size += len(piece)
            total.update(padded(_bytes(piece)))
    return f"{size}-{total.value():016x}"


def seal_of_bytes(data: bytes) -> str:
    """The seal of a file with these bytes."""
    total = Checksum()
    for start in range(0, len(data), _PIECE):
        total.update(padded(_bytes(data[start : start + _PIECE])))
    return f"{len(data)}-{total.value():016x}"


def sealed_bytes(seal: str) -> int:
    """The size of a file with this seal."""
    return int(seal.partition("-")[0])


def seems_sealed(path: Path, seal: str) -> bool:
    """Whether a file has the size that its seal has. Reading all of it takes long, and the snapshot in it checks itself."""
    return os.stat(path).st_size == sealed_bytes(seal)


def _bytes(piece: bytes) -> U8s:
    return np.frombuffer(piece, np.uint8)
