"""Creates a file unless it exists, completely or not at all.

Opening with ``x`` would be exclusive too, but others would see the file before its bytes, and a killed writer would leave a part
of it for ever. So the bytes are written to a part beside the file, and the part gets the file's name in one step:

    Linux, macOS       a rename that does not replace
    NFS and others     a hard link, since their rename always replaces
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path

from tamis.storage.replacing import flush_folder

_HERE = -100
"""Linux: paths are relative to the folder of the process."""
_NO_REPLACE = 1
"""Linux: RENAME_NOREPLACE."""
_EXCLUSIVE = 4
"""macOS: RENAME_EXCL."""
_UNKNOWN = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)
"""What a file system answers that knows no such rename."""


def create(target: Path, data: bytes) -> None:
    """Create a file. Its bytes and its name are then safe on disk.

    Raises
    ------
    FileExistsError
        If the file exists. It is not changed.
    OSError
    """
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        _rename(part, target)
    finally:
        with suppress(OSError):
            part.unlink()
    flush_folder(target.parent)


def _rename(source: Path, target: Path) -> None:
    """Rename a file; an existing file is an error."""
    if sys.platform == "win32":
        os.rename(source, target)
        return
    try:
        rename_exclusively(os.fsencode(source), os.fsencode(target))
    except OSError as error:
        if error.errno not in _UNKNOWN:
            raise
        os.link(source, target)


def rename_exclusively(source: bytes, target: bytes) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    try:
        if sys.platform == "darwin":
            failed = system.renamex_np(source, target, ctypes.c_uint(_EXCLUSIVE))
        else:
            failed = system.renameat2(_HERE, source, _HERE, target, ctypes.c_uint(_NO_REPLACE))
    except AttributeError:  # an old C library
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from None
    if failed:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(target))
