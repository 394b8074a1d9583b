"""A segment's files: the task that builds it writes them, and tasks that match map them into memory.

The rows of a segment are numbered in the order of its files, and these numbers are the ids of its matcher. The users' ids are one
of the columns beside it. So matches stay numbers until the end, and any column of a subscription comes from rows of a mapped
file.
"""

from __future__ import annotations

import fcntl
import functools
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.encoding.columns import combined
from tamis.encoding.expressions.predicate_table import read_predicates
from tamis.errors import ExpressionError, IndexFolderError, OptionError, TableError, TamisError
from tamis.kernels.numbers import Bools, F64s, I64s
from tamis.matcher.frozen import FrozenMatcher
from tamis.matcher.matcher import Matcher
from tamis.matcher.snapshot import open_snapshot
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import SAMPLES, SEGMENTS, SegmentFiles, new_name, removed_file
from tamis.spark.seals import sealed_bytes
from tamis.storage import container
from tamis.storage.replacing import replacing

ID, WEIGHT, VALID_FROM, VALID_UNTIL = "id", "weight", "valid_from", "valid_until"
"""Columns of subscriptions with a meaning, besides the form."""
EXPRESSION, PREDICATES = "expression", "predicates"
FORMS = (EXPRESSION, PREDICATES)
"""Names of the column with the subscription: SQL text, or a list of predicates."""

MOST_OPEN = 1024
"""Most segments mapped in a process; the least recently used one is dropped first. A process may have 65,530 mappings, and a
segment needs a few; the objects around them take most of the memory."""

Rows = I64s


class Written(NamedTuple):
    """The result of writing some rows."""

    segment: SegmentFiles | None
    """The new segment; None if all rows were refused."""
    refused: list[tuple[int, str]]
    """Rows that are not in the segment, with the reasons."""


def write_segment(
    folder: IndexFolder, rows: pa.Table, form: str, schema: dict[str, Any] | None, sample: pa.Table | None
) -> Written:
    """Write a segment of rows with valid, distinct ids; `form` is the column with the subscriptions."""
    matcher = Matcher(schema=schema)
    if sample is not None:
        matcher.observe(sample)
    refused = _added(matcher, rows, form)
    if not len(matcher):
        return Written(None, refused)
    parts = matcher.stats()["index_stats"]
    if len(parts["segments"]) > 1 or parts["delta_rows"]:
        matcher.optimize()  # Matching one piece is faster than matching several.
    if refused:
        rows = _without_ids(rows, [row for row, _ in refused])
    name = new_name()
    asked: set[str] = set()

    def save(path: Path) -> None:
        matcher.save(path)
        asked.update(_asked_in(path))

    snapshot, columns, given = (_file(name, ending) for ending in ("tamis", "arrow", "parquet"))
    seals = {
        snapshot: folder.put(snapshot, save),
        columns: folder.put(columns, lambda path: write_arrow(path, rows.drop_columns([form]))),
        given: folder.put(given, lambda path: write_parquet(path, rows)),
    }
    size = sealed_bytes(seals[snapshot]) + sealed_bytes(seals[columns])
    return Written(SegmentFiles(name, rows=len(matcher), bytes=size, seals=seals, asked=sorted(asked)), refused)


def _file(name: str, ending: str) -> str:
    return f"{SEGMENTS}/{name}.{ending}"


def refused_rows(rows: pa.Table, form: str, schema: dict[str, Any] | None) -> list[tuple[int, str]]:
    """Rows that no segment would accept, with the reasons. Ids are not checked."""
    return _added(Matcher(schema=schema), rows, form)


def _added(matcher: Matcher, rows: pa.Table, form: str) -> list[tuple[int, str]]:
    """Add rows under their numbers; returns the refused rows, with the reasons."""
    given = {ID: pa.array(np.arange(len(rows))), form: rows[form]}
    if WEIGHT in rows.column_names:
        given[WEIGHT] = rows[WEIGHT]
    try:
        rejected = matcher.add_table(pa.table(given), on_error="collect")
    except (TableError, OptionError) as error:  # No row can be read: the column has another type.
        return [(row, str(error)) for row in range(len(rows))]
    return [(each.row, _reason(each.error)) for each in rejected]


def _reason(error: TamisError) -> str:
    """What is wrong with a row, without its id, which stands beside the reason."""
    if isinstance(error, TableError):
        return error.reason
    if isinstance(error, ExpressionError):
        error.subscription = None
    return str(error)


def _without_ids(rows: pa.Table, numbers: list[int]) -> pa.Table:
    """The rows without the ids of some of them. These rows stay, unseen, so that the others keep their numbers."""
    there = np.ones(len(rows), np.bool_)
    there[numbers] = False
    ids = pc.if_else(pa.array(there), combined(rows[ID]), pa.scalar(None, rows.schema.field(ID).type))
    return rows.set_column(rows.column_names.index(ID), ID, ids)


def write_arrow(path: Path, table: pa.Table) -> None:
    """Write a table so that it can be mapped, one piece per column."""
    with replacing(str(path)) as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def write_parquet(path: Path, table: pa.Table) -> None:
    """Write a table as Parquet. Its readers take all rows, so statistics would only cost time: a fifth of that of writing."""
    with replacing(str(path)) as stream:
        pq.write_table(table, stream, write_statistics=False)


def map_arrow(path: Path) -> pa.Table:
    """A table that stays on disk until parts of it are read.

    Raises
    ------
    IndexFolderError
        If the file is damaged.
    """
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).read_all()
    except (pa.ArrowInvalid, OSError) as error:
        raise IndexFolderError(f"{path} is damaged: {error}") from None


def stored(rows: pa.Table) -> pa.Table:
    """Rows in the form that is stored. It does not depend on the settings of their session.

    Times of validity without a zone are UTC. All other times with a zone are stored in UTC. Strings have one type.
    """
    fields = []
    for field in rows.schema:
        kind = _MOMENT if field.name in (VALID_FROM, VALID_UNTIL) else _stored_type(field.type)
        fields.append(pa.field(field.name, kind))
    return rows.cast(pa.schema(fields))


_MOMENT = pa.timestamp("us", "UTC")


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_stored_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_stored_type(kind.key_type), _stored_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_stored_type(kind.value_type)))
    return kind


def write_removed(folder: IndexFolder, rows: Rows) -> tuple[str, str]:
    """Write which rows of a segment a version leaves out; returns the name of the file and its seal."""
    name = new_name()
    return name, folder.put(removed_file(name), lambda path: write_arrow(path, pa.table({"row": pa.array(rows)})))


def removed_rows(folder: IndexFolder, segment: SegmentFiles) -> Rows:
    """The rows of a segment that a version leaves out."""
    if segment.removed_name is None:
        return np.zeros(0, np.int64)
    name = removed_file(segment.removed_name)
    rows: Rows = folder.opened(name, segment.seals.get(name), map_arrow)["row"].to_numpy()
    return rows


def read_sample(folder: IndexFolder, name: str | None) -> pa.Table | None:
    """The events that subscriptions are planned with, if there are any."""
    return None if name is None else pa.ipc.open_file(folder.read(f"{SAMPLES}/{name}.arrow")).read_all()


def living_rows(folder: IndexFolder, segment: SegmentFiles) -> pa.Table:
    """The rows of a segment as they were given, without refused and removed rows."""
    return _living(_given_rows(folder, segment), folder, segment)


def _given_rows(folder: IndexFolder, segment: SegmentFiles) -> pa.Table:
    """All rows of a segment as they were given."""
    name = _file(segment.name, "parquet")
    return pq.read_table(pa.BufferReader(folder.read(name, segment.seals.get(name))))


def segment_columns(folder: IndexFolder, segment: SegmentFiles) -> pa.Table:
    """The columns of all rows of a segment, mapped into memory."""
    name = _file(segment.name, "arrow")
    return folder.opened(name, segment.seals.get(name), map_arrow)


def living_subscriptions(folder: IndexFolder, segment: SegmentFiles, form: str, carried: Sequence[str]) -> pa.Table:
    """The subscriptions of a segment: id, expression as text, weight, and carried columns."""
    rows = living_rows(folder, segment)
    weights = rows[WEIGHT].fill_null(0.0) if WEIGHT in rows.column_names else pa.array(np.zeros(len(rows)))
    columns = {ID: rows[ID], EXPRESSION: _texts(rows, form), WEIGHT: weights}
    return pa.table({**columns, **{name: rows[name] for name in carried}})


def _texts(rows: pa.Table, form: str) -> pa.Array:
    """The expression of each row as text; null for rows that were refused."""
    if form == EXPRESSION:
        return combined(rows[form])
    right = pc.is_valid(rows[ID])
    kept = rows.filter(right)
    table = read_predicates(kept[form])
    texts = pa.array((str(table.expression(row)) for row in range(len(kept))), pa.string(), size=len(kept))
    return pc.replace_with_mask(pa.nulls(len(rows), pa.string()), combined(right), texts)


def _living(rows: pa.Table, folder: IndexFolder, segment: SegmentFiles) -> pa.Table:
    lives = combined(pc.is_valid(rows[ID])).to_numpy(zero_copy_only=False)
    lives[removed_rows(folder, segment)] = False
    return rows.filter(pa.array(lives))


def asked_attributes(folder: IndexFolder, segments: Iterable[SegmentFiles]) -> frozenset[str]:
    """The attributes that the subscriptions of some segments ask about."""
    return frozenset().union(*(_asked_by(folder, segment) for segment in segments))


def _asked_by(folder: IndexFolder, segment: SegmentFiles) -> Iterable[str]:
    if segment.asked is not None:
        return segment.asked
    # Indexes of version 1 have it in the snapshots only.
    name = _file(segment.name, "tamis")
    return _asked_in(folder.local(name, segment.seals.get(name)))


@functools.lru_cache(maxsize=1 << 16)
def _asked_in(path: Path) -> frozenset[str]:
    """The attributes of one segment. Cached: its files never change."""
    return frozenset(open_snapshot(container.open(path)).table("dimensions")["attribute"].to_pylist())


class OpenSegment:
    """A segment that is mapped into memory, with all its rows, including rows that a version leaves out."""

    def __init__(self, folder: IndexFolder, segment: SegmentFiles) -> None:
        self.name = segment.name
        snapshot = _file(segment.name, "tamis")
        self.matcher = folder.opened(snapshot, segment.seals.get(snapshot), FrozenMatcher)
        self.columns = segment_columns(folder, segment)
        self._files = segment
        self._texts: pa.Array | None = None
        self._lives: tuple[str | None, Bools | None] = (None, None)

    def living(self, folder: IndexFolder, segment: SegmentFiles) -> Bools | None:
        """Which rows a version has; None: all. Only the last answer is cached, since versions follow each other."""
        removed_name, lives = self._lives
        if removed_name != segment.removed_name:
            lives = None
            if segment.removed_name is not None:
                lives = np.ones(len(self.columns), np.bool_)
                lives[removed_rows(folder, segment)] = False
            self._lives = segment.removed_name, lives
        return lives

    @property
    def expires(self) -> bool:
        """Whether some of its subscriptions have a limited time of validity."""
        return VALID_FROM in self.columns.column_names or VALID_UNTIL in self.columns.column_names

    @cached_property
    def validity(self) -> tuple[Rows, Rows]:
        """Beginning and end of each row's validity, in microseconds."""
        bounds = np.iinfo(np.int64)
        return self._moments(VALID_FROM, bounds.min), self._moments(VALID_UNTIL, bounds.max)

    def _moments(self, name: str, missing: int) -> Rows:
        if name not in self.columns.column_names:
            return np.full(len(self.columns), missing)
        return moments_of(combined(self.columns[name]), missing)

    @cached_property
    def weights(self) -> F64s:
        if WEIGHT not in self.columns.column_names:
            return np.zeros(len(self.columns))
        # Null weighs nothing, as it does for a matcher.
        weights: F64s = combined(self.columns[WEIGHT]).fill_null(0.0).to_numpy()
        return weights

    def texts(self, folder: IndexFolder, form: str) -> pa.Array:
        """The expressions of all rows, mapped. The first process of a host that needs them makes a file of them."""
        if self._texts is None:

            def write(path: Path) -> None:
                texts = pa.table({EXPRESSION: _texts(_given_rows(folder, self._files), form)})
                with pa.OSFile(str(path), "wb") as stream, pa.ipc.new_file(stream, texts.schema) as writer:
                    writer.write_table(texts)

            self._texts = combined(map_arrow(folder.made(f"{self.name}.text.arrow", write))[EXPRESSION])
        return self._texts

    def take(self, name: str, rows: Rows | pa.Array) -> pa.Array:
        """A column of some rows."""
        return combined(self.columns[name]).take(rows if isinstance(rows, pa.Array) else pa.array(rows))


def moments_of(column: pa.Array, missing: int) -> Rows:
    """Timestamps or dates as microseconds; `missing` for null."""
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    moments = column.cast(pa.timestamp("us", zone)).cast(pa.int64())
    rows: Rows = moments.fill_null(missing).to_numpy()
    return rows


def is_open(folder: IndexFolder, segment: SegmentFiles) -> bool:
    """Whether this process has mapped a segment."""
    return (folder.address, segment.name) in _open


_open: OrderedDict[tuple[str, str], OpenSegment] = OrderedDict()
"""The segments that this process has mapped. Spark uses a worker process for many tasks."""


def open_segment(folder: IndexFolder, segment: SegmentFiles, most_open: int = MOST_OPEN) -> OpenSegment:
    """A segment, mapped once per process. At most `most_open` segments stay open.

    Raises
    ------
    IndexFolderError
        If its files do not exist.
    """
    key = (folder.address, segment.name)
    opened = _open.get(key)
    if opened is None:
        _warm_up()
        opened = _open[key] = OpenSegment(folder, segment)
        while len(_open) > most_open:
            _open.popitem(last=False)
    _open.move_to_end(key)
    return opened


@functools.cache
def _warm_up() -> None:
    """Compile the kernels in one process of a host; the other processes wait, then load them from its cache."""
    path = Path(tempfile.gettempdir(), f"tamis-{os.getuid()}.lock")
    with open(path, "a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        matcher = Matcher()
        matcher.add_table(pa.table({ID: [0, 1], "expression": ["a = 1 AND s = 'x'", "s LIKE '%x%' OR a > 2"]}))
        matcher.match_batch(pa.table({"a": [1, 2], "s": ["x", None]}), threads=1)
