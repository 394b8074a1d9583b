"""What a stream writes, batch by batch, each completely or not at all.

On a path, Spark writes a folder for each batch, and the folder appears in one step:

    OUTPUT/batch=17/*.parquet              Spark's own files; a folder that is there is complete

A store has no folders that could appear. There, tasks write files, and a manifest names those of a finished batch:

    OUTPUT/batch=17/<name>.parquet         the rows of one task; of a task that was repeated, there may be more
    OUTPUT/_batches/000000000017.json      the query, the columns and the files of batch 17, created exclusively
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.errors import IndexFolderError, OptionError
from tamis.spark.addresses import address, local_path, pattern, protocol_of
from tamis.spark.frames import map_in_arrow
from tamis.spark.given import checked_session
from tamis.spark.manifest import new_name
from tamis.spark.store import Store, open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BATCH = "batch"
"""The column with the number of the batch."""
# Spark does not read files whose names begin with an underscore.
_MANIFESTS, _QUERY_MARK = "_batches", "_tamis_query"
_AT_ONCE = 16
_MOST_PARTS = 1000
"""Most partitions that written files are read in."""


def batches_at(option: str, place: str, query: str) -> ParquetFolders | StoredBatches:
    """What writes the batches of a query to a path or an address; `option` names it in messages."""
    if protocol_of(place) == "file":
        return ParquetFolders(option, str(local_path(place)), query)
    return StoredBatches(option, open_store(place), query)


@dataclass(frozen=True)
class ParquetFolders:
    """Writes each batch to its own folder, which exists completely or not at all.

    Raises
    ------
    OptionError
        If the folder has the batches of another query.
    """

    option: str
    """The option that names this folder, for messages."""
    path: str
    query: str

    def has(self, batch: int) -> bool:
        """Whether a batch was delivered."""
        target = Path(self.target(batch))
        if target.exists():
            mark = target / _QUERY_MARK
            _check_own(self, batch, mark.read_text() if mark.exists() else None)
        return target.exists()

    def target(self, batch: int) -> str:
        """What is there when a batch is, for messages."""
        return f"{self.path}/{BATCH}={batch}"

    def __call__(self, matches: DataFrame, batch: int) -> None:
        folder = Path(self.path)
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(f".{BATCH}={batch}.*"):
            shutil.rmtree(part, ignore_errors=True)
        part = folder / f".{BATCH}={batch}.{new_name()}"
        matches.write.parquet(address(part))
        (part / _QUERY_MARK).write_text(self.query)
        os.rename(part, self.target(batch))


@dataclass(frozen=True)
class StoredBatches:
    """Writes each batch to a store: its files, then the manifest that makes them a batch.

    Raises
    ------
    OptionError
        If the store has the batches of another query.
    """

    option: str
    store: Store
    query: str

    def has(self, batch: int) -> bool:
        """Whether a batch was delivered."""
        found = _manifest(self.store, batch)
        if found is not None:
            _check_own(self, batch, found.query)
        return found is not None

    def target(self, batch: int) -> str:
        """What is there when a batch is, for messages."""
        return f"{self.store.address}/{_name(batch)}"

    def __call__(self, matches: DataFrame, batch: int) -> None:
        self.store.prepare([_MANIFESTS])
        written = map_in_arrow(matches, WriteTask(self.store, f"{BATCH}={batch}"), "file string").collect()
        manifest = _Manifest(self.query, matches.schema.jsonValue(), [row.file for row in written])
        try:
            self.store.create(_name(batch), json.dumps(manifest._asdict(), indent=1).encode())
        except FileExistsError:
            # Another driver has delivered the batch meanwhile, with the same index and the same events.
            self.has(batch)


class _Manifest(NamedTuple):
    """A finished batch in a store."""

    query: str
    schema: dict[str, Any]
    """The columns, as Spark writes them in JSON."""
    files: list[str]


def _name(batch: int) -> str:
    return f"{_MANIFESTS}/{batch:012}.json"


def _manifest(store: Store, batch: int) -> _Manifest | None:
    """The manifest of a batch, if the batch is finished."""
    try:
        return _Manifest(**json.loads(store.read(_name(batch))))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):
        raise IndexFolderError(f"{store.address}/{_name(batch)} is damaged") from None


def _check_own(batches: ParquetFolders | StoredBatches, batch: int, query: str | None) -> None:
    if query != batches.query:
        raise OptionError(
            f"{batches.target(batch)} exists and was written by a query with another checkpoint: these events would be lost. "
            f"Hint: use another folder for `{batches.option}`, or the checkpoint of the other query"
        )


@dataclass(frozen=True)
class WriteTask:
    """Writes its rows to a file of a store, and returns the name of the file. Without rows there is no file."""

    store: Store
    folder: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        filled = (batch for batch in batches if batch.num_rows)
        first = next(filled, None)
        if first is None:
            return
        name = f"{self.folder}/{new_name()}.parquet"
        with self.store.writing(name) as path, pq.ParquetWriter(str(path), first.schema) as writer:
            for batch in chain([first], filled):
                writer.write_batch(batch)
        yield pa.RecordBatch.from_pydict({"file": [name]})


def read_output(spark: SparkSession, path: str | os.PathLike[str]) -> DataFrame:
    """Read what a stream has written to `output` or `wrong`: the finished batches, and no others.

    Parameters
    ----------
    spark : SparkSession
    path : path
        What was given to `match_stream`. The column ``batch`` has the number of the batch of each row.

    Raises
    ------
    FrameError
    IndexFolderError
        If there is no finished batch.
    """
    checked_session(spark)
    store = open_store(path)
    place = store.path("")
    if place is not None:
        if not any(place.glob(f"{BATCH}=*")):
            raise _no_batch(store)
        return spark.read.parquet(pattern(place))
    finished = _finished(store)
    if not finished:
        raise _no_batch(store)
    return _read(spark, store, finished)


def _no_batch(store: Store) -> IndexFolderError:
    return IndexFolderError(f"{store.address} has no finished batch of a stream")


def _finished(store: Store) -> dict[int, _Manifest]:
    """The manifests of all finished batches. Their numbers begin at 0 and have no gaps: none is missed if a list is late."""
    listed = [each.name.rpartition("/")[2].removesuffix(".json") for each in store.names(_MANIFESTS)]
    end = max((int(name) + 1 for name in listed if name.isdigit()), default=0)
    while store.has(_name(end)):
        end += 1
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = pool.map(lambda batch: (batch, _manifest(store, batch)), range(end))
    return {batch: manifest for batch, manifest in found if manifest is not None}


def _read(spark: SparkSession, store: Store, finished: dict[int, _Manifest]) -> DataFrame:
    from pyspark.sql.types import IntegerType, StructType

    # Restarted with other options, a query may write other columns. The last batch says which ones are read.
    schema = StructType.fromJson(finished[max(finished)].schema)
    files = tuple((batch, file) for batch, manifest in finished.items() for file in manifest.files)
    task = ReadTask(store, files, tuple(schema.names))
    numbers = spark.range(0, len(files), 1, max(1, min(len(files), _MOST_PARTS)))
    return numbers.mapInArrow(task, StructType(schema.fields).add(BATCH, IntegerType()))


@dataclass(frozen=True)
class ReadTask:
    """Reads the files with the numbers that it gets."""

    store: Store
    files: tuple[tuple[int, str], ...]
    columns: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbers in batches:
            for number in numbers.column(0).to_pylist():
                batch, file = self.files[number]
                try:
                    rows = pq.read_table(pa.BufferReader(self.store.read(file)))
                except FileNotFoundError:
                    raise IndexFolderError(f"{self.store.address}/{file} of batch {batch} was deleted") from None
                missing = [name for name in self.columns if name not in rows.column_names]
                for name in missing:
                    rows = rows.append_column(name, pa.nulls(len(rows)))
                rows = rows.select(self.columns).append_column(BATCH, pa.array([batch] * len(rows), pa.int32()))
                yield from rows.to_batches()
