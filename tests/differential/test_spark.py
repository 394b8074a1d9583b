"""The evaluator and the matcher against Spark SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.differential.comparison import batches, compare
from tests.differential.engines import Spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_same_decisions(spark: SparkSession, soak: bool, cases: Callable[[int], int]) -> None:
    decisions = compare(Spark(spark), batches(3, soak=soak))
    assert decisions.total() >= cases(10_000)
    assert all(decisions[truth] >= decisions.total() / 5 for truth in (True, False, None)), decisions
