"""Tamis on Spark, step by step: run it as a script, or cell by cell in an editor that knows ``# %%``.

    python examples/spark_matching.py FOLDER

A shop has 5,000 wishes of its customers, a day of offers to match with them, and customers who change their minds.
"""

# %% A session. On a cluster you have one; `start_session` also finds a Java where there is none.
import sys
from pathlib import Path

from pyspark.sql import functions as F

import tamis.spark

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "shop")
spark = tamis.spark.start_session("local[2]", {"spark.sql.shuffle.partitions": "4"})

# %% Wishes, as a table of SQL conditions. One of them is wrong, as in every table of conditions that people write.
number = F.col("id")
genre = F.element_at(F.array(*map(F.lit, ["crime", "maps", "poetry", "travel"])), (number % 4 + 1).cast("int"))
wishes = spark.range(5_000).select(
    F.concat(F.lit("customer-"), number).alias("id"),
    F.concat(
        F.lit("price < "), 5 + number % 60, F.lit(" AND genre = '"), genre, F.lit("' AND stars >= "), 1 + number % 5
    ).alias("expression"),
    (number % 3).cast("double").alias("weight"),
    F.concat(F.lit("customer-"), number, F.lit("@example.org")).alias("mail"),
)  # fmt: skip
wrong = spark.createDataFrame([("customer-x", "price <", 0.0, "x@example.org")], wishes.schema)

# %% An index: files that never change, which executors map into memory. What is wrong comes back with the reason.
report = tamis.spark.build(wishes.union(wrong), folder / "wishes", shards=2)
print(f"version {report.version}: {report.subscriptions:,} wishes, {report.rejected} rejected")
report.rejections.select("id", "reason").show(truncate=60)

# %% Offers, and who wants them.
offers = spark.range(500).select(
    number,
    (number % 67).cast("double").alias("price"),
    F.element_at(F.array(*map(F.lit, ["crime", "maps", "poetry", "travel"])), (number % 4 + 1).cast("int")).alias(
        "genre"
    ),
    (1 + number % 5).alias("stars"),
)
wanted = tamis.spark.match(offers, folder / "wishes", keep=["price"], carry=["mail"])
print(f"{wanted.count():,} pairs of an offer and a wish")
wanted.show(3)

# %% The three customers of each offer that weigh most, and how many offers each wish has.
print(
    f"{tamis.spark.match(offers, folder / 'wishes', k=3).count():,} of them are among the three heaviest of their offer"
)
tamis.spark.match(offers, folder / "wishes", counts=True).orderBy(F.desc("matches"), "subscription").show(3)

# %% Customers change their minds: the next version has a small new file, and the old version stays for who reads it.
changes = spark.createDataFrame(
    [("added", "customer-new", "price < 3", 9.0, "new@example.org"), ("removed", "customer-7", None, None, None)],
    "change string, id string, expression string, weight double, mail string",
)
changed = tamis.spark.update(folder / "wishes", changes)
print(f"version {changed.version}: {changed.added} added, {changed.removed} removed")

# %% A stream of offers is matched with whatever version is current, and every pair is written once.
offers.limit(100).write.json(str(folder / "incoming"))
stream = spark.readStream.schema(offers.schema).json(str(folder / "incoming"))
query = tamis.spark.match_stream(
    stream,
    folder / "wishes",
    checkpoint=folder / "checkpoint",
    output=folder / "matches",
    trigger={"availableNow": True},
)
query.awaitTermination()
print(f"{spark.read.parquet(str(folder / 'matches')).count():,} pairs from the stream:")
for record in tamis.spark.batch_records(folder / "checkpoint"):
    print(f"  batch {record.batch} was matched with version {record.version}")

# %% What the offers look like.
tamis.spark.statistics(offers.drop("id")).select("attribute", "kind", "presence", "distinct").show()
spark.stop()
