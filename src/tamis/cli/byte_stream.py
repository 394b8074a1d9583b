"""The bytes of a file or of stdin, in blocks. Content that is packed with gzip or zstd is unpacked.

The first bytes decide, not the name: a stream on stdin has no name.
"""

from __future__ import annotations

import os
import select
import sys
import zlib
from typing import Any, BinaryIO, Protocol, cast

from tamis.errors import FileError

STDIN = "-"

PACKED_ENDS = (".gz", ".zst")
"""Endings of packed files. They follow the ending that gives the format."""

_BLOCK = 1 << 16
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_LONGEST_MAGIC = 6

_REFUSED = {
    b"PAR1": "is a Parquet file. Hint: give it a name that ends in .parquet, or say that its format is parquet",
    b"ARROW1": "is an Arrow file. Hint: convert it to Parquet",
    b"PK\x03\x04": "is a zip archive or an Excel workbook. Hint: unpack it, or save it as CSV",
    b"BZh": "is packed with bzip2. Hint: unpack it, or pack it with gzip or zstd",
    b"\xfd7zXZ\x00": "is packed with xz. Hint: unpack it, or pack it with gzip or zstd",
    b"\xff\xfe": "is UTF-16, not UTF-8. Hint: convert it with iconv -f utf-16 -t utf-8",
    b"\xfe\xff": "is UTF-16, not UTF-8. Hint: convert it with iconv -f utf-16 -t utf-8",
}
"""First bytes of files that are not text, and the message for each."""


class _Source(Protocol):
    def block(self, most: int) -> bytes:
        """Some of the next bytes, about `most` if they need no waiting; none at the end."""
        ...

    def pending(self) -> bool:
        """Whether the next bytes may already be in memory."""
        ...


class ByteStream:
    """Reads a file, or stdin, once.

    Raises
    ------
    FileError
        When the file is missing, cannot be opened or, later, cannot be read.
    """

    def __init__(self, path: str) -> None:
        self.name = "stdin" if path == STDIN else path
        self._raw = _stdin() if path == STDIN else _open(path)
        self._ours = path != STDIN
        self._size = _size(self._raw)
        self._source: _Source | None = None
        self._ahead = b""

    def block(self, most: int = _BLOCK) -> bytes:
        """Some of the next bytes; none at the end. Of a file, they are about `most`.

        Raises
        ------
        FileError
            When the file is damaged, or is neither text nor packed text.
        """
        if self._ahead:
            block, self._ahead = self._ahead, b""
            return block
        try:
            if self._source is None:
                self._source = self._opened()
            return self._source.block(_BLOCK if self._size is None else most)
        except zlib.error as error:
            raise FileError(f"cannot be read: the gzip data is damaged ({error})", path=self.name) from None
        except (OSError, EOFError) as error:
            raise FileError(f"cannot be read: {_reason(error)}", path=self.name) from None

    def begin(self) -> bytes:
        """The first bytes that are not blank, without taking them; none if there are only blank ones."""
        blank = b""
        while (block := self.block()) and not block.removeprefix(b"\xef\xbb\xbf").strip():
            blank += block
        self._ahead = blank + block
        return self._ahead.removeprefix(b"\xef\xbb\xbf").lstrip()

    def ready(self) -> bool:
        """Whether the next bytes, or the end, can be read without waiting on a live stream."""
        if self._ahead or self._size is not None or (self._source is not None and self._source.pending()):
            return True
        try:
            return bool(select.select([self._raw], [], [], 0)[0])
        except (OSError, ValueError):  # not a file of the system, as in tests
            return True

    def share(self) -> float | None:
        """How much of the file is read, from 0 to 1; None if its size is unknown."""
        if not self._size:
            return None
        return 1.0 if self._raw.closed else min(1.0, self._raw.tell() / self._size)

    def left(self) -> int | None:
        """The bytes of a file that are not read; None if they are packed, or if its size is unknown."""
        if self._size is None or not isinstance(self._source, _Raw):
            return None
        return 0 if self._raw.closed else max(self._size - self._raw.tell(), 0) + len(self._ahead)

    def close(self) -> None:
        """Close the file; stdin stays open."""
        if self._ours:
            self._raw.close()

    def _opened(self) -> _Source:
        """The source that fits the first bytes."""
        start = b""
        while len(start) < _LONGEST_MAGIC and (more := _read(self._raw)):
            start += more
            if b"\n" in more:  # text: a live stream may have no more than this line
                break
        raw = _Raw(self._raw, start)
        if start.startswith(_GZIP):
            return _Gzip(raw)
        if start.startswith(_ZSTD):
            return _Zstd(raw)
        for magic, message in _REFUSED.items():
            if start.startswith(magic):
                raise FileError(message, path=self.name)
        return raw


class _Raw:
    """The bytes as they are. The bytes that were read already come first."""

    closed = False

    def __init__(self, stream: BinaryIO, start: bytes) -> None:
        self._stream = stream
        self._start = start

    def block(self, most: int) -> bytes:
        if self._start:
            start, self._start = self._start, b""
            return start
        return _read(self._stream, most)

    def pending(self) -> bool:
        return bool(self._start)

    def read(self, size: int) -> bytes:
        """The same for Arrow, which asks for a number of bytes. It gets fewer only at the end."""
        parts = [self._start[:size]]
        self._start = self._start[size:]
        missing = size - len(parts[0])
        if missing:
            parts.append(self._stream.read(missing))
        return b"".join(parts)

    def close(self) -> None:
        """Do nothing: Arrow calls this, but the stream closes the file."""


class _Gzip:
    """Unpacks gzip block by block. Concatenated packed files are read as one.

    Python's own reader reads ahead, so a line of a live stream could stay in its buffer until the next line comes.
    """

    def __init__(self, raw: _Raw) -> None:
        self._raw = raw
        self._member: Any = None
        self._left = b""

    def block(self, most: int) -> bytes:
        while True:
            packed = self._left or self._raw.block(_BLOCK)
            self._left = b""
            if not packed:
                if self._member is not None:
                    raise EOFError("the gzip data is cut off")
                return b""
            if self._member is None:
                packed = packed.lstrip(b"\0")  # padding between members
                if not packed:
                    continue
                self._member = zlib.decompressobj(wbits=31)
            data = self._member.decompress(packed)
            if self._member.eof:
                self._left = self._member.unused_data
                self._member = None
            if data:
                return cast(bytes, data)

    def pending(self) -> bool:
        return bool(self._left) or self._raw.pending()


class _Zstd:
    """Unpacks zstd. Blocks wait until they are full, even on a live stream, because Arrow reads full blocks."""

    def __init__(self, raw: _Raw) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd")

    def block(self, most: int) -> bytes:
        return cast(bytes, self._stream.read(most))

    def pending(self) -> bool:
        return True  # Arrow does not say.


def without_packed_end(path: str) -> str:
    """The name in lower case without `.gz` or `.zst`, so that its ending gives the format."""
    name = path.lower()
    for end in PACKED_ENDS:
        name = name.removesuffix(end)
    return name


def cannot_open(path: str, error: OSError | ValueError) -> FileError:
    """The error for a file that the system does not open."""
    if not path:
        return FileError("the name of the file is empty", path="''")
    if isinstance(error, IsADirectoryError):
        return FileError("is a folder, not a file. Hint: name its files, or a pattern such as 'folder/*'", path=path)
    if isinstance(error, FileNotFoundError):
        return FileError("there is no such file", path=path)
    return FileError(f"cannot be opened: {_reason(error)}", path=path)


def _read(stream: BinaryIO, most: int = _BLOCK) -> bytes:
    return cast(bytes, cast(Any, stream).read1(most))


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


def _reason(error: Exception) -> str:
    text = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return text.splitlines()[0] if text else type(error).__name__
