"""Arrow tables of events to batches of keys, without a Python loop per value."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.columns import Column, Odd, Rows, decoded_texts, integers, plain_texts
from tamis.encoding.dimensions.dimension import AddressDimension, Facet
from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions, Facets
from tamis.encoding.dimensions.texts import Texts
from tamis.encoding.events.asked import Asked
from tamis.encoding.events.event_batch import EncodedEvents, EventBatch
from tamis.encoding.events.event_columns import event_columns, is_long, is_wanted, names_in
from tamis.encoding.events.needed_values import Needed
from tamis.encoding.events.plain_columns import Numbers, PlainColumns, is_plain
from tamis.encoding.events.plain_rows import (
    ColumnRows,
    EntryRows,
    PlainRows,
    are_entries,
    known_names,
    numbers_of_names,
    plain_entries,
    side_by_side,
)
from tamis.errors import EventError
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s, I64s
from tamis.language.schema import Schema
from tamis.language.values import Kind

# The number of strings from which a sample tells whether they all differ.
_SAMPLED = 1024
_LARGEST_SAMPLE = 4096
_DRAWN = np.random.default_rng(0).random(_LARGEST_SAMPLE)
"""Where in a column the strings of a sample are, from 0 to 1. Drawing them anew takes longer than encoding a short column."""


class _Part(NamedTuple):
    """The keys of some rows in one dimension."""

    dimension: int
    rows: Rows
    keys: I64s


def encode_table(
    table: pa.Table, dimensions: Dimensions, schema: Schema | None = None, *, lenient: bool = False
) -> EncodedEvents:
    """Encode a table of events in one of the forms that `event_columns` reads. Events must keep to the schema, if there is one.

    With `lenient`, wrong values count as missing.
    """
    return TableEncoder(table, dimensions, schema, lenient=lenient).rows(0, len(table))


class TableEncoder:
    """Encodes any range of rows of a table of events. Several threads may encode at once while no dimension changes.

    `waits` says that `waiting` will be called, rather than `rows`.
    """

    many_names = 1024
    """The attributes of a long table are looked up all at once if they are more than this."""

    def __init__(
        self,
        table: pa.Table,
        dimensions: Dimensions,
        schema: Schema | None = None,
        *,
        lenient: bool = False,
        waits: bool = False,
    ) -> None:
        self._table = table
        self._dimensions = dimensions
        self._schema = schema
        self._lenient = lenient
        self._rest: list[int] | None = None
        """The columns that are not plain. None if the table is long or empty."""
        self._is_long = is_long(table)
        self._dimension_of: dict[int, int] = {}
        """Plain column -> its dimension."""
        if len(table) and not self._is_long:
            self._dimension_of, self._rest = _known_apart(table, dimensions, schema)
        self._plain = None if waits or self._rest is None else self._plain_columns()

    def _plain_columns(self) -> PlainColumns:
        return PlainColumns(self._table, list(self._dimension_of), list(self._dimension_of.values()))

    def can_wait(self) -> bool:
        """Whether `waiting` can be used."""
        if self._is_long:
            return self._schema is None and are_entries(self._table)
        return bool(self._dimension_of)

    def waiting(self, first: int, last: int) -> tuple[PlainRows, int]:
        """The rows from `first` up to `last` with their numbers as they are, and the mismatched values of the other columns.

        Raises
        ------
        EventError, TableError
        """
        table = self._table.slice(first, last - first)
        if self._is_long:
            return EntryRows(table, known_names(self._dimensions)), 0
        others, mismatched = self.by_column(table, self._rest) if self._rest else (None, 0)
        return ColumnRows(table, self._dimension_of, others), mismatched

    def rows(self, first: int, last: int) -> EncodedEvents:
        """The keys of the rows from `first` up to `last`.

        Raises
        ------
        EventError, TableError
            If a value or the table is wrong. The error counts rows from `first` on.
        """
        table = self._table.slice(first, last - first)
        if self._rest is None:
            batch = plain_entries(table, self._numbers_of) if len(table) else None
            return self.by_column(table) if batch is None else EncodedEvents(batch, 0)
        rest, plain = self._rest, self._plain or self._plain_columns()
        batch, large = plain.batch(first, last)
        if large:
            rest = sorted([*rest, *large])
            batch, _ = plain.without(large).batch(first, last)
        if not rest:
            return EncodedEvents(batch, 0)
        others, mismatched = self.by_column(table, rest)
        return EncodedEvents(side_by_side(batch, others) if len(batch.dimension) else others, mismatched)

    def _numbers_of(self, names: pa.Array) -> Numbers | None:
        """The dimension of each attribute, or NOT_ASKED. None if an attribute is not plain, or its values may be wrong."""
        if self._schema is None and len(names) > self.many_names:
            return numbers_of_names(names, known_names(self._dimensions))
        return _numbers_of(names_in(names), self._dimensions, self._schema)

    def by_column(self, table: pa.Table, among: list[int] | None = None) -> EncodedEvents:
        """Encode a table column by column: the columns in `among`, or all."""
        return encode_columns(self._right_columns(table, among), self._dimensions, table.num_rows)

    def _right_columns(self, table: pa.Table, among: list[int] | None) -> Iterator[Column]:
        """The columns that predicates or the schema use.

        Raises
        ------
        EventError
            If a value is wrong and `lenient` is False.
        """
        asked = Asked.of(self._dimensions, self._schema)
        for found in checked_columns(table, asked, self._schema, among, texts=self._lenient):
            if isinstance(found, Column):
                yield found
            elif not self._lenient:
                raise found.error()


def encode_columns(columns: Iterable[Column], dimensions: Dimensions, count: int) -> EncodedEvents:
    """The keys of `count` events, given column by column. Columns that no predicate asks about are left out.

    So are values that an event does not need, because it lacks all premises of their attribute.
    """
    needed: Needed | None = None
    if dimensions.premises.are_any:
        columns = list(columns)
        needed = Needed(columns, dimensions.premises, count)
    parts: list[_Part] = []
    rows_of: dict[str, dict[Kind | Facet, list[Rows]]] = {}
    for column in columns:
        facets = dimensions.by_attribute.get(column.attribute)
        if facets is None:
            continue
        rows_of.setdefault(column.attribute, {}).setdefault(column.kind, []).append(column.rows)
        if needed is not None and facets.address is None:
            column = _needed_part(column, needed)
        if facets.presence is not None:
            rows = _distinct(column.rows)
            parts.append(_Part(facets.presence.number, rows, np.zeros(len(rows), np.int64)))
        of_column = _utf8_parts(column, facets)
        parts.extend(of_column)
        if facets.address is not None:
            addresses = [part.rows for part in of_column if part.dimension == facets.address.number]
            rows_of[column.attribute].setdefault(Facet.ADDRESS, []).extend(addresses)
    mismatched = sum(
        _mismatched(dimensions.by_attribute[attribute].asked, kinds) for attribute, kinds in rows_of.items()
    )
    return EncodedEvents(_batch(parts, count), mismatched)


def _needed_part(column: Column, needed: Needed) -> Column:
    """The values that events need. The others are only held to be UTF-8."""
    part = needed.part(column)
    if part is not column and column.kind is Kind.STRING and not pa.types.is_dictionary(column.values.type):
        try:
            Texts(column.values).check()
        except UnicodeDecodeError:
            return column  # Encoding it finds the wrong strings.
    return part


def checked_columns(
    table: pa.Table, asked: Asked, schema: Schema | None, among: Sequence[int] | None = None, *, texts: bool = True
) -> Iterator[Column | Odd]:
    """`event_columns`, checked against the schema, if there is one. With `texts`, strings are also checked to be UTF-8."""
    return checked(event_columns(table, among, asked), schema, texts=texts)


def checked(columns: Iterable[Column | Odd], schema: Schema | None, *, texts: bool) -> Iterator[Column | Odd]:
    """Columns, checked as `checked_columns` does."""
    # An attribute has several columns if its values are of several kinds, or integers and doubles.
    rows_of: dict[tuple[str, Kind], list[Rows]] = {}
    for column in columns:
        if isinstance(column, Odd):
            yield column
            continue
        if schema is not None:
            seen = rows_of.setdefault((column.attribute, column.kind), [])
            seen.append(column.rows)
            try:
                schema.check_column(column.attribute, column.kind, np.sort(np.concatenate(seen)))
            except EventError as error:
                yield Odd(column.attribute, column.rows if error.rows is None else error.rows, error.reason)
        if texts and column.kind is Kind.STRING:
            yield from _texts_apart(column)
        else:
            yield column


def _texts_apart(column: Column) -> Iterator[Column | Odd]:
    """A column of strings. Strings that are not UTF-8 become an `Odd`."""
    texts = plain_texts(column.values)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        wrong = np.array([text is None for text in decoded_texts(texts)], np.bool_)
        yield Odd(column.attribute, column.rows[wrong], "a string is not UTF-8")
        if not wrong.all():
            yield column._replace(rows=column.rows[~wrong], values=texts.filter(pa.array(~wrong)))
    else:
        yield column


def _known_apart(table: pa.Table, dimensions: Dimensions, schema: Schema | None) -> tuple[dict[int, int], list[int]]:
    """`_sorted_apart`, kept for the next table of the same schema: it takes some microseconds for each column."""
    known = dimensions.table_form
    if known is None or known[1] is not schema or not known[0].equals(table.schema):
        known = dimensions.table_form = table.schema, schema, _sorted_apart(table, dimensions, schema)
    plain, rest = known[2]
    return plain, rest


def _sorted_apart(table: pa.Table, dimensions: Dimensions, schema: Schema | None) -> tuple[dict[int, int], list[int]]:
    """The plain columns of a wide table, with their dimensions, and the columns that must be encoded one by one.

    Plain columns cannot have wrong values. Columns without predicates are in neither list, unless the schema must check them.
    """
    names, types = table.column_names, table.schema.types
    repeated = {name for name, count in Counter(names).items() if count > 1} if len(set(names)) < len(names) else set()
    nested = any(not is_plain(kind) and pa.types.is_nested(kind) for kind in types)
    only, asked = dimensions.only_number, Asked.of(dimensions, schema)
    plain: dict[int, int] = {}
    rest: list[int] = []
    for index, (name, kind) in enumerate(zip(names, types, strict=True)):
        if not is_wanted(name, kind, asked):
            continue
        if (
            not is_plain(kind)
            or name in repeated
            or (nested and "." in name)  # a field of a struct may have the same name
            or (name in dimensions.by_attribute and name not in only)
            or (schema is not None and not schema.allows(name, Kind.NUMBER))
        ):
            rest.append(index)
        elif name in only:
            plain[index] = only[name]
    return plain, rest


def _numbers_of(names: list[str | None], dimensions: Dimensions, schema: Schema | None) -> list[int] | None:
    """The dimension of each attribute, or NOT_ASKED. None if an attribute is not plain, or its values may be wrong."""
    numbers: list[int] = []
    for name in names:
        number = dimensions.only_number.get(name or "", NOT_ASKED)
        if name is not None and number == NOT_ASKED and name in dimensions.by_attribute:
            return None
        if name is not None and schema is not None and not schema.allows(name, Kind.NUMBER):
            return None
        numbers.append(number)
    return numbers


def _mismatched(asked: frozenset[Kind | Facet], kinds: dict[Kind | Facet, list[Rows]]) -> int:
    """How many rows have the attribute, but not in all kinds that predicates need."""
    if asked <= kinds.keys() and len(kinds) == 1:
        return 0
    rows = {kind: _together(parts) for kind, parts in kinds.items() if parts}
    present = len(_together(list(rows.values())))
    if not asked <= rows.keys():
        return present
    complete = functools.reduce(np.intersect1d, [rows[kind] for kind in asked]) if asked else None
    return present - len(complete) if complete is not None else 0


def _distinct(rows: Rows) -> Rows:
    """Ascending rows, each once."""
    return rows[np.diff(rows, prepend=-1) > 0]


def _together(parts: list[Rows]) -> Rows:
    """The rows of several columns, each once, ascending."""
    return _distinct(parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts)))


def _utf8_parts(column: Column, facets: Facets) -> list[_Part]:
    """`_parts` of a column. Raises an EventError with the rows of strings that are not UTF-8."""
    try:
        return _parts(column, facets)
    except UnicodeDecodeError:
        for found in _texts_apart(column):
            if isinstance(found, Odd):
                raise found.error() from None
        raise


def _parts(column: Column, facets: Facets) -> list[_Part]:
    """The rows and keys of a column for each dimension of its attribute."""
    if column.kind is not Kind.STRING:
        dimension = getattr(facets, column.kind.value)
        return [] if dimension is None else [_Part(dimension.number, column.rows, dimension.keys(column.values))]
    if not facets.texts and not facets.patterns and facets.address is None:
        return []
    codes, distinct = distinct_texts(column.values)
    parts: list[_Part] = []
    for text in facets.texts:
        keys = text.keys(distinct)
        parts.append(_Part(text.number, column.rows, keys if codes is None else keys[codes]))
    for pattern in facets.patterns:
        keys, counts = pattern.keys(distinct)
        if codes is None:
            parts.append(_Part(pattern.number, np.repeat(column.rows, counts), keys))
        else:
            parts.append(_Part(pattern.number, *_spread(column.rows, codes, keys, counts)))
    if facets.address is not None:
        parts.append(_Part(facets.address.number, *_addresses(facets.address, column.rows, codes, distinct)))
    return parts


def _addresses(dimension: AddressDimension, rows: Rows, codes: I32s | None, distinct: Texts) -> tuple[Rows, Rows]:
    """The rows whose strings are addresses, and their keys."""
    located = dimension.located(distinct.to_pylist())
    known = np.array([key is not None for key in located], np.bool_)
    keys = np.array([0 if key is None else key for key in located], np.int64)
    if codes is not None:
        known, keys = known[codes], keys[codes]
    return rows[known], keys[known]


def distinct_texts(values: pa.Array) -> tuple[I32s | None, Texts]:
    """The code of each string, and the distinct strings that the codes stand for. Each distinct string is encoded once.

    Returns None and all strings if they seem to differ: finding the distinct ones takes a fifth of the time that needles do.
    """
    codes = None
    if pa.types.is_dictionary(values.type) or len(values) < _SAMPLED or not seem_to_differ(values):
        encoded = pc.dictionary_encode(values)  # a dictionary stays as it is
        codes, values = encoded.indices.to_numpy().astype(np.int32), encoded.dictionary
    distinct = Texts(values)
    distinct.check()
    return codes, distinct


def seem_to_differ(values: pa.Array) -> bool:
    """Whether a random sample of 4 * sqrt(n) strings has no duplicate.

    If every string came twice, eight equal pairs would be expected. The sample is random because neighbours are often equal.
    """
    count = min(4 * math.isqrt(len(values)), _LARGEST_SAMPLE)
    drawn = np.unique((_DRAWN[:count] * len(values)).astype(np.int64))
    return bool(pc.count_distinct(values.take(integers(drawn))).as_py() == len(drawn))


def _spread(rows: Rows, codes: I32s, keys: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """The rows and keys of all strings, one string after another. Code c has ``counts[c]`` keys."""
    ends = np.cumsum(counts)
    total = int(counts[codes].sum())
    spread_rows, spread_keys = np.empty(total, np.int64), np.empty(total, np.int64)
    _spread_runs(rows, codes, keys, ends, spread_rows, spread_keys)
    return spread_rows, spread_keys


@lean_kernel
def _spread_runs(rows: Rows, codes: I32s, keys: Rows, ends: Rows, spread_rows: Rows, spread_keys: Rows) -> None:
    at = 0
    for i in range(len(rows)):
        for k in range(ends[codes[i] - 1] if codes[i] > 0 else 0, ends[codes[i]]):
            spread_rows[at] = rows[i]
            spread_keys[at] = keys[k]
            at += 1


def _batch(parts: list[_Part], count: int) -> EventBatch:
    """Merge the parts of all dimensions into rows. Sorting makes parts of one dimension neighbours, as a batch requires."""
    parts.sort(key=lambda part: part.dimension)
    sizes = [len(part.rows) for part in parts]
    dimension = np.repeat(np.array([part.dimension for part in parts], np.int32), sizes)
    rows = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, np.int64)
    keys = np.concatenate([part.keys for part in parts]) if parts else np.zeros(0, np.int64)
    start = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(rows, minlength=count), out=start[1:])
    placed, placed_keys = np.empty(len(rows), np.int32), np.empty(len(rows), np.int64)
    _place(rows, dimension, keys, start[:-1].copy(), placed, placed_keys)
    return EventBatch(start, placed, placed_keys, placed_keys)


@lean_kernel
def _place(rows: Rows, dimension: I32s, keys: I64s, free: I64s, placed: I32s, placed_keys: I64s) -> None:
    for i in range(len(rows)):
        at = free[rows[i]]
        placed[at] = dimension[i]
        placed_keys[at] = keys[i]
        free[rows[i]] = at + 1
