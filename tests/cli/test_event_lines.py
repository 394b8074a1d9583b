"""Events of text files, as they are and as attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tamis.cli.byte_stream import ByteStream
from tamis.cli.event_lines import CsvEvents, JsonEvents
from tamis.errors import FileError
from tamis.language.values import Kind


def json_events(path: Path, data: bytes) -> list[tuple[int, Any, bytes]]:
    path.write_bytes(data)
    return [(line, problem or fields, raw) for line, fields, raw, problem in JsonEvents(ByteStream(str(path)))]


def csv_events(path: Path, data: bytes, **options: Any) -> list[tuple[int, Any, bytes]]:
    path.write_bytes(data)
    return [
        (line, problem or fields, raw) for line, fields, raw, problem in CsvEvents(ByteStream(str(path)), **options)
    ]


def test_json_lines(tmp_path: Path) -> None:
    assert json_events(tmp_path / "e", b'\xef\xbb\xbf{"a": 1}\r\n\n \t\n{"a":2.0}') == [
        (1, {"a": 1}, b'{"a": 1}\r'),
        (4, {"a": 2.0}, b'{"a":2.0}'),
    ]


def test_a_pretty_printed_array(tmp_path: Path) -> None:
    text = b'[\n  {\n    "a": 1.0\n  },\n  {"a": 2}, 7, {"a": 1, "a": 2}\n]\n'
    assert json_events(tmp_path / "e", text) == [
        (2, {"a": 1.0}, b'{ "a": 1.0 }'),
        (5, {"a": 2}, b'{"a": 2}'),
        (5, "an event must be a JSON object, not a number", b"7"),
        (5, "the key 'a' is given twice in one object", b'{"a": 1, "a": 2}'),
    ]


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (b"{", "Hint: write each object on one line, for example with `jq -c .`"),
        (b"id,price", "Hint: --event-format csv, if it is CSV"),
    ],
)
def test_hints(tmp_path: Path, line: bytes, hint: str) -> None:
    [(_, problem, _)] = json_events(tmp_path / "e", line)
    assert problem.endswith(hint)


def test_csv(tmp_path: Path) -> None:
    text = b'\xef\xbb\xbfsku, price ,user.name\r\nA1,12,"Ann, ""x"""\r\n\r\nB7,,"two\nlines"\n'
    assert csv_events(tmp_path / "e", text) == [
        (2, {"sku": "A1", "price": [12, "12"], "user.name": 'Ann, "x"'}, b'A1,12,"Ann, ""x"""\r'),
        (4, {"sku": "B7", "price": None, "user.name": "two\nlines"}, b'B7,,"two\nlines"'),
    ]


def test_only_some_columns_are_read(tmp_path: Path) -> None:
    asked = {"b": {Kind.NUMBER}, "c": {Kind.STRING}, "d": set(Kind), "e": {Kind.NUMBER}, "f": set(), "g": {Kind.STRING}}
    [(_, fields, raw)] = csv_events(tmp_path / "e", b"a,b,c,d,e,f\n1,2,3,4,x,\n", asked=asked)
    assert fields == {"b": 2, "c": "3", "d": [4, "4"], "e": "x", "f": None}
    assert raw == b"1,2,3,4,x,"


@pytest.mark.parametrize("mark", [b",", b";", b"\t"])
def test_separators(tmp_path: Path, mark: bytes) -> None:
    text = b"a" + mark + b"b\nx" + mark + b"y\n"
    assert [fields for _, fields, _ in csv_events(tmp_path / "e", text)] == [{"a": "x", "b": "y"}]


def test_bad_records_keep_their_place(tmp_path: Path) -> None:
    text = b'a,b\n1\n1,2,3\nx,caf\xe9\n"x"y,2\nx,ok\n"open,1\n'
    found = csv_events(tmp_path / "e", text)
    assert [line for line, _, _ in found] == [2, 3, 4, 5, 6, 7]
    assert found[0][1].startswith(
        "the header has 2 fields, the line has 1. Hint: a field with the separator in it needs"
    )
    assert found[1][1].startswith("the header has 2 fields, the line has 3")
    assert found[2][1].startswith("not UTF-8: byte 0xe9")
    assert found[3][1].startswith("not CSV: ")
    assert found[4][1] == {"a": "x", "b": "ok"}
    assert found[5][1].startswith("not CSV: a double quote that opens in this record is never closed")


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"a,,c", "column 2 has no name. Hint: the first line names the attributes"),
        (b"a,b, a", "two columns are called 'a'. Hint: rename one of them"),
        (b"a,\xff", "not UTF-8"),
        (b'"a', "not CSV"),
    ],
)
def test_headers(tmp_path: Path, header: bytes, message: str) -> None:
    with pytest.raises(FileError) as refusal:
        csv_events(tmp_path / "e", header + b"\n1,2,3\n")
    assert str(refusal.value).startswith(f"{tmp_path / 'e'}:1: {message}")


@pytest.mark.parametrize("text", [b"", b"\n\n", b"a,b\n"])
def test_no_records(tmp_path: Path, text: bytes) -> None:
    assert csv_events(tmp_path / "e", text) == []
