"""Everything with an index in a store: on S3 and HDFS with `make test-stores`, on a shelf otherwise, see `stores`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tamis
import tamis.spark
from tamis.spark import arrow_files
from tamis.spark.cache import FOLDER
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import Manifest
from tamis.spark.matching import FOLDER as BUILT_ONCE
from tamis.spark.store import RemoteStore, open_store
from tamis.spark.stream_output import StoredBatches
from tests.markdown import ROOT
from tests.spark.cluster import standalone_cluster
from tests.spark.frames import Pairs, frame, pairs
from tests.spark.jars import run
from tests.spark.stores import JARS, STORES, running_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# First of all fixtures: what Spark starts must know the server.
pytestmark = pytest.mark.usefixtures("store")

SCHEMA = "id string, expression string, weight double, tag string"
CHANGES = f"change string, {SCHEMA}"


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a store."""
    with running_store(request.param, tmp_path_factory) as address:
        yield address


@pytest.fixture
def place(store: str, spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """An address for one test. Files that it fetches are kept in a folder of its own."""
    spark.conf.set(FOLDER, str(tmp_path / "cache"))
    yield f"{store}/{tmp_path.name}"
    spark.conf.unset(FOLDER)


@pytest.fixture
def index(place: str, spark: SparkSession) -> str:
    """An index of ten subscriptions, s0: a = 0 and so on, and one that is wrong."""
    rows: list[dict[str, Any]] = [
        {"id": f"s{number}", "expression": f"a = {number}", "weight": float(number), "tag": f"t{number}"}
        for number in range(10)
    ]
    events = spark.range(50).withColumnRenamed("id", "a")
    given = frame(spark, [*rows, {"id": "wrong", "expression": "a ="}], SCHEMA)
    report = tamis.spark.build(given, f"{place}/index", shards=2, events=events)
    assert (report.version, report.subscriptions, report.rejected) == (1, 10, 1)
    assert [row.id for row in report.rejections.collect()] == ["wrong"]
    return f"{place}/index"


def change(spark: SparkSession, index: str, rows: list[dict[str, Any]]) -> tamis.spark.UpdateReport:
    return tamis.spark.update(index, frame(spark, rows, CHANGES))


def found(spark: SparkSession, index: str | DataFrame, **options: Any) -> Pairs:
    events = spark.createDataFrame([(number, number) for number in range(13)], "id int, a int")
    return pairs(tamis.spark.match(events, index, **options).collect())


def test_an_index_in_a_store(spark: SparkSession, index: str, tmp_path: Path) -> None:
    truth = {(number, f"s{number}") for number in range(10)}
    assert found(spark, index) == truth
    assert found(spark, index, memory=1) == truth
    report = change(
        spark,
        index,
        [
            {"change": "added", "id": "new", "expression": "a = 11"},
            {"change": "added", "id": "s1", "expression": "a = 12"},
            {"change": "removed", "id": "s2"},
            {"change": "removed", "id": "nobody"},
        ],
    )
    assert report[:5] == (2, 1, 1, 1, 1)
    assert found(spark, index) == truth - {(1, "s1"), (2, "s2")} | {(11, "new"), (12, "s1")}
    assert found(spark, index, version=1) == truth
    there = {row.id: row.tag for row in tamis.spark.subscriptions(spark, index).collect()}
    assert there == {"new": None, "s1": None} | {f"s{number}": f"t{number}" for number in (0, *range(3, 10))}
    assert [row.id for row in tamis.spark.rejections(spark, index).collect()] == ["nobody"]
    events = spark.createDataFrame([(1, 5)], "id int, a int")
    assert tamis.spark.wrong_events(events, index).collect() == []
    with pytest.raises(tamis.IndexFolderError, match=r"there is no index at .*nothing"):
        found(spark, f"{index}/nothing")
    fetched = {each.suffix for each in (tmp_path / "cache").iterdir()}
    assert fetched == {".tamis", ".arrow"}


def test_of_concurrent_exclusive_creates_one_succeeds(store: str, tmp_path: Path) -> None:
    """The store itself decides, without anything of ours around it."""
    place, writers = open_store(f"{store}/{tmp_path.name}"), 8
    place.prepare(["versions"])
    together = threading.Barrier(writers)

    def create(writer: int) -> list[bool]:
        won = []
        for number in range(40):
            together.wait(300)
            try:
                place.create(f"versions/{number}", str(writer).encode())
            except FileExistsError:
                won.append(False)
            else:
                won.append(True)
        return won

    with ThreadPoolExecutor(writers) as pool:
        won = list(pool.map(create, range(writers)))
    for number, winners in enumerate(zip(*won, strict=True)):
        assert sum(winners) == 1
        assert place.read(f"versions/{number}") == str(winners.index(True)).encode()


@pytest.mark.skipif(JARS is None, reason="only a real server is read by Arrow")
def test_arrow_fetches_files_of_s3(store: str, tmp_path: Path) -> None:
    place = RemoteStore(f"{store}/{tmp_path.name}")
    data = os.urandom(20_000_000)
    with place.writing("segments/one") as path:
        path.write_bytes(data)
    files, root = place.files()
    assert arrow_files.copied(files, f"{root}/segments/one", tmp_path / "copy") == store.startswith("s3:")
    place.fetch("segments/one", tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == data
    with pytest.raises(FileNotFoundError):
        place.fetch("segments/two", tmp_path / "fetched")


def test_of_two_changes_at_the_same_time_one_is_refused(
    spark: SparkSession, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish, both = IndexFolder.publish, threading.Barrier(2)

    def together(folder: IndexFolder, manifest: Manifest) -> Manifest:
        both.wait(300)
        return publish(folder, manifest)

    def add(name: str) -> str | None:
        try:
            change(spark, index, [{"change": "added", "id": name, "expression": "a = 11"}])
        except tamis.ConflictError:
            return None
        return name

    monkeypatch.setattr(IndexFolder, "publish", together)
    with ThreadPoolExecutor(2) as pool:
        added = set(pool.map(add, ["one", "two"]))
    (winner,) = added - {None}
    assert len(added) == 2
    assert {each for event, each in found(spark, index) if event == 11} == {winner}
    assert IndexFolder(index).manifest().version == 2


def test_garbage_of_a_store(spark: SparkSession, index: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(folder: IndexFolder, manifest: Manifest) -> Manifest:
        raise KeyboardInterrupt

    row = {"change": "added", "id": "new", "expression": "a = 11"}
    with monkeypatch.context() as stop:
        stop.setattr(IndexFolder, "publish", stopped)
        with pytest.raises(KeyboardInterrupt):
            change(spark, index, [row])
    change(spark, index, [row, *({"change": "removed", "id": f"s{number}"} for number in range(5))])
    folder = IndexFolder(index)
    assert tamis.spark.collect_garbage(index) == 0  # a day has not passed
    assert tamis.spark.collect_garbage(index, retain=timedelta(seconds=-5)) > 0
    there = {each.name for part in ("segments", "removed", "samples", "rejected") for each in folder.store.names(part)}
    assert there == folder.manifest().files
    assert folder.versions() == [2]
    assert found(spark, index) == {(number, f"s{number}") for number in range(5, 10)} | {(11, "new")}
    with pytest.raises(tamis.IndexFolderError, match=r"has no version 1; it has: 2\. Hint: old versions"):
        found(spark, index, version=1)


PROGRAM = """
import sys
from pathlib import Path
import tamis.spark
from tests.spark_session import start_spark
from tests.spark.test_stores import match_files
place, checkpoint, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
spark = start_spark(folder / "spark")
spark.conf.set("spark.tamis.cache.folder", str(folder / "cache"))
match_files(spark, place, checkpoint, folder)
"""


def match_files(spark: SparkSession, place: str, checkpoint: str, folder: Path, **options: Any) -> None:
    """Match all files in a folder, each as a batch."""
    reader = spark.readStream.schema("id long, a int, far long").option("maxFilesPerTrigger", 1)
    tamis.spark.match_stream(
        reader.json(str(folder / "events")).selectExpr("id", "a", "timestamp_micros(far) AS at"),
        f"{place}/index",
        checkpoint=checkpoint,
        output=f"{place}/matches",
        trigger={"availableNow": True},
        **options,
    ).awaitTermination()


def put(folder: Path, name: str, events: list[dict[str, Any]]) -> None:
    (folder / "events").mkdir(exist_ok=True)
    part = folder / f"{name}.part"
    part.write_text("".join(json.dumps(event) + "\n" for event in events))
    # Spark reads files in the order of their times.
    seconds = 1_700_000_000 + len(list((folder / "events").iterdir()))
    os.utime(part, (seconds, seconds))
    part.rename(folder / "events" / f"{name}.json")


def checkpoint_for(place: str, tmp_path: Path) -> str:
    """Spark writes checkpoints to HDFS by itself. For S3 it would need a connector."""
    return f"{place}/checkpoint" if place.startswith("hdfs://") else str(tmp_path / "checkpoint")


def streamed(spark: SparkSession, place: str) -> Pairs:
    return pairs(tamis.spark.read_output(spark, f"{place}/matches").select("id", "subscription").collect())


def test_a_stream(spark: SparkSession, place: str, index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = checkpoint_for(place, tmp_path)
    change(spark, index, [{"change": "added", "id": "at", "expression": "at < TIMESTAMP '1900-01-01 00:00:00'"}])
    put(tmp_path, "one", [{"id": 1, "a": 3}, {"id": 2, "far": 571000000000000000}, {"id": 3, "a": 99}])
    match_files(spark, place, checkpoint, tmp_path, carry=["tag"], wrong=f"{place}/wrong")
    change(spark, index, [{"change": "removed", "id": "s4"}])
    put(tmp_path, "two", [{"id": 4, "a": 4}])
    put(tmp_path, "three", [{"id": 5, "a": 5}])
    match_files(spark, place, checkpoint, tmp_path, carry=["tag"], wrong=f"{place}/wrong")
    found = tamis.spark.read_output(spark, f"{place}/matches")
    assert found.dtypes == [("id", "bigint"), ("subscription", "string"), ("tag", "string"), ("batch", "int")]
    rows = [(1, "s3", "t3", 0), (5, "s5", "t5", 2)]
    assert sorted(map(tuple, found.collect())) == rows
    wrong = tamis.spark.read_output(spark, f"{place}/wrong").collect()
    reason = "attribute 'at': a timestamp is not within the years 1 to 9999"
    assert [tuple(row) for row in wrong] == [(2, reason, 0)]
    records = tamis.spark.batch_records(checkpoint)
    assert [record.version for record in records] == [2, 3, 3]
    done = [record.counters or {} for record in records]
    assert [(each["events"], each["matches"]) for each in done] == [(2, 1), (1, 0), (1, 1)]
    assert done[0]["files fetched"] > 0
    assert done[0]["bytes fetched"] > 1000
    assert done[2]["files fetched"] == 0
    assert min(each["cache hits"] for each in done) >= 0
    assert min(each["seconds matching"] for each in done) > 0
    # A task of a batch that was never finished has left a file. And the store lists new files late.
    output = open_store(f"{place}/matches")
    with output.writing("batch=3/left.parquet") as path:
        path.write_bytes(b"PAR1")
    monkeypatch.setattr(type(output), "names", lambda store, folder: [])
    assert sorted(map(tuple, found.collect())) == rows
    assert sorted(map(tuple, tamis.spark.read_output(spark, f"{place}/matches").collect())) == rows
    # A finished batch is not written again, and not taken for that of another query.
    stored = StoredBatches("output", output, "another")
    with pytest.raises(tamis.OptionError, match="was written by a query with another checkpoint"):
        stored.has(1)
    own = StoredBatches("output", output, json.loads(output.read("_batches/000000000001.json"))["query"])
    own(spark.createDataFrame([(7, "s7", "t7")], "id long, subscription string, tag string"), 1)
    assert sorted(map(tuple, tamis.spark.read_output(spark, f"{place}/matches").collect())) == rows


@pytest.mark.skipif(JARS is None, reason="`make test-stores` kills processes beside real servers")
def test_a_killed_stream(spark: SparkSession, place: str, index: str, tmp_path: Path) -> None:
    checkpoint = checkpoint_for(place, tmp_path)
    for number in range(8):
        put(tmp_path, f"part-{number}", [{"id": 10 * number + value, "a": value} for value in range(10)])
    output = open_store(f"{place}/matches")
    started = [sys.executable, "-c", PROGRAM, place, checkpoint, str(tmp_path)]
    # Kill Python and the JVM, which notes progress, at the same time.
    with subprocess.Popen(
        started, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as first:
        while not output.has("_batches/000000000002.json"):
            assert first.poll() is None, first.communicate()[1]
            time.sleep(0.01)
        os.killpg(first.pid, signal.SIGKILL)
    assert not output.has("_batches/000000000007.json")
    change(spark, index, [{"change": "removed", "id": "s9"}])
    match_files(spark, place, checkpoint, tmp_path)
    records = {record.batch: record.version for record in tamis.spark.batch_records(checkpoint)}
    assert set(records.values()) == {1, 2}
    found = tamis.spark.read_output(spark, f"{place}/matches").collect()
    version_of = {row.id // 10: records[row.batch] for row in found}
    everything = {(10 * part + value, f"s{value}") for part in range(8) for value in range(10)}
    later = {(10 * part + 9, "s9") for part in range(8) if version_of[part] == 2}
    assert streamed(spark, place) == everything - later


ELSEWHERE = """
import json, os, sys
from pathlib import Path
from pyspark.sql import SparkSession
import tamis.spark
from tamis.spark.java import ensure_java
master, place, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
ensure_java()
os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
settings = {
    "spark.driver.memory": "1g", "spark.executor.memory": "512m", "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4", "spark.local.dir": str(folder / "local"), "spark.driver.host": "127.0.0.1",
    "spark.tamis.cache.folder": str(folder / "cache"),
}
builder = SparkSession.builder.remote("local[2]") if master == "connect" else SparkSession.builder.master(master)
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = [(f"s{number}", f"a = {number}") for number in range(50)]
tamis.spark.build(spark.createDataFrame(rows, "id string, expression string"), f"{place}/far", shards=4)
events = spark.range(60).selectExpr("id", "int(id) AS a").repartition(8)
events.write.json(str(folder / "far-events"))
found = tamis.spark.match(events, f"{place}/far")
change = spark.createDataFrame([("removed", "s7")], "change string, id string")
said = {
    "type": type(spark).__module__,
    "matched": sorted(row.subscription for row in found.collect()) == sorted(row[0] for row in rows),
    "version": tamis.spark.update(f"{place}/far", change).version,
}
stream = spark.readStream.schema("id long, a int").json(str(folder / "far-events"))
tamis.spark.match_stream(
    stream, f"{place}/far", checkpoint=str(folder / "far-checkpoint"), output=f"{place}/far-matches",
    trigger={"availableNow": True},
).awaitTermination()
written = tamis.spark.read_output(spark, f"{place}/far-matches").collect()
said["streamed"] = sorted(row.id for row in written) == [number for number in range(50) if number != 7]
print("said", json.dumps(said))
"""


@pytest.mark.skipif(JARS is None, reason="`make test-stores` starts a cluster and Spark Connect beside real servers")
@pytest.mark.parametrize("kind", ["cluster", "connect"])
def test_other_sessions(place: str, tmp_path: Path, kind: str) -> None:
    with ExitStack() as stack:
        master = "connect" if kind == "connect" else stack.enter_context(standalone_cluster(tmp_path / "cluster"))
        said = run([sys.executable, "-c", ELSEWHERE, master, place, str(tmp_path)])
    module = "pyspark.sql.connect.session" if kind == "connect" else "pyspark.sql.session"
    right = {"type": module, "matched": True, "version": 2, "streamed": True}
    assert json.loads(said.rpartition("said ")[2]) == right
    # Both executors are on this host, so each file was fetched once. Of four segments, and a list of removed rows.
    assert sorted(each.suffix for each in (tmp_path / "cache").iterdir()) == [".arrow"] * 5 + [".tamis"] * 4


def test_an_index_for_one_call(spark: SparkSession, place: str) -> None:
    spark.conf.set(BUILT_ONCE, f"{place}/once")
    try:
        given = spark.createDataFrame([("s", "a = 3")], "id string, expression string")
        assert found(spark, given) == {(3, "s")}
    finally:
        spark.conf.unset(BUILT_ONCE)
