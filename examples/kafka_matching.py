"""Events from one topic of Kafka, changes of subscriptions from another, matches to a third, what is broken to a fourth.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:VERSION \\
        examples/kafka_matching.py BROKERS FOLDER [--once]

VERSION is that of Spark. FOLDER is seen by all executors; it gets the index and the checkpoints. With --once everything that is
there is read, and then the program ends.

topic           a record
subscriptions   {"change": "added", "id": "ann", "expression": "price < 20"}, with the id as the key of the record, so that the
                changes of one subscription stay in order
events          {"id": 1, "price": 12.5, "genre": "crime"}
matches         {"id": 1, "subscription": "ann"}
rejected        {"topic": "events", "partition": 0, "offset": 7, "value": "{broken", "reason": "..."}

Broken is what is no JSON, or has values of other types, or no id. A change that can be read and is wrong (its expression, say)
is among the rejections of the version that it would have been in: `tamis.spark.rejections`.

After a failure a batch may be sent again, with the same keys: Kafka keeps both. Readers drop the second one, or the topics
are compacted.
"""

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tamis.spark

TOPICS = {
    "subscriptions": "change string, id string, expression string",
    "events": "id long, price double, genre string",
}
BROKEN = "broken"


def topic(spark: SparkSession, brokers: str, name: str) -> DataFrame:
    """The records of a topic from its beginning on, with what they say as the column `said`."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    records = reader.option("subscribe", name).option("startingOffsets", "earliest").load()
    text = F.col("value").cast("string")
    said = F.from_json(text, f"{TOPICS[name]}, {BROKEN} string", {"columnNameOfCorruptRecord": BROKEN})
    return records.select("topic", "partition", "offset", text.alias("value"), said.alias("said"))


def is_right(records: DataFrame) -> DataFrame:
    """The records that can be read."""
    return records.where(f"said.{BROKEN} IS NULL AND said.id IS NOT NULL")


def rejected(records: DataFrame) -> DataFrame:
    """The others, as records that tell where each came from."""
    wanted = F.create_map(*(F.lit(each) for pair in TOPICS.items() for each in pair))[F.col("topic")]
    reason = F.when(F.col("said.id").isNull() & F.col(f"said.{BROKEN}").isNull(), "there is no id").otherwise(
        F.concat(F.lit("it is no JSON with "), wanted)
    )
    broken = records.where(f"said.{BROKEN} IS NOT NULL OR said.id IS NULL")
    told = F.struct("topic", "partition", "offset", "value", reason.alias("reason"))
    return broken.select(F.concat_ws(":", "topic", "partition", "offset").alias("key"), F.to_json(told).alias("value"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Match events of Kafka with subscriptions of Kafka.")
    parser.add_argument("brokers")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--once", action="store_true", help="end when everything that is there has been read")
    options = parser.parse_args()
    folder, brokers = options.folder, options.brokers
    trigger = {"availableNow": True} if options.once else {"processingTime": "1 second"}

    spark = SparkSession.builder.appName("kafka-matching").getOrCreate()
    index = folder / "index"
    if not index.exists():
        tamis.spark.build(spark.createDataFrame([], "id string, expression string"), index)

    def send(records: DataFrame, name: str) -> None:
        records.write.format("kafka").option("kafka.bootstrap.servers", brokers).option("topic", name).save()

    def send_matches(matches: DataFrame, batch: int) -> None:
        key = F.concat_ws(":", F.lit(batch), "id", "subscription")
        send(matches.select(key.alias("key"), F.to_json(F.struct("id", "subscription")).alias("value")), "matches")

    queries = []
    for name in TOPICS:
        broken = rejected(topic(spark, brokers, name)).writeStream.trigger(**trigger)
        broken = broken.option("checkpointLocation", str(folder / f"rejected-{name}"))
        queries.append(broken.foreachBatch(lambda records, _: send(records, "rejected")).start())

    changes = is_right(topic(spark, brokers, "subscriptions")).select("said.*", "offset").drop(BROKEN)
    updating = tamis.spark.update_stream(changes, index, checkpoint=folder / "changes", order="offset", trigger=trigger)
    if options.once:
        updating.awaitTermination()
    events = is_right(topic(spark, brokers, "events")).select("said.*").drop(BROKEN)
    matching = tamis.spark.match_stream(
        events, index, checkpoint=folder / "events", deliver=send_matches, trigger=trigger
    )
    queries += [updating, matching]
    if not options.once:
        spark.streams.awaitAnyTermination()  # A query that fails ends the program, so that its supervisor starts it again.
    for query in queries:
        query.awaitTermination()


if __name__ == "__main__":
    main()
