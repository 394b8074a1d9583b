"""`tamis filter`: the lines that it prints are those for which the expression is TRUE."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import run, start, write, write_jsonl
from tests.cli.test_byte_stream import zstd

LINES = [
    '{"id": 1, "price": 12,   "genre": "crime"}',
    '{"id": 2, "price": 1.5e1, "genre": "po\\u00e9sie"}',
    "",
    '{"id": 3, "price": 30, "genre": "crime", "big": 123456789012345678901234567890}',
    '{"id": 4, "genre": null}',
]


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write(tmp_path / "e.jsonl", *LINES)


def printed(*words: object, **options: Any) -> list[str]:
    result = run("filter", *words, **options)
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_lines_are_printed_as_they_are(events: Path) -> None:
    assert printed("price < 20", events) == LINES[:2]
    assert printed("genre = 'crime'", events) == [LINES[0], LINES[3]]


def test_bytes_are_printed_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"a":1,  "b":"\xc3\xa9"}\r\n{"a":2}\r\n{"a":1.0}')
    process = start("filter", "a = 1", path)
    output, errors = process.communicate(timeout=60)
    assert output.encode() == b'{"a":1,  "b":"\xc3\xa9"}\n{"a":1.0}\n'  # text mode drops the carriage return
    assert errors == ""
    assert run("filter", "a = 1", path).stdout_bytes == b'{"a":1,  "b":"\xc3\xa9"}\r\n{"a":1.0}\n'


def test_invert_prints_false_and_unknown(events: Path) -> None:
    assert printed("-v", "price < 20", events) == LINES[3:]
    assert printed("--invert", "price >= 20", events) == [*LINES[:2], LINES[4]]


def test_count(events: Path) -> None:
    assert printed("--count", "price < 20", events, events) == ["4"]
    assert printed("-c", "-v", "price < 20", events) == ["2"]


@pytest.mark.parametrize("words", [[], ["-"]])
def test_stdin(events: Path, words: list[str]) -> None:
    assert printed("price < 20", *words, stdin=events.read_bytes()) == LINES[:2]


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_packed(tmp_path: Path, events: Path, pack: type[bytes]) -> None:
    (tmp_path / "packed").write_bytes(pack(events.read_bytes()))
    assert printed("price < 20", tmp_path / "packed") == LINES[:2]
    assert printed("price < 20", stdin=pack(events.read_bytes())) == LINES[:2]


def test_several_files_and_patterns(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.json"):
        write(tmp_path / name, json.dumps({"n": 1, "file": name}))
    found = printed("n = 1", tmp_path / "c.json", tmp_path / "*.jsonl")
    assert [json.loads(line)["file"] for line in found] == ["c.json", "a.jsonl", "b.jsonl"]


def test_an_array_becomes_lines() -> None:
    text = json.dumps([{"price": 12.0, "tags": ["a b"]}, {"price": 30}], indent=2)
    assert printed("price < 20", stdin=text) == ['{ "price": 12.0, "tags": [ "a b" ] }']


def test_nested_attributes() -> None:
    events = [{"user": {"age": 20}}, {"user.age": 30}, {"user": {"age": [1, 40]}}, {"user": 5}, {"a": {"b": {"c": 1}}}]
    lines = [json.dumps(event) for event in events]
    assert printed("user.age >= 20", stdin="\n".join(lines)) == lines[:3]
    assert printed("a.b.c = 1 OR user = 5", stdin="\n".join(lines)) == [lines[4], lines[3]][::-1]


def test_csv(tmp_path: Path) -> None:
    path = write(tmp_path / "e.csv", "sku,price,zip", "A1,12,01234", 'B7,"30",12345', "C3,,12345")
    assert printed("price < 20", path) == ["sku,price,zip", "A1,12,01234"]
    assert printed("-v", "price < 20", path) == ["sku,price,zip", 'B7,"30",12345', "C3,,12345"]
    assert printed("zip = '12345' AND zip > 1000", path, "-c") == ["2"]
    assert printed("sku = 'Z'", path, "-q") == ["sku,price,zip"]
    assert printed("price < 20", path, path) == ["sku,price,zip", "A1,12,01234", "A1,12,01234"]
    assert printed("price < 20", "--event-format", "csv", stdin=path.read_bytes()) == ["sku,price,zip", "A1,12,01234"]


def test_csv_files_that_do_not_fit_together(tmp_path: Path, events: Path) -> None:
    one, other = write(tmp_path / "1.csv", "a,b", "1,2"), write(tmp_path / "2.csv", "b,a", "1,2")
    result = run("filter", "a = 1", one, other)
    assert result.exit_code == 1
    assert result.stdout == "a,b\n1,2\n"
    assert result.stderr == f"{other}:1: the header differs from the header of the first file: a,b\n"
    assert run("filter", "a = 1", one, other, "-c").stdout == "1\n"
    result = run("filter", "a = 1", one, events)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{events}: is not csv, but {one} is.")


def test_parquet(tmp_path: Path) -> None:
    table = pa.table(
        {
            "price": [12.0, float("nan"), 30.0],
            "at": pa.array([datetime(2026, 11, 14, tzinfo=UTC), None, None], pa.timestamp("us", "UTC")),
            "user": [{"name": "ann", "tags": ["a", "b"]}, None, {"name": "ben", "tags": []}],
            "key": [b"\x00\xff", b"", None],
            "sum": pa.array([Decimal("1.10"), None, None], pa.decimal128(10, 2)),
        }
    )
    path = tmp_path / "e.parquet"
    pq.write_table(table, path)
    first = {
        "price": 12.0,
        "at": "2026-11-14T00:00:00+00:00",
        "user": {"name": "ann", "tags": ["a", "b"]},
        "key": "AP8=",
        "sum": "1.10",
    }
    for expression in (
        "price < 20",
        "at = DATE '2026-11-14'",
        "user.tags = 'b' AND user.name LIKE 'a%'",
        "sum > 1",
    ):
        assert [json.loads(line) for line in printed(expression, path)] == [first]
    [second, third] = [json.loads(line) for line in printed("-v", "price < 20", path)]
    assert second["price"] is None
    assert third["user"] == {"name": "ben", "tags": []}
    assert printed("price IS NULL", path, "-c") == ["1"]


def test_parquet_with_all_attributes_in_one_column(tmp_path: Path) -> None:
    maps = pa.array([[("a", 1), ("b", 2)], [("a", 3)]], pa.map_(pa.string(), pa.int64()))
    pq.write_table(pa.table({"event": maps}), tmp_path / "e.parquet")
    assert printed("a = 3", tmp_path / "e.parquet") == ['{"event": {"a": 3}}']


def test_bad_rows_of_parquet(tmp_path: Path) -> None:
    prices = pa.array([1, 2**63, 2, 2**63 + 1], pa.uint64())
    pq.write_table(pa.table({"price": prices}), tmp_path / "e.parquet")
    result = run("filter", "price > 0", tmp_path / "e.parquet", "--on-error", "skip")
    assert result.exit_code == 3
    assert result.stdout.splitlines() == ['{"price": 1}', '{"price": 2}']
    assert "e.parquet:2: attribute 'price': " in result.stderr
    assert "e.parquet:4: attribute 'price': " in result.stderr


BAD = ['{"a": 1}', "nonsense", '{"a": 99999999999999999999}', '{"b": 1e999, "a": 1}', '{"a": 1}']


def test_stop_at_a_bad_line(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", *BAD)
    result = run("filter", "a = 1", path)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == BAD[:1]
    assert result.stderr == f"{path}:2: not JSON: expecting value (column 1)\n"


def test_skip_bad_lines(tmp_path: Path) -> None:
    path, errors = write(tmp_path / "e.jsonl", *BAD), tmp_path / "errors.jsonl"
    result = run("filter", "a = 1", path, "--on-error", "skip", "--errors", errors, "--exit-code")
    assert result.exit_code == 3
    assert result.stdout.splitlines() == [BAD[0], BAD[3], BAD[4]]
    assert [json.loads(line)["line"] for line in errors.read_text().splitlines()][:1] == [2]


def test_a_value_that_is_not_asked_about_is_not_looked_at(tmp_path: Path) -> None:
    path = write(tmp_path / "e.jsonl", '{"a": 1, "b": 99999999999999999999999, "c": 1}')
    assert printed("a = 1", path, "-c") == ["1"]


def test_a_schema_reads_timestamps(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"at": "timestamp", "n": "number"}')
    lines = ['{"at": "2026-11-14T10:00:00Z"}', '{"at": "2025-01-01"}']
    text = "\n".join(lines)
    assert printed("at >= DATE '2026-01-01'", "--schema", schema, stdin=text) == lines[:1]
    assert run("filter", "x = 1", "--schema", schema, stdin=text).stderr.startswith("Error: unknown attribute 'x'")
    wrong = run("filter", "n = 1", "--schema", schema, stdin='{"n": "x"}')
    assert wrong.stderr == "stdin:1: attribute 'n': 'x' is a string, but the schema declares a number\n"


@pytest.mark.parametrize(
    ("expression", "hint"),
    [
        ("prise < 20", "none of 2 events has an attribute 'prise'; did you mean 'price'?"),
        ("price < '20'", "in 2 events, values of 'price' are numbers, but the expression compares with strings"),
        ("price < 0", ""),
    ],
)
def test_hints_when_nothing_matches(tmp_path: Path, expression: str, hint: str) -> None:
    path = write_jsonl(tmp_path / "e.jsonl", [{"price": 1}, {"price": 2.5}])
    assert run("filter", expression, path).stderr == (f"nothing matches: {hint}\n" if hint else "")
    assert run("filter", expression, path, "-q").stderr == ""


def test_exit_code(tmp_path: Path, events: Path) -> None:
    assert run("filter", "price < 0", events).exit_code == 0
    assert run("filter", "price < 0", events, "--exit-code").exit_code == 4
    assert run("filter", "price < 20", events, "--exit-code").exit_code == 0
    empty = run("filter", "price < 0", write(tmp_path / "none.jsonl"))
    assert (empty.exit_code, empty.stderr) == (0, "nothing matches: there are no events\n")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (
            ["price <", "e.jsonl"],
            1,
            "Error: an attribute or a literal is missing at the end (line 1, column 8)\n  price <\n",
        ),
        (["e.jsonl", "price < 3"], 2, "EXPRESSION comes first, then FILES; e.jsonl is a file."),
        (["[[1]]", "e.jsonl"], 1, "Error: "),
        (["a < ANY (SELECT a FROM history)", "e.jsonl"], 1, "Error: `tamis filter` looks at each event alone"),
        (["a = 1", "missing"], 1, "missing: there is no such file"),
        (["a = 1", "*.nothing"], 1, "*.nothing: no file matches this pattern"),
        (["a = 1", "."], 1, ".: is a folder, not a file."),
        (["a = 1", "-", "-"], 1, "stdin: can be read only once"),
        (["a = 1", "e.jsonl", "--event-format", "parquet"], 1, "e.jsonl: is not Parquet, or is damaged"),
        (["a = 1", "e.jsonl", "--errors", "e.jsonl"], 2, "bad lines need a file of their own"),
        ([], 2, "Missing argument 'EXPRESSION'"),
    ],
)
def test_what_is_wrong(
    events: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, message: str
) -> None:
    monkeypatch.chdir(events.parent)
    result = run("filter", *words)
    assert result.exit_code == status
    assert message in result.stderr
    assert events.read_text().splitlines() == LINES


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    process = start("filter", "a = 1", write(tmp_path / "e.jsonl", *['{"a": 1}'] * 100_000))
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == '{"a": 1}\n'
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_live_stream_is_answered_at_once(format: str) -> None:
    process = start("filter", "a = 1", "--event-format", format)
    assert process.stdin is not None
    assert process.stdout is not None
    batches = [["a,b\n", "1,x\n"], ["1,y\n"]] if format == "csv" else [['{"a": 1}\n'], ['{"a": 1, "b": 2}\n']]
    for lines in batches:
        process.stdin.write("".join(lines))
        process.stdin.flush()
        assert [process.stdout.readline() for _ in lines] == lines
    output, errors = process.communicate(timeout=60)
    assert (output, errors) == ("", "")
