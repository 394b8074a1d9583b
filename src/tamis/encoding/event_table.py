"""Arrow tables of events to batches of keys, without a Python loop per value."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import Column, Rows, event_columns
from tamis.encoding.dimensions import Dimensions, Facets
from tamis.encoding.events import EncodedEvents, EventBatch
from tamis.encoding.kernel import kernel
from tamis.encoding.runs import run_indices
from tamis.language.schema import Schema
from tamis.language.values import Kind

_Part = tuple[int, Rows, npt.NDArray[np.int64]]


def encode_table(table: pa.Table, dimensions: Dimensions, schema: Schema | None = None) -> EncodedEvents:
    """Encode a table of events in one of the forms that `columns` reads; with a schema, they must keep to it."""
    parts: list[_Part] = []
    # An attribute has several columns where its values are of several kinds, or integers and doubles.
    rows_of: dict[str, dict[Kind, list[Rows]]] = {}
    for column in event_columns(table):
        seen = rows_of.setdefault(column.attribute, {}).setdefault(column.kind, [])
        seen.append(column.rows)
        if schema is not None:
            schema.check_column(column.attribute, column.kind, np.sort(np.concatenate(seen)))
        facets = dimensions.by_attribute.get(column.attribute)
        if facets is None:
            continue
        if facets.presence is not None:
            rows = np.unique(column.rows)
            parts.append((facets.presence.number, rows, np.zeros(len(rows), np.int64)))
        parts.extend(_parts(column, facets))
    mismatched = sum(
        _mismatched(dimensions.by_attribute[attribute].asked, kinds)
        for attribute, kinds in rows_of.items()
        if attribute in dimensions.by_attribute
    )
    return EncodedEvents(_batch(parts, table.num_rows), mismatched)


def _mismatched(asked: frozenset[Kind], kinds: dict[Kind, list[Rows]]) -> int:
    """How many rows have the attribute, but not in all the kinds that are asked for."""
    if asked <= kinds.keys() and len(kinds) == 1:
        return 0
    rows = {kind: np.unique(np.concatenate(parts)) for kind, parts in kinds.items()}
    present = len(np.unique(np.concatenate(list(rows.values()))))
    if not asked <= rows.keys():
        return present
    complete = functools.reduce(np.intersect1d, [rows[kind] for kind in asked]) if asked else None
    return present - len(complete) if complete is not None else 0


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
