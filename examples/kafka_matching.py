"""Events from one topic of Kafka, changes of subscriptions from another, matches to a third.

    spark-submit --packages org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0 \\
        examples/kafka_matching.py BROKERS FOLDER [--once]

Topic ``subscriptions``: {"change": "added", "id": "ann", "expression": "price < 20"}, with the id as the key of the record,
so that the changes of one subscription stay in order. Topic ``events``: {"id": 1, "price": 12.5, "genre": "crime"}. Topic
``matches``: {"id": 1, "subscription": "ann"}, with a key that is the same if a batch is sent again after a failure: Kafka
keeps both, whoever reads drops the second, or the topic is compacted.

FOLDER is seen by all executors; it gets the index and the checkpoints. With --once everything that is there is read, and then
the program ends.
"""

import argparse
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import tamis.spark

CHANGES = "change string, id string, expression string"
EVENTS = "id long, price double, genre string"


def topic(spark: SparkSession, brokers: str, name: str) -> DataFrame:
    """A topic from its beginning on."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    return reader.option("subscribe", name).option("startingOffsets", "earliest").load()


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

    changes = topic(spark, brokers, "subscriptions").select(
        F.from_json(F.col("value").cast("string"), CHANGES).alias("change"), "offset"
    )
    updating = tamis.spark.update_stream(
        changes.select("change.*", "offset"), index, checkpoint=folder / "changes", order="offset", trigger=trigger
    )
    if options.once:
        updating.awaitTermination()

    def send(matches: DataFrame, batch: int) -> None:
        key = F.concat_ws(":", F.lit(batch), "id", "subscription")
        records = matches.select(key.alias("key"), F.to_json(F.struct("id", "subscription")).alias("value"))
        records.write.format("kafka").option("kafka.bootstrap.servers", brokers).option("topic", "matches").save()

    events = topic(spark, brokers, "events").select(F.from_json(F.col("value").cast("string"), EVENTS).alias("event"))
    matching = tamis.spark.match_stream(
        events.select("event.*"), index, checkpoint=folder / "events", deliver=send, trigger=trigger
    )
    matching.awaitTermination()


if __name__ == "__main__":
    main()
