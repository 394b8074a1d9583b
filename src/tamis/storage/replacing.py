"""Replaces a file by a new one, completely or not at all, even if the process or the machine stops.

    .alerts.snapshot.5f0c2a91.part      written, flushed to disk, then renamed to alerts.snapshot
    alerts.snapshot                     has the old bytes before the rename, the new bytes after it

If writing fails, the part is removed. A killed process leaves its part behind, and the next process that writes the same file
removes it. A living writer holds a lock on its part, so other processes do not remove it.

Four places do not use this module. `kernels.cache` is in a lower layer, and a kernel whose file is lost is compiled again. A
manifest of `spark.manifest` must not replace an existing one, see `storage.exclusive`. `spark.streaming` renames folders.
`broker.tables` lets SQLite write the new file.
"""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tamis.errors import SnapshotError

if sys.platform != "win32":
    import fcntl

_TOKEN_BYTES = 4


@contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """Open a new file that replaces `path` when the block ends without an error. Its bytes are then on disk.

    A link stays a link: the file that it points to is replaced. The new file has the permissions of the old one.

    Raises
    ------
    SnapshotError
        If the file cannot be written. The old file is then unchanged.
    """
    target = _target(path)
    try:
        with replacing_target(target) as stream:
            yield stream
    except OSError as error:
        raise _cannot_write(path, error) from None


@contextmanager
def replacing_target(target: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Like `replacing`, for a path without links that is a file or does not exist. Raises the errors of the system.

    If `durable` is False, the file is complete or missing, but a power cut may lose it.
    """
    _remove_leftovers(target)
    with _new_part(target) as stream:
        try:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
            if sys.platform == "win32":  # Windows cannot rename an open file
                stream.close()
            os.replace(stream.name, target)
        except BaseException:
            _discard(stream)
            raise
    if durable:
        flush_folder(target.parent)


def _target(path: str) -> Path:
    try:
        target = Path(os.path.realpath(path))
        is_folder, is_other = target.is_dir(), target.exists() and not target.is_file()
        has_folder = target.parent.is_dir()
    except (OSError, ValueError) as error:
        raise _cannot_write(path, error) from None
    if is_folder or not path:
        raise SnapshotError("cannot be written: it is a folder; name a file in it", path=path or "''")
    if is_other:
        raise SnapshotError("cannot be written: it is a pipe or a device; name a file", path=path)
    if not has_folder:
        raise SnapshotError("cannot be written: its folder does not exist; create it first", path=path)
    return target


def _new_part(target: Path) -> BinaryIO:
    while True:
        part = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.part")
        stream = open(part, "xb")  # noqa: SIM115 - the caller closes it
        if sys.platform != "win32":
            with suppress(OSError):  # a file system without locks
                fcntl.flock(stream, fcntl.LOCK_EX)
        with suppress(OSError):
            shutil.copymode(target, part)
        # Before the lock, another writer may have removed the part as a leftover.
        if part.exists():
            return stream
        stream.close()


def _discard(stream: BinaryIO) -> None:
    if sys.platform == "win32":  # Windows cannot remove an open file
        with suppress(OSError):
            stream.close()
    with suppress(OSError):
        os.unlink(stream.name)


def _remove_leftovers(target: Path) -> None:
    """Remove the parts of writers that were killed."""
    pattern = f".{glob.escape(target.name)}.{'?' * 2 * _TOKEN_BYTES}.part"
    with suppress(OSError):
        for part in target.parent.glob(pattern):
            _remove_unless_held(part)


def _remove_unless_held(part: Path) -> None:
    with suppress(OSError):
        if sys.platform == "win32":  # Windows does not remove an open file, so no lock is needed
            part.unlink()
            return
        with open(part, "r+b") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def flush_folder(folder: Path) -> None:
    """Make the new name survive a power cut. Windows and some network file systems do not support this."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _cannot_write(path: str, error: OSError | ValueError) -> SnapshotError:
    reason = (error.strerror if isinstance(error, OSError) else None) or error
    return SnapshotError(f"cannot be written: {reason}; an older file is unchanged", path=path)
