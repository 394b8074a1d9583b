"""Building and matching with Spark Connect, where the session and Spark are in different processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.markdown import ROOT
from tests.spark.packed import packed_environment

PROGRAM = """
import json, os, queue, sys, traceback
from pathlib import Path
from tamis.spark import ensure_java
ensure_java()
os.environ.update(SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
from pyspark.sql import SparkSession
import tamis.spark
from tamis.workload import preset
folder = Path(sys.argv[1])
spark = (
    SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").config("spark.ui.enabled", "false")
    .getOrCreate()
)
# Executors have the Tamis of an artifact.
spark.addArtifacts(f"{sys.argv[2]}#environment", archive=True)
spark.conf.set("spark.sql.execution.pyspark.python", "./environment/bin/python")
def located(batches):
    import pyarrow as pa
    import tamis
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"file": [tamis.__file__] * len(batch)})

rows = [(f"s{number}", f"a = {number}", float(number), f"t{number}", "2099-01-01") for number in range(10)]
rows[0] = ("s0", "a = 0 OR at < TIMESTAMP '1900-01-01 00:00:00'", *rows[0][2:])
rows += [("all", "a > 0", 3.5, "t", "2026-01-02"), ("wrong", "a =", 0.0, None, None)]
frame = spark.createDataFrame(rows, "id string, expression string, weight double, tag string, valid_until string")
frame = frame.withColumn("valid_until", frame.valid_until.cast("timestamp"))
report = tamis.spark.build(frame, folder / "index", shards=2, events=spark.range(50).withColumnRenamed("id", "a"))
events = spark.createDataFrame([(1, 3), (2, 4), (3, 99)], "id int, a int")
timed = events.selectExpr("id", "string(a) AS shop", "date'2026-01-01' AS day", "map('a', a) AS event")
best = tamis.spark.match(timed, folder / "index", keep=["shop"], carry=["tag"], k=1, time="day")

def pairs(found):
    return sorted([row[0], row[1]] for row in found.collect())

said = {
    "places": [row.file for row in spark.range(1).mapInArrow(located, "file string").collect()],
    "type": type(frame).__module__,
    "report": [report.subscriptions, report.rejected, [row.id for row in report.rejections.collect()]],
    "pairs": pairs(tamis.spark.match(events, folder / "index")),
    "grouped": pairs(tamis.spark.match(events, folder / "index", k=1, memory=1)),
    "counts": pairs(tamis.spark.match(events, folder / "index", counts=True)),
    "columns": sorted(map(list, best.collect())),
    "frame": pairs(tamis.spark.match(events, frame.where("id <> 'wrong'"))),
}
change = spark.createDataFrame([("removed", "s3")], "change string, id string")
said["version"] = tamis.spark.update(folder / "index", change).version
(folder / "events").mkdir()
(folder / "events" / "one.json").write_text('{"id": 1, "a": 3}\\n{"id": 2, "a": 4}\\n{"id": 5, "far": 571000000000000000}\\n')
stream = spark.readStream.schema("id int, a int, far long").json(str(folder / "events"))
def started(begin):
    # Spark gives a Python worker 10 seconds to connect back, whatever is set. A busy machine needs several tries.
    for left in (2, 1, 0):
        try:
            return begin()
        except Exception as error:
            if left == 0 or "waiting for the Python worker to connect back" not in str(error):
                raise

def failed(*error):
    # Otherwise the thread of the listener would keep the process.
    traceback.print_exception(*error)
    os._exit(1)

sys.excepthook = failed
progress = queue.Queue()
class Listener(tamis.spark.BatchListener):
    def onQueryTerminated(self, event):
        progress.put("terminated")

listener = Listener(folder / "checkpoint", progress.put)
spark.streams.addListener(listener)
query = started(lambda: tamis.spark.match_stream(
    stream.selectExpr("id", "a", "timestamp_micros(far) AS at"), folder / "index", checkpoint=folder / "checkpoint",
    output=folder / "matches", wrong=folder / "wrong", trigger={"availableNow": True}, keep=["a"], carry=["tag"], k=1,
))
query.awaitTermination()
told = progress.get(timeout=60)
# PySpark would wait for ever if an event came while it removes the listener.
assert progress.get(timeout=60) == "terminated"
spark.streams.removeListener(listener)
wrong = spark.read.parquet(str(folder / "wrong"))
said["wrong"] = sorted([row.id, row.reason, row.batch] for row in wrong.collect())
said["stream"] = pairs(spark.read.parquet(str(folder / "matches")).select("id", "subscription"))
said["stream columns"] = spark.read.parquet(str(folder / "matches")).columns
(record,) = tamis.spark.batch_records(folder / "checkpoint")
said["batch"] = [record.batch, record.version, *(record.counters[name] for name in ("events", "matches", "cache hits"))]
said["progress"] = [told.batch, told.version, told.counters == record.counters, 0 < told.phases["addBatch"] <= told.seconds]
said["measured"] = [record.counters[name] > 0 for name in ("candidates", "seconds matching")]
(folder / "changes").mkdir()
(folder / "changes" / "one.json").write_text('{"change": "added", "id": "new", "expression": "a = 99"}\\n')
changes = spark.readStream.schema("change string, id string, expression string").json(str(folder / "changes"))
started(lambda: tamis.spark.update_stream(
    changes, folder / "index", checkpoint=folder / "changes-checkpoint", trigger={"availableNow": True}
)).awaitTermination()
said["changed"] = pairs(tamis.spark.match(events.where("id = 3"), folder / "index"))
# Spark does not find the artifact where it reads a source that is written in Python.
spark.conf.unset("spark.sql.execution.pyspark.python")
with tamis.open(folder / "shop") as broker:
    broker.subscribe("ann", "a", "a > 3")
    tamis.spark.build(tamis.spark.broker_subscriptions(spark, folder / "shop"), folder / "shop-index")
    broker.subscribe("ann", "a", "a > 2")
    started(lambda: tamis.spark.update_stream(
        tamis.spark.broker_changes(spark, folder / "shop"), folder / "shop-index", checkpoint=folder / "shop-changes",
        order="number", trigger={"availableNow": True},
    )).awaitTermination()

def to_shop(broker):
    return tamis.spark.match_stream(
        stream.select("id", "a"), folder / "shop-index", checkpoint=folder / "shop-matches", trigger={"availableNow": True},
        deliver=tamis.spark.to_broker(broker),
    )

try:
    to_shop(broker)
except tamis.OptionError as error:
    said["refused"] = str(error).partition(".")[0]
started(lambda: to_shop(folder / "shop")).awaitTermination()
with tamis.open(folder / "shop", read_only=True) as broker:
    said["told"] = [[note.event, note.subscriptions] for note in broker.notifications("ann")]
why = tamis.spark.explain(events.selectExpr("id", "'new' AS subscription"), events, folder / "index")
said["explained"] = sorted([row.id, row.matched, row.explanation.split()[0]] for row in why.collect())
said["there"] = tamis.spark.subscriptions(spark, folder / "index").count()
said["statistics"] = sorted([row.attribute, row.events] for row in tamis.spark.statistics(events).collect())
said["generated"] = tamis.spark.generate_subscriptions(spark, preset("dense", subscriptions=30)).count()
(folder / "rules.csv").write_text("id,expression\\nr,a = 4\\n")
summary = tamis.spark.run_pipeline(spark, folder / "rules.csv", folder / "events" / "one.json", folder / "out")
said["pipeline"] = summary.figures["matches"]
print("said", json.dumps(said))
"""


@pytest.mark.spark
@pytest.mark.own_spark
def test_spark_connect(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path), str(packed_environment(tmp_path))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.rpartition("said ")[2])
    (place,) = said.pop("places")
    assert re.search(r"/environment/lib/.*/tamis/__init__\.py$", place)
    assert not place.startswith(str(ROOT))
    assert said == {
        "type": "pyspark.sql.connect.dataframe",
        "report": [11, 1, ["wrong"]],
        "pairs": [[1, "s3"], [2, "s4"]],
        "grouped": [[1, "s3"], [2, "s4"]],
        "counts": [["s3", 1], ["s4", 1]],
        "columns": [[1, "all", 1, "3", "t"], [2, "s4", 1, "4", "t4"], [3, "all", 1, "99", "t"]],
        "frame": [[1, "s3"], [2, "s4"]],
        "version": 2,
        "stream": [[2, "s4"]],
        "stream columns": ["id", "subscription", "rank", "a", "tag", "batch"],
        "batch": [0, 2, 2, 1, 0],
        "progress": [0, 2, True, True],
        "measured": [True, True],
        "wrong": [[5, "attribute 'at': a timestamp is not within the years 1 to 9999", 0]],
        "changed": [[3, "new"]],
        "refused": "with Spark Connect, another process delivers the matches",
        "told": [[{"id": 1, "a": 3}, ["a"]], [{"id": 2, "a": 4}, ["a"]]],
        "explained": [[1, False, "FALSE"], [2, False, "FALSE"], [3, True, "TRUE"]],
        "there": 11,
        "statistics": [["a", 3], ["id", 3]],
        "generated": 30,
        "pipeline": 1,
    }
