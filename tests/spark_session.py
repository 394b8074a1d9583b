"""The Spark session that tests share, with a reason beside each setting."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from tamis.spark.java import ensure_java
from tests.markdown import ROOT
from tests.spark import shelf
from tests.spark.stores import JARS


def start_spark(folder: Path) -> SparkSession:
    """Start a small local Spark that writes only below `folder` and answers as SQL's standard asks."""
    ensure_java()
    # Workers would otherwise take whichever python3 comes first on the PATH.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # Spark looks up the host name, which a container or a laptop without network may not resolve.
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ[shelf.FOLDER] = str(folder / "shelf")
    if JARS is None:
        shelf.use_shelf()
    settings = {
        # The same answers on every machine: timestamps are UTC in Tamis.
        "spark.sql.session.timeZone": "UTC",
        # An overflow or a bad cast is an error, never silently NULL.
        "spark.sql.ansi.enabled": "true",
        # Spark cuts a shuffle into 200 tasks by default, which costs seconds on small data.
        "spark.sql.shuffle.partitions": "2",
        "spark.default.parallelism": "2",
        # Workers begin with everything loaded.
        "spark.python.daemon.module": "tests.spark_daemon",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
        # No web server, no port that may be taken.
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Tables and scratch files stay out of the repository.
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.local.dir": str(folder / "local"),
        "spark.tamis.cache.folder": str(folder / "cache"),
        # Enough for tests, small enough for a laptop that also runs the other half of the suite.
        "spark.driver.memory": "1g",
    }
    builder = SparkSession.builder.master("local[2]").appName("tamis-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
