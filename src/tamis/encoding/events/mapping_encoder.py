"""Mappings to keys: few of them one by one, many of them by column.

A column takes some time before its first value, so a few events are encoded faster one by one. Numbers are always: their columns
save nothing.
"""

from __future__ import annotations

import numpy as np

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.keys import ascend
from tamis.encoding.events.event_batch import EncodedEvents, EventBatch, PlainValues, encode_flat, plain_values, row_of
from tamis.encoding.events.event_table import encode_columns
from tamis.encoding.events.mapping_columns import UnevenError, UnknownClassesError, mapping_columns
from tamis.encoding.events.mappings import Mappings
from tamis.errors import EventError
from tamis.kernels.ranges import span_indices
from tamis.language.event import FlatEvent

__all__ = ["MappingEncoder", "UnevenError", "UnknownClassesError"]

FEW = 128
"""Events from which on columns take less time."""


class MappingEncoder:
    """Encodes any range of events. Several threads may encode at once while no dimension changes.

    Fewer events than `few` are encoded one by one.
    """

    def __init__(self, events: Mappings, dimensions: Dimensions, few: int = FEW) -> None:
        self._events = events
        self._dimensions = dimensions
        self._few = few

    def rows(self, first: int, last: int) -> EncodedEvents:
        """The keys of the events from `first` up to `last`.

        Raises
        ------
        EventError
            If a value is wrong. It counts events from `first` on, and so do the next errors.
        UnevenError
            All events must be flattened first.
        UnknownClassesError
            Some events must be flattened first.
        """
        part, dimensions = self._events.slice(first, last - first), self._dimensions
        only_numbers = len(dimensions.only_number) == len(dimensions.by_attribute)
        if len(part) < self._few or only_numbers:
            return one_by_one(part, dimensions)
        return encode_columns(mapping_columns(part, dimensions), dimensions, len(part))


def one_by_one(events: Mappings, dimensions: Dimensions) -> EncodedEvents:
    """The keys of events, each encoded as a single event is."""
    rows: list[PlainValues] = []
    left: list[int] = []
    for row, event in enumerate(events.events):
        flat = events.flattened.get(row)
        if flat is not None:
            rows.append(_flat_row(flat, dimensions, row))
            continue
        plain = plain_values(event, dimensions) if type(event) is dict else None
        if plain is not None and not plain.is_small():
            encoded = row_of(plain, dimensions)
            plain = None if encoded is None else _whole(encoded)
        if plain is None:
            left.append(row)
        else:
            rows.append(plain)
    if left:
        raise UnknownClassesError(left)
    return _joined(rows)


def _flat_row(flat: FlatEvent, dimensions: Dimensions, row: int) -> PlainValues:
    try:
        return _whole(encode_flat([flat], dimensions))
    except EventError as error:
        raise error.at(row) from None


def _whole(encoded: EncodedEvents) -> PlainValues:
    """An encoded event as keys alone."""
    batch = encoded.batch
    return PlainValues([], batch.dimension.tolist(), batch.lo.tolist(), batch.hi.tolist(), encoded.mismatched, True)


def _joined(rows: list[PlainValues]) -> EncodedEvents:
    """One event after another, the numbers of each before its other keys. All numbers are small."""
    numbers = np.array([len(row.numbers) for row in rows], np.int64)
    keys = np.array([len(row.lo) for row in rows], np.int64)
    start = np.append(0, np.cumsum(numbers + keys))
    dimension = np.array([number for row in rows for number in row.dimension], np.int32)
    codes = np.array([number for row in rows for number in row.numbers], np.float64).view(np.int64)
    ascend(codes)
    lo = np.empty(len(dimension), np.int64)
    lo[span_indices(start[:-1], numbers)] = codes
    behind = span_indices(start[:-1] + numbers, keys)
    lo[behind] = [key for row in rows for key in row.lo]
    hi = lo
    if any(row.hi is not row.lo for row in rows):
        hi = lo.copy()
        hi[behind] = [key for row in rows for key in row.hi]
    return EncodedEvents(EventBatch(start, dimension, lo, hi), sum(row.mismatched for row in rows))
