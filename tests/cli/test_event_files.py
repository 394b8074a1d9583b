"""Events in batches, with their ids, lines and errors."""

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
    assert [batch.ids.to_pylist() for batch in found] == [[0, 1], [2, 3], [4]]
    assert [list(batch.lines) for batch in found] == [[1, 3], [5, 7], [9]]


def test_an_empty_file_has_no_events(tmp_path: Path) -> None:
    assert batches(write(tmp_path / "e")) == []


def test_bad_lines_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"a": 0}\nnonsense\n[1]\n{"a": "\xff"}\n{"a": 4}\n')
    [batch] = batches(path)
    assert batch.ids.to_pylist() == [0, 4]
    assert [error.line for error in batch.errors] == [2, 3, 4]
    assert "not UTF-8" in str(batch.errors[2])


def test_until_error_the_batch_ends_at_the_bad_line(tmp_path: Path) -> None:
    first = batches(write(tmp_path / "e", '{"a": 0}', "x", '{"a": 2}'), until_error=True)[0]
    assert first.events == [{"a": 0}]
    assert [error.line for error in first.errors] == [2]


def test_ids_from_a_field(tmp_path: Path) -> None:
    path = write_jsonl(
        tmp_path / "e", [{"order": {"id": "x"}}, {"order.id": "y"}, {}, {"order": 5}, {"order": {"id": 1}}]
    )
    [batch] = batches(path, id_field="order.id")
    assert batch.ids.to_pylist() == ["x", "y"]
    messages = [str(error).partition(": ")[2] for error in batch.errors]
    assert messages == ["there is no field 'order.id'"] * 2 + [
        "the field 'order.id' was str in earlier events, but 1 is int"
    ]


@pytest.mark.parametrize("value", [True, 1.5, ["a"], {"b": 1}])
def test_ids_are_strings_or_integers(tmp_path: Path, value: Any) -> None:
    [batch] = batches(write_jsonl(tmp_path / "e", [{"id": value}]), id_field="id")
    assert "must be a string or an integer" in str(batch.errors[0])


def test_declared_timestamps_are_read(tmp_path: Path) -> None:
    schema = Schema.of({"at": "timestamp", "user": {"seen": "list<timestamp>"}, "name": "string"})
    events = [
        {"at": "2026-11-14T10:00:00+01:00", "name": "2026-11-14", "user": {"seen": ["2026-11-14", None]}},
        {"user.seen": ["2026-11-14 10:00:00.5Z"]},
        {"at": "yesterday"},
        {"at": 5},
        {"user": [{"seen": "2026-11-14"}, [{"seen": ["2026-11-15"], "x": 1}], "y"]},
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
        {"user": [{"seen": datetime(2026, 11, 14)}, [{"seen": [datetime(2026, 11, 15)], "x": 1}], "y"]},
    ]
    assert "e:3: attribute 'at': 'yesterday' is not a timestamp. Hint: 2026-11-14T10:00:00Z" in str(batch.errors[0])


def test_parquet_in_batches(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5), "key": list("vwxyz")}), tmp_path / "e.parquet")
    found = batches(tmp_path / "e.parquet", 2)
    assert [batch.ids.to_pylist() for batch in found] == [[0, 1], [2, 3], [4]]
    assert [list(batch.lines) for batch in found] == [[1, 2], [3, 4], [5]]
    assert isinstance(found[0].events, pa.Table)
    with_ids = batches(tmp_path / "e.parquet", 3, id_field="key")
    assert [batch.ids.to_pylist() for batch in with_ids] == [["v", "w", "x"], ["y", "z"]]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"a": [1]}, "there is no column 'key'"),
        ({"key": [1.5]}, "must be strings or integers, not double"),
        ({"a.key": [1]}, "there is no column 'key'"),
        ({"key": [{"a": 1}]}, "must be strings or integers, not struct"),
    ],
)
def test_columns_that_are_no_ids(tmp_path: Path, column: dict[str, Any], message: str) -> None:
    pq.write_table(pa.table(column), tmp_path / "e.parquet")
    with pytest.raises(FileError, match=message):
        batches(tmp_path / "e.parquet", id_field="key")


def test_rows_without_an_id_are_bad_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5), "key": ["v", None, "x", None, "z"]}), tmp_path / "e.parquet")
    [batch] = batches(tmp_path / "e.parquet", id_field="key")
    assert batch.ids.to_pylist() == ["v", "x", "z"]
    assert list(batch.lines) == [1, 3, 5]
    assert isinstance(batch.events, pa.Table)
    assert batch.events["a"].to_pylist() == [0, 2, 4]
    message = "there is no field 'key'"
    assert [str(error) for error in batch.errors] == [f"{tmp_path / 'e.parquet'}:{row}: {message}" for row in (2, 4)]
    [first, *_] = batches(tmp_path / "e.parquet", id_field="key", until_error=True)
    assert first.ids.to_pylist() == ["v"]
    assert [error.line for error in first.errors] == [2]


@pytest.mark.parametrize("until_error", [True, False])
def test_a_batch_without_any_id(tmp_path: Path, until_error: bool) -> None:
    pq.write_table(pa.table({"a": [1, 2], "key": pa.array([None, None], pa.string())}), tmp_path / "e.parquet")
    [batch] = batches(tmp_path / "e.parquet", id_field="key", until_error=until_error)
    assert len(batch) == len(batch.ids) == 0
    assert batch.errors[0].line == 1


def test_unsigned_ids(tmp_path: Path) -> None:
    numbers = [1, 2**63 + 5, 2**63 - 1, None]
    pq.write_table(pa.table({"n": pa.array(numbers, pa.uint64())}), tmp_path / "e.parquet")
    jsonl = write_jsonl(tmp_path / "e.jsonl", [{} if number is None else {"n": number} for number in numbers])
    for path in (tmp_path / "e.parquet", jsonl):
        [batch] = batches(path, id_field="n")
        assert batch.ids.type == pa.int64()
        assert batch.ids.to_pylist() == [1, 2**63 - 1]
        assert [str(error) for error in batch.errors] == [
            f"{path}:2: the field 'n': the integer 9223372036854775813 is beyond 64 bits and cannot be an id",
            f"{path}:4: there is no field 'n'",
        ]


def test_ids_from_structs(tmp_path: Path) -> None:
    orders = [{"id": {"key": "x"}}, None, {"id": None}, {"id": {"key": "y"}}]
    pq.write_table(pa.table({"order": orders}), tmp_path / "e.parquet")
    [batch] = batches(tmp_path / "e.parquet", id_field="order.id.key")
    assert batch.ids.to_pylist() == ["x", "y"]
    assert [error.line for error in batch.errors] == [2, 3]


def test_a_column_with_a_dot_in_its_name(tmp_path: Path) -> None:
    pq.write_table(pa.table({"order": [{"id": 1}], "order.id": ["x"]}), tmp_path / "e.parquet")
    [batch] = batches(tmp_path / "e.parquet", id_field="order.id")
    assert batch.ids.to_pylist() == ["x"]


def test_the_type_of_ids(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["x"], "n": pa.array([1], pa.uint8())}), tmp_path / "e.pq")
    for id_field, kind in [(None, pa.int64()), ("a", pa.string()), ("n", pa.int64())]:
        assert EventFile(str(tmp_path / "e.pq"), id_field=id_field).id_type == kind
    file = EventFile(str(write_jsonl(tmp_path / "e", [{"n": 1}])), id_field="n")
    assert file.id_type == pa.string()
    list(file.batches(10))
    assert file.id_type == pa.int64()


def test_parts_of_a_batch(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(5)}), tmp_path / "e.pq")
    for batch in (*batches(tmp_path / "e.pq"), *batches(write_jsonl(tmp_path / "e", [{"a": n} for n in range(5)]))):
        part = batch.part(1, 3)
        assert part.mappings() == [{"a": 1}, {"a": 2}]
        assert part.ids.to_pylist() == [1, 2]
        assert list(part.lines) == [2, 3]
        assert len(part) == 2
