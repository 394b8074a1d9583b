"""Rejected rows: tasks that build and change an index write them with the reasons, and here they are read again.

A task of ours reads them, not Spark: paths may have characters that Spark would interpret as patterns or addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.encoding.columns import combined
from tamis.spark.frames import REASON
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import REJECTED, new_name
from tamis.spark.segment_files import ID, VALID_FROM, VALID_UNTIL, write_parquet

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def rejected_frame(spark: SparkSession, folder: IndexFolder, schema: StructType, names: Sequence[str]) -> DataFrame:
    """Rows that tasks have rejected; `schema` is the schema of their input."""
    from pyspark.sql.types import StringType, StructField, StructType, TimestampType

    fields = [
        StructField(field.name, TimestampType() if field.name in (VALID_FROM, VALID_UNTIL) else field.dataType)
        for field in schema.fields
    ]
    written = StructType([*fields, StructField(REASON, StringType())])
    if not names:
        return spark.createDataFrame([], written)
    numbers = spark.range(0, len(names), 1, len(names))
    return numbers.mapInArrow(RejectedTask(folder, tuple(names)), written)


def rejected_schema(folder: IndexFolder, names: Sequence[str]) -> StructType:
    """The schema of the rejected rows in these files, without the reason."""
    from pyspark.sql.pandas.types import from_arrow_schema

    schema = pq.read_schema(pa.BufferReader(folder.read(_file(names[0]))))
    return from_arrow_schema(schema.remove(schema.get_field_index(REASON)))


def _file(name: str) -> str:
    return f"{REJECTED}/{name}.parquet"


@dataclass(frozen=True)
class RejectedTask:
    """Reads the files with the numbers that it gets."""

    folder: IndexFolder
    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data = self.folder.read(_file(self.names[number]))
                yield from pq.read_table(pa.BufferReader(data)).to_batches()


class Rejections:
    """The rejected rows of a bucket, with the reasons."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows
        self._wrong: dict[int, str] = {}
        self._parts: list[pa.Table] = []

    def __len__(self) -> int:
        return len(self._wrong) + sum(len(part) for part in self._parts)

    def reject(self, rows: Iterable[int], reason: str) -> None:
        """Reject some rows, unless they are rejected already."""
        for row in rows:
            self._wrong.setdefault(row, reason)

    def reject_wrong_ids(self) -> None:
        """Reject rows without an id, and all rows that share an id: it is not clear which one is meant."""
        ids = combined(self._rows[ID])
        self.reject(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False)).tolist(), "id is null")
        places = pc.rank(ids, tiebreaker="min").to_numpy()
        _, inverse, counts = np.unique(places, return_inverse=True, return_counts=True)
        for row in np.flatnonzero(counts[inverse] > 1).tolist():
            self.reject([row], f"{counts[inverse[row]]} rows have the id {ids[row].as_py()!r}")

    def left(self) -> pa.Table:
        """The rows that are not rejected."""
        if not self._wrong:
            return self._rows
        left = np.ones(len(self._rows), np.bool_)
        left[list(self._wrong)] = False
        return self._rows.filter(pa.array(left))

    def add(self, rows: pa.Table, refused: list[tuple[int, str]]) -> None:
        """Reject rows of another table with the same columns."""
        if refused:
            self._parts.append(_with_reasons(rows, dict(refused)))

    def write(self, folder: IndexFolder) -> str | None:
        """Write the rejected rows, if there are any; returns the name of the file."""
        parts = [_with_reasons(self._rows, self._wrong), *self._parts] if self._wrong else self._parts
        if not parts:
            return None
        name = new_name()
        folder.put(_file(name), lambda path: write_parquet(path, pa.concat_tables(parts)))
        return name


def _with_reasons(rows: pa.Table, wrong: dict[int, str]) -> pa.Table:
    taken = rows.take(pa.array(list(wrong), pa.int64()))
    return taken.append_column(REASON, pa.array(list(wrong.values()), pa.string()))
