"""A matcher as a file: everything that its store holds, as arrays of a container (`tamis.storage`).

    segments/..., delta/...    the engine's, see `tamis.engine.snapshot`
    alive, weights, ids        by slot; ids are int64, or a column of strings
    order                      the slots of the living in order of addition, where that is not their own order
    dimensions                 a table: attribute, facet, and what is known of constants
    sources/block, row         by slot: where its expression is
    sources/texts              block 0: a column of SQL text
    sources/tables/0/...       block 1, 2, ...: tables in predicate form, taken apart
    history/...                the history's, if there is one, see `history_snapshot`

What matching needs is checked when the file is opened. Expressions are checked and read when one is first asked for.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.columns import combined
from tamis.encoding.expressions.predicate_rows import TypedValues
from tamis.encoding.expressions.predicate_table import PredicateTable
from tamis.engine.snapshot import arrays_of, read_rows, read_segment
from tamis.errors import SnapshotError
from tamis.kernels.numbers import I64s
from tamis.language.schema import Schema
from tamis.language.values import Kind
from tamis.matcher.engine_store import Contents
from tamis.matcher.expression_store import ClosedBlock, ExpressionBlock, Sources, TableRows, TextColumn
from tamis.matcher.history_snapshot import history_arrays, history_meta, read_history
from tamis.storage import container
from tamis.storage.container import Container
from tamis.storage.layout import Json
from tamis.storage.tables import COLUMN, to_bytes

_CONTENT = "matcher"
CONTENT_VERSION = 6
"""The version of the arrays of a matcher. A test pins their names and types to it."""
HISTORY_VERSION = 7
"""The version of a matcher with a history. A Tamis that knows no history must not match with its constant parts alone."""
_IN_MEMORY = "a pickled matcher"

Arrays = dict[str, npt.NDArray[Any]]


def write_snapshot(path: str | os.PathLike[str], contents: Contents, schema: Schema | None) -> None:
    """Write the contents of a store to a file. It replaces an older file when it is complete and safe on disk.

    Raises
    ------
    SnapshotError
    """
    container.write(path, *_laid_out(contents, schema))


def snapshot_bytes(contents: Contents) -> bytes:
    """The bytes that `write_snapshot` writes without a schema."""
    return container.to_bytes(*_laid_out(contents, None), _IN_MEMORY)


def contents_of_bytes(data: bytes) -> Contents:
    """The contents of a store, from `snapshot_bytes`.

    Raises
    ------
    SnapshotError
    """
    return read_contents(open_snapshot(container.of_bytes(data, _IN_MEMORY)))


def _laid_out(contents: Contents, schema: Schema | None) -> tuple[Arrays, dict[str, Json]]:
    arrays, segments = arrays_of(contents.segments, contents.rows)
    arrays["alive"], arrays["weights"] = contents.alive, contents.weights
    if contents.ids is not None:
        arrays["ids"] = contents.ids if isinstance(contents.ids, np.ndarray) else to_bytes(contents.ids)
    if not (np.diff(contents.living) > 0).all():
        arrays["order"] = contents.living.astype(np.int32)
    arrays["dimensions"] = to_bytes(contents.dimensions)
    laid_out = contents.sources.laid_out(len(contents.alive))
    arrays["sources/block"], arrays["sources/row"] = laid_out.block, laid_out.row
    arrays["sources/texts"] = to_bytes(laid_out.texts)
    kinds: list[Json] = []
    for number, table in enumerate(laid_out.tables):
        arrays.update(_table_arrays(f"sources/tables/{number}", table))
        kinds.append([str(values.kind) for values in table.values])
    meta: dict[str, Json] = {
        "content": _CONTENT,
        "content_version": CONTENT_VERSION if contents.history is None else HISTORY_VERSION,
        "subscriptions": int(np.count_nonzero(contents.alive)),
        "segments": segments,
        "ids": _type_of(contents.ids),
        "tables": kinds,
        "schema": None if schema is None else dict(schema.to_dict()),
    }
    if contents.history is not None:
        arrays.update(history_arrays(contents.history))
        meta["history"] = history_meta(contents.history)
    return arrays, meta


def open_snapshot(opened: Container) -> Container:
    """The container, if it holds a matcher that can be read.

    Raises
    ------
    SnapshotError
    """
    if opened.meta.get("content") != _CONTENT:
        raise SnapshotError(
            "does not hold a matcher: name a file that Matcher.save or `tamis build` wrote", path=opened.path
        )
    version = opened.meta.get("content_version")
    if version not in (CONTENT_VERSION, HISTORY_VERSION):
        message = f"is a matcher of version {version}, but this Tamis reads versions {CONTENT_VERSION} and {HISTORY_VERSION}: "
        message += "use a newer Tamis" if isinstance(version, int) and version > HISTORY_VERSION else "build it again"
        raise SnapshotError(message, path=opened.path)
    return opened


def read_contents(opened: Container) -> Contents:
    """The contents of a store, from a file.

    Raises
    ------
    SnapshotError
    """
    kind, alive = opened.meta["ids"], opened.array("alive")
    return Contents(
        tuple(read_segment(number, opened.array) for number in range(opened.meta["segments"])),
        read_rows(opened.names, opened.array),
        alive,
        None if kind is None else opened.array("ids") if kind == "int" else _column(opened, "ids"),
        opened.array("order").astype(np.int64) if "order" in opened.names else np.flatnonzero(alive),
        opened.array("weights"),
        opened.table("dimensions"),
        _read_sources(opened),
        read_history(opened),
    )


def _type_of(ids: I64s | pa.Array | None) -> str | None:
    if ids is None:
        return None
    return "int" if isinstance(ids, np.ndarray) else "str"


def _read_sources(opened: Container) -> Sources:
    def texts() -> ExpressionBlock:
        return TextColumn(_column(opened, "sources/texts"))

    def table(number: int, kinds: list[str]) -> ExpressionBlock:
        return ClosedBlock(lambda: TableRows(_read_table(opened, f"sources/tables/{number}", kinds)))

    tables = [table(number, kinds) for number, kinds in enumerate(opened.meta["tables"])]
    sources = Sources()
    sources.restore(opened.array("sources/block"), opened.array("sources/row"), [ClosedBlock(texts), *tables])
    return sources


def _table_arrays(name: str, table: PredicateTable) -> Arrays:
    arrays: Arrays = {
        f"{name}/start": table.start,
        f"{name}/attribute": table.attribute.astype(np.int32),
        f"{name}/attributes": to_bytes(pa.array(table.attributes, pa.string())),
        f"{name}/operator": table.operator.astype(np.uint8),
        f"{name}/value_start": table.value_start,
    }
    for number, (_, positions, plain) in enumerate(table.values):
        arrays[f"{name}/values/{number}/positions"] = positions
        arrays[f"{name}/values/{number}/plain"] = plain if isinstance(plain, np.ndarray) else to_bytes(plain)
    return arrays


def _read_table(opened: Container, name: str, kinds: list[str]) -> PredicateTable:
    values = []
    for number, kind in enumerate(kinds):
        place = f"{name}/values/{number}"
        text = Kind(kind) is Kind.STRING
        plain = _column(opened, f"{place}/plain") if text else opened.array(f"{place}/plain")
        values.append(TypedValues(Kind(kind), opened.array(f"{place}/positions"), plain))
    return PredicateTable.of_parts(
        opened.array(f"{name}/start"),
        opened.array(f"{name}/attribute"),
        opened.table(f"{name}/attributes")[COLUMN].to_pylist(),
        opened.array(f"{name}/operator"),
        opened.array(f"{name}/value_start"),
        values,
    )


def _column(opened: Container, name: str) -> pa.Array:
    return combined(opened.table(name)[COLUMN])
