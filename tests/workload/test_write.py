"""Workloads on disk: complete or not there, and clear about what cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.errors import FileError
from tamis.workload import SUBSCRIPTION_BLOCK, Workload, WorkloadError, generate, preset, read_config, write

NAMES = ["subscriptions.parquet", "events.parquet", "other_events.parquet", "config.json"]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    "changes", [{}, {"string_share": 0.5, "prefix_share": 0.2}, {"numbers": "float", "string_share": 0.5}]
)
def test_round_trip(tmp_path: Path, changes: dict[str, Any], wide: bool) -> None:
    config = preset("be-tree", subscriptions=3_000, other_events=20, **changes)
    folder = tmp_path / "new" / "folder"
    files = write(config, folder, wide=wide)
    assert [path.name for path in files] == NAMES
    assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
    workload = generate(config)
    tables = [pq.read_table(path) for path in files[:3]]
    expected = [workload.subscriptions(), workload.events(wide=wide), workload.other_events(20, wide=wide)]
    for table, original in zip(tables, expected, strict=True):
        assert table.schema == original.schema
        assert table.equals(original)
    assert read_config(folder) == config


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", ["alerts", "detection"])
def test_round_trip_of_other_styles(tmp_path: Path, name: str, wide: bool) -> None:
    config = preset(name, subscriptions=150, events=30, other_events=20)
    files = write(config, tmp_path, wide=wide)
    workload = generate(config)
    expected = [workload.subscriptions(), workload.events(wide=wide), workload.other_events(wide=wide)]
    for path, original in zip(files[:3], expected, strict=True):
        assert pq.read_table(path).equals(original)
    assert read_config(tmp_path) == config


def test_row_groups_hold_several_blocks(tmp_path: Path) -> None:
    config = preset("dense", subscriptions=11 * SUBSCRIPTION_BLOCK, subscription_size=1, event_size=1)
    path = write(config, tmp_path)[0]
    metadata = pq.read_metadata(path)
    rows = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    assert rows == [10 * SUBSCRIPTION_BLOCK, SUBSCRIPTION_BLOCK]


def test_no_events_are_written_as_empty_files(tmp_path: Path) -> None:
    files = write(preset("dense", subscriptions=10, events=0, other_events=0), str(tmp_path))
    assert [pq.read_metadata(path).num_rows for path in files[:3]] == [10, 0, 0]


def test_a_workload_is_replaced(tmp_path: Path) -> None:
    write(preset("dense", subscriptions=10), tmp_path)
    write(preset("zipf", subscriptions=20), tmp_path)
    assert read_config(tmp_path) == preset("zipf", subscriptions=20)
    assert pq.read_metadata(tmp_path / NAMES[0]).num_rows == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("foreign", [{}, {"config.json": "[]"}, {"config.json": '{"mode": 1}'}])
def test_files_of_others_are_not_replaced(tmp_path: Path, foreign: dict[str, str]) -> None:
    kept = {"subscriptions.parquet": "mine", **foreign}
    for name, text in kept.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(FileError, match=r"do not belong to a workload: .*subscriptions\.parquet.*Hint"):
        write(preset("dense", subscriptions=10), tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == kept


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FileError, match="cannot write a workload here"):
            write(preset("dense", subscriptions=10), folder)


def test_an_impossible_path() -> None:
    with pytest.raises(FileError, match="cannot write a workload here"):
        write(preset("dense", subscriptions=10), "a\0b")


def test_a_failure_leaves_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(preset("dense", subscriptions=10), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(self: Workload) -> Iterator[pa.RecordBatch]:
        yield self.subscription_block(0)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Workload, "subscription_blocks", fail)
    with pytest.raises(FileError, match="cannot write the workload: No space left on device"):
        write(preset("zipf", subscriptions=10), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_too_many_columns_leave_no_folder(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="too many for a column per attribute"):
        write(preset("sparse", subscriptions=10), tmp_path / "new", wide=True)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"{"])
def test_configs_that_cannot_be_read(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises((FileError, WorkloadError)):
        read_config(tmp_path)
