"""Writing a file so that it appears whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from tamis.errors import FileError


@contextmanager
def whole_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that has a temporary name until the block ends without an error.

    An existing file is replaced. A pipe or a device is written to directly.

    Raises
    ------
    FileError
        When it cannot be written.
    """
    final, written = _names(path)
    try:
        with open(written, "wb") as stream:
            yield stream
        if written != final:
            os.replace(written, final)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from None
    finally:
        if written != final:
            with suppress(OSError):
                written.unlink()


def _names(path: str) -> tuple[Path, Path]:
    """The final name of the file, and its temporary name."""
    if not path:
        raise FileError("cannot be written: the name of the file is empty", path="''")
    if "\0" in path:
        raise FileError("cannot be written: a null character in the name", path=path)
    try:
        # A link stays a link: its target is replaced.
        final = Path(os.path.realpath(path))
        if final.is_dir() or not final.name:
            raise FileError("cannot be written: it is a folder", path=path)
        if final.exists() and not final.is_file():
            return final, final
        return final, final.with_name(f".{final.name}.{os.getpid()}.part")
    except OSError as error:
        raise cannot_write(path, error) from None


def cannot_write(path: str, error: OSError | ValueError) -> FileError:
    """The error for a file that the system does not write."""
    reason = error.strerror if isinstance(error, OSError) else None
    return FileError(f"cannot be written: {reason or error}", path=path)
