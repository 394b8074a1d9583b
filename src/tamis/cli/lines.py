"""The lines of a text file or of stdin, with their numbers.

Only a line feed ends a line (and a carriage return before it belongs to the end). A byte that is not UTF-8 stays in the
text as a lone surrogate, so that the line keeps its place; `not_text` finds it.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import select
import sys
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, cast

from tamis.errors import FileError

STDIN = "-"

_BLOCK = 1 << 16
_NOT_UTF8 = re.compile("[\udc80-\udcff]")


class Line(NamedTuple):
    """A line without its end, and its number, counted from 1."""

    number: int
    text: str


class Lines:
    """Iterates over the lines of a file once. What ends in `.gz` is unpacked.

    Raises
    ------
    FileError
        When the file is missing, cannot be opened or, later, cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.name = "stdin" if path == STDIN else path
        self._raw = _stdin() if path == STDIN else _open(path)
        self._stream = gzip.GzipFile(fileobj=self._raw) if is_packed(path) else self._raw
        self._ours = path != STDIN
        self._left = 0
        self._size = _size(self._raw)

    def __iter__(self) -> Iterator[Line]:
        number = 0
        begun: list[bytes] = []  # a line whose end has not come yet: joined once, or long lines would cost their square
        try:
            while block := self._block():
                *whole, rest = block.split(b"\n")
                if whole:
                    whole[0] = b"".join([*begun, whole[0]])
                    begun = []
                begun.append(rest)
                self._left = len(whole)
                for data in whole:
                    number += 1
                    self._left -= 1
                    yield Line(number, _decoded(data, number))
            if rest := b"".join(begun):
                yield Line(number + 1, _decoded(rest, number + 1))
        finally:
            if self._ours:
                self._raw.close()

    def ready(self) -> bool:
        """Whether the next line, or the end, is there already; on a live stream one may have to wait for it."""
        if self._left or self._size is not None:
            return True
        try:
            return bool(select.select([self._raw], [], [], 0)[0])
        except (OSError, ValueError):  # no file of the system, as in tests
            return True

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        if not self._size:
            return None
        return 1.0 if self._raw.closed else min(1.0, self._raw.tell() / self._size)

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return FileError(message, path=self.name, line=line)

    def _block(self) -> bytes:
        try:
            return cast(io.BufferedReader, self._stream).read1(_BLOCK)
        except (OSError, EOFError, zlib.error) as error:
            raise FileError(f"cannot be read: {_reason(error)}", path=self.name) from None


def is_packed(path: str) -> bool:
    """Whether the name is that of a file packed with gzip."""
    return path.lower().endswith(".gz")


def read_text(path: str) -> str:
    """A whole text file, or all of stdin.

    Raises
    ------
    FileError
    """
    lines = Lines(path)
    texts = []
    for line in lines:
        if problem := not_text(line.text):
            raise lines.error(line.number, problem)
        texts.append(line.text)
    return "\n".join(texts)


def not_text(text: str) -> str | None:
    """What is wrong with a line that is not UTF-8; None if it is."""
    if text.isascii() or (found := _NOT_UTF8.search(text)) is None:
        return None
    byte = ord(found.group()) - 0xDC00
    return f"not UTF-8: byte 0x{byte:02x} at column {found.start() + 1}. Hint: convert it with iconv -t utf-8"


def cannot_open(path: str, error: OSError | ValueError) -> FileError:
    """The error for a file that the system does not open."""
    return FileError(f"cannot be opened: {_reason(error)}", path=path)


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise FileError("is closed", path="stdin")
    return sys.stdin.buffer


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise cannot_open(path, error) from None


def _size(stream: BinaryIO) -> int | None:
    """The size of a regular file; None for pipes and the like."""
    try:
        return os.fstat(stream.fileno()).st_size if stream.seekable() else None
    except (OSError, ValueError):
        return None


def _decoded(data: bytes, number: int) -> str:
    if number == 1:
        data = data.removeprefix(b"\xef\xbb\xbf")  # the mark that some editors on Windows begin with
    return data.removesuffix(b"\r").decode(errors="surrogateescape")


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
