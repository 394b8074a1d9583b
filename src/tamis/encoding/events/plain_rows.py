"""Rows of a table whose numbers are still as Arrow has them.

Whoever matches such rows makes the keys: a card, from copies of the columns, or the calling thread (`encoded`). Numbers below
2**53 have the same keys whatever predicates there are, so this can wait. Other columns must not wait: their keys depend on what
predicates name, and are made before.

    table ──▶ others: an EventBatch, made at once        strings, timestamps, lists, ...
         └──▶ numbers, as Arrow has them                 columns of numbers, or entries (attribute, number)
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import combined, is_list, without_views
from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_columns import entries, is_long
from tamis.encoding.events.plain_columns import Numbers, PlainColumns, entries_batch, is_plain
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s

NOT_PLAIN = -2
"""Instead of the dimension of an attribute: its values must be encoded in another way."""


class NotPlainError(Exception):
    """Some values of `PlainRows` turned out not to be plain numbers. The table must be encoded in another way."""


class KnownNames(NamedTuple):
    """The attributes that predicates ask about at some moment."""

    names: pa.Array
    numbers: I32s
    """The dimension of each, or NOT_PLAIN; and NOT_ASKED at the end."""


def known_names(dimensions: Dimensions) -> KnownNames:
    """The attributes that predicates ask about now."""
    if dimensions.names_form is not None:
        return cast(KnownNames, dimensions.names_form)  # The same object: a card has a copy of it.
    asked = list(dimensions.by_attribute)
    numbers = [dimensions.only_number.get(name, NOT_PLAIN) for name in asked]
    known = KnownNames(pa.array(asked, pa.string()), np.array([*numbers, NOT_ASKED], np.int32))
    dimensions.names_form = known
    return known


def numbers_of_names(names: pa.Array, known: KnownNames) -> I32s | None:
    """The dimension of each attribute, or NOT_ASKED. None if one is not plain. There is no Python loop, in which threads would
    wait for each other."""
    place = pc.index_in(names, value_set=known.names.cast(names.type)).fill_null(-1).to_numpy()
    found: I32s = known.numbers[place]  # A name that is not found gets place -1, which is the last.
    return None if (found == NOT_PLAIN).any() else found


class Entries(NamedTuple):
    """Entries (attribute, number) of events, as Arrow has them. No name is null."""

    start: I64s
    """Where the entries of each event begin, counted from the first event's."""
    names: pa.Array
    values: pa.Array


class ColumnRows:
    """Rows of a wide table: its plain columns with their dimensions, and what the other columns gave."""

    def __init__(self, table: pa.Table, plain: dict[int, int], others: EventBatch | None) -> None:
        self._table, self._plain = table, plain
        self.others = others
        self.count = len(table)

    @functools.cached_property
    def columns(self) -> PlainColumns:
        return PlainColumns(self._table, list(self._plain), list(self._plain.values()))

    @functools.cached_property
    def encoded(self) -> EventBatch:
        """The keys of all rows.

        Raises
        ------
        NotPlainError
        """
        batch, large = self.columns.batch(0, self.count)
        if large:
            raise NotPlainError
        if self.others is None:
            return batch
        return side_by_side(batch, self.others) if len(batch.dimension) else self.others


class EntryRows:
    """Rows of a long table whose values are numbers, and the attributes that predicates asked about when it was read."""

    others = None

    def __init__(self, table: pa.Table, known: KnownNames) -> None:
        self._table, self.known = table, known
        self.count = len(table)

    @functools.cached_property
    def entries(self) -> Entries:
        """The entries of all rows.

        Raises
        ------
        NotPlainError
            If a row, an entry or a name is null, or there are no values.
        """
        column = combined(self._table.column(0))
        if pa.types.is_map(column.type):
            names, values, nulls = column.keys, column.items, 0
        else:
            fields = column.type.value_type
            children = [column.values.field(fields.get_field_index(name)) for name in ("attribute", "value")]
            names, values, nulls = *children, column.values.null_count
        start = column.offsets.to_numpy().astype(np.int64)
        first, last = int(start[0]), int(start[-1])
        names, values = names.slice(first, last - first), values.slice(first, last - first)
        if column.null_count or nulls or names.null_count or values.null_count == len(values):
            raise NotPlainError
        return Entries(start - first, names, values)

    @functools.cached_property
    def encoded(self) -> EventBatch:
        """The keys of all rows.

        Raises
        ------
        NotPlainError
        """
        batch = plain_entries(self._table, lambda names: numbers_of_names(names, self.known))
        if batch is None:
            raise NotPlainError
        return batch


PlainRows: TypeAlias = ColumnRows | EntryRows


def are_entries(table: pa.Table) -> bool:
    """Whether a table can be `EntryRows`: lists or maps of strings and numbers."""
    if not is_long(table):
        return False
    kind = table.schema.field(0).type
    if pa.types.is_map(kind):
        name, value = kind.key_type, kind.item_type
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        assert is_list(kind)
        name, value = (kind.value_type.field(each).type for each in ("attribute", "value"))
    else:
        return False
    return (pa.types.is_string(name) or pa.types.is_large_string(name)) and is_plain(value)


def plain_entries(table: pa.Table, numbers_of: Callable[[pa.Array], Numbers | None]) -> EventBatch | None:
    """The keys of a long table if all its values are numbers of plain attributes. None if not, or if something is wrong.

    `numbers_of` gives the dimensions of attributes, or NOT_ASKED; None if one is not plain.
    """
    parents, attributes, values = entries(table)
    if not is_plain(values.type) or attributes.null_count or values.null_count == len(values):
        return None
    encoded = pc.dictionary_encode(without_views(attributes))
    numbers = numbers_of(encoded.dictionary)
    if numbers is None:
        return None
    codes = encoded.indices.to_numpy().astype(np.int32, copy=False)
    return entries_batch(parents, codes, values, numbers, len(table))


def events_in(batch: EventBatch | PlainRows) -> int:
    """The number of events."""
    return len(batch.start) - 1 if isinstance(batch, EventBatch) else batch.count


def encoded(batch: EventBatch | PlainRows) -> EventBatch:
    """The keys of all events.

    Raises
    ------
    NotPlainError
    """
    return batch if isinstance(batch, EventBatch) else batch.encoded


def side_by_side(left: EventBatch, right: EventBatch) -> EventBatch:
    """Join two batches of the same events. The batches have no dimension in common."""
    start = left.start + right.start
    dimension, keys = np.empty(start[-1], np.int32), np.empty(start[-1], np.int64)
    for batch, before in ((left, right.start[:-1]), (right, left.start[1:])):
        _put_aside(batch, before, dimension, keys)
    return EventBatch(start, dimension, keys, keys)


@lean_kernel
def _put_aside(batch: EventBatch, before: I64s, all_dimension: I32s, all_keys: I64s) -> None:
    """Copy the values of each event, leaving room for `before[event]` values of the other batch."""
    for event in range(len(before)):
        for v in range(batch.start[event], batch.start[event + 1]):
            all_dimension[before[event] + v] = batch.dimension[v]
            all_keys[before[event] + v] = batch.lo[v]
