"""The elements of a JSON array, one after another, without the whole array in memory. It may have any number of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tamis.cli.byte_stream import ByteStream

# A string, a quote that opens a string whose end has not come yet, or a bracket.
_INSIDE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|"|[\[\]{}]', re.DOTALL)
# Between elements also a comma.
_BETWEEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|"|[\[\]{},]', re.DOTALL)

CUT_OFF = "the JSON array is cut off: its ] is missing"


class Element(NamedTuple):
    """The text of an element, or its problem, and the number of its first line."""

    line: int
    data: bytes
    problem: str | None = None


class JsonArray:
    """Iterates once over the elements of an array that a stream begins with."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._left = 0
        self.buffer = b""  # the last block, and the beginning of an element before it
        self._start = 0  # where the element begins in the buffer
        self._position = 0  # how far the buffer is scanned
        self._depth = 0  # how many brackets within the element are open
        self._line = 1  # of the first byte of the element
        self._elements = 0
        self._ended = False

    def __iter__(self) -> Iterator[Element]:
        try:
            self._begin()
            while not self._ended:
                found = list(self._scanned())
                self._left = len(found)
                for element in found:
                    self._left -= 1
                    yield element
                if self._ended:
                    break
                block = self._stream.block()
                if not block:
                    yield Element(self._line + _blank_lines(self.buffer[self._start :]), b"", CUT_OFF)
                    return
                self._position -= self._start
                self.buffer, self._start = self.buffer[self._start :] + block, 0
            yield from self._after()
        finally:
            self._stream.close()

    def ready(self) -> bool:
        """Whether the next element, or the end, is there already."""
        return self._left > 0 or self._stream.ready()

    def _begin(self) -> None:
        """Take the bracket that opens the array."""
        self.buffer = self._stream.block()
        self._take(self.buffer.index(b"[") + 1)

    def _take(self, end: int) -> bytes:
        """The bytes from where the element begins to `end`, where the next one begins."""
        taken = self.buffer[self._start : end]
        self._line += taken.count(b"\n")
        self._start = self._position = end
        return taken

    def _scanned(self) -> Iterator[Element]:
        """The elements that end within the buffer."""
        while token := (_INSIDE if self._depth else _BETWEEN).search(self.buffer, self._position):
            character = token[0]
            if character == b'"':
                self._position = token.start()
                return
            self._position = token.end()
            if character in b"{[":
                self._depth += 1
            elif character in b"}]" and self._depth:
                self._depth -= 1
            elif character in b",]" and not self._depth:
                yield from self._element(token.start(), last=character == b"]")
                if self._ended:
                    return
        self._position = len(self.buffer)

    def _element(self, end: int, *, last: bool) -> Iterator[Element]:
        self._ended = last
        line = self._line
        data = self._take(end + 1)[:-1]
        text = data.strip()
        self._elements += 1
        if text:
            yield Element(line + _blank_lines(data), text)
        elif not last or self._elements > 1:
            yield Element(line, b"", "a comma in the JSON array has no value before or after it")

    def _after(self) -> Iterator[Element]:
        """The problem if more than blanks follow the array."""
        rest = self.buffer[self._start :]
        while not rest.strip():
            self._line += rest.count(b"\n")
            rest = self._stream.block()
            if not rest:
                return
        problem = (
            "there is more text after the end of the JSON array. Hint: a file holds one array, or one object per line"
        )
        yield Element(self._line + _blank_lines(rest), b"", problem)


def _blank_lines(data: bytes) -> int:
    """How many lines end before the first byte that is not blank."""
    return data[: len(data) - len(data.lstrip())].count(b"\n")


def in_one_line(data: bytes) -> bytes:
    """JSON without line feeds, which stand only between its parts."""
    return b" ".join(part.strip() for part in data.split(b"\n")) if b"\n" in data else data
