"""What a broker hands out, as JSON lines on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from tamis.errors import FileError


def write_objects(objects: Iterable[dict[str, Any]]) -> None:
    """Write JSON objects and flush them. When this returns, the reader of the pipe can read them.

    Raises
    ------
    FileError
        Stdout is closed.
    BrokenPipeError
        The reader of the pipe is gone.
    """
    if sys.stdout is None:
        raise FileError("is closed", path="stdout")
    left = memoryview("".join(f"{json.dumps(each)}\n" for each in objects).encode("ascii"))
    while left:
        # With PYTHONUNBUFFERED, this is a plain file, which may write a part only.
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()
