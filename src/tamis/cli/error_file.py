"""All bad lines of a run, as JSONL: ``{"file": "alerts.jsonl", "line": 3, "message": "not JSON: ..."}``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TextIO

from tamis.cli.whole_file import cannot_write
from tamis.errors import FileError


class ErrorFile:
    """Takes bad lines one by one. Each is in the file when `write` returns, so the file can be followed live."""

    def __init__(self, path: str, stream: TextIO) -> None:
        self.path = path
        self._stream = stream

    def write(self, error: FileError) -> None:
        """Write a bad line.

        Raises
        ------
        FileError
            If writing fails, for example because the disk is full.
        """
        line = {"file": error.path, "line": error.line, "message": message_of(error)}
        try:
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()
        except OSError as failure:
            raise cannot_write(self.path, failure) from None


@contextmanager
def open_errors(path: str | None) -> Iterator[ErrorFile | None]:
    """The file of a path, empty at first; None without a path.

    Raises
    ------
    FileError
        When it cannot be written.
    """
    if path is None:
        yield None
        return
    with ExitStack() as stack:
        try:
            stream = stack.enter_context(open(path, "w", encoding="ascii"))
        except (OSError, ValueError) as error:  # ValueError: a null character in the name
            raise cannot_write(path, error) from None
        yield ErrorFile(path, stream)


def message_of(error: FileError) -> str:
    """The text of an error without file and line."""
    place = f"{error.path}: " if error.line is None else f"{error.path}:{error.line}: "
    return str(error).removeprefix(place)
