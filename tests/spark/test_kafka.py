"""The example with Kafka, against a real broker. The jars come from Maven, hence only where they may be fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from tamis.spark.java import ensure_java
from tests.markdown import ROOT
from tests.spark.kafka import BROKER, CONNECTOR, kafka

FETCH = """
import sys
from tamis.spark import start_session
start_session("local[1]", {"spark.jars.packages": sys.argv[1], "spark.jars.ivy": sys.argv[2], "spark.ui.enabled": "false"}).stop()
"""

PRODUCE = """
import json, sys
from tamis.spark import start_session
brokers, jars, rows = sys.argv[1], sys.argv[2], json.loads(sys.stdin.read())
spark = start_session("local[1]", {"spark.jars": jars, "spark.ui.enabled": "false"})
frame = spark.createDataFrame(rows, "topic string, key string, value string")
frame.coalesce(1).write.format("kafka").option("kafka.bootstrap.servers", brokers).save()
"""

CONSUME = """
import json, sys
from tamis.spark import start_session
spark = start_session("local[1]", {"spark.jars": sys.argv[2], "spark.ui.enabled": "false"})
reader = spark.read.format("kafka").option("kafka.bootstrap.servers", sys.argv[1]).option("subscribe", "matches")
rows = reader.load().selectExpr("cast(value AS string) AS value").collect()
print("found", json.dumps([json.loads(row.value) for row in rows]))
"""


@pytest.mark.spark
@pytest.mark.skipif(not os.environ.get("TAMIS_KAFKA"), reason="needs jars from Maven: `make test-kafka` fetches them")
def test_from_topics_to_a_topic(tmp_path: Path) -> None:
    ensure_java()
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}

    def run(program: list[str], given: str = "") -> str:
        done = subprocess.run(
            program, cwd=ROOT, env=environment, input=given, capture_output=True, text=True, check=False, timeout=300
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout

    ivy = Path(os.environ["TAMIS_KAFKA"])
    packages = f"{CONNECTOR}:{pyspark.__version__},{BROKER}:3.9.1"
    run([sys.executable, "-c", FETCH, packages, str(ivy)])
    jars = sorted((ivy / "jars").glob("*.jar"))
    listed = ",".join(map(str, jars))
    with kafka(jars, tmp_path / "kafka") as brokers:
        changes: list[dict[str, str]] = [
            {"change": "added", "id": "ann", "expression": "price < 20"},
            {"change": "added", "id": "bob", "expression": "price < 2"},
            {"change": "added", "id": "bob", "expression": "genre = 'crime'"},
            {"change": "added", "id": "cid", "expression": "price > 0"},
            {"change": "removed", "id": "cid"},
        ]
        events: list[dict[str, object]] = [
            {"id": 1, "price": 12.5, "genre": "crime"},
            {"id": 2, "price": 40.0, "genre": "crime"},
            {"id": 3},
        ]
        records = [("subscriptions", change["id"], json.dumps(change)) for change in changes]
        records += [("events", str(event["id"]), json.dumps(event)) for event in events]
        run([sys.executable, "-c", PRODUCE, brokers, listed], json.dumps(records))
        submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]", "--jars", listed]
        example = [str(ROOT / "examples" / "kafka_matching.py"), brokers, str(tmp_path / "work"), "--once"]
        run([*submit, *example])
        # A second run has nothing new to read, and sends nothing again.
        run([*submit, *example])
        printed = run([sys.executable, "-c", CONSUME, brokers, listed])
    found = json.loads(printed.rpartition("found ")[2])
    assert sorted((match["id"], match["subscription"]) for match in found) == [(1, "ann"), (1, "bob"), (2, "bob")]
