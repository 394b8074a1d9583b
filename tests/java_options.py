"""Options for every JVM that tests start, so that it starts sooner.

A JVM of Spark spends most of its first ten seconds on loading some 15,000 classes. Java can keep them in an archive that later
JVMs map into memory: a session with two queries then takes 10 s, not 18. The archive belongs to one Java and one Spark, takes
half a minute to make, and is kept in `.cache`. A JVM that cannot use it goes without.

``python -m tests.java_options FOLDER`` makes the archive.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pyspark

from tamis.spark.java import ensure_java

DRIVER = "SPARK_SUBMIT_OPTS"
"""The variable in which Spark looks for options of drivers."""
DAEMON = "SPARK_DAEMON_JAVA_OPTS"
"""The variable with options of masters and workers. Executors get the same options by a setting."""

# A simple collector and no optimising compiler: tests are short. No log: an archive that does not fit is no news.
_SHORT_LIFE = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Xlog:disable"
# Settings of Spark for small data. By default it cuts a shuffle into 200 tasks, starts a web server, and compiles Java for each
# query: with these settings the pipeline of test_jobs takes 18 processor seconds, not 26.
_SMALL_DATA = "-Dspark.sql.shuffle.partitions=2 -Dspark.ui.enabled=false -Dspark.sql.codegen.wholeStage=false"

_PROGRAM = """
import sys
from pathlib import Path
from tests.spark_session import start_spark
folder = Path(sys.argv[1])
spark = start_spark(folder / "spark")
spark.createDataFrame([(1, "a"), (2, "b")], "id int, name string").createOrReplaceTempView("given")
frame = spark.sql("SELECT name, count(*) AS many, collect_list(id) AS ids FROM given GROUP BY name ORDER BY name")
frame.mapInArrow(lambda batches: batches, frame.schema).write.parquet(str(folder / "parquet"))
spark.read.parquet(str(folder / "parquet")).join(spark.table("given"), "name").write.json(str(folder / "json"))
stream = spark.readStream.schema("id int, name string").json(str(folder / "json"))
query = stream.writeStream.foreachBatch(lambda batch, number: batch.collect()).trigger(availableNow=True)
query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
spark.stop()
"""


def use_archive(cache: Path, folder: Path) -> None:
    """Give all Sparks that this process and its children start the options, with an archive in `cache`; make one if need be."""
    home = ensure_java()
    java = subprocess.run([home / "bin" / "java", "-version"], capture_output=True, check=True).stderr
    stamp = hashlib.sha256(java + pyspark.__version__.encode() + str(home).encode()).hexdigest()[:16]
    archive = cache / f"spark-{stamp}.jsa"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            _make(archive, folder)
    os.environ[DAEMON] = f"{_SHORT_LIFE} -XX:SharedArchiveFile={archive}"
    os.environ[DRIVER] = f"{os.environ[DAEMON]} {_SMALL_DATA}"


def _make(archive: Path, folder: Path) -> None:
    part = archive.with_suffix(".part")
    environment = {**os.environ, DRIVER: f"{_SHORT_LIFE} -XX:ArchiveClassesAtExit={part}"}
    # The JVM ends after the Python that started it, and closes the pipe then.
    subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(folder)],
        cwd=Path(__file__).parent.parent, env=environment, check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    part.touch()  # A Java that makes no archive has an empty one.
    part.replace(archive)


if __name__ == "__main__":
    with TemporaryDirectory() as name:
        use_archive(Path(sys.argv[1]).resolve(), Path(name))
