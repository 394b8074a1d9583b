"""The example with Kafka and a real broker. The jars come from Maven, so the test runs only where downloads are allowed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tamis.spark.java import ensure_java
from tests.markdown import ROOT
from tests.spark.jars import SUBMIT, fetched, run
from tests.spark.kafka import BROKER, CONNECTOR, kafka

FOLDER = os.environ.get("TAMIS_KAFKA")
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
import tamis.spark
brokers, jars, index = sys.argv[1:]
spark = tamis.spark.start_session("local[1]", {"spark.jars": jars, "spark.ui.enabled": "false"})
found = {}
for topic in ("matches", "rejected"):
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
    rows = reader.load().selectExpr("cast(value AS string) AS value").collect()
    found[topic] = [json.loads(row.value) for row in rows]
found["subscriptions"] = [row.id for row in tamis.spark.subscriptions(spark, index).collect()]
found["refused"] = [row.id for row in tamis.spark.rejections(spark, index).collect()]
print("found", json.dumps(found))
"""


CHANGES: list[dict[str, Any]] = [
    {"change": "added", "id": "ann", "expression": "price < 20"},
    {"change": "added", "id": "bob", "expression": "price < 2"},
    {"change": "added", "id": "bob", "expression": "genre = 'crime'"},
    {"change": "added", "id": "cid", "expression": "price > 0"},
    {"change": "removed", "id": "cid"},
    {"change": "added", "id": "dan", "expression": "price <"},
]
EVENTS: list[dict[str, Any]] = [
    {"id": 1, "price": 12.5, "genre": "crime"},
    {"id": 2, "price": 40.0, "genre": "crime"},
    {"id": 3},
]
BROKEN = [
    ("subscriptions", "eve", '{"change": "added", "id": "eve", "expre'),
    ("subscriptions", "", '{"change": "added", "expression": "price < 9"}'),
    ("events", "4", "{broken"),
    ("events", "5", '{"id": 5, "price": "cheap", "genre": "crime"}'),
    ("events", "6", '{"price": 1.5, "genre": "crime"}'),
]


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.skipif(FOLDER is None, reason="needs jars from Maven: `make test-kafka` fetches them")
def test_from_topics_to_topics(tmp_path: Path) -> None:
    ensure_java()
    assert FOLDER is not None
    version = pyspark.__version__
    # The connector 4.0.0 lacks classes in Spark 4.3.0. Maven may have another Spark: make test-kafka SPARK=4.0.0
    jars = fetched(f"{CONNECTOR}:{version}", Path(FOLDER, f"connector-{version}"), tmp_path / "nothing.py")
    listed = ",".join(map(str, jars))
    # Spark's package resolution leaves out jars that Spark already has.
    scala = sorted(Path(pyspark.__file__).parent.glob("jars/scala-library-*.jar"))
    work = tmp_path / "work"
    with kafka(
        [*fetched(BROKER, Path(FOLDER, "broker"), tmp_path / "nothing.py"), *scala], tmp_path / "kafka"
    ) as brokers:
        records = [("subscriptions", change["id"], json.dumps(change)) for change in CHANGES]
        records += [("events", str(event["id"]), json.dumps(event)) for event in EVENTS]
        # Broken records come first. They do not stop the others.
        run([sys.executable, "-c", PRODUCE, brokers, listed], json.dumps(BROKEN + records))
        example = [str(ROOT / "examples" / "kafka_matching.py"), brokers, str(work), "--once"]
        # The second run has nothing new to read, and sends nothing again.
        for _ in range(2):
            run([SUBMIT, "--master", "local[2]", "--jars", listed, *example])
        printed = run([sys.executable, "-c", CONSUME, brokers, listed, str(work / "index")])
    found = json.loads(printed.rpartition("found ")[2])
    assert sorted((match["id"], match["subscription"]) for match in found["matches"]) == [
        (1, "ann"),
        (1, "bob"),
        (2, "bob"),
    ]
    assert sorted(found["subscriptions"]) == ["ann", "bob"]
    assert found["refused"] == ["dan"]
    told = {(record["topic"], record["value"]): record["reason"] for record in found["rejected"]}
    assert len(found["rejected"]) == len(BROKEN)
    assert set(told) == {(topic, value) for topic, _, value in BROKEN}
    for topic, key, value in BROKEN:
        without_id = key in ("", "6")
        assert told[topic, value].startswith("there is no id" if without_id else "it is no JSON with "), value
