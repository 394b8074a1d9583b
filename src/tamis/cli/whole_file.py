"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tamis.errors import FileError
from tamis.storage.replacing import replacing_target


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that has a temporary name until the block ends without an error.

    An existing file is replaced. A pipe or a device is written to directly.

    Raises
    ------
    FileError
        When it cannot be written.
    """
    target, is_special = _target(path)
    try:
        with open(target, "wb") if is_special else replacing_target(target, durable=False) as stream:
            yield stream
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from None


def _target(path: str) -> tuple[Path, bool]:
    """The file without links, and whether it is a pipe or a device."""
    if not path:
        raise FileError("cannot be written: the name of the file is empty", path="''")
    if "\0" in path:
        raise FileError("cannot be written: a null character in the name", path=path)
    try:
        # A link stays a link: its target is replaced.
        target = Path(os.path.realpath(path))
        if target.is_dir() or not target.name:
            raise FileError("cannot be written: it is a folder", path=path)
        return target, target.exists() and not target.is_file()
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError | ValueError) -> FileError:
    """The error for a file that the system does not write."""
    reason = error.strerror if isinstance(error, OSError) else None
    return FileError(f"cannot be written: {reason or error}", path=path)
