"""What the tasks of a job have done, added up in the driver: counts, and seconds by phase.

A task counts in a `Tally` of its own and hands it over when it ends. How it comes to the driver depends on the session:

    classic     an accumulator, which Spark adds up when a task ends
    Connect     a last row of the task, in a column of its own; Spark adds up this column while rows go by, then drops it

Tasks that Spark repeats count again in classic sessions: these are figures about work, not about rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.accumulators import AccumulatorParam

from tamis.spark.frames import arrow_type, map_in_arrow, quoted
from tamis.spark.match_task import MatchTask
from tamis.spark.tallies import NAMES, SECONDS, Tally

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_TALLY = "__tamis_tally"
"""The column with the tally of a task, in its last row."""
_TALLY_TYPE = pa.list_(pa.float64())

_log = logging.getLogger("tamis")

Watch = Callable[[Tally], object]


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect, which has no context and no accumulators."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def work_counters(spark: SparkSession) -> Accumulated | Observed:
    """Counters for one job: a context, within which tasks count."""
    return Observed() if is_connect(spark) else Accumulated(spark)


class Sums(AccumulatorParam[Tally]):
    """Adds up tallies, name by name. In the driver, `watch` is told the sums whenever a task has ended."""

    def __init__(self) -> None:
        self.watch: Watch | None = None

    def __reduce__(self) -> tuple[type[Sums], tuple[()]]:
        return Sums, ()

    def zero(self, value: Tally) -> Tally:
        return {}

    def addInPlace(self, value1: Tally, value2: Tally) -> Tally:  # noqa: N802 - Spark's name
        sums = {name: value1.get(name, 0) + value2.get(name, 0) for name in {**value1, **value2}}
        if self.watch is not None:
            try:
                self.watch(sums)
            except Exception:  # Spark's own thread calls this, and would end.
                _log.warning("the progress of a job cannot be told", exc_info=True)
        return sums


class Accumulated:
    """Counters in an accumulator. Spark keeps accumulators for ever, so a later job takes that of one which has ended."""

    _idle: ClassVar[WeakKeyDictionary[Any, list[Any]]] = WeakKeyDictionary()
    """Context of Spark -> accumulators that no job uses."""

    def __init__(self, spark: SparkSession, watch: Watch | None = None) -> None:
        self._free = self._idle.setdefault(spark.sparkContext, [])
        try:
            self.accumulator = self._free.pop()
        except IndexError:
            self.accumulator = spark.sparkContext.accumulator({}, Sums())
        self.accumulator.value = {}
        self.accumulator.accum_param.watch = watch

    def __enter__(self) -> Accumulated:
        return self

    def __exit__(self, *_: object) -> None:
        self.accumulator.accum_param.watch = None
        self._free.append(self.accumulator)

    def matched(self, frame: DataFrame, task: MatchTask, schema: StructType) -> DataFrame:
        """What a task makes of a DataFrame, with its tally."""
        return map_in_arrow(frame, replace(task, counters=self.accumulator), schema)

    def sums(self) -> Tally:
        """What tasks have counted so far."""
        return _readable(self.accumulator.value)


class Observed:
    """Counters in a column that is observed, see `DataFrame.observe`. They are there when an action has ended."""

    def __init__(self) -> None:
        from pyspark.sql.connect.observation import Observation

        self._observation = Observation()

    def __enter__(self) -> Observed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def matched(self, frame: DataFrame, task: MatchTask, schema: StructType) -> DataFrame:
        """What a task makes of a DataFrame, with its tally."""
        from pyspark.sql import functions as F  # noqa: N812
        from pyspark.sql.types import ArrayType, DoubleType, StructType

        kinds = tuple(arrow_type(schema, name) for name in schema.names)
        told = StructType([*schema.fields]).add(_TALLY, ArrayType(DoubleType()))
        found = map_in_arrow(frame, TellingTask(task, kinds), told)
        sums = [F.sum(F.get(_TALLY, place)).alias(name) for place, name in enumerate(NAMES)]
        # Spark's class of observations says Observation | str; that of Connect is another one.
        observed = found.observe(self._observation, *sums)  # type: ignore[arg-type]
        return observed.where(F.col(_TALLY).isNull()).select(*(quoted(name) for name in schema.names))

    def sums(self) -> Tally:
        """What the tasks of the last action have counted."""
        found = {name: self._observation.get.get(name) or 0 for name in NAMES}
        return _readable({name: value if name in SECONDS else int(value) for name, value in found.items()})


def _readable(sums: Tally) -> Tally:
    """All counters, with seconds that people can read."""
    found = {name: sums.get(name, 0) for name in NAMES}
    return {name: round(value, 3) if name in SECONDS else value for name, value in found.items()}


@dataclass(frozen=True)
class TellingTask:
    """A task whose rows get a column, which is null but in one more row: that row has nothing but the tally of the task."""

    task: MatchTask
    kinds: tuple[pa.DataType, ...]
    """The types of the task's own columns."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        names = [*self.task.names, _TALLY]
        for batch in self.task(batches):
            yield pa.RecordBatch.from_arrays([*batch.columns, pa.nulls(len(batch), _TALLY_TYPE)], names=names)
        tally = [float(self.task.tally.get(name, 0)) for name in NAMES]
        empty = [pa.nulls(1, kind) for kind in self.kinds]
        yield pa.RecordBatch.from_arrays([*empty, pa.array([tally], _TALLY_TYPE)], names=names)
