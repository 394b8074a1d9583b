"""A Spark session for the jobs that Tamis starts itself."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tamis.spark.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    # Timestamps are UTC in Tamis.
    "spark.sql.session.timeZone": "UTC",
    # An overflow or a bad cast is an error, never silently NULL.
    "spark.sql.ansi.enabled": "true",
    "spark.ui.showConsoleProgress": "false",
}


def start_session(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start a Spark session whose workers run this Python. `settings` override the settings that Tamis chooses."""
    from pyspark.sql import SparkSession

    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("tamis")
    if master is not None:
        builder = builder.master(master)
    for name, value in {**_SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
