"""Lines of JSON in blocks of some megabytes, for readers that take many lines at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from tamis.cli.byte_stream import ByteStream

if TYPE_CHECKING:
    from tamis.encoding.events.json_lines import JsonLines

_MOST = 1 << 24
"""Bytes of a block. Each block costs some milliseconds besides its lines, for each attribute that somebody asks about."""


class JsonBlock(NamedTuple):
    """Some consecutive events, and the number of the line before them."""

    events: JsonLines
    before: int
    lines: int
    """Lines of the block, blank ones included."""

    def line(self, row: int) -> int:
        """The number of the line of an event, counted from 1."""
        return self.before + int(self.events.numbers[row]) + 1


def json_blocks(stream: ByteStream, most: int = _MOST) -> Iterator[JsonBlock]:
    """The lines of a stream. A live stream gives the lines that are there.

    Raises
    ------
    FileError
        When the stream cannot be read.
    """
    lines = 0
    for data in whole_lines(stream, most):
        block = block_of(data, lines)
        yield block
        lines += block.lines


def block_of(data: bytes, before: int) -> JsonBlock:
    """A block of whole lines, and the number of the lines before it."""
    from tamis.encoding.events.json_lines import JsonLines

    events, lines = JsonLines.cut(data, is_begin=before == 0)
    return JsonBlock(events, before, lines)


def whole_lines(stream: ByteStream, most: int = _MOST) -> Iterator[bytes]:
    """The bytes of a stream, cut at ends of lines."""
    begun: list[bytes | memoryview] = []  # parts of a line whose end has not come
    parts: list[bytes | memoryview] = []
    size = 0
    try:
        while block := stream.block(most):
            end = block.rfind(b"\n") + 1
            if end:
                parts += [*begun, memoryview(block)[:end] if end < len(block) else block]
                begun = []
            if end < len(block):
                begun.append(block[end:])
            size += len(block)
            if parts and (size >= most or not stream.ready()):
                yield b"".join(parts)
                parts, size = [], 0
        if rest := b"".join([*parts, *begun]):
            yield rest
    finally:
        stream.close()
