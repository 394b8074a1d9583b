"""A real cluster of several processes gives the same answers, even if one of them is killed during a job."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.cluster import standalone_cluster
from tests.spark.frames import WORKLOADS
from tests.spark.packed import packed_environment

ROOT = Path(__file__).parent.parent.parent

PROGRAM = '''
"""Build and match on a cluster, and kill an executor while it has events."""
import functools, json, os, signal, sys, threading, time
from pathlib import Path
from pyspark.sql import SparkSession
import pyarrow as pa
import tamis, tamis.spark
from tamis.language.evaluate import evaluate
from tamis.workload import generate, preset
from tests import java_options
from tests.differential.attributes import entry_column, event_table
from tests.differential.comparison import random_batch
from tests.spark.frames import WORKLOADS, expected

folder, address, archive, shapes = Path(sys.argv[1]), *sys.argv[2:4], sys.argv[4:]
# Executors have no Tamis but that of the archive.
python = "./environment/bin/python"
os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=sys.executable)
spark = (
    SparkSession.builder.master(address).config("spark.archives", f"{archive}#environment")
    .config("spark.driver.memory", "1g").config("spark.executor.memory", "512m")
    .config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    .config("spark.sql.shuffle.partitions", "4").config("spark.local.dir", str(folder / "local"))
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.executor.extraJavaOptions", os.environ[java_options.DAEMON]).getOrCreate()
)

def located(batches):
    """Where executors have Tamis."""
    import tamis
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [tamis.__file__] * len(batch)})

places = sorted({row.file for row in spark.range(0, 8, 1, 8).mapInArrow(located, "file string").collect()})
workload = generate(preset("dense", subscriptions=2000))
subscriptions, events = workload.subscriptions(), workload.events(400, wide=True)
events = events.append_column("event", pa.array(range(400)))
report = tamis.spark.build(spark.createDataFrame(subscriptions), folder / "index", shards=3)
assert (report.subscriptions, report.rejected) == (2000, 0)
frame = spark.createDataFrame(events)
truth = expected(subscriptions, events.drop_columns(["event"]), list(range(400)))
found = tamis.spark.match(frame, folder / "index", "event").collect()
plain = {(row[0], row[1]) for row in found} == truth and len(found) == len(truth)
grouped = tamis.spark.match(frame, folder / "index", "event", memory=1).collect()
grouped = {(row[0], row[1]) for row in grouped} == truth and len(grouped) == len(truth)

# Every kind of value and operator. That the evaluator agrees with Spark's own SQL is tested without a cluster.
batch = random_batch(7, expressions=60, events=40)
own = {
    (row, number) for number, expression in enumerate(batch.expressions) for row, event in enumerate(batch.events)
    if evaluate(expression, event) is True
}
kinds = event_table(batch.events)
texts = pa.table({"id": pa.array(range(60)), "expression": list(map(str, batch.expressions))})
every = spark.createDataFrame(kinds.append_column("event id", pa.array(range(40)))).repartition(2)
tamis.spark.build(spark.createDataFrame(texts), folder / "kinds", shards=2)
sql = [tamis.spark.match(every, folder / "kinds", "event id", attributes=kinds.column_names)]
for as_map in (True, False):
    column = entry_column(batch.events, as_map=as_map)
    given = spark.createDataFrame(pa.table({"event id": pa.array(range(40)), "event": column})).repartition(2)
    sql.append(tamis.spark.match(given, folder / "kinds", "event id"))
sql = [len(own) > 100 and sorted((row[0], row[1]) for row in found.collect()) == sorted(own) for found in sql]

# An event that is wrong is left out and listed.
far = spark.range(20).selectExpr("id", "1 AS whole", "timestamp_micros(if(id = 7, 571000000000000000, 0)) AS at").repartition(2)
asked = [("w", "whole = 1"), ("v", "at < TIMESTAMP '1900-01-01 00:00:00'")]
one = spark.createDataFrame(asked, "id string, expression string")
tamis.spark.build(one, folder / "one")
wrong = [row.id for row in tamis.spark.wrong_events(far, folder / "one").collect()] == [7]
wrong = wrong and tamis.spark.match(far, folder / "one", skip_wrong=True).count() == 19

# Workloads in every form of events. That these answers are those of Spark's SQL is tested without a cluster.
rows, forms = pa.array(range(100)), {}
for shape in shapes:
    made = generate(preset(shape, subscriptions=60, **WORKLOADS[shape]))
    columns, lists = made.events(100, wide=True), made.events(100)
    own = sorted(expected(made.subscriptions(), columns, list(range(100))))
    index = folder / shape
    tamis.spark.build(spark.createDataFrame(made.subscriptions()), index, shards=2)
    listed = spark.createDataFrame(lists.append_column("event id", rows)).repartition(2)
    mapped = listed.selectExpr("`event id`", "map_from_entries(event) AS event")
    wide = spark.createDataFrame(columns.append_column("event id", rows)).repartition(2)
    for form, given in {"wide": wide, "map": mapped, "list": listed}.items():
        found = tamis.spark.match(given, index, "event id").collect()
        forms[f"{shape}, {form}"] = sorted((row[0], row[1]) for row in found) == own and len(own) > 0

def held(folder, batches):
    """Hold events back until one executor is dead."""
    import os, time
    for batch in batches:
        (folder / f"{os.getppid()}").touch()
        ends = time.monotonic() + 60
        while not folder.with_suffix(".go").exists() and time.monotonic() < ends:
            time.sleep(0.02)
        yield batch

killed = []

def kill(begun):
    while len(list(begun.iterdir())) < 2:
        time.sleep(0.02)
    # The parent of a Python worker is its daemon, whose parent is the executor.
    daemon = int(next(begun.iterdir()).name)
    executor = int(Path(f"/proc/{daemon}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{executor}/cmdline").read_bytes()
    os.kill(executor, signal.SIGKILL)
    killed.append(executor)
    begun.with_suffix(".go").touch()

def held_back(events, name):
    """Events of which none is matched until both executors have some, and one of them is killed."""
    begun = folder / name
    begun.mkdir()
    threading.Thread(target=kill, args=[begun], daemon=True).start()
    return events.repartition(8).mapInArrow(functools.partial(held, begun), events.schema)

after = tamis.spark.match(held_back(frame, "batch"), folder / "index", "event").collect()
survived = {(row[0], row[1]) for row in after} == truth and len(after) == len(truth)

frame.repartition(3).write.parquet(str(folder / "events"))
stream = spark.readStream.schema(frame.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "events"))
query = tamis.spark.match_stream(
    held_back(stream, "stream"), folder / "index", "event", checkpoint=folder / "checkpoint", output=folder / "matches",
    trigger={"availableNow": True},
)
query.awaitTermination()
written = spark.read.parquet(str(folder / "matches")).collect()
streamed = {(row[0], row[1]) for row in written} == truth and len(written) == len(truth)
print(json.dumps({
    "plain": plain, "grouped": grouped, "sql": sql, "wrong forms": [name for name, right in forms.items() if not right],
    "wrong events": wrong,
    "places": places, "killed": len(killed), "survived": survived, "streamed": streamed,
}))
'''


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.parametrize(
    "shapes", [["dense", "detection"], pytest.param([*WORKLOADS], marks=pytest.mark.long)], ids=len
)
def test_a_cluster_of_two_workers(tmp_path: Path, shapes: list[str]) -> None:
    """All executors run the Tamis of a packed environment."""
    archive = packed_environment(tmp_path)
    with standalone_cluster(tmp_path / "cluster") as address:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), address, str(archive), *shapes],
            cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    places = said.pop("places")
    assert places
    for place in places:
        assert re.fullmatch(rf"{tmp_path}/cluster/work-[01]/app-[^/]+/\d+/environment/lib/.*/tamis/__init__\.py", place)
    assert said == {
        "plain": True,
        "grouped": True,
        "sql": [True, True, True],
        "wrong events": True,
        "wrong forms": [],
        "killed": 2,
        "survived": True,
        "streamed": True,
    }
