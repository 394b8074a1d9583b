"""The contents of an index: its subscriptions as a DataFrame, and the rejected rows."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.spark.frames import id_type_of, type_of
from tamis.spark.given import checked_session, checked_version
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import SegmentFiles
from tamis.spark.rejected_rows import rejected_frame, rejected_schema
from tamis.spark.segment_files import EXPRESSION, ID, WEIGHT, living_subscriptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def subscriptions(spark: SparkSession, path: str | os.PathLike[str], version: int | None = None) -> DataFrame:
    """All subscriptions of an index: `id`, `expression` (as text), `weight`, and the columns that the index carries.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql.types import DoubleType, StringType, StructField, StructType

    checked_session(spark)
    folder = IndexFolder.of(path, spark)
    manifest = folder.manifest(checked_version(version))
    fields = [StructField(ID, id_type_of(manifest.id_type))]
    fields += [StructField(EXPRESSION, StringType()), StructField(WEIGHT, DoubleType())]
    fields += [StructField(name, type_of(text)) for name, text in manifest.columns.items()]
    segments = tuple(manifest.segments)
    numbers = spark.range(0, len(segments), 1, max(1, len(segments)))
    return numbers.mapInArrow(
        ContentsTask(folder, segments, manifest.form, tuple(manifest.columns)), StructType(fields)
    )


def rejections(spark: SparkSession, path: str | os.PathLike[str], version: int | None = None) -> DataFrame:
    """The subscriptions or changes that were rejected when a version of an index was made, with the `reason`.

    Raises
    ------
    FrameError, OptionError, IndexFolderError
    """
    from pyspark.sql.types import StructField, StructType

    checked_session(spark)
    folder = IndexFolder.of(path, spark)
    manifest = folder.manifest(checked_version(version))
    names = manifest.rejected
    schema = rejected_schema(folder, names) if names else StructType([StructField(ID, id_type_of(manifest.id_type))])
    return rejected_frame(spark, folder, schema, names)


@dataclass(frozen=True)
class ContentsTask:
    """Reads the segments with the numbers that it gets."""

    folder: IndexFolder
    segments: tuple[SegmentFiles, ...]
    form: str
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found = living_subscriptions(self.folder, self.segments[number], self.form, self.columns)
                yield from found.to_batches(1 << 16)
