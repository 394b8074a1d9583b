"""Arrow tables of events to batches of keys, without a Python loop per value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import Column, Rows, event_columns
from tamis.encoding.dimensions import Dimensions, Facets
from tamis.encoding.events import EncodedEvents, EventBatch
from tamis.encoding.kernel import kernel
from tamis.encoding.predicates import run_indices
from tamis.language.schema import Schema
from tamis.language.values import Kind

_Part = tuple[int, Rows, npt.NDArray[np.int64]]


def encode_table(table: pa.Table, dimensions: Dimensions, schema: Schema | None = None) -> EncodedEvents:
    """Encode a table of events in one of the forms that `columns` reads; with a schema, they must keep to it."""
    parts: list[_Part] = []
    mismatched = 0
    rows_of: dict[str, Rows] = {}
    for column in event_columns(table):
        if schema is not None:
            # An attribute has several columns where integers and doubles come apart.
            before = rows_of.get(column.attribute)
            rows = column.rows if before is None else np.sort(np.concatenate((before, column.rows)))
            rows_of[column.attribute] = rows
            schema.check_column(column.attribute, column.kind, rows)
        facets = dimensions.by_attribute.get(column.attribute)
        if facets is None:
            continue
        if facets.presence is not None:
            rows = np.unique(column.rows)
            parts.append((facets.presence.number, rows, np.zeros(len(rows), np.int64)))
        parts.extend(_parts(column, facets))
        if not facets.asks_for(column.kind) and not facets.only_presence():
            mismatched += len(column.rows)
    return EncodedEvents(_batch(parts, table.num_rows), mismatched)


def _parts(column: Column, facets: Facets) -> list[_Part]:
    """What a column contributes to each dimension of its attribute."""
    if column.kind is not Kind.STRING:
        dimension = getattr(facets, column.kind.value)
        return [] if dimension is None else [(dimension.number, column.rows, dimension.keys(column.values))]
    if not facets.texts and not facets.patterns:
        return []
    # Each distinct string is looked at once.
    encoded = pc.dictionary_encode(column.values)
    codes, distinct = encoded.indices.to_numpy(), encoded.dictionary
    parts: list[_Part] = [(text.number, column.rows, text.keys(distinct)[codes]) for text in facets.texts]
    for pattern in facets.patterns:
        keys, counts = pattern.keys(distinct)
        parts.append((pattern.number, np.repeat(column.rows, counts[codes]), _repeated(keys, counts, codes)))
    return parts


def _repeated(keys: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], codes: Any) -> npt.NDArray[np.int64]:
    """The keys of every code, one run after another, where code c has ``counts[c]`` keys."""
    starts = np.cumsum(counts) - counts
    return keys[run_indices(starts[codes], counts[codes])]


def _batch(parts: list[_Part], count: int) -> EventBatch:
    """Merge the dimensions into rows. Parts of one dimension are made neighbours first, as a batch must have them."""
    parts.sort(key=lambda part: part[0])
    sizes = [len(rows) for _, rows, _ in parts]
    dimension = np.repeat(np.array([number for number, _, _ in parts], np.int32), sizes)
    rows = np.concatenate([rows for _, rows, _ in parts]) if parts else np.zeros(0, np.int64)
    keys = np.concatenate([keys for _, _, keys in parts]) if parts else np.zeros(0, np.int64)
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=start[1:])
    placed, placed_keys = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64)
    _place(rows, dimension, keys, start[:-1].copy(), placed, placed_keys)
    return EventBatch(start, placed, placed_keys, placed_keys)


@kernel
def _place(rows: Any, dimension: Any, keys: Any, free: Any, placed: Any, placed_keys: Any) -> None:
    for i in range(len(rows)):
        at = free[rows[i]]
        placed[at] = dimension[i]
        placed_keys[at] = keys[i]
        free[rows[i]] = at + 1
