"""What Spark starts to fork its Python workers. Everything that tasks need is loaded before: a new worker is ready at once.

Otherwise, each worker would import Tamis and load its compiled code, which takes two seconds.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pyarrow as pa
import pyspark.worker  # noqa: F401 - what workers import
from pyspark.daemon import manager

from tamis.spark.index_folder import IndexFolder
from tamis.spark.match_task import MatchTask
from tamis.spark.segment_files import write_segment
from tests.spark.shelf import use_shelf
from tests.spark.stores import JARS


def load() -> None:
    """Build and match once, as tasks do."""
    with TemporaryDirectory() as path:
        folder = IndexFolder(path)
        folder.prepare()
        subscriptions = pa.table({"id": [1, 2], "expression": ["a = 1 AND s LIKE 'x%'", "a < 5"], "weight": [1.0, 2.0]})
        segment = write_segment(folder, subscriptions, "expression", None, None).segment
        assert segment is not None
        events = pa.table({"id": [1, 2], "a": [1, 2], "s": ["x", None]})
        for k in (None, 1):
            task = MatchTask(
                folder, ((segment,),), "id", ("a", "s"), names=("id", "subscription", "rank")[: 2 + bool(k)], k=k
            )
            assert list(task(iter(events.to_batches())))


if __name__ == "__main__":
    load()
    if JARS is None:
        use_shelf()
    manager()
