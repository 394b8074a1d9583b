"""Whatever has happened to a file, reading it gives what was written or a `SnapshotError`."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet
import pytest

from tamis.errors import SnapshotError
from tamis.storage import container, file_bytes, layout
from tamis.storage.checksum import checksum

ARRAYS: dict[str, npt.NDArray[Any]] = {
    "start": np.arange(5),
    "lo": np.arange(9, dtype=np.int32).reshape(3, 3),
    "empty": np.zeros(0),
    "flags": np.array([True, False, True]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "alerts.snapshot"


def read_all(path: Path, mmap: bool = True) -> None:
    """Ask for everything in a file."""
    opened = container.open(path, mmap=mmap)
    for name in opened.names:
        opened.array(name)


def assert_refused(path: Path, says: str | None = None, mmap: bool = True) -> None:
    with pytest.raises(SnapshotError, match=says) as refusal:
        read_all(path, mmap)
    assert str(refusal.value).startswith(f"{path}: ")


# -- flipped, cut off, overwritten


@pytest.mark.parametrize("mmap", [True, False])
def test_every_flipped_bit_is_seen(path: Path, mmap: bool) -> None:
    container.write(path, ARRAYS, {"k": "v"})
    sound = path.read_bytes()
    for at in range(len(sound)):
        for bit in range(8) if mmap else [at % 8]:
            damaged = bytearray(sound)
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            assert_refused(path, mmap=mmap)


@pytest.mark.kernels
def test_every_changed_byte_is_seen(path: Path) -> None:
    container.write(path, {"a": np.arange(9)})
    sound = path.read_bytes()
    for at in range(len(sound)):
        for byte in {0, 255, sound[at] ^ 255, (sound[at] + 1) % 256} - {sound[at]}:
            path.write_bytes(sound[:at] + bytes([byte]) + sound[at + 1 :])
            assert_refused(path)
            with pytest.raises(SnapshotError):
                container.open(path).verify()


@pytest.mark.parametrize("mmap", [True, False])
def test_every_cut_is_seen(path: Path, mmap: bool) -> None:
    container.write(path, ARRAYS)
    sound = path.read_bytes()
    for length in range(len(sound)):
        path.write_bytes(sound[:length])
        with pytest.raises(SnapshotError, match=r"is empty|is cut off"):
            container.open(path, mmap=mmap)


def test_bytes_behind_the_end_are_seen(path: Path) -> None:
    container.write(path, ARRAYS)
    path.write_bytes(path.read_bytes() + bytes(10))
    assert_refused(path, "has 10 extra bytes at the end")


def test_the_message_says_which_part_is_damaged(path: Path) -> None:
    container.write(path, ARRAYS)
    sound = path.read_bytes()
    start = int.from_bytes(sound[16:24], "little")
    for at, says in [
        (0, "is not a snapshot of Tamis, it begins with"),
        (9, "its header is damaged: restore it from a copy, or write the snapshot again"),
        (40, "its header is damaged"),
        (64, "array 'start' is damaged: restore it from a copy"),
        (127, "array 'start' is damaged"),
        (128, "array 'lo' is damaged"),
        (start, "its directory is damaged"),
        (len(sound) - 1, "its directory is damaged"),
    ]:
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 16]) + sound[at + 1 :])
        assert_refused(path, says)


def test_sound_arrays_of_a_damaged_file_can_be_read(path: Path) -> None:
    container.write(path, ARRAYS)
    damaged = bytearray(path.read_bytes())
    damaged[130] ^= 1
    path.write_bytes(damaged)
    opened = container.open(path)
    assert opened.array("start").tolist() == [0, 1, 2, 3, 4]
    for _ in range(2):
        with pytest.raises(SnapshotError, match="array 'lo' is damaged"):
            opened.array("lo")
        with pytest.raises(SnapshotError, match="array 'lo' is damaged"):
            opened.verify()


def test_verify_looks_again(path: Path) -> None:
    container.write(path, ARRAYS)
    opened = container.open(path)
    opened.array("start")
    with path.open("r+b") as stream:
        stream.seek(64)
        stream.write(b"\xff")
    with pytest.raises(SnapshotError, match="array 'start' is damaged"):
        opened.verify()


@pytest.mark.parametrize("unit", [64, 512, 4096])
def test_swapped_zeroed_and_torn_blocks_are_seen(path: Path, unit: int, cases: Callable[[int], int]) -> None:
    draw = np.random.default_rng(7)
    arrays = {f"a{i}": draw.integers(0, 2**63, 1024) for i in range(8)}
    container.write(path, arrays)
    sound = np.frombuffer(path.read_bytes(), np.uint8)
    container.write(path, {name: array + 1 for name, array in arrays.items()})
    other = np.frombuffer(path.read_bytes(), np.uint8)
    choice = random.Random(unit)
    for number in range(cases(60)):
        left, right = choice.sample(range(len(sound) // unit), 2)
        a, b = slice(left * unit, (left + 1) * unit), slice(right * unit, (right + 1) * unit)
        damaged = sound.copy()
        if number % 3 == 0:
            damaged[a], damaged[b] = sound[b], sound[a]
        elif number % 3 == 1:
            damaged[a] = 0
        else:  # a block of the file that was written after it
            damaged[a] = other[a]
        if (damaged == sound).all():
            continue
        path.write_bytes(damaged.tobytes())
        assert_refused(path)


def test_arrays_of_the_same_form_cannot_change_places(path: Path) -> None:
    container.write(path, {"a": np.arange(8), "b": np.arange(8)[::-1]})
    data = bytearray(path.read_bytes())
    data[64:128], data[128:192] = data[128:192], data[64:128]
    path.write_bytes(data)
    assert_refused(path, "array 'a' is damaged")


def test_any_damage_is_seen(path: Path, cases: Callable[[int], int]) -> None:
    container.write(path, ARRAYS, {"k": 1})
    sound = path.read_bytes()
    draw = random.Random(5)
    for _ in range(cases(1000)):
        damaged = bytearray(sound)
        for _ in range(draw.randint(1, 4)):
            first = draw.randrange(len(damaged))
            last = min(len(damaged), first + draw.choice([1, 2, 8, 64, 300]))
            kind = draw.randrange(4)
            if kind == 0:
                damaged[first:last] = draw.randbytes(last - first)
            elif kind == 1:
                damaged[first:last] = bytes(last - first)
            elif kind == 2:
                del damaged[first:last]
            else:
                damaged[first:first] = damaged[first:last]
            if not damaged:
                break
        if damaged != sound:
            path.write_bytes(damaged)
            assert_refused(path)


# -- not a container


def parquet(path: Path) -> bytes:
    pyarrow.parquet.write_table(pa.table({"id": [1]}), path)
    return path.read_bytes()


def npz(path: Path) -> bytes:
    with path.open("wb") as stream:
        np.savez(stream, a=np.arange(3))
    return path.read_bytes()


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n" + bytes(100),
        b"price < 20 AND genre = 'crime'\n" * 10,
        b"hi",
        b"\xf3TAMIS\n" + bytes(100),
        bytes(4096),
        b"\xff" * 64,
        parquet,
        npz,
    ],
    ids=["PNG", "text", "short", "other line ends", "zeros", "ones", "Parquet", "npz"],
)
@pytest.mark.parametrize("mmap", [True, False])
def test_foreign_files(path: Path, content: bytes | Callable[[Path], bytes], mmap: bool) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content(path))
    assert_refused(path, "is not a snapshot of Tamis, it begins with b'.*: name a file that Tamis has written", mmap)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    for name, says in [
        ("missing", "there is no such file"),
        ("missing/too", "there is no such file"),
        (".", "is a folder: name a file in it"),
        ("file", "is empty: restore it from a copy"),
        ("file/in", "cannot be read: Not a directory"),
        ("loop", "cannot be read: .*symbolic links"),
        ("pipe", "is a pipe or a device"),
        ("a\0b", "cannot be read: embedded null"),
        ("x" * 1000, "cannot be read: File name too long"),
    ]:
        with pytest.raises(SnapshotError, match=says):
            container.open(os.path.join(tmp_path, name))
    with pytest.raises(SnapshotError, match="'': there is no such file"):
        container.open("")


def test_a_file_that_may_not_be_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container.write(path, ARRAYS)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(file_bytes, "open", refuse, raising=False)
    assert_refused(path, "cannot be read: Permission denied")


def test_a_file_that_is_cut_off_between_two_looks(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container.write(path, {"a": np.arange(10_000)})
    read_header = layout.read_header

    def read_and_cut(*known: Any) -> layout.Header:
        header = read_header(*known)
        path.write_bytes(path.read_bytes()[:100])
        return header

    monkeypatch.setattr(file_bytes, "read_header", read_and_cut)
    sound = path.read_bytes()
    for mmap, says in [(True, "cannot be mapped into memory"), (False, "was cut off while it was read")]:
        path.write_bytes(sound)
        assert_refused(path, says, mmap)


def test_a_file_system_without_maps(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    container.write(path, ARRAYS)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(19, "No such device")

    monkeypatch.setattr(file_bytes, "memory_map", refuse)
    assert_refused(path, "cannot be mapped into memory, try mmap=False: .*No such device")
    read_all(path, mmap=False)


# -- versions


@pytest.mark.parametrize(("version", "advice"), [(3, "use a newer Tamis"), (0, "write the snapshot again")])
def test_another_version_is_named(path: Path, version: int, advice: str) -> None:
    container.write(path, ARRAYS)
    sound = path.read_bytes()
    header = layout.read_header(sound[: layout.HEADER_SIZE], len(sound), str(path))
    path.write_bytes(header.packed(version) + sound[layout.HEADER_SIZE :])
    assert_refused(path, f"has format version {version}, but this Tamis reads version 1: {advice}")


# -- checksums that are right, of a directory that is not


def forge(path: Path, text: bytes, body: bytes = b"") -> None:
    """Write a container with any directory."""
    directory = layout.padded(np.frombuffer(text, np.uint8))
    header = layout.Header(64 + len(body), len(text), checksum(directory))
    path.write_bytes(header.packed() + body + directory.tobytes())


def row(**changes: Any) -> list[Any]:
    sound = {"name": "a", "dtype": "<i8", "shape": [8], "checksum": "0" * 16}
    return list({**sound, **changes}.values())


@pytest.mark.parametrize(
    "rows",
    [
        [row(shape=[2**60])],
        [row(shape=[2**64])],
        [row(shape=[2**40, 2**40])],
        [row(shape=[2**62, 2**62, 0])],
        [row(shape=[-8])],
        [row(shape=[-1, -8])],
        [row(shape=[8.0])],
        [row(shape=[True, 8])],
        [row(shape=[8] + [1] * 64)],
        [row(shape=8)],
        [row(shape=None)],
        [row(shape=["8"])],
        [row(dtype="|O")],
        [row(dtype="O")],
        [row(dtype="|V64", shape=[1])],
        [row(dtype=["<i8"])],
        [row(dtype=8)],
        [row(name=5)],
        [row(name=None)],
        [row(checksum="x")],
        [row(checksum=5)],
        [row(shape=[7])[:3]],
        [],
        [row(shape=[4]), row(shape=[4])],
        [row(), row()],
        [row(shape=[16])],
        {"a": row()},
        None,
        5,
    ],
    ids=json.dumps,
)
def test_impossible_directories(path: Path, rows: Any) -> None:
    forge(path, json.dumps({"meta": {}, "arrays": rows}).encode(), body=bytes(64))
    assert_refused(path, "its directory is not valid")


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"5",
        b"{",
        b"\xff",
        b"[" * 100_000,
        b'{"meta": [], "arrays": []}',
        b'{"meta": {}}',
        b'{"arrays": []}',
        b'{"meta": ' + b"1" * 10_000 + b', "arrays": []}',
    ],
    ids=lambda text: re.sub(r"(.)\1{9,}", r"\1...", text.decode("latin-1")),
)
def test_directories_that_are_no_json(path: Path, text: bytes) -> None:
    forge(path, text)
    assert_refused(path, "its directory is not valid")


@pytest.mark.parametrize(
    ("start", "size"), [(2**63, 2), (64, 2**63), (2**64 - 64, 64), (0, 128), (32, 96), (64, 0), (128, 0)]
)
def test_impossible_places_of_the_directory(path: Path, start: int, size: int) -> None:
    path.write_bytes(layout.Header(start, size, 0).packed() + bytes(64))
    assert_refused(path)
