"""Matches are written as readers of each format expect them, and a file appears whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli.match_files import ROWS_AT_ONCE, open_matches, write_all
from tamis.errors import FileError

SCHEMA = pa.schema({"event": pa.int64(), "subscription": pa.string()})
AWKWARD = ["plain", "", "a,b", 'say "x"', "two\nlines", "é 𝄞", "back\\slash", "\x01"]


def write(path: Path, *tables: pa.Table, format: str | None = None, rows_at_once: int = ROWS_AT_ONCE) -> Path:
    with open_matches(str(path), format, rows_at_once=rows_at_once) as writer:
        for table in tables:
            writer.write(table)
        writer.finish(SCHEMA)
    return path


def matches(events: list[Any], subscriptions: list[Any]) -> pa.Table:
    return pa.table({"event": events, "subscription": subscriptions})


@pytest.mark.parametrize("ids", [[1, -2, 3], ["x", "y", "x"]])
def test_jsonl(tmp_path: Path, ids: list[Any]) -> None:
    path = write(tmp_path / "m", matches([0, 0], ids[:2]), matches([7], ids[2:]))
    assert path.read_text().splitlines() == [
        json.dumps({"event": event, "subscription": each}) for event, each in zip([0, 0, 7], ids, strict=True)
    ]


@pytest.mark.parametrize("name", ["m.jsonl", "m.csv", "m.parquet"])
def test_awkward_ids_survive(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, matches(AWKWARD, AWKWARD[::-1]))
    if name.endswith("jsonl"):
        found = [tuple(json.loads(line).values()) for line in path.read_text().splitlines()]
    elif name.endswith("csv"):
        with path.open(newline="") as stream:
            header, *found = [tuple(record) for record in csv.reader(stream)]
        assert header == ("event", "subscription")
    else:
        found = [tuple(row.values()) for row in pq.read_table(path).to_pylist()]
    assert found == list(zip(AWKWARD, AWKWARD[::-1], strict=True))


def test_long_tables_are_written_in_pieces(tmp_path: Path) -> None:
    table = matches(list(range(10)), list(range(10)))
    assert len(write(tmp_path / "m.jsonl", table, table, rows_at_once=3).read_text().splitlines()) == 20
    path = write(tmp_path / "m.parquet", table.slice(0, 1), table.slice(1, 1), table.slice(2), rows_at_once=3)
    assert pq.read_table(path) == table
    assert pq.ParquetFile(path).num_row_groups == 1


def test_no_matches(tmp_path: Path) -> None:
    assert write(tmp_path / "m.jsonl").read_text() == ""
    assert write(tmp_path / "m.csv").read_text() == "event,subscription\n"
    assert pq.read_table(write(tmp_path / "m.pq")).schema == SCHEMA


@pytest.mark.parametrize(("name", "text"), [("m.jsonl.gz", '{"event": 1, "subscription": 2}\n'), ("m.csv.GZ", "1,2\n")])
def test_packed_files(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path / name, matches([1], [2]), matches([1], [2]))
    header = "event,subscription\n" if ".csv" in name else ""
    assert gzip.decompress(path.read_bytes()).decode() == header + 2 * text
    assert os.listdir(tmp_path) == [name]
    data = path.read_bytes()
    assert write(path, matches([1], [2]), matches([1], [2])).read_bytes() == data


def test_parquet_is_not_packed_again(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="Parquet files are already compressed"):
        write(tmp_path / "m.parquet.gz")
    assert os.listdir(tmp_path) == []


def test_a_given_format_wins(tmp_path: Path) -> None:
    assert write(tmp_path / "m.jsonl", matches([1], [2]), format="csv").read_text() == "event,subscription\n1,2\n"


def test_the_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("old")
    with open_matches(str(path)) as writer:
        writer.write(matches([1], [2]))
        assert path.read_text() == "old"
        writer.finish(SCHEMA)
    assert path.read_text() == "event,subscription\n1,2\n"
    assert os.listdir(tmp_path) == ["m.csv"]


def test_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(AttributeError), open_matches(str(tmp_path / "m.csv")) as writer:
        writer.write(None)
    assert os.listdir(tmp_path) == []


def test_links_stay_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write(tmp_path / "link", matches([1], [2]))
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "real").read_text()) == {"event": 1, "subscription": 2}


def test_devices_are_written_directly() -> None:
    write(Path(os.devnull), matches([1], [2]))
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("name", "reason"), [("", "it is a folder"), ("no/such/folder", "No such file"), ("a\0b", "null")]
)
def test_what_cannot_be_written(tmp_path: Path, name: str, reason: str) -> None:
    with pytest.raises(FileError, match=f"cannot be written: .*{reason}"), open_matches(os.path.join(tmp_path, name)):
        raise AssertionError("unreachable")


def test_a_file_without_a_name() -> None:
    with pytest.raises(FileError, match="'': cannot be written: the name of the file is empty"), open_matches(""):
        raise AssertionError("unreachable")


def test_parquet_needs_a_file() -> None:
    with pytest.raises(FileError, match="Hint: --output"), open_matches("-", "parquet"):
        raise AssertionError("unreachable")


def test_errors_of_the_work_pass_through(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^mine$"), open_matches(str(tmp_path / "m.csv")):
        raise ValueError("mine")


def test_a_stream_that_takes_a_part_at_a_time_gets_everything() -> None:
    taken: list[bytes] = []

    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            taken.append(bytes(data[:3]))
            return len(taken[-1])

    write_all(Slow(), b"ten bytes!")
    assert b"".join(taken) == b"ten bytes!"
    write_all(Slow(), b"")
