"""`tamis check`: every error with its line, warnings, repetitions, a summary."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import run, write

GOOD = ["price < 20 AND genre = 'crime'", "tags = 'maps'"]
LINES = [
    '{"id": "a", "expression": "price < 20 AND genre = \'crime\'"}',
    '{"id": "b", "expression": "price <"}',
    "nonsense",
    '{"id": "a", "expression": "tags = \'maps\'"}',
    '{"id": "c", "expression": "price < 1 AND price > 2"}',
    '{"id": "d", "expression": "price < 1 AND price > 2 OR genre = \'x\'"}',
    '{"id": "e", "expression": "x IS NULL OR x IS NOT NULL"}',
    '{"id": "f", "expression": "genre = \'crime\' AND price < 20 AND price < 20"}',
    '{"id": "g", "expression": "EXISTS (SELECT 1 FROM history h WHERE h.price > price)"}',
    '{"id": "h", "expression": "x = 1 OR x <> 1"}',
]


def test_everything_is_found(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *LINES)
    result = run("check", path)
    assert result.exit_code == 1
    for part in [
        f"{path}:2: error: an attribute or a literal is missing at the end (column 8)\n  price <\n",
        f"{path}:3: error: not JSON: expecting value (column 1)\n",
        f"{path}:4: error: the id 'a' is already used in line 1\n",
        f"{path}:5: warning: never matches: contradiction: price < 1 AND price > 2: no single value of price",
        f"{path}:6: warning: contradiction: price < 1 AND price > 2: no single value of price satisfies it\n",
        f"{path}:7: warning: matches every event\n",
        f"{path}:9: warning: compares with earlier events; `tamis match` keeps them with --history-rows\n",
        f"{path}:10: warning: x = 1 OR x <> 1 is true for every value of this kind",
        f"{path}:1: note: the same expression in lines 1, 8\n",
        f"{path}: 9 subscriptions, 3 errors, 5 warnings, 1 repeated\n",
        "  attributes  price 5, genre 3, x 2, tags 1\n",
        "  operators   < 5, = 5, > 2, IS NULL 1, IS NOT NULL 1, EXISTS 1, <> 1\n",
    ]:
        assert part in result.stdout
    assert result.stderr == ""


def test_a_good_file(tmp_path: Path) -> None:
    result = run("check", write(tmp_path / "s.txt", *GOOD))
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0].endswith(": 2 subscriptions, 0 errors, 0 warnings, 0 repeated")
    assert run("check", tmp_path / "s.txt", "--quiet").stdout == ""


def test_warnings_count_only_when_strict(tmp_path: Path) -> None:
    path = write(tmp_path / "s.txt", "a < 1 AND a > 2")
    assert run("check", path).exit_code == 0
    assert run("check", path, "--strict").exit_code == 1


def test_json(tmp_path: Path) -> None:
    path = write(tmp_path / "s.jsonl", *LINES)
    result = run("check", path, write(tmp_path / "s.txt", *GOOD), "--json")
    assert result.exit_code == 1
    first, second = [json.loads(line) for line in result.stdout.splitlines()]
    assert first["path"] == str(path)
    assert first["subscriptions"] == 9
    assert [finding["line"] for finding in first["errors"]] == [2, 3, 4]
    assert [finding["line"] for finding in first["warnings"]] == [5, 6, 7, 9, 10]
    assert first["repeated"] == [[1, 8]]
    assert first["attributes"]["price"] == 5
    assert second["errors"] == []
    assert second["operators"] == {"=": 2, "<": 1}


def test_schema(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"a": "list<number>", "b": "number"}')
    path = write(tmp_path / "s.txt", "a = 1 AND a = 2", "b = 1 AND b = 2", "c = 1", "b = 'x'")
    result = run("check", path, "--schema", schema)
    assert f"{path}:1" not in result.stdout
    assert f"{path}:2: warning: never matches" in result.stdout
    assert f"{path}:3: error: unknown attribute 'c'" in result.stdout
    assert f"{path}:4: error: attribute 'b' is a number" in result.stdout


def test_every_error_is_shown(tmp_path: Path) -> None:
    result = run("check", write(tmp_path / "s.txt", *["price <"] * 100))
    assert result.stdout.count(": error: ") == 100


def test_many_repetitions_are_counted(tmp_path: Path) -> None:
    lines = [f"a = {number}" for number in range(20)] * 3 + ["a = 0"] * 10
    result = run("check", write(tmp_path / "s.txt", *lines))
    assert "the same expression in lines 1, 21, 41, 61, 62, 63, 64, 65 and 5 more\n" in result.stdout
    assert result.stdout.count(": note: ") == 8
    assert "... and 12 more expressions that are in several lines\n" in result.stdout
    assert "70 subscriptions, 0 errors, 0 warnings, 50 repeated" in result.stdout


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("a = 1 AND (b = 2 OR c = 3)", "(c = 3 OR b = 2) AND a = 1", True),
        ("NOT (a = 1 AND b = 2)", "NOT (b = 2 AND a = 1)", True),
        ("a = 1 AND b = 2", "a = 1 OR b = 2", False),
        ("a = 1", "a = '1'", False),
        ("a = 1 AND b = 2 OR c = 3", "a = 1 AND (b = 2 OR c = 3)", False),
    ],
)
def test_which_expressions_are_the_same(tmp_path: Path, one: str, other: str, same: bool) -> None:
    result = run("check", write(tmp_path / "s.txt", one, other))
    assert ("the same expression in lines 1, 2" in result.stdout) == same


def test_stdin_and_format() -> None:
    result = run("check", "-", "--format", "text", stdin="a = 1\n")
    assert result.exit_code == 0
    assert result.stdout.startswith("stdin: 1 subscription, 0 errors")
    assert "stdin:1: error: not JSON" in run("check", "-", stdin="a = 1\n").stdout


def test_files_that_cannot_be_read_do_not_hide_others(tmp_path: Path) -> None:
    empty, good = write(tmp_path / "empty.txt"), write(tmp_path / "good.txt", *GOOD)
    result = run("check", tmp_path / "missing", empty, good)
    assert result.exit_code == 1
    assert f"{tmp_path / 'missing'}: error: there is no such file\n" in result.stdout
    assert f"{empty}: error: the file has no subscriptions\n" in result.stdout
    assert f"{good}: 2 subscriptions, 0 errors" in result.stdout


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2, 1], "expression": ["a = 1", "a <", "b = 1"]}), tmp_path / "s.parquet")
    result = run("check", tmp_path / "s.parquet")
    assert "s.parquet:2: error: an attribute" in result.stdout
    assert "s.parquet:3: error: the id 1 is already used in line 1\n" in result.stdout
    pq.write_table(pa.table({"id": [1], "x": [1]}), tmp_path / "s.parquet")
    assert "s.parquet: error: the columns must be" in run("check", tmp_path / "s.parquet").stdout


def test_text_that_cannot_be_encoded(tmp_path: Path) -> None:
    result = run("check", write(tmp_path / "s.jsonl", '{"\\ud800": 1}'))
    assert result.exit_code == 1
    assert "it has: \\ud800" in result.stdout


def test_no_files() -> None:
    assert run("check").exit_code == 2
