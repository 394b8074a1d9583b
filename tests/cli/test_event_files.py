"""Events in batches, with their labels, lines and errors."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli.event_files import Batch, EventFile
from tamis.errors import FileError
from tamis.language.schema import Schema
from tests.cli.running import write, write_jsonl


def batches(path: Path, size: int = 10, *, until_error: bool = False, **options: Any) -> list[Batch]:
    return list(EventFile(str(path), **options).batches(size, until_error=until_error))


def test_jsonl_in_batches(tmp_path: Path) -> None:
    path = write(tmp_path / "e", *[line for n in range(5) for line in (json.dumps({"a": n}), "")])
    found = batches(path, 2)
    assert [batch.events for batch in found] == [[{"a": 0}, {"a": 1}], [{"a": 2}, {"a": 3}], [{"a": 4}]]
    assert [batch.labels.to_pylist() for batch in found] == [[0, 1], [2, 3], [4]]
    assert [list(batch.lines) for batch in found] == [[1, 3], [5, 7], [9]]


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    assert batches(write(tmp_path / "e")) == []


def test_bad_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"a": 0}\nnonsense\n[1]\n{"a": "\xff"}\n{"a": 4}\n')
    [batch] = batches(path)
    assert batch.labels.to_pylist() == [0, 4]
    assert [error.line for error in batch.errors] == [2, 3, 4]
    assert "not UTF-8" in str(batch.errors[2])


def test_until_error_the_batch_ends_at_the_bad_line(tmp_path: Path) -> None:
    first = batches(write(tmp_path / "e", '{"a": 0}', "x", '{"a": 2}'), until_error=True)[0]
    assert first.events == [{"a": 0}]
    assert [error.line for error in first.errors] == [2]


def test_labels_from_a_field(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "e", [{"order": {"id": "x"}}, {"order.id": "y"}, {}, {"order": 5}, {"order": {"id": 1}}]
    )
    [batch] = batches(path, label="order.id")
    assert batch.labels.to_pylist() == ["x", "y"]
    messages = [str(error).partition(": ")[2] for error in batch.errors]
    assert messages == ["there is no field 'order.id' for --event-id"] * 2 + [
        "the field 'order.id' was str before; 1 is int"
    ]


@pytest.mark.parametrize("value", [True, 1.5, ["a"], {"b": 1}])
def test_labels_are_strings_or_integers(tmp_path: Path, value: Any) -> None:
    [batch] = batches(write_jsonl(tmp_path / "e", [{"id": value}]), label="id")
    assert "must be a string or an integer" in str(batch.errors[0])


def test_declared_timestamps_are_read(tmp_path: Path) -> None:
    schema = Schema.of({"at": "timestamp", "user": {"seen": "list<timestamp>"}, "name": "string"})
    events = [
        {"at": "2026-11-14T10:00:00+01:00", "name": "2026-11-14", "user": {"seen": ["2026-11-14", None]}},
        {"user.seen": ["2026-11-14 10:00:00.5Z"]},
        {"at": "yesterday"},
        {"at": 5},
    ]
    [batch] = batches(write_jsonl(tmp_path / "e", events), schema=schema)
    assert batch.events == [
        {
            "at": datetime(2026, 11, 14, 9),
            "name": "2026-11-14",
            "user": {"seen": [datetime(2026, 11, 14), None]},
        },
        {"user.seen": [datetime(2026, 11, 14, 10, 0, 0, 500_000)]},
        {"at": 5},
    ]
    assert "e:3: attribute 'at': 'yesterday' is not a timestamp. Hint: 2026-11-14T10:00:00Z" in str(batch.errors[0])


def test_parquet_in_batches(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5), "key": list("vwxyz")}), tmp_path / "e.parquet")
    found = batches(tmp_path / "e.parquet", 2)
    assert [batch.labels.to_pylist() for batch in found] == [[0, 1], [2, 3], [4]]
    assert [list(batch.lines) for batch in found] == [[1, 2], [3, 4], [5]]
    assert isinstance(found[0].events, pa.Table)
    labelled = batches(tmp_path / "e.parquet", 3, label="key")
    assert [batch.labels.to_pylist() for batch in labelled] == [["v", "w", "x"], ["y", "z"]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"a": [1]}, "there is no column 'key'"),
        ({"key": [1.5]}, "must be strings or integers, not double"),
        ({"key": ["a", None]}, "has nulls"),
    ],
)
def test_columns_that_are_no_labels(tmp_path: Path, column: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(column), tmp_path / "e.parquet")
    with pytest.raises(FileError, match=message):
        batches(tmp_path / "e.parquet", label="key")


def test_parts_of_a_batch(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5)}), tmp_path / "e.pq")
    for batch in (*batches(tmp_path / "e.pq"), *batches(write_jsonl(tmp_path / "e", [{"a": n} for n in range(5)]))):
        part = batch.part(1, 3)
        events = part.events if isinstance(part.events, list) else part.events.to_pylist()
        assert events == [{"a": 1}, {"a": 2}]
        assert part.labels.to_pylist() == [1, 2]
        assert list(part.lines) == [2, 3]
        assert len(part) == 2
