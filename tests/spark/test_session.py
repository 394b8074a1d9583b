"""Sessions: the settings of the one that tests share, and kernels on the hosts of a session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

import tamis
import tamis.spark
from tamis.kernels.cache import cache_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.session.timeZone", "UTC"), ("spark.sql.ansi.enabled", "true")]
)
def test_settings(spark: SparkSession, setting: str, value: str) -> None:
    assert spark.conf.get(setting) == value


def test_one_xdist_worker_has_the_session(spark: SparkSession, request: pytest.FixtureRequest) -> None:
    # xdist appends the group to the id. A version of xdist without groups would silently start a Spark in each worker.
    grouped = request.config.getoption("loadgroup", False)
    assert request.node.nodeid.endswith("@spark") is grouped


def test_workers_run_this_python(spark: SparkSession) -> None:
    def executable(batches):  # type: ignore[no-untyped-def]
        import sys

        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable] * batch.num_rows})

    rows = spark.range(2).mapInArrow(executable, "python string").distinct().collect()
    assert [row.python for row in rows] == [sys.executable]


def test_kernels_are_compiled_once_on_each_host(spark: SparkSession) -> None:
    (host,) = tamis.spark.warm_up(spark, tasks=3)
    assert (host.host, host.kernels) == (os.uname().nodename, str(cache_folder()))
    assert host.seconds > 0
    with pytest.raises(tamis.OptionError, match="`tasks` must be a number of tasks"):
        tamis.spark.warm_up(spark, tasks=0)
