"""What the tasks of a job have done, added up in the driver: counts, and seconds by phase.

A task counts in a `Tally` of its own and hands it over when it ends. Spark adds up the tallies of all tasks, by an accumulator.
Tasks that Spark repeats count again: these are figures about work, not about rows. Spark Connect has no accumulators.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from tamis.spark.tallies import NAMES, Tally

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Sums(AccumulatorParam[Tally]):
    """Adds up tallies, name by name."""

    def zero(self, value: Tally) -> Tally:
        return dict.fromkeys(NAMES, 0)

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802 - Spark's name
        return {name: value1.get(name, 0) + value2.get(name, 0) for name in {**value1, **value2}}


def work_counters(spark: SparkSession) -> Any:
    """An accumulator of tallies for one job; None in Spark Connect."""
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        return None
    return spark.sparkContext.accumulator(dict.fromkeys(NAMES, 0), Sums())


def counted(counters: Any) -> Tally | None:
    """The sums so far, with seconds that people can read."""
    if counters is None:
        return None
    sums: Mapping[str, float] = counters.value
    return {name: round(value, 3) if isinstance(value, float) else value for name, value in sums.items()}
