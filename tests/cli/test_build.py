"""`tamis build`, and `tamis match --index` with what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tamis
from tests.cli.running import pairs, run, write, write_jsonl
from tests.cli.test_match import EVENTS, MATCHES, SUBSCRIPTIONS


@pytest.fixture
def subscriptions(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "s.jsonl", SUBSCRIPTIONS)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "e.jsonl", EVENTS)


@pytest.fixture
def index(tmp_path: Path, subscriptions: Path) -> Path:
    result = run("build", subscriptions, tmp_path / "s.tamis")
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.startswith(f"{tmp_path / 's.tamis'}: 3 subscriptions, 0.0 MB in ")
    return tmp_path / "s.tamis"


def test_matching_with_an_index(index: Path, events: Path) -> None:
    result = run("match", "--index", index, events)
    assert result.exit_code == 0
    assert pairs(result.stdout) == MATCHES
    assert result.stderr.startswith("4 events against 3 subscriptions: 5 matches in ")
    assert pairs(run("match", "--index", index, stdin=events.read_text()).stdout) == MATCHES
    assert pairs(run("match", "--index", index, "-", stdin=events.read_text()).stdout) == MATCHES


def test_python_reads_the_same_file(index: Path) -> None:
    assert sorted(tamis.load(index).match(EVENTS[0])) == ["cheap", "crime"]


@pytest.mark.parametrize("name", ["s.csv", "s.parquet", "s.txt"])
def test_formats_of_subscriptions(tmp_path: Path, name: str) -> None:
    texts = ["price < 10", "genre = 'crime'"]
    if name == "s.csv":
        write(tmp_path / name, "id,expression", *[f"{line},{text}" for line, text in enumerate(texts, 1)])
    elif name == "s.txt":
        write(tmp_path / name, *texts)
    else:
        pq.write_table(pa.table({"id": [1, 2], "expression": texts}), tmp_path / name)
    assert run("build", tmp_path / name, tmp_path / "i", "--quiet").stderr == ""
    found = tamis.load(tmp_path / "i").match({"price": 5, "genre": "crime"})
    assert sorted(found, key=str) == ([1, 2] if name != "s.csv" else ["1", "2"])


def test_subscriptions_from_stdin(tmp_path: Path, subscriptions: Path) -> None:
    assert run("build", "-", tmp_path / "i", stdin=subscriptions.read_text()).exit_code == 0
    assert len(tamis.load(tmp_path / "i")) == 3


def test_a_bad_line_stops_and_the_old_file_stays(tmp_path: Path, index: Path) -> None:
    before = index.read_bytes()
    path = write(tmp_path / "bad.txt", "price < 10", "price <")
    result = run("build", path, index)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}:2: ")
    assert result.stderr.endswith(f"{index} is not written\n")
    assert index.read_bytes() == before


def test_bad_lines_are_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.txt", "price < 10", "price <", "genre = 'crime'")
    words = ["--on-error", "skip", "--errors", tmp_path / "errors.jsonl"]
    result = run("build", path, tmp_path / "i", *words)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"{path}:2: ")
    assert result.stderr.endswith("; 1 bad line skipped\n")
    assert json.loads((tmp_path / "errors.jsonl").read_text())["line"] == 2
    assert len(tamis.load(tmp_path / "i")) == 2


def test_the_schema_goes_with_the_index(tmp_path: Path) -> None:
    schema = write(tmp_path / "schema.json", '{"at": "timestamp"}')
    path = write(tmp_path / "s.txt", "at > TIMESTAMP '2026-01-01 00:00:00'")
    assert run("build", path, tmp_path / "i", "--schema", schema).exit_code == 0
    events = write_jsonl(tmp_path / "e.jsonl", [{"at": "2026-02-01T00:00:00"}, {"at": "2025-02-01T00:00:00"}])
    assert pairs(run("match", "--index", tmp_path / "i", events).stdout) == {(0, 1)}
    result = run("match", "--index", tmp_path / "i", events, "--schema", schema)
    assert result.exit_code == 2
    assert "has its own schema" in result.stderr


def test_wrong_command_lines(tmp_path: Path, subscriptions: Path, index: Path, events: Path) -> None:
    for words in (["build", subscriptions], ["build", subscriptions, "-"], ["build", subscriptions, subscriptions]):
        assert run(*words).exit_code == 2
    assert run("build", subscriptions, index, "--errors", index).exit_code == 2
    result = run("match", "--index", tmp_path / "nothing", events)
    assert result.exit_code == 2
    assert "or a file that `tamis build` wrote" in result.stderr


def test_files_that_are_no_index(tmp_path: Path, subscriptions: Path, events: Path) -> None:
    result = run("match", "--index", subscriptions, events)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{subscriptions}: ")
    result = run("build", subscriptions, tmp_path / "nowhere" / "i")
    assert result.exit_code == 1
    assert "its folder does not exist" in result.stderr


def test_a_name_of_an_index_still_works(subscriptions: Path, events: Path) -> None:
    assert pairs(run("match", subscriptions, events, "--index", "scan").stdout) == MATCHES


WEIGHTED = {"id": ["a", "b", "c"], "expression": ["x = 1"] * 3, "weight": [1, 9.5, 5]}


def write_weighted(folder: Path, format: str) -> Path:
    file = folder / f"s.{format}"
    rows = pa.table(WEIGHTED).to_pylist()
    if format == "parquet":
        pq.write_table(pa.table(WEIGHTED), file)
        return file
    if format == "jsonl":
        return write_jsonl(file, rows)
    return write(file, "\n".join(["id,expression,weight", *(",".join(map(str, row.values())) for row in rows)]))


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_weights_are_kept(tmp_path: Path, format: str) -> None:
    assert run("build", write_weighted(tmp_path, format), tmp_path / "s.tamis").exit_code == 0
    assert sorted(tamis.load(tmp_path / "s.tamis").match({"x": 1}, k=2)) == ["b", "c"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "s.jsonl",
            '{"id": "a", "expression": "x = 1", "weight": "heavy"}',
            "s.jsonl:1: a weight must be a finite number",
        ),
        (
            "s.csv",
            "id,expression,weight\na,x = 1,\nb,x = 1,heavy",
            "s.csv:3: a weight must be a finite number, not 'heavy'",
        ),
        ("s.csv", "id,expression,weight\na,x = 1,nan", "s.csv:2: a weight must be a finite number"),
    ],
)
def test_a_weight_that_is_no_number_is_reported(tmp_path: Path, name: str, text: str, message: str) -> None:
    result = run("build", write(tmp_path / name, text), tmp_path / "s.tamis")
    assert result.exit_code == 1
    assert message in result.stderr
