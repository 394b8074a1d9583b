"""Mappings to keys: few of them one by one, many of them by column.

A column takes some time before its first value. So a few events are encoded faster one by one, and so are events of many
attributes with few values each. Numbers are always: their columns save nothing.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable

import numpy as np

from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions
from tamis.encoding.dimensions.keys import ascend
from tamis.encoding.events.event_batch import (
    EncodedEvents,
    EventBatch,
    PlainValues,
    encode_flat,
    plain_values,
    row_of,
)
from tamis.encoding.events.event_table import encode_columns
from tamis.encoding.events.mapping_columns import (
    UnevenError,
    UnknownClassesError,
    mapping_columns,
    values_per_attribute,
)
from tamis.encoding.events.mappings import Mappings
from tamis.errors import EventError
from tamis.kernels.ranges import span_indices
from tamis.language.event import FlatEvent

__all__ = ["MappingEncoder", "UnevenError", "UnknownClassesError"]

FEW = 128
"""Events from which on columns take less time."""
_EVENTS_PER_VALUE = 2
"""Columns take less time if they have, on average, a value for each two of the fewest events. Events had 30 of 1,000 attributes:
1,000 events took 49 us each by column, 16 one by one. Of 30,000 attributes, they took 690 and 52."""


class MappingEncoder:
    """Encodes any range of events. Several threads may encode at once while no dimension changes.

    Fewer events than `few` are encoded one by one, and events whose attributes have few values each, unless `few` is 0.
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
        if self._few and values_per_attribute(part, dimensions) < self._few // _EVENTS_PER_VALUE:
            return one_by_one(part, dimensions)
        return encode_columns(mapping_columns(part, dimensions), dimensions, len(part))


def one_by_one(events: Mappings, dimensions: Dimensions) -> EncodedEvents:
    """The keys of events, each encoded as a single event is."""
    batch = _numbers(events, dimensions)
    if batch is None:
        batch = _encoded_one_by_one(events, dimensions, looks=False)
    if batch is None:
        batch = _encoded_one_by_one(events, dimensions, looks=True)
        assert batch is not None
    return batch


def _numbers(events: Mappings, dimensions: Dimensions) -> EncodedEvents | None:
    """The keys of events of small numbers alone. None if some are others."""
    found = None if events.flattened else events.numbers()
    if found is None:
        return None
    keys, start = found.doubles.view(np.int64).copy(), found.start
    if not ascend(keys):
        return None
    dimension = found.numbers_of_names(dimensions.only_number, NOT_ASKED)
    kept = dimension != NOT_ASKED
    if not kept.all():
        has_others = len(dimensions.only_number) < len(dimensions.by_attribute)
        if has_others and not dimensions.by_attribute.keys().isdisjoint(found.names(~kept)):
            return None
        start = np.append(0, np.cumsum(kept))[start]
        dimension, keys = dimension[kept], keys[kept]
    return EncodedEvents(EventBatch(start, dimension, keys, keys), 0)


def _encoded_one_by_one(events: Mappings, dimensions: Dimensions, looks: bool) -> EncodedEvents | None:
    """The keys of events. If it does not look at how large numbers are, it returns None if some are not small."""
    rows = _Rows()
    left: list[int] = []
    for row, event in enumerate(events.events):
        flat = events.flattened.get(row)
        if flat is not None:
            try:
                rows.add(_flat_row(flat, dimensions, row))
            except EventError:  # An event before it may have a wrong number, and errors name the first event.
                if not looks:
                    return None
                if not left:
                    raise
                break
            continue
        plain = None
        if type(event) is dict:
            plain = plain_values(event, dimensions)
        if plain is not None and looks and not plain.is_small():
            encoded = row_of(plain, dimensions)
            plain = None if encoded is None else _whole(encoded)
        if plain is None or not rows.add(plain):
            left.append(row)
    if left:
        raise UnknownClassesError(left)
    return rows.joined()


def _flat_row(flat: FlatEvent, dimensions: Dimensions, row: int) -> PlainValues:
    try:
        return _whole(encode_flat([flat], dimensions))
    except EventError as error:
        raise error.at(row) from None


def _whole(encoded: EncodedEvents) -> PlainValues:
    """An encoded event as keys alone."""
    batch = encoded.batch
    return PlainValues([], batch.dimension.tolist(), batch.lo.tolist(), batch.hi.tolist(), encoded.mismatched, True)


class _Rows:
    """The keys of events as bytes: packing them takes half of the time that lists and NumPy take."""

    def __init__(self) -> None:
        self._counts: list[tuple[int, int]] = []
        """Numbers and other keys of each event. Its numbers come first."""
        self._words: list[bytes] = []
        self._dimension: list[bytes] = []
        self._apart: list[tuple[int, list[int]]] = []
        """Events with intervals, and the highest keys of what is not a number."""
        self._mismatched = 0

    def add(self, row: PlainValues) -> bool:
        """Add an event. Returns whether all of its numbers are doubles."""
        words, dimensions = _packers(len(row.numbers), len(row.lo))
        try:
            self._words.append(words(*row.numbers, *row.lo))
        except (struct.error, OverflowError):
            return False
        self._dimension.append(dimensions(*row.dimension))
        if row.hi is not row.lo:
            self._apart.append((len(self._counts), row.hi))
        self._counts.append((len(row.numbers), len(row.lo)))
        self._mismatched += row.mismatched
        return True

    def joined(self) -> EncodedEvents | None:
        """All events. None if some number is not small."""
        counts = np.array(self._counts, np.int64).reshape(-1, 2)
        start = np.append(0, np.cumsum(counts.sum(axis=1)))
        # Arrays of bytes can be written to. Kernels are compiled for such arrays only.
        lo = np.frombuffer(bytearray().join(self._words), np.int64)
        dimension = np.frombuffer(bytearray().join(self._dimension), np.int32)
        if counts[:, 1].any():
            numbers = span_indices(start[:-1], counts[:, 0].copy())
            codes = lo[numbers]
            is_small = ascend(codes)
            lo[numbers] = codes
        else:
            is_small = ascend(lo)
        if not is_small:
            return None
        hi = lo.copy() if self._apart else lo
        for row, highest in self._apart:
            hi[start[row + 1] - len(highest) : start[row + 1]] = highest
        return EncodedEvents(EventBatch(start, dimension, lo, hi), self._mismatched)


@functools.lru_cache(maxsize=1024)
def _packers(numbers: int, keys: int) -> tuple[Callable[..., bytes], Callable[..., bytes]]:
    return struct.Struct(f"{numbers}d{keys}q").pack, struct.Struct(f"{numbers + keys}i").pack
