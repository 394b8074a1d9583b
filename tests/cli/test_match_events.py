"""`tamis match`: events in any form, from any number of files, each with its number and its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import pairs, run, write, write_jsonl
from tests.cli.test_byte_stream import zstd

EVENTS = [{"price": 5, "sku": "a"}, {"price": 50, "sku": "b"}, {"price": 7, "sku": "c"}]


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    return write_jsonl(
        tmp_path / "s.jsonl",
        [
            {"id": "cheap", "expression": "price < 10", "weight": 1},
            {"id": "any", "expression": "price IS NOT NULL", "weight": 2},
            {"id": "c", "expression": "sku = 'c'", "weight": 3},
        ],
    )


MATCHES = {(0, "cheap"), (0, "any"), (1, "any"), (2, "cheap"), (2, "any"), (2, "c")}


def records(*words: object, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("match", *words, "-q", **options).stdout.splitlines()]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_an_array_on_stdin(subscriptions: Path, indent: int | None, pack: type[bytes]) -> None:
    data = pack(json.dumps(EVENTS, indent=indent).encode())
    assert pairs(run("match", subscriptions, stdin=data).stdout) == MATCHES


@pytest.mark.parametrize("pack", [gzip.compress, zstd])
def test_packed_lines_on_stdin(subscriptions: Path, pack: type[bytes]) -> None:
    data = pack("\n".join(json.dumps(event) for event in EVENTS).encode())
    assert pairs(run("match", subscriptions, stdin=data).stdout) == MATCHES


def test_csv(tmp_path: Path, subscriptions: Path) -> None:
    path = write(tmp_path / "e.csv", "price,sku", "5,a", "", "50,b", "7,c", ",")
    assert pairs(run("match", subscriptions, path).stdout) == MATCHES
    found = records(subscriptions, path, "--event-id", "sku", "--on-error", "skip")
    assert {(record["event"], record["line"]) for record in found} == {("a", 2), ("b", 4), ("c", 5)}


def test_fields_of_csv_are_what_predicates_compare_with(tmp_path: Path) -> None:
    texts = [
        "zip = '12345'",
        "zip > 10000",
        "zip LIKE '12%'",
        "new = TRUE",
        "new = 'true'",
        "at < DATE '2027-01-01'",
        "zip <> 5",
    ]
    path = write(tmp_path / "e.csv", "zip,new,at", "12345,true,2026-11-14")
    result = run("match", write(tmp_path / "s.txt", *texts), path)
    assert pairs(result.stdout) == {(0, number) for number in range(1, len(texts) + 1)}
    assert "another kind" not in result.stderr


def test_a_schema_tells_the_kinds_of_csv(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"price": "number", "sku": "string"}')
    path = write(tmp_path / "e.csv", "price,sku", "5,7", "x,8")
    result = run("match", write(tmp_path / "s.txt", "price < 10 AND sku = '7'"), path, "--schema", schema)
    assert pairs(result.stdout) == {(0, 1)}
    assert result.exit_code == 1
    assert f"{path}:3: attribute 'price': 'x' is not a number, but the schema declares a number\n" in result.stderr


def test_numbers_around_bad_and_blank_lines(tmp_path: Path, subscriptions: Path) -> None:
    lines = ["", '{"price": 5}', "nonsense", "  ", '{"price": 99999999999999999999}', '{"price": 6}']
    path = write(tmp_path / "e.jsonl", *lines)
    found = records(subscriptions, path, "--on-error", "skip", "-k", 1)
    assert found == [
        {"event": 0, "line": 2, "subscription": "any"},
        {"event": 3, "line": 6, "subscription": "any"},
    ]


def test_events_of_several_files_are_numbered_together(tmp_path: Path, subscriptions: Path) -> None:
    write_jsonl(tmp_path / "e1.jsonl", EVENTS[:1])
    write(tmp_path / "e2.csv", "price,sku", "oops", "50,b")
    pq.write_table(pa.table({"price": [7], "sku": ["c"]}), tmp_path / "e3.parquet")
    found = records(subscriptions, tmp_path / "e[0-9].*", "--on-error", "skip", "-k", 1)
    assert found == [
        {"event": 0, "file": str(tmp_path / "e1.jsonl"), "line": 1, "subscription": "any"},
        {"event": 2, "file": str(tmp_path / "e2.csv"), "line": 3, "subscription": "any"},
        {"event": 3, "file": str(tmp_path / "e3.parquet"), "line": 1, "subscription": "c"},
    ]
    result = run("match", subscriptions, tmp_path / "e1.jsonl", tmp_path / "e3.parquet", "-o", tmp_path / "m.parquet")
    assert result.exit_code == 0
    table = pq.read_table(tmp_path / "m.parquet")
    assert table.column_names == ["event", "file", "line", "subscription"]
    assert table.num_rows == 5


def test_ids_of_several_files_are_of_one_type(tmp_path: Path, subscriptions: Path) -> None:
    one, other = write_jsonl(tmp_path / "1.jsonl", EVENTS), write_jsonl(tmp_path / "2.jsonl", [{"sku": 7}])
    result = run("match", subscriptions, one, other, "--event-id", "sku")
    assert result.exit_code == 1
    assert f"{other}:1: the field 'sku' was str in earlier events, but 7 is int" in result.stderr
    pq.write_table(pa.table({"sku": [7]}), tmp_path / "3.parquet")
    result = run("match", subscriptions, one, tmp_path / "3.parquet", "--event-id", "sku")
    assert "3.parquet: the column 'sku' is int64, but the field was str in earlier files" in result.stderr


def test_the_largest_weights(subscriptions: Path, tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "e.jsonl", EVENTS)
    found = records(subscriptions, path, "-k", 2)
    assert [(record["event"], record["subscription"]) for record in found] == [
        (0, "any"), (0, "cheap"), (1, "any"), (2, "c"), (2, "any"),
    ]  # fmt: skip
    assert run("match", subscriptions, path, "-k", 2, "--count").exit_code == 2
    assert run("match", subscriptions, path, "-k", 0).exit_code == 2


def test_counts_have_places(tmp_path: Path, subscriptions: Path) -> None:
    path = write_jsonl(tmp_path / "e.jsonl", EVENTS[:1])
    assert records(subscriptions, path, path, "--count") == [
        {"event": 0, "file": str(path), "line": 1, "matches": 2},
        {"event": 1, "file": str(path), "line": 1, "matches": 2},
    ]


@pytest.mark.parametrize("name", ["m.jsonl.zst", "m.csv.gz"])
def test_packed_output_is_read_again(tmp_path: Path, subscriptions: Path, name: str) -> None:
    path = write_jsonl(tmp_path / "e.jsonl", EVENTS)
    assert run("match", subscriptions, path, "-o", tmp_path / name).exit_code == 0
    found = run("filter", "event = 2", tmp_path / name, "--count")
    assert found.stdout == "3\n"


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["s.jsonl", "nothing-*.jsonl"], 1, "nothing-*.jsonl: no file matches this pattern\n"),
        (["s.jsonl", "e.jsonl", "missing"], 1, "missing: there is no such file\n"),
        (["s.jsonl", "-", "-"], 1, "stdin: can be read only once\n"),
        (["-", "e.jsonl", "-"], 2, "Subscriptions and events cannot both come from stdin."),
        (["s.jsonl", "e.jsonl", "-o", "e.jsonl"], 2, "matches need a file of their own"),
        ([], 2, "Give SUBSCRIPTIONS, or --index with a file that `tamis build` wrote."),
    ],
)
def test_what_is_wrong(
    tmp_path: Path, subscriptions: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], status: int, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_jsonl(tmp_path / "e.jsonl", EVENTS)
    before = path.read_text()
    result = run("match", *words)
    assert result.exit_code == status
    assert message in result.stderr
    assert path.read_text() == before
