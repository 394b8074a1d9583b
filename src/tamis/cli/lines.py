"""The lines of a text file or of stdin, with their numbers.

Only a line feed ends a line (and a carriage return before it belongs to the end). A byte that is not UTF-8 stays in the
text as a lone surrogate, so that the line keeps its place; `not_text` finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tamis.cli.byte_stream import ByteStream
from tamis.errors import FileError

BOM = b"\xef\xbb\xbf"
"""The byte order mark that some editors on Windows write at the beginning of a file."""

NOT_UTF8 = "not UTF-8"
"""The first words of the message about a line that is not text."""

_STRAY = re.compile("[\udc80-\udcff]")


class LineError(ValueError):
    """A line cannot be used. The message has no place; the caller knows file and line."""


class Line(NamedTuple):
    """A line without its end, and its number, counted from 1."""

    number: int
    text: str


class Lines:
    """Iterates over the lines of a file once; see `ByteStream` for packed ones.

    Raises
    ------
    FileError
        When the file is missing, cannot be opened or, later, cannot be read.
    """

    def __init__(self, path: str | ByteStream) -> None:
        self._stream = ByteStream(path) if isinstance(path, str) else path
        self.name = self._stream.name
        self._left = 0

    def __iter__(self) -> Iterator[Line]:
        return (Line(number, decoded(data)) for number, data in enumerate(self.raw(), 1))

    def raw(self) -> Iterator[bytes]:
        """The lines as they are in the file, without the line feed and without a mark at the beginning of the file."""
        begun: list[bytes] = []  # parts of an unfinished line, joined once: repeated joining would be quadratic
        first = True
        try:
            while block := self._stream.block():
                *whole, rest = block.split(b"\n")
                if whole:
                    whole[0] = b"".join([*begun, whole[0]])
                    begun = []
                    if first:
                        whole[0] = whole[0].removeprefix(BOM)
                        first = False
                begun.append(rest)
                self._left = len(whole)
                for data in whole:
                    self._left -= 1
                    yield data
            if rest := b"".join(begun):
                yield rest.removeprefix(BOM) if first else rest
        finally:
            self._stream.close()

    def ready(self) -> bool:
        """Whether the next line, or the end, can be read without waiting on a live stream."""
        return self._left > 0 or self._stream.ready()

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        return self._stream.share()

    def error(self, line: int, message: str) -> FileError:
        """The error for a line of this file."""
        return FileError(message, path=self.name, line=line)


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


def decoded(data: bytes) -> str:
    """The text of a line, without a carriage return at its end."""
    return data.removesuffix(b"\r").decode(errors="surrogateescape")


def not_text(text: str) -> str | None:
    """What is wrong with a line that is not UTF-8; None if it is."""
    if text.isascii() or (found := _STRAY.search(text)) is None:
        return None
    byte = ord(found.group()) - 0xDC00
    hint = "Hint: files are text in UTF-8; iconv converts other encodings"
    return f"{NOT_UTF8}: byte 0x{byte:02x} at column {found.start() + 1}. {hint}"
