"""Packed content is known by its first bytes, and what is no text is named."""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from tamis.cli.byte_stream import ByteStream, without_packed_end
from tamis.errors import FileError

TEXT = b"line\n" * 50_000


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue())


PACKING = [gzip.compress, zstd, bytes]


def all_of(path: Path, data: bytes) -> bytes:
    path.write_bytes(data)
    stream = ByteStream(str(path))
    blocks = []
    while block := stream.block():
        blocks.append(block)
    stream.close()
    return b"".join(blocks)


@pytest.mark.parametrize("pack", PACKING)
@pytest.mark.parametrize("text", [b"", b"a", b"[", TEXT])
def test_the_content_decides_not_the_name(tmp_path: Path, pack: type[bytes], text: bytes) -> None:
    assert all_of(tmp_path / "f.gz", pack(text)) == text
    assert all_of(tmp_path / "f", pack(text)) == text


@pytest.mark.parametrize("pack", PACKING)
def test_several_packed_files_one_after_another(tmp_path: Path, pack: type[bytes]) -> None:
    assert all_of(tmp_path / "f", pack(TEXT) + pack(b"end")) == TEXT + b"end"


def test_zeros_after_gzip_are_padding(tmp_path: Path) -> None:
    assert all_of(tmp_path / "f", gzip.compress(TEXT) + bytes(100)) == TEXT


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT)[:-12], "cannot be read: the gzip data is cut off"),
        (b"\x1f\x8b", "cannot be read: the gzip data is cut off"),
        (b"\x1f\x8bnot gzip", "cannot be read: the gzip data is damaged"),
        (gzip.compress(TEXT) + b"more", "cannot be read: the gzip data is damaged"),
        (zstd(TEXT)[:-5], "cannot be read: Truncated compressed stream"),
        (b"PAR1....", "is a Parquet file. Hint: give it a name that ends in .parquet"),
        (b"PK\x03\x04....", "is a zip archive or an Excel workbook"),
        (b"BZh9....", "is packed with bzip2"),
        (b"\xfd7zXZ\x00", "is packed with xz"),
        (b"ARROW1..", "is an Arrow file"),
        ("a".encode("utf-16"), "is UTF-16, not UTF-8"),
    ],
    ids=itertools.count(),
)
def test_what_cannot_be_read(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(FileError) as refusal:
        all_of(tmp_path / "f", data)
    assert str(refusal.value).startswith(f"{tmp_path / 'f'}: {message}")


def test_the_beginning_is_seen_without_taking_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"\xef\xbb\xbf \n\n  [1]\n")
    stream = ByteStream(str(tmp_path / "f"))
    assert stream.begin().startswith(b"[1]")
    assert stream.begin().startswith(b"[1]")
    assert stream.block() == b"\xef\xbb\xbf \n\n  [1]\n"
    assert stream.begin() == b""


@pytest.mark.parametrize("pack", PACKING)
def test_large_blocks_and_what_is_left(tmp_path: Path, pack: type[bytes]) -> None:
    path = tmp_path / "f"
    path.write_bytes(pack(TEXT))
    stream, read = ByteStream(str(path)), 0
    assert stream.begin().startswith(b"line")
    while block := stream.block(100_000):
        read += len(block)
        assert stream.left() == (len(TEXT) - read if pack is bytes else None)
    assert read == len(TEXT)
    stream.close()


def test_a_live_stream_of_gzip_gives_what_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    packed = gzip.compress(b"one\n") + gzip.compress(b"two\n")
    with os.fdopen(reader, "rb") as pipe:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=pipe))
        stream = ByteStream("-")
        os.write(writer, packed)
        assert stream.block() == b"one\n"
        assert stream.ready()  # the second is in memory
        assert stream.block() == b"two\n"
        assert not stream.ready()
        os.close(writer)
        assert stream.block() == b""


def test_the_end_of_a_name_without_packing() -> None:
    assert without_packed_end("A/Events.CSV.GZ") == "a/events.csv"
    assert without_packed_end("e.jsonl.zst") == "e.jsonl"
