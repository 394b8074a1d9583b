"""Lines keep their numbers whatever is in them."""

from __future__ import annotations

import io
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tamis.cli.byte_stream import ByteStream
from tamis.cli.lines import Line, Lines, not_text, read_text
from tamis.errors import FileError


def lines_of(path: Path, data: bytes) -> list[Line]:
    path.write_bytes(data)
    return list(Lines(str(path)))


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb", ["a", "b"]),
        ("a\u2028b\x0bc\x85d\né".encode(), ["a\u2028b\x0bc\x85d", "é"]),
        (b"x" * 200_000 + b"\ny", ["x" * 200_000, "y"]),
    ],
)
def test_lines_and_numbers(tmp_path: Path, data: bytes, texts: list[str]) -> None:
    assert lines_of(tmp_path / "f", data) == [Line(number, text) for number, text in enumerate(texts, 1)]


def test_long_lines_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is split into lines are the blocks, not what has gathered before them."""
    blocks = [b"x" * 1000] * 50 + [b"y\nz", b"\n", b"\n\nlast"]
    split: list[int] = []

    class Block(bytes):
        def split(self, *words: Any) -> list[bytes]:
            split.append(len(self))
            return super().split(*words)

        def __radd__(self, before: bytes) -> Block:
            return Block(bytes(before) + bytes(self))

    stream = ByteStream(os.devnull)
    monkeypatch.setattr(stream, "block", iter([*map(Block, blocks), b""]).__next__)
    lines = Lines(stream)
    assert [line.text for line in lines] == ["x" * 50_000 + "y", "z", "", "", "last"]
    assert sum(split) == sum(map(len, blocks))


def test_a_byte_that_is_not_utf8_is_found(tmp_path: Path) -> None:
    _, bad = lines_of(tmp_path / "f", b"ok\nmot\xe9\n")
    assert bad.number == 2
    assert (
        not_text(bad.text)
        == "not UTF-8: byte 0xe9 at column 4. Hint: files are text in UTF-8; iconv converts other encodings"
    )
    assert not_text("é 𝄞 \u2028") is None


@pytest.mark.parametrize(
    ("name", "reason"), [("missing", "there is no such file"), ("", "is a folder"), ("a\0b", "null")]
)
def test_what_cannot_be_opened(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(FileError, match=reason):
        Lines(os.path.join(tmp_path, name))


def test_the_share_that_is_read(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"0123456789\n" * 40_000)
    lines = Lines(str(path))
    shares = [lines.share() for _ in lines]
    assert shares[0] is not None
    assert 0 < shares[0] < 0.5
    assert shares[-1] == lines.share() == 1.0


def test_a_stream_is_ready_only_when_something_came(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as stream:
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=stream))
        lines = Lines("-")
        assert lines.share() is None
        assert not lines.ready()
        os.write(writer, b"a\nb\nc")
        assert lines.ready()
        found = iter(lines)
        assert next(found).text == "a"
        assert lines.ready()  # b is in memory
        assert next(found).text == "b"
        assert not lines.ready()  # c has no end yet
        os.close(writer)
        assert lines.ready()
        assert [line.text for line in found] == ["c"]


def test_stdin_without_a_file_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a\nb")))
    lines = Lines("-")
    assert lines.ready()
    assert lines.name == "stdin"
    assert [line.text for line in lines] == ["a", "b"]


def test_closed_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(FileError, match="stdin: is closed"):
        Lines("-")


def test_read_text(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"a\n\nb\n")
    assert read_text(str(path)) == "a\n\nb"
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(FileError, match="f:2: not UTF-8"):
        read_text(str(path))
