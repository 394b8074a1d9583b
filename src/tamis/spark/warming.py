"""Compiling kernels on all hosts of a cluster before work begins, by a job of its own.

Without this, the first task on each host that needs a kernel compiles it, and the other tasks of the host wait.
"""

from __future__ import annotations

import fcntl
import logging
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.errors import OptionError
from tamis.kernels.cache import cache_folder
from tamis.matcher.exercises import EXERCISES, exercise
from tamis.spark.given import checked_count, checked_session
from tamis.spark.manifest import new_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_OF_CONNECT = 200
"""Tasks if the number of cores is not known, as in Spark Connect."""

_log = logging.getLogger("tamis")


class WarmHost(NamedTuple):
    """A host whose kernels are compiled.

    Attributes
    ----------
    host : str
        Its name.
    kernels : str
        The folder that has them.
    seconds : float
        How long it took: some minutes with an empty folder, some seconds with a full one.
    """

    host: str
    kernels: str
    seconds: float


def warm_up(spark: SparkSession, tasks: int | None = None) -> list[WarmHost]:
    """Compile all kernels on every host of a cluster, once per host.

    Parameters
    ----------
    spark : SparkSession
    tasks : int, optional
        Number of tasks. Hosts without a task are not reached, so it should be at least the number of the executors' cores,
        which is the default where Spark tells it.

    Returns
    -------
    list of WarmHost
        The hosts that were reached.

    Raises
    ------
    FrameError, OptionError
    """
    checked_session(spark)
    count = _cores(spark) if tasks is None else checked_count(tasks, "tasks", "a number of tasks")
    _log.info("compiling kernels on the hosts of this cluster; with empty caches, this takes some minutes")
    numbers = spark.range(0, count, 1, count)
    rows = numbers.mapInArrow(WarmTask(new_name()), "host string, kernels string, seconds double").collect()
    hosts = sorted(WarmHost(row.host, row.kernels, row.seconds) for row in rows)
    _log.info("kernels are compiled on %d hosts: %s", len(hosts), ", ".join(host.host for host in hosts))
    return hosts


def _cores(spark: SparkSession) -> int:
    try:
        return max(1, spark.sparkContext.defaultParallelism)
    except Exception:  # Spark Connect has no context, and its error depends on its version.
        return _TASKS_OF_CONNECT


@dataclass(frozen=True)
class WarmTask:
    """Compiles everything, if no other task of the job has done so on this host."""

    job: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        folder = cache_folder()
        host = os.uname().nodename
        if folder is None:
            raise OptionError(
                f"compiled kernels cannot be kept on {host}: no folder is writable. Hint: set spark.executorEnv.NUMBA_CACHE_DIR "
                "to a writable folder"
            )
        stamp = Path(tempfile.gettempdir(), f"tamis-warm-{self.job}")
        with open(stamp, "ab") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            if os.fstat(stream.fileno()).st_size:  # Another task has been here.
                return
            begun = time.monotonic()
            for name in EXERCISES:
                exercise(name)
            seconds = time.monotonic() - begun
            stream.write(b"done")
        yield pa.RecordBatch.from_pydict({"host": [host], "kernels": [str(folder)], "seconds": [seconds]})
        _forget_old()


def _forget_old() -> None:
    """Delete the stamps of earlier jobs."""
    for stamp in Path(tempfile.gettempdir()).glob("tamis-warm-*"):
        with suppress(OSError):
            if stamp.stat().st_mtime < time.time() - 86400:
                stamp.unlink()
