"""`tamis match`: what comes in, what comes out, and what bad lines do."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tamis.cli.parquet_rows import ParquetRows
from tests.cli.running import pairs, run, write, write_jsonl

SUBSCRIPTIONS = [
    {"id": "cheap", "expression": "price < 10"},
    {"id": "crime", "predicates": [["genre", "=", "crime"], ["price", ">", 1]]},
    {"id": "either", "expression": "genre = 'poetry' OR NOT price < 50"},
]
EVENTS: list[dict[str, Any]] = [
    {"price": 5, "genre": "crime", "order": {"id": "o1"}},
    {"price": 20, "genre": "poetry", "order": {"id": "o2"}},
    {"price": 20, "genre": "travel", "order": {"id": "o3"}},
    {"price": 99, "genre": "crime", "order": {"id": "o4"}},
]
MATCHES = {(0, "cheap"), (0, "crime"), (1, "either"), (3, "crime"), (3, "either")}


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "s.jsonl", SUBSCRIPTIONS)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "e.jsonl", EVENTS)


def test_jsonl_to_stdout(subscriptions: Path, events: Path) -> None:
    result = run("match", subscriptions, events)
    assert result.exit_code == 0
    assert pairs(result.stdout) == MATCHES
    assert result.stderr.startswith("4 events against 3 subscriptions: 5 matches in ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["-"], []])
def test_events_from_stdin(subscriptions: Path, events: Path, words: list[str]) -> None:
    assert pairs(run("match", subscriptions, *words, stdin=events.read_text()).stdout) == MATCHES


def test_subscriptions_from_stdin(subscriptions: Path, events: Path) -> None:
    assert pairs(run("match", "-", events, stdin=subscriptions.read_text()).stdout) == MATCHES
    assert run("match", "-", "-").exit_code == 2


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_batches_change_nothing(subscriptions: Path, events: Path, size: int) -> None:
    assert pairs(run("match", subscriptions, events, "--batch-size", size).stdout) == MATCHES


@pytest.mark.parametrize("name", ["s.csv", "s.parquet"])
def test_formats_of_subscriptions(tmp_path: Path, events: Path, name: str) -> None:
    ids, texts = ["cheap", "crime"], ["price < 10", "genre = 'crime' AND price > 1"]
    if name == "s.csv":
        write(tmp_path / name, "id,expression", *[f"{each},{text}" for each, text in zip(ids, texts, strict=True)])
    else:
        pq.write_table(pa.table({"id": ids, "expression": texts}), tmp_path / name)
    found = pairs(run("match", tmp_path / name, events).stdout)
    assert found == {pair for pair in MATCHES if pair[1] != "either"}


def test_text_subscriptions_are_known_by_their_line(tmp_path: Path, events: Path) -> None:
    path = write(tmp_path / "alerts", "-- mine", "price < 10", "", "genre = 'poetry'")
    assert pairs(run("match", path, events).stdout) == {(0, 2), (1, 4)}


def test_parquet_all_the_way(tmp_path: Path) -> None:
    kind = pa.list_(pa.struct({"attribute": pa.string(), "operator": pa.string(), "values": pa.list_(pa.int64())}))
    rows = [[{"attribute": "a", "operator": "<", "values": [n]}] for n in range(4)]
    pq.write_table(pa.table({"id": range(4), "predicates": pa.array(rows, kind)}), tmp_path / "s.parquet")
    pq.write_table(pa.table({"a": [0, 2, None]}), tmp_path / "e.parquet")
    result = run("match", tmp_path / "s.parquet", tmp_path / "e.parquet", "-o", tmp_path / "m.parquet")
    assert result.stdout == ""
    found = pq.read_table(tmp_path / "m.parquet")
    assert found.schema.types == [pa.int64()] * 3
    assert {tuple(row.values()) for row in found.to_pylist()} == {(0, 1, 1), (0, 1, 2), (0, 1, 3), (1, 2, 3)}


def test_counts(tmp_path: Path, subscriptions: Path, events: Path) -> None:
    records = [json.loads(line) for line in run("match", subscriptions, events, "--count").stdout.splitlines()]
    assert records == [{"event": n, "line": n + 1, "matches": count} for n, count in enumerate([2, 1, 0, 2])]
    run("match", subscriptions, events, "--count", "-o", tmp_path / "m.csv", "--event-id", "order.id")
    assert (tmp_path / "m.csv").read_text() == "event,line,matches\no1,1,2\no2,2,1\no3,3,0\no4,4,2\n"


def test_events_named_by_a_field(tmp_path: Path, subscriptions: Path, events: Path) -> None:
    run("match", subscriptions, events, "--event-id", "order.id", "-o", tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as stream:
        header, *records = csv.reader(stream)
    assert header == ["event", "line", "subscription"]
    assert {tuple(record) for record in records} == {(f"o{n + 1}", f"{n + 1}", each) for n, each in MATCHES}


def test_quiet(subscriptions: Path, events: Path) -> None:
    assert run("match", subscriptions, events, "--quiet").stderr == ""


def test_no_events(tmp_path: Path, subscriptions: Path) -> None:
    result = run("match", subscriptions, write(tmp_path / "none.jsonl"))
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "0 events" in result.stderr


# -- bad lines


BAD_SUBSCRIPTIONS = [
    '{"id": "cheap", "expression": "price < 10"}',
    '{"id": "broken", "expression": "price <"}',
    "nonsense",
    '{"id": "cheap", "expression": "price < 11"}',
    '{"id": 5, "expression": "price < 11"}',
    '{"id": "past", "expression": "price < ANY (SELECT price FROM history)"}',
    '{"id": "last", "expression": "genre = \'crime\'"}',
]


def test_stop_at_the_first_bad_subscription(tmp_path: Path, events: Path) -> None:
    path = write(tmp_path / "bad.jsonl", *BAD_SUBSCRIPTIONS)
    result = run("match", path, events, "-o", tmp_path / "m.csv")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        f"{path}:2: an attribute or a literal is missing at the end (column 8)\n  price <\n"
    )
    assert not (tmp_path / "m.csv").exists()


def test_skip_bad_subscriptions(tmp_path: Path, events: Path) -> None:
    path = write(tmp_path / "bad.jsonl", *BAD_SUBSCRIPTIONS)
    result = run("match", path, events, "--on-error", "skip")
    assert result.exit_code == 3
    assert pairs(result.stdout) == {(0, "cheap"), (0, "last"), (3, "last")}
    reported = [line.split(":")[1] for line in result.stderr.splitlines() if line.startswith(f"{path}:")]
    assert reported == ["2", "3", "4", "5", "6"]
    assert "bad.jsonl:4: the id 'cheap' is already used in line 1\n" in result.stderr
    assert "bad.jsonl:5: earlier ids are str, but 5 is int\n" in result.stderr
    assert "bad.jsonl:6: compares with earlier events" in result.stderr
    assert "; 5 bad lines skipped\n" in result.stderr


def test_bad_rows_of_a_table(tmp_path: Path, events: Path) -> None:
    kind = pa.list_(pa.struct({"attribute": pa.string(), "operator": pa.string(), "values": pa.list_(pa.int64())}))
    good = [{"attribute": "price", "operator": "<", "values": [10]}]
    rows = [good, None, [{"attribute": "price", "operator": "<", "values": [1, 2]}], good, good]
    pq.write_table(pa.table({"id": list("abcad"), "predicates": pa.array(rows, kind)}), tmp_path / "s.parquet")
    result = run("match", tmp_path / "s.parquet", events, "--on-error", "skip")
    assert result.exit_code == 3
    assert pairs(result.stdout) == {(0, "a"), (0, "d")}
    assert "s.parquet:2: predicates is null\n" in result.stderr
    assert "s.parquet:3: < takes one literal" in result.stderr
    assert "s.parquet:4: the id 'a' is already used in line 1\n" in result.stderr
    stopped = run("match", tmp_path / "s.parquet", events)
    assert stopped.exit_code == 1
    assert "s.parquet:2: predicates is null\nstopped before the first event\n" in stopped.stderr


ID_LINES = [
    ("a", "price <"),
    ("a", "price < 10"),
    ("b", "price < 10"),
    ("b", "price <"),
    ("", "price < 10"),
    ("c", None),
    ("c", "price < 10"),
    ("d", "price < 10"),
]
"""The first line with an id owns it, right or wrong."""


@pytest.mark.parametrize("name", ["s.jsonl", "s.csv", "s.parquet"])
@pytest.mark.parametrize("rows_at_once", [1, 3, 100])
def test_one_rule_about_ids(
    tmp_path: Path, events: Path, monkeypatch: pytest.MonkeyPatch, name: str, rows_at_once: int
) -> None:
    path = tmp_path / name
    if name == "s.jsonl":
        write_jsonl(path, [{"id": each, "expression": text} for each, text in ID_LINES])
    elif name == "s.csv":
        write(path, *[f"{each},{text or ''}" for each, text in [("id", "expression"), *ID_LINES]])
    else:
        ids, texts = zip(*ID_LINES, strict=True)
        pq.write_table(pa.table({"id": ids, "expression": texts}), path)
        tables = ParquetRows.tables
        monkeypatch.setattr(ParquetRows, "tables", lambda self, **words: tables(self, rows_at_once, **words))
    first = 2 if name == "s.csv" else 1
    bad = [str(first + row) for row in (0, 1, 3, 4, 5, 6)]
    result = run("match", path, events, "--on-error", "skip")
    assert pairs(result.stdout) == {(0, "b"), (0, "d")}
    reported = [line.split(":")[1] for line in result.stderr.splitlines() if line.startswith(f"{path}:")]
    assert reported == bad
    assert f"{path}:{bad[1]}: the id 'a' is already used in line {first}\n" in result.stderr
    assert f"{path}:{bad[2]}: the id 'b' is already used in " in result.stderr
    assert f"{path}:{bad[3]}: the id is empty\n" in result.stderr
    checked = [json.loads(line) for line in run("check", path, "--json").stdout.splitlines()]
    assert sorted({str(error["line"]) for error in checked[0]["errors"]}) == bad


BAD_EVENTS = ['{"price": 5}', '{"price": 100000000000000000000}', '{"price": 6}', "nonsense", '{"price": 7}']


def test_matches_before_a_bad_event_are_written(tmp_path: Path, subscriptions: Path) -> None:
    path = write(tmp_path / "bad.jsonl", *BAD_EVENTS)
    result = run("match", subscriptions, path)
    assert result.exit_code == 1
    assert pairs(result.stdout) == {(0, "cheap")}
    message, stopped = result.stderr.splitlines()
    assert message == f"{path}:2: attribute 'price': the integer 100000000000000000000 is beyond 64 bits"
    assert stopped.startswith("stopped after 1 event against 3 subscriptions: 1 match in ")
    assert run("match", subscriptions, path, "--quiet").stderr == f"{message}\n"


def test_a_file_that_is_not_written_is_reported(tmp_path: Path, subscriptions: Path) -> None:
    path = write(tmp_path / "bad.jsonl", *BAD_EVENTS)
    result = run("match", subscriptions, path, "-o", tmp_path / "m.csv")
    assert result.exit_code == 1
    assert result.stderr.endswith(f"; {tmp_path / 'm.csv'} is not written\n")
    assert not (tmp_path / "m.csv").exists()


def test_skip_bad_events(tmp_path: Path, subscriptions: Path) -> None:
    path = write(tmp_path / "bad.jsonl", *BAD_EVENTS)
    result = run("match", subscriptions, path, "--on-error", "skip", "-o", tmp_path / "m.jsonl")
    assert result.exit_code == 3
    assert pairs((tmp_path / "m.jsonl").read_text()) == {(0, "cheap"), (2, "cheap"), (4, "cheap")}
    assert [line.split(": ")[0] for line in result.stderr.splitlines()[:2]] == [f"{path}:2", f"{path}:4"]
    assert "3 events" in result.stderr
    assert "; 2 bad lines skipped" in result.stderr


def test_a_flood_of_bad_lines_is_not_shown(tmp_path: Path, subscriptions: Path) -> None:
    result = run("match", subscriptions, write(tmp_path / "bad", *["x"] * 1000), "--on-error", "skip")
    assert result.stderr.count("not JSON") == 20
    assert "; 1,000 bad lines skipped" in result.stderr


def test_all_bad_lines_in_a_file(tmp_path: Path, subscriptions: Path) -> None:
    errors = tmp_path / "errors.jsonl"
    bad = write(tmp_path / "bad", *["x"] * 100)
    result = run("match", subscriptions, bad, "--on-error", "skip", "--errors", errors)
    assert f"... further bad lines are in {errors}\n" in result.stderr
    found = [json.loads(line) for line in errors.read_text().splitlines()]
    assert [record["line"] for record in found] == list(range(1, 101))
    assert found[0] == {"file": str(bad), "line": 1, "message": "not JSON: expecting value (column 1)"}


def test_event_ids_in_structs_of_a_table(tmp_path: Path) -> None:
    write(tmp_path / "s.txt", "price > 0")
    numbers = pa.array([7, 2**63 + 5, None, 8], pa.uint64())
    orders = pa.StructArray.from_arrays([numbers], ["id"])
    pq.write_table(pa.table({"price": [1] * 4, "order": orders}), tmp_path / "e.parquet")
    words = ["match", tmp_path / "s.txt", tmp_path / "e.parquet", "--event-id", "order.id"]
    stopped = run(*words)
    assert stopped.exit_code == 1
    assert pairs(stopped.stdout) == {(7, 1)}


def test_bad_event_ids_of_a_table_are_skipped(tmp_path: Path) -> None:
    write(tmp_path / "s.txt", "price > 0")
    numbers = pa.array([7, 2**63 + 5, None, 8], pa.uint64())
    pq.write_table(pa.table({"price": [1] * 4, "n": numbers}), tmp_path / "e.parquet")
    result = run(
        "match", tmp_path / "s.txt", tmp_path / "e.parquet", "--event-id", "n", "--on-error", "skip", "--schema",
        write(tmp_path / "schema.json", '{"price": "number"}'),
    )  # fmt: skip
    assert result.exit_code == 3
    assert pairs(result.stdout) == {(7, 1), (8, 1)}
    assert "e.parquet:2: the field 'n': the integer 9223372036854775813 is beyond 64 bits" in result.stderr
    assert "e.parquet:3: there is no field 'n'\n" in result.stderr


@pytest.mark.parametrize("count", [[], ["--count"]])
def test_an_empty_result_has_the_types_of_a_full_one(tmp_path: Path, subscriptions: Path, count: list[str]) -> None:
    schemas = []
    for rows in (1, 0):
        pq.write_table(pa.table({"price": [5.0], "key": ["x"]}).slice(0, rows), tmp_path / "e.pq")
        words = ["--event-id", "key", "-o", tmp_path / "m.pq", *count]
        assert run("match", subscriptions, tmp_path / "e.pq", *words).exit_code == 0
        schemas.append(pq.read_schema(tmp_path / "m.pq"))
    assert schemas[0] == schemas[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--index", "scam"], "--index: no index 'scam'; did you mean 'scan'?"),
        (["-o", ""], "--output: the name of the file is empty"),
        (["--errors", "-"], "--errors: bad lines need a file of their own"),
        (["--errors", "x", "-o", "x"], "--errors: bad lines need a file of their own"),
    ],
)
def test_a_wrong_command_line(subscriptions: Path, events: Path, words: list[str], message: str) -> None:
    result = run("match", subscriptions, events, *words)
    assert result.exit_code == 2
    assert f"Invalid value for {message}" in result.stderr


def test_errors_never_overwrite_the_input(subscriptions: Path, events: Path) -> None:
    before = events.read_text()
    assert run("match", subscriptions, events, "--errors", events).exit_code == 2
    assert events.read_text() == before


def test_bad_events_of_a_table(tmp_path: Path) -> None:
    write(tmp_path / "s.txt", "price > 0")
    prices = pa.array([1, 2**63, 2, 2**63 + 1], pa.uint64())
    pq.write_table(pa.table({"price": prices}), tmp_path / "e.parquet")
    result = run("match", tmp_path / "s.txt", tmp_path / "e.parquet", "--on-error", "skip")
    assert result.exit_code == 3
    assert pairs(result.stdout) == {(0, 1), (2, 1)}
    assert "e.parquet:2: attribute 'price': an integer is beyond 64 bits\n" in result.stderr
    assert run("match", tmp_path / "s.txt", tmp_path / "e.parquet").exit_code == 1


def test_a_table_of_another_form_is_an_error_of_the_file(tmp_path: Path) -> None:
    write(tmp_path / "s.txt", "price > 0")
    numbered = pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))
    pq.write_table(pa.table({"price": numbered}), tmp_path / "e.parquet")
    result = run("match", tmp_path / "s.txt", tmp_path / "e.parquet", "--on-error", "skip")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{tmp_path / 'e.parquet'}: the names of attributes must be strings, not int64")


def test_values_that_nobody_asks_about(tmp_path: Path) -> None:
    subscriptions = write(tmp_path / "s.txt", "price > 0", "ports.nr = 80", "ports IS NULL")
    lines = [
        '{"price": 1, "big": 100000000000000000000, "": 2, "deep": [[{"x": [null, "\\ud800"]}]]}',
        f'{{"big": {"9" * 5_000}, "ports": [{{"nr": 22}}, {{"nr": [80, 443]}}, {{}}], "a": {{"b": 1}}, "a.b": 2}}',
    ]
    expected = {(0, "1"), (0, "3"), (1, "2"), (1, "3")}
    result = run("match", subscriptions, write(tmp_path / "e.jsonl", *lines))
    assert (result.exit_code, {(event, str(name)) for event, name in pairs(result.stdout)}) == (0, expected)
    ports = pa.array([None, [{"nr": [22]}, {"nr": [80, 443]}, None]])
    table = {"price": [1, None], "raw": [b"x", b"y"], "time": pa.array([1, 2], pa.time32("s")), "ports": ports}
    pq.write_table(pa.table(table), tmp_path / "e.parquet")
    result = run("match", subscriptions, tmp_path / "e.parquet")
    assert (result.exit_code, {(event, str(name)) for event, name in pairs(result.stdout)}) == (0, expected)
    result = run("match", write(tmp_path / "r.txt", "raw = 'x'"), tmp_path / "e.parquet", "--on-error", "skip")
    assert f"{tmp_path / 'e.parquet'}:1: attribute 'raw': binary is not a value of the language" in result.stderr
    assert result.exit_code == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["missing", "e.jsonl"], "missing: there is no such file"),
        (["s.jsonl", "missing"], "missing: there is no such file"),
        ([".", "e.jsonl"], ".: is a folder, not a file"),
        (["empty", "e.jsonl"], "empty: the file has no subscriptions"),
        (["empty.csv", "e.jsonl"], "empty.csv:1: the header must have the columns id and expression"),
        (["empty.parquet", "e.jsonl"], "empty.parquet: is not Parquet, or is damaged"),
        (["s.jsonl", "empty.parquet"], "empty.parquet: is not Parquet, or is damaged"),
        (["s.jsonl", "e.jsonl", "--schema", "missing"], "missing: there is no such file"),
        (["s.jsonl", "e.jsonl", "-o", "no/such/file"], "no/such/file: cannot be written: No such file or directory"),
        (["s.jsonl", "e.jsonl", "--output-format", "parquet"], "stdout: Parquet must be written to a file"),
    ],
)
def test_files_that_cannot_be_used(
    tmp_path: Path, subscriptions: Path, events: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "empty.csv", "empty.parquet"):
        write(tmp_path / name)
    before = sorted(os.listdir(tmp_path))
    result = run("match", *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)
    assert sorted(os.listdir(tmp_path)) == before


# -- schema


def test_schema(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"at": "timestamp",', '"price": "number"}')
    subscriptions = write(
        tmp_path / "s.txt", "at < TIMESTAMP '2026-11-14 10:00:00'", "price = 'x'", "prize < 5", "price < 5"
    )
    events = write(tmp_path / "e.jsonl", '{"at": "2026-11-14T09:59:59Z", "price": 1}', '{"price": "1"}', '{"at": "x"}')
    result = run("match", subscriptions, events, "--schema", schema, "--on-error", "skip")
    assert result.exit_code == 3
    assert pairs(result.stdout) == {(0, 1), (0, 4)}
    assert "s.txt:2: attribute 'price' is a number" in result.stderr
    assert "s.txt:3: unknown attribute 'prize'; did you mean 'price'?" in result.stderr
    assert "e.jsonl:2: attribute 'price': '1' is a string, but the schema declares a number" in result.stderr
    assert "e.jsonl:3: attribute 'at': 'x' is not a timestamp" in result.stderr


def test_values_of_another_kind_are_mentioned(tmp_path: Path) -> None:
    subscriptions = write(tmp_path / "s.txt", "at < TIMESTAMP '2026-11-14 10:00:00'")
    result = run("match", subscriptions, "-", stdin='{"at": "2026-11-14"}\n')
    assert "1 value of events did not have the kind" in result.stderr
    assert "--schema" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a schema must be a JSON object"),
        ('{"a": "nummer"}', "'nummer' is not a kind"),
        ('{"a": "number", "a": "string"}', "the key 'a' is given twice"),
        ("{", "not JSON"),
    ],
)
def test_a_bad_schema(tmp_path: Path, subscriptions: Path, events: Path, text: str, message: str) -> None:
    schema = write(tmp_path / "schema.json", text)
    result = run("match", subscriptions, events, "--schema", schema)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{schema}: ")
    assert message in result.stderr


def test_parquet_with_text_that_is_no_text(subscriptions: Path, events: Path, tmp_path: Path) -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    path = tmp_path / "broken.parquet"
    for table, words in (
        (pa.table({"genre": broken}), ["match", subscriptions, path]),
        (pa.table({"id": [1], "expression": broken}), ["match", path, events]),
        (pa.table({"id": broken, "expression": ["a = 1"]}), ["check", path]),
    ):
        pq.write_table(table, path)
        result = run(*words)
        assert result.exit_code == 1
        assert (result.stderr or result.stdout).startswith(f"{path}: ")
        assert "Invalid UTF8" in result.stderr + result.stdout


# -- earlier events


def test_match_with_earlier_events(tmp_path: Path) -> None:
    subscriptions = write(tmp_path / "s.txt", "price < ALL (SELECT price FROM history)", "price > 3")
    lines = [
        f'{{"sku": "{sku}", "price": {price}, "at": {at}}}'
        for sku, price, at in (("a", 5, 1), ("b", 9, 2), ("a", 4, 3))
    ]
    lines.append('{"sku": "a", "price": 6, "at": 30}')
    events = write(tmp_path / "e.jsonl", *lines)
    rows = run("match", subscriptions, events, "--history-rows", "9", "--batch-size", "1")
    assert pairs(rows.stdout) == {(0, 1), (2, 1), *((row, 2) for row in range(4))}
    aged = run("match", subscriptions, events, "--history-age", "20", "--history-order", "at", "--history-key", "sku")
    assert pairs(aged.stdout) == {(0, 1), (1, 1), (2, 1), (3, 1), *((row, 2) for row in range(4))}
    counts = run("match", subscriptions, events, "--history-rows", "9", "--count")
    assert [line["matches"] for line in map(json.loads, counts.stdout.splitlines())] == [2, 1, 2, 1]


def test_a_saved_matcher_brings_its_history(tmp_path: Path) -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=2))
    matcher.add("lowest", "price < ALL (SELECT price FROM history)")
    matcher.match({"price": 5})
    matcher.save(tmp_path / "lowest.tamis")
    events = write(tmp_path / "e.jsonl", '{"price": 7}', '{"price": 3}')
    assert pairs(run("match", "--index", tmp_path / "lowest.tamis", events).stdout) == {(1, "lowest")}
    given = run("match", "--index", tmp_path / "lowest.tamis", events, "--history-rows", "2")
    assert (given.exit_code, "do not go with a file" in given.stderr) == (2, True)
