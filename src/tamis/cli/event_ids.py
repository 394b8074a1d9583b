"""The ids of events in Parquet: the column that `--event-id` names, which may lie in structs.

A row whose id is null or beyond 64 bits is a bad row, like a line of JSONL without the field. A missing column, or a column of
another type, is an error of the whole file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.cli.parquet_rows import ParquetRows
from tamis.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa


class EventIds(NamedTuple):
    """The ids of rows, the numbers of these rows, and the problems of rows without an id, by row."""

    values: pa.Array
    rows: Sequence[int]
    problems: dict[int, str]


class IdColumn:
    """The column under a name: the column with this name, or the field ``id`` of a struct ``order`` for ``order.id``.

    Raises
    ------
    FileError
        If there is no such column, if it holds neither strings nor integers, or if earlier files had ids of another type
        (`kind`).
    """

    def __init__(self, rows: ParquetRows, name: str, kind: type | None = None) -> None:
        import pyarrow as pa

        from tamis.encoding.columns import is_text

        self._name = name
        self._path = [name] if name in rows.schema.names else name.split(".")
        found = _type_under(rows.schema, self._path)
        if found is None:
            raise FileError(f"there is no column {name!r}", path=rows.name)
        if not (is_text(found) or pa.types.is_integer(found)):
            raise FileError(f"the column {name!r} must be strings or integers, not {found}", path=rows.name)
        self.type = pa.string() if is_text(found) else pa.int64()
        self.kind: type = str if is_text(found) else int
        if kind is not None and kind is not self.kind:
            raise FileError(
                f"the column {name!r} is {found}, but the field was {kind.__name__} in earlier files", path=rows.name
            )

    def ids(self, table: pa.Table) -> EventIds:
        """The ids of some rows; these count from 0."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from tamis.encoding.columns import combined
        from tamis.language.values import INT64_MAX

        column: Any = table[self._path[0]]
        for field in self._path[1:]:
            column = pc.struct_field(column, field)
        values = combined(column)
        good = values.is_valid()
        if pa.types.is_uint64(values.type):
            good = pc.and_(good, pc.fill_null(pc.less_equal(values, pa.scalar(INT64_MAX, pa.uint64())), False))
        if pc.all(good).as_py():
            return EventIds(values.cast(self.type), range(len(values)), {})
        rows = pc.indices_nonzero(good).to_pylist()
        bad = pc.indices_nonzero(pc.invert(good)).to_pylist()
        return EventIds(values.filter(good).cast(self.type), rows, {row: self._problem(values[row]) for row in bad})

    def _problem(self, value: pa.Scalar) -> str:
        if value.is_valid:
            return beyond_64_bits(self._name, value.as_py())
        return no_field(self._name)


def no_field(name: str) -> str:
    """What is wrong with an event that has no id."""
    return f"there is no field {name!r}"


def beyond_64_bits(name: str, number: int) -> str:
    """What is wrong with an id that is too large."""
    from tamis.language.values import in_words

    return f"the field {name!r}: {in_words(number)} is beyond 64 bits and cannot be an id"


def _type_under(schema: pa.Schema, path: list[str]) -> pa.DataType | None:
    """The type of a column, or of a field in its structs; None if there is not exactly one."""
    import pyarrow as pa

    found: Any = schema
    for name in path:
        if not (found is schema or pa.types.is_struct(found)):
            return None
        places = found.get_all_field_indices(name)
        if len(places) != 1:
            return None
        found = found.field(places[0]).type
    return found
