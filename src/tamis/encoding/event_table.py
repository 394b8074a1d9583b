"""Arrow tables of events to batches of keys, without a Python loop per value."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import Column, Rows, event_columns
from tamis.encoding.dimensions import Dimensions, Facets
from tamis.encoding.events import EncodedEvents, EventBatch
from tamis.encoding.kernel import kernel
from tamis.encoding.texts import Texts
from tamis.language.schema import Schema
from tamis.language.values import Kind

_Part = tuple[int, Rows, npt.NDArray[np.int64]]

# From so many strings on, a sample tells whether they are all different.
_SAMPLED = 1024


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
    codes, distinct = _distinct(column.values)
    parts: list[_Part] = []
    for text in facets.texts:
        keys = text.keys(distinct)
        parts.append((text.number, column.rows, keys if codes is None else keys[codes]))
    for pattern in facets.patterns:
        keys, counts = pattern.keys(distinct)
        if codes is None:
            parts.append((pattern.number, np.repeat(column.rows, counts), keys))
        else:
            parts.append((pattern.number, *_spread(column.rows, codes, keys, counts)))
    return parts


def _distinct(values: pa.Array) -> tuple[npt.NDArray[np.int32] | None, Texts]:
    """The distinct strings, each of which is then looked at once, and which of them each string is.

    None for the latter, and all strings, where they seem to differ: telling them apart takes a fifth of the time that needles do.
    """
    codes = None
    if pa.types.is_dictionary(values.type) or len(values) < _SAMPLED or not _seem_to_differ(values):
        encoded = pc.dictionary_encode(values)  # as it is, if it was one
        codes, values = encoded.indices.to_numpy().astype(np.int32), encoded.dictionary
    distinct = Texts(values)
    distinct.check()
    return codes, distinct


def _seem_to_differ(values: pa.Array) -> bool:
    """Whether no two of some strings are equal: of four times as many as the square root of their number.

    If every string came twice, eight equal pairs would be expected. They are drawn, since neighbours are often equal.
    """
    count = 4 * math.isqrt(len(values))
    drawn = np.random.default_rng(0).choice(len(values), count, replace=False, shuffle=False)
    return bool(pc.count_distinct(values.take(pa.array(drawn))).as_py() == count)


def _spread(rows: Rows, codes: Any, keys: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """The keys of every code and their rows, one run after another, where code c has ``counts[c]`` keys."""
    ends = np.cumsum(counts)
    total = int(counts[codes].sum())
    spread_rows, spread_keys = np.empty(total, np.int64), np.empty(total, np.int64)
    _spread_runs(rows, codes, keys, ends, spread_rows, spread_keys)
    return spread_rows, spread_keys


@kernel
def _spread_runs(rows: Any, codes: Any, keys: Any, ends: Any, spread_rows: Any, spread_keys: Any) -> None:
    at = 0
    for i in range(len(rows)):
        for k in range(ends[codes[i] - 1] if codes[i] > 0 else 0, ends[codes[i]]):
            spread_rows[at] = rows[i]
            spread_keys[at] = keys[k]
            at += 1


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
