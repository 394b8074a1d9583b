"""A file is replaced whole or not at all, and nothing is left behind."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tamis.errors import SnapshotError
from tamis.storage import container

OLD = {"a": np.arange(1000)}
NEW = {"a": np.arange(5000), "b": np.ones(300_000)}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file that is there already."""
    path = tmp_path / "alerts.snapshot"
    container.write(path, OLD, {"age": "old"})
    return path


class Between(Mapping[str, npt.NDArray[Any]]):
    """Two arrays, and something that happens when the second is asked for."""

    def __init__(self, happens: Any) -> None:
        self._happens = happens

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        if name == "b":
            self._happens()
        return NEW[name]

    def __iter__(self) -> Iterator[str]:
        return iter(NEW)

    def __len__(self) -> int:
        return len(NEW)


def assert_old(path: Path) -> None:
    """The old file is there, and nothing else."""
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    opened = container.open(path)
    opened.verify()
    assert (opened.names, opened.meta) == (("a",), {"age": "old"})


def assert_new(path: Path) -> None:
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    opened = container.open(path)
    opened.verify()
    assert opened.names == ("a", "b")


def parts(path: Path) -> list[Path]:
    return list(path.parent.glob(f".{path.name}.*.part"))


# -- failures


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError, MemoryError])
def test_an_error_halfway(path: Path, error: type[BaseException]) -> None:
    def fail() -> None:
        assert len(parts(path)) == 1
        raise error("halfway")

    with pytest.raises(SnapshotError if error is OSError else error, match="halfway"):
        container.write(path, Between(fail))
    assert_old(path)


def test_an_array_that_cannot_be_stored(path: Path) -> None:
    with pytest.raises(SnapshotError, match="dtype object"):
        container.write(path, {**NEW, "c": np.array([None])})
    assert_old(path)


@pytest.mark.parametrize("most", [0, 64, 4096, 100_000, 2_440_000])
def test_a_full_disk(path: Path, most: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, limits[1]))
    try:
        with pytest.raises(SnapshotError, match=r"cannot be written: .*; an older file is unchanged") as refusal:
            container.write(path, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert refusal.value.path == str(path)
    assert_old(path)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_system_call_that_fails(path: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr(os, call, fail)
        with pytest.raises(SnapshotError, match="cannot be written: No space left on device"):
            container.write(path, NEW)
    assert_old(path)


def test_a_folder_that_cannot_be_flushed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flush = os.fsync

    def only_files(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, "Invalid argument")
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", only_files)
    container.write(path, NEW)
    assert_new(path)


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    for name, says in [
        ("folder", "it is a folder; name a file in it"),
        (".", "it is a folder"),
        ("missing/file", "its folder does not exist; create it first"),
        ("file/in", "its folder does not exist"),
        ("pipe", "it is a pipe or a device"),
        ("a\0b", "embedded null"),
        ("x" * 250, "File name too long"),
        ("x" * 1000, "File name too long"),
    ]:
        with pytest.raises(SnapshotError, match=f"cannot be written: {says}"):
            container.write(os.path.join(tmp_path, name), NEW)
    with pytest.raises(SnapshotError, match="'': cannot be written"):
        container.write("", NEW)
    assert sorted(tmp_path.rglob("*")) == before


# -- a writer that is killed


KILLED = """
import os, signal, sys
import numpy as np
from tamis.storage import container

class Deadly(dict):
    def items(self):
        yield "a", np.arange(500_000)
        os.kill(os.getpid(), signal.SIGKILL)

container.write(sys.argv[1], Deadly())
"""


def kill_a_writer(path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, str(path)], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr


def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies_up(path: Path) -> None:
    kill_a_writer(path)
    assert container.open(path).meta == {"age": "old"}
    (left,) = parts(path)
    assert left.stat().st_size > 64
    with pytest.raises(SnapshotError, match="is not a snapshot of Tamis"):
        container.open(left)
    container.write(path, NEW)
    assert_new(path)


def test_tidying_up_spares_other_files(path: Path) -> None:
    others = [".other.snapshot.12345678.part", ".alerts.snapshot.part", "alerts.snapshot.12345678.part"]
    for name in others:
        (path.parent / name).write_bytes(b"x")
    container.write(path, NEW)
    assert sorted(file.name for file in path.parent.iterdir()) == sorted([*others, path.name])


def test_a_writer_spares_the_part_of_another(path: Path) -> None:
    """Two writers at once: each writes a whole file, and the one that ends last stays."""

    def write_too() -> None:
        container.write(path, OLD, {"age": "meanwhile"})
        assert container.open(path).meta == {"age": "meanwhile"}
        assert len(parts(path)) == 1

    container.write(path, Between(write_too))
    assert_new(path)


def test_a_part_that_was_removed_before_it_was_locked_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock
    removed: list[str] = []

    def lose_the_first(stream: Any, flags: int) -> None:
        if not removed:
            removed.append(stream.name)
            os.unlink(stream.name)
        lock(stream, flags)

    monkeypatch.setattr(fcntl, "flock", lose_the_first)
    container.write(path, NEW)
    assert removed
    assert_new(path)


def test_a_file_system_without_locks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left = path.parent / f".{path.name}.12345678.part"
    left.write_bytes(b"x")

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    container.write(path, NEW)
    assert left.exists()  # it may be a living one's
    left.unlink()
    assert_new(path)


# -- success


def test_bytes_are_on_disk_before_the_name_is(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    flush, replace = os.fsync, os.replace

    def flush_too(descriptor: int) -> None:
        status = os.fstat(descriptor)
        calls.append("folder" if stat.S_ISDIR(status.st_mode) else f"file of {status.st_size} bytes")
        flush(descriptor)

    def replace_too(source: str, target: Path) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", flush_too)
    monkeypatch.setattr(os, "replace", replace_too)
    container.write(path, NEW)
    assert calls == [f"file of {path.stat().st_size} bytes", "rename", "folder"]


def test_a_container_can_be_written_over_itself(path: Path) -> None:
    opened = container.open(path)
    container.write(path, {name: opened.array(name) for name in opened.names}, {"age": "old"})
    opened.verify()
    assert_old(path)


def test_a_link_stays_a_link(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    (folder / "current").symlink_to(path)
    container.write(folder / "current", NEW)
    assert (folder / "current").is_symlink()
    assert [file.name for file in folder.iterdir()] == ["current"]
    assert container.open(path).names == ("a", "b")


def test_permissions_are_kept(path: Path) -> None:
    for mode in (0o600, 0o640, 0o444):
        path.chmod(mode)
        container.write(path, NEW)
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    container.write(tmp_path / "new", OLD)
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_path_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    container.write("here", OLD)
    assert container.open(Path("here")).names == ("a",)
