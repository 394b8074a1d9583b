"""Stores and the local cache, without Spark: one writer wins, a file is fetched once and checked, full disks are mended."""

from __future__ import annotations

import errno
import logging
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import s3fs

from tamis.errors import ConflictError, IndexFolderError, OptionError
from tamis.spark import arrow_files, store
from tamis.spark.cache import Cache, CacheSettings
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest
from tamis.spark.seals import seal_of, seal_of_bytes
from tamis.spark.segment_files import map_arrow
from tamis.spark.store import open_store
from tests.spark.servers import free_port
from tests.spark.shelf import FOLDER, Shelf, use_shelf

DATA = bytes(range(256)) * 5000
SEAL = seal_of_bytes(DATA)
NAME = "segments/abc.tamis"


@pytest.fixture(autouse=True)
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(FOLDER, str(tmp_path / "shelf"))
    use_shelf()
    Shelf.fetched.clear()
    Shelf.clear_instance_cache()
    yield tmp_path / "shelf"
    Shelf.clear_instance_cache()


@pytest.fixture(params=["local", "s3://bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{tmp_path}/local" if request.param == "local" else f"{request.param}/index-{tmp_path.name}"


def manifest(version: int, form: str = "expression") -> Manifest:
    return Manifest(version, "2026-11-16T10:00:00+00:00", "string", form, "string", {}, ())


def test_files_of_a_store(place: str) -> None:
    opened = open_store(place)
    opened.prepare(["segments", "versions"])
    with opened.writing(NAME) as path:
        path.write_bytes(DATA)
    assert opened.has(NAME)
    assert opened.read(NAME) == DATA
    assert [each.name for each in opened.names("segments")] == [NAME]
    assert opened.names("segments")[0].changed <= time.time() + 60
    assert opened.names("nothing") == []
    opened.replace("versions/CURRENT", b"1")
    opened.replace("versions/CURRENT", b"2")
    assert opened.read("versions/CURRENT") == b"2"
    with pytest.raises(FileNotFoundError):
        opened.read("segments/other.tamis")
    opened.delete(NAME)
    opened.delete(NAME)
    assert not opened.has(NAME)
    assert pickle.loads(pickle.dumps(opened)).address == opened.address


def test_of_many_writers_one_publishes(place: str) -> None:
    IndexFolder(place).prepare()

    def publish(writer: int) -> bool:
        try:
            IndexFolder(place).publish(manifest(1, form=f"form {writer}"))
        except ConflictError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        won = list(pool.map(publish, range(6)))
    assert sum(won) == 1
    assert IndexFolder(place).manifest().form == f"form {won.index(True)}"
    assert {each.name for each in open_store(place).names("versions")} == {
        "versions/000000000001.json",
        "versions/CURRENT",
    }


def test_a_request_that_the_driver_repeated_is_no_conflict(shelf: Path) -> None:
    opened = open_store("s3://bucket/index")
    opened.create("versions/1", b"mine")
    opened.create("versions/1", b"mine")
    with pytest.raises(FileExistsError):
        opened.create("versions/1", b"other")


def test_a_store_that_ignores_conditions_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shelf, "ignores_conditions", True)
    with pytest.raises(IndexFolderError, match=r"s3://bucket/careless cannot be written: this store has replaced"):
        IndexFolder("s3://bucket/careless").prepare()


def test_drivers_that_are_missing_or_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    for address, driver, extra in (
        ("gs://b/i", "gcsfs", "gcs"),
        ("abfs://c@a.dfs.core.windows.net/i", "adlfs", "abfs"),
        ("hdfs://name:8020/i", "hdfs_native.fsspec", "hdfs"),
    ):
        monkeypatch.setitem(sys.modules, driver, None)
        with pytest.raises(IndexFolderError, match=rf"needs .*\. Hint: pip install 'tamis\[{extra}\]'"):
            open_store(address)
    with pytest.raises(IndexFolderError, match="memory:// addresses"):
        open_store("memory://index").prepare(["versions"])
    with pytest.raises(IndexFolderError, match="nothing://x cannot be opened"):
        open_store("nothing://x")


def test_seals(tmp_path: Path) -> None:
    for data in (b"", b"x", DATA, DATA[:-1], bytes(1 << 21)):
        (tmp_path / "file").write_bytes(data)
        assert seal_of(tmp_path / "file") == seal_of_bytes(data)
    assert len({seal_of_bytes(bytes(size)) for size in range(70)}) == 70  # Padding with zeros does not matter.


def cache(tmp_path: Path, **settings: Any) -> Cache:
    return Cache(CacheSettings(str(tmp_path / "cache"), **settings))


def put(name: str = NAME, data: bytes = DATA) -> store.Store:
    opened = open_store("s3://bucket/index")
    with opened.writing(name) as path:
        path.write_bytes(data)
    return opened


def fetch_slowly(folder: str, begun: Any, go_on: Any) -> None:
    """A process that fetches a file and waits in the middle of it."""
    use_shelf()

    def slow(files: Shelf, source: str, target: str, **options: Any) -> None:
        Path(target).write_bytes(DATA[:1000])
        begun.set()
        go_on.wait()
        Path(target).write_bytes(DATA)

    Shelf.get_file = slow  # type: ignore[assignment, method-assign]
    Cache(CacheSettings(folder)).fetched(open_store("s3://bucket/index"), NAME, SEAL)


@pytest.fixture
def slow_process(tmp_path: Path) -> Iterator[tuple[Any, Any]]:
    """A process that is in the middle of fetching a file, and what lets it go on."""
    put()
    context = multiprocessing.get_context("fork")
    begun, go_on = context.Event(), context.Event()
    process = context.Process(target=fetch_slowly, args=(str(tmp_path / "cache"), begun, go_on))
    process.start()
    assert begun.wait(60)
    yield process, go_on
    process.kill()
    process.join()


def test_a_file_is_fetched_once_and_others_wait_for_it(tmp_path: Path, slow_process: tuple[Any, Any]) -> None:
    process, go_on = slow_process
    with ThreadPoolExecutor(4) as pool:
        found = [pool.submit(cache(tmp_path).fetched, open_store("s3://bucket/index"), NAME, SEAL) for _ in range(4)]
        go_on.set()
        assert {each.result(60).read_bytes() for each in found} == {DATA}
    process.join(60)
    assert process.exitcode == 0
    assert Shelf.fetched == []
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["abc.tamis"]


def test_a_killed_fetch_is_begun_again(
    tmp_path: Path, slow_process: tuple[Any, Any], caplog: pytest.LogCaptureFixture
) -> None:
    process, _ = slow_process
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    with caplog.at_level(logging.WARNING, "tamis"):
        assert cache(tmp_path).fetched(open_store("s3://bucket/index"), NAME, SEAL).read_bytes() == DATA
    assert "a process was stopped while it fetched s3://bucket/index/segments/abc.tamis" in caplog.text
    assert [each.name for each in (tmp_path / "cache").iterdir()] == ["abc.tamis"]


def test_what_comes_damaged_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened = put()
    get, damaged = Shelf.get_file, [True, False, True, True]

    def sometimes(files: Shelf, source: str, target: str, **options: Any) -> None:
        get(files, source, target)
        if damaged.pop(0):
            with open(target, "r+b") as stream:
                stream.seek(77)
                stream.write(b"!")

    monkeypatch.setattr(Shelf, "get_file", sometimes)
    assert cache(tmp_path).fetched(opened, NAME, SEAL).read_bytes() == DATA
    assert "came damaged" in caplog.text
    (tmp_path / "cache" / "abc.tamis").unlink()
    with pytest.raises(IndexFolderError, match=r"abc\.tamis is damaged: its size and checksum are .* Hint: build"):
        cache(tmp_path).fetched(opened, NAME, SEAL)
    assert list((tmp_path / "cache").iterdir()) == []


def test_what_a_cache_counts(tmp_path: Path) -> None:
    stored = open_store("s3://bucket/index")
    for number in range(2):
        with stored.writing(f"segments/{number}") as path:
            path.write_bytes(DATA)
    first, second = (Cache(CacheSettings(str(tmp_path / "cache"))) for _ in range(2))
    first.fetched(stored, "segments/0", SEAL)
    for name in ("segments/0", "segments/1", "segments/1"):
        second.fetched(stored, name, SEAL)
    assert (first.fetched_files, first.fetched_bytes, first.hits) == (1, len(DATA), 0)
    assert (second.fetched_files, second.fetched_bytes, second.hits) == (1, len(DATA), 2)


def test_s3fs_fetches_what_arrow_cannot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody answers at this address. What is not S3 is never Arrow's."""
    caplog.set_level(logging.INFO, "tamis")
    files = s3fs.S3FileSystem(key="key", secret="secret", endpoint_url=f"http://127.0.0.1:{free_port()}")
    assert not arrow_files.copied(files, "bucket/name", tmp_path / "copy")
    assert [
        record.message.partition(": ")[0].endswith("Arrow's own reader has failed") for record in caplog.records
    ] == [True]
    assert not arrow_files.copied(files, "bucket/name", tmp_path / "copy")  # It is not asked again.
    assert len(caplog.records) == 1
    proxied = s3fs.S3FileSystem(key="key", secret="secret", config_kwargs={"proxies": {"http": "http://127.0.0.1:1"}})
    assert not arrow_files.copied(proxied, "bucket/name", tmp_path / "copy")
    assert not arrow_files.copied(Shelf(), "bucket/name", tmp_path / "copy")
    assert len(caplog.records) == 1


def test_a_damaged_file_of_the_cache_is_fetched_again(tmp_path: Path) -> None:
    put()
    folder = IndexFolder("s3://bucket/index", CacheSettings(str(tmp_path / "cache")))
    path = folder.local(NAME, SEAL)
    path.write_bytes(DATA[:-1])  # The size shows it.
    assert folder.local(NAME, SEAL).read_bytes() == DATA
    path.write_bytes(b"!" + DATA[1:])

    def opener(there: Path) -> bytes:  # What opens a segment checks its bytes.
        if there.read_bytes() != DATA:
            raise IndexFolderError("it is damaged")
        return there.read_bytes()

    assert folder.opened(NAME, SEAL, opener) == DATA
    assert len(Shelf.fetched) == 3

    def evicted(there: Path) -> pa.Table:  # Another process makes room before this one opens the file.
        if len(Shelf.fetched) == 3:
            there.unlink()
        map_arrow(there)

    with pytest.raises(IndexFolderError, match="is damaged"):  # These bytes are no table.
        folder.opened(NAME, SEAL, evicted)
    assert len(Shelf.fetched) == 4
    with pytest.raises(IndexFolderError, match=r"s3://bucket/index/segments/none\.arrow does not exist"):
        folder.local("segments/none.arrow", None)


def test_files_that_nobody_uses_make_room(tmp_path: Path) -> None:
    names = [f"segments/{letter}.tamis" for letter in "abcd"]
    for name in names:
        opened = put(name)
    small = cache(tmp_path, bytes=3 * len(DATA))

    def there() -> set[str]:
        return {each.stem for each in (tmp_path / "cache").iterdir()}

    for place, name in enumerate(names[:3]):
        os.utime(small.fetched(opened, name, SEAL), (time.time() - 100 + place,) * 2)
    small.fetched(opened, names[0], SEAL)  # Used again: the next one is the longest unused now.
    small.fetched(opened, names[3], SEAL)
    assert there() == {"a", "c", "d"}
    for name in ("c", "d"):
        os.utime(tmp_path / "cache" / f"{name}.tamis", (1, 1))
    cache(tmp_path, age=3600.0).fetched(opened, names[1], SEAL)
    assert there() == {"a", "b"}


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    opened = put()
    put("segments/other.tamis")
    cache(tmp_path).fetched(opened, "segments/other.tamis", SEAL)
    get = Shelf.get_file
    room = [False, True]

    def full(files: Shelf, source: str, target: str, **options: Any) -> None:
        if not room.pop(0):
            Path(target).write_bytes(DATA[:1000])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        get(files, source, target)

    monkeypatch.setattr(Shelf, "get_file", full)
    assert cache(tmp_path).fetched(opened, NAME, SEAL).read_bytes() == DATA
    assert "is full: all other fetched files were deleted" in caplog.text
    room[:] = [False, False]
    put("segments/third.tamis")
    with pytest.raises(
        IndexFolderError, match=r"segments/third\.tamis does not fit into .* Hint: set spark\.tamis\.cache"
    ):
        cache(tmp_path).fetched(opened, "segments/third.tamis", SEAL)
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "size"), [("7", 7), ("1k", 1024), ("1.5 G", 3 << 29), ("2t", 2 << 40), ("2h", None), ("", None)]
)
def test_settings(text: str, size: int | None) -> None:
    def setting(name: str) -> str | None:
        return text if name.endswith("bytes") else "2d" if name.endswith("age") else None

    read: Callable[[], CacheSettings] = lambda: CacheSettings.of(setting)  # noqa: E731
    if size is None:
        with pytest.raises(OptionError, match=r"the setting spark\.tamis\.cache\.bytes must be a number with a unit"):
            read()
    else:
        assert read() == CacheSettings(None, size, 2 * 86400.0)
