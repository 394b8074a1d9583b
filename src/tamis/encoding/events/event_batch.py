"""Events in keys: a batch is a table of (dimension, key interval) values, row by row.

    event       e0             e1       e2
    start       0              3        4     4       values of e: start[e] .. start[e + 1]; e2 has no values
    dimension   7    7    12   3
    lo          10   40   5    8
    hi          10   40   5    9                      hi > lo where the value is an Interval

Invariant: within a row, the values of one dimension are neighbours. A batch has only dimensions that predicates use.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.dimension import Dimension, Facet
from tamis.encoding.dimensions.dimension_set import Dimensions, Facets
from tamis.encoding.dimensions.keys import INT_EXACT, ascend
from tamis.encoding.events.needed_strings import not_needed
from tamis.errors import EventError
from tamis.kernels.numbers import I32s, I64s
from tamis.language.event import FlatEvent, Refused, flatten, kind_of_value
from tamis.language.values import INT64_MAX, INT64_MIN, Interval, Kind, is_well_formed

_INT64 = np.dtype(np.int64)
_INT32 = np.dtype(np.int32)
_NAMES = frozenset({str})
BETWEEN = "\0"
"""Joins the names of an event, which identify its form. A tuple of names would take three quarters of the time, but names may be
of a class that decides itself what it equals."""
_KNOWN = frozenset(
    {int, float, str, bool, NoneType, Decimal, date, datetime, Interval, np.bool_, np.float64, np.float32}
    | {np.int64, np.int32, np.str_, np.datetime64, bytes, time, timedelta}
)


class EventBatch(NamedTuple):
    """A batch of events as kernels read it.

    It is read-only: `lo` and `hi` are the same array if no value is an Interval, and batches of one event share `start`.
    """

    start: I64s
    dimension: I32s
    lo: I64s
    hi: I64s


class EncodedEvents(NamedTuple):
    """A batch, and how many attributes of events have no value of a kind that a predicate on the attribute needs."""

    batch: EventBatch
    mismatched: int


def has_several(batch: EventBatch) -> bool:
    """Whether an event has several keys in one dimension. Such keys are neighbours."""
    repeated = batch.dimension[1:] == batch.dimension[:-1]
    starts = batch.start[1:-1]
    repeated[starts[(starts > 0) & (starts < len(batch.dimension))] - 1] = False  # neighbours of different events
    return bool(repeated.any())


def encode_plain(event: Mapping[str, Any], dimensions: Dimensions, *, flattens: bool = True) -> EncodedEvents | None:
    """Encode one event without flattening it as a whole. The result is the same, and it takes a fraction of the time.

    Returns None if the event must be flattened. Flattening may run code of unknown classes. See `plain_values` for `flattens`.
    """
    plain = plain_values(event, dimensions, flattens=flattens) if type(event) is dict else None
    return None if plain is None else row_of(plain, dimensions)


def encode_flat(
    events: Sequence[FlatEvent], dimensions: Dimensions, *, numbered: bool = True, lenient: bool = False
) -> EncodedEvents:
    """Encode events in the normal form of `language.event`, value by value.

    Parameters
    ----------
    numbered : bool
        Whether messages name the row of an event. A single event has no row.
    lenient : bool
        Whether an attribute with a value outside the language counts as missing.

    Raises
    ------
    EventError
        For a value outside the language under an attribute that has a dimension.
    """
    writer = _Writer(dimensions, lenient=lenient)
    for row, event in enumerate(events):
        writer.add(event, row if numbered else None)
    return writer.finish()


class PlainValues(NamedTuple):
    """One event: its numbers, then its other values as keys, and the dimension of each. `lo` and `hi` may be the same list."""

    numbers: list[float]
    dimension: list[int]
    lo: list[int]
    hi: list[int]
    mismatched: int
    is_flattened: bool
    """Whether some of the values were flattened."""

    def is_small(self) -> bool:
        """Whether all numbers are surely below 2**53 in magnitude, and none is NaN. Kernels make keys only of such numbers."""
        return sum(map(abs, self.numbers)) < INT_EXACT


def plain_values(event: dict[str, Any], dimensions: Dimensions, *, flattens: bool = True) -> PlainValues | None:
    """The values of an event, attribute by attribute. None if the event must be flattened as a whole, which finds its errors.

    Attributes without predicates are not read, nor are strings that the event does not need. Values that are neither numbers
    nor strings are flattened and encoded one by one. Returns None instead if that may run code of unknown classes, or if
    `flattens` is False. The row has numbers first, of attributes with a single dimension. Other values follow as keys.
    """
    number_of, text_of, asked = dimensions.only_number.get, dimensions.only_text.get, dimensions.by_attribute
    string_keys, left_out = dimensions.string_keys, not_needed(event, dimensions)
    numbers: list[float] = []
    dimension: list[int] = []
    keys: list[int] = []
    key_dimension: list[int] = []
    rest: dict[str, Any] = {}
    mismatched = 0
    # This loop takes 0.1 us for each attribute. So it leaves out checks that can later be done for all numbers or names at once.
    for name, value in event.items():
        if type(name) is not str:
            return None
        cls = type(value)
        if cls is float or cls is int:
            number = number_of(name)
            if number is not None:
                numbers.append(value)
                dimension.append(number)
            elif name in asked:
                if -INT_EXACT < value < INT_EXACT:
                    of_number = asked[name].number_keys(value)
                    key_dimension += of_number[0]
                    keys += of_number[1]
                    mismatched += of_number[2]
                else:
                    rest[name] = value
        elif cls is str:
            text = text_of(name)
            if text is None and name not in asked:
                continue
            if not (value.isascii() or is_well_formed(value)):
                rest[name] = value
            elif name in left_out:
                mismatched += asked[name].is_mismatched_by_strings()
            elif text is not None:
                key_dimension.append(text[0])
                keys.append(text[1](value))
            else:
                known = string_keys(asked[name], value)
                key_dimension += known[0]
                keys += known[1]
                mismatched += known[2]
        elif value is not None and (name in asked or name in dimensions.parents):
            rest[name] = value
    dimensions.numbers_expected = len(numbers) == len(event)
    dimension += key_dimension
    if not rest:
        return PlainValues(numbers, dimension, keys, keys, mismatched, False)
    writer = _written(rest, event, dimensions) if flattens else None
    if writer is None:
        return None
    dimension += writer.dimension
    lo = hi = keys + writer.lo
    if writer.lo != writer.hi:
        hi = keys + writer.hi
    return PlainValues(numbers, dimension, lo, hi, mismatched + writer.mismatched, True)


def _written(rest: dict[str, Any], event: dict[str, Any], dimensions: Dimensions) -> _Writer | None:
    """The values of an event that are not plain.

    None if one is wrong, may run code of unknown classes, or gives an attribute that the event also gives elsewhere.
    """
    try:
        if not has_known_classes(rest):
            return None
        flat = flatten(rest)
    except Exception:  # Unknown classes may raise any error. Flattening the whole event reports the first one.
        return None
    # A name that is not in the rest was plain, or no predicate uses it.
    if any(name in event and name not in rest and name in dimensions.by_attribute for name in flat):
        return None
    writer = _Writer(dimensions)
    try:
        writer.add(flat)
    except EventError:
        return None
    return writer


def number_dimensions(event: Mapping[str, Any], only: Mapping[str, int]) -> list[int] | None:
    """The dimension of each value, if all are plain numbers that predicates ask about. None if not."""
    try:
        return [
            # No attribute is called "", so this ends at the first value that is no plain number.
            only[name if type(name) is str and (type(value) is float or type(value) is int) else ""]
            for name, value in event.items()
        ]
    except KeyError:
        return None


def has_known_classes(value: Any) -> bool:
    """Whether flattening a value runs only code of known classes."""
    cls = type(value)
    if cls is dict:
        return _NAMES.issuperset(map(type, value)) and all(map(has_known_classes, value.values()))
    if cls is list or cls is tuple:
        return _KNOWN.issuperset(map(type, value)) or all(map(has_known_classes, value))
    return cls in _KNOWN


def row_of(plain: PlainValues, dimensions: Dimensions) -> EncodedEvents | None:
    """The arrays of one event. None if a number is out of range."""
    numbers, dimension, lo, hi, mismatched, _ = plain
    count = len(numbers)
    pack_keys, pack_dimensions, start = _layout(count, len(lo))
    lows, numbered = np.empty(len(dimension), _INT64), np.empty(len(dimension), _INT32)
    try:
        pack_keys(lows, 0, *numbers, *lo)
    except struct.error:  # an integer beyond the range of doubles
        return None
    if not ascend(lows[:count] if lo else lows):
        present = [number == number for number in numbers]
        if not all(present):  # NaN is a missing value
            dimension = [*itertools.compress(dimension, present), *dimension[count:]]
            return row_of(
                plain._replace(numbers=[*itertools.compress(numbers, present)], dimension=dimension), dimensions
            )
        if not _locate_large(numbers, dimension, dimensions, lows):
            return None
    pack_dimensions(numbered, 0, *dimension)
    highs = lows
    if hi is not lo:
        highs = lows.copy()
        highs[count:] = hi
    return EncodedEvents(EventBatch(start, numbered, lows, highs), mismatched)


def _locate_large(numbers: Collection[float], dimension: list[int], dimensions: Dimensions, lows: I64s) -> bool:
    """Write the keys of the numbers that may have labels. False if one is out of range."""
    for at, number in enumerate(numbers):
        if not -INT_EXACT < number < INT_EXACT:
            if type(number) is int and not INT64_MIN <= number <= INT64_MAX:
                return False
            lows[at] = dimensions[dimension[at]].key(number)
    return True


@functools.lru_cache(maxsize=1024)
def _layout(numbers: int, keys: int) -> tuple[Callable[..., None], Callable[..., None], I64s]:
    """Functions that write the keys and the dimensions of a row, faster than `np.array`, and the shared `start` of such rows."""
    count = numbers + keys
    return struct.Struct(f"{numbers}d{keys}q").pack_into, struct.Struct(f"{count}i").pack_into, np.array([0, count])


class _Writer:
    """Collects the values of events, one event after another."""

    def __init__(self, dimensions: Dimensions, *, lenient: bool = False) -> None:
        self._dimensions = dimensions
        self._facets = dimensions.by_attribute
        self._lenient = lenient
        self._start = [0]
        self.dimension: list[int] = []
        self.lo: list[int] = []
        self.hi: list[int] = []
        self.mismatched = 0

    def add(self, event: FlatEvent, row: int | None = None) -> None:
        for attribute, values in event.items():
            if not values:
                self._refuse(attribute, values, row)
                continue
            facets = self._facets.get(attribute)
            if facets is None:
                continue
            if len(values) == 1 and type(values[0]) is str:
                self._put_string(facets, values[0])
                continue
            if facets.presence is not None:
                self._put(facets.presence, (0,))
            if len(values) == 1:
                value = values[0]
                # A single number whose attribute has a number dimension is by far the most frequent case.
                if (type(value) is int or type(value) is float) and facets.number is not None:
                    key = facets.number.key(value)
                    self.dimension.append(facets.number.number)
                    self.lo.append(key)
                    self.hi.append(key)
                    self.mismatched += len(facets.asked) > 1
                    continue
                kind = kind_of_value(value)
                found = self._one_kind(facets, kind, values)
                self.mismatched += not facets.asked <= found
                continue
            by_kind: dict[Kind | None, list[Any]] = {}
            for value in values:
                by_kind.setdefault(kind_of_value(value), []).append(value)
            kinds = [self._one_kind(facets, kind, same) for kind, same in by_kind.items()]
            self.mismatched += not facets.asked <= frozenset().union(*kinds)
        self._start.append(len(self.lo))

    def _refuse(self, attribute: str, values: tuple[Any, ...], row: int | None) -> None:
        """Raise an EventError for a value outside the language, if a predicate uses its attribute and `lenient` is False."""
        if self._lenient or not isinstance(values, Refused):
            return
        if attribute in self._facets or (
            values.below and any(values.concerns(attribute, each) for each in self._facets)
        ):
            raise values.error(attribute, row)

    def _one_kind(self, facets: Facets, kind: Kind | None, values: Iterable[Any]) -> set[Kind | Facet]:
        """Add values of one attribute and one kind. Returns that kind, and ADDRESS if one of them is an address."""
        assert kind is not None
        found: set[Kind | Facet] = {kind}
        if kind is Kind.STRING:
            for text in facets.texts:
                self._put(text, [text.key(value) for value in values])
            for pattern in facets.patterns:
                hits = [pattern.hits(value) for value in values]
                self._put(pattern, sorted(set().union(*hits)))
            if facets.address is not None:
                keys = [key for key in facets.address.located(values) if key is not None]
                self._put(facets.address, keys)
                found |= {Facet.ADDRESS} if keys else set()
        else:
            dimension = getattr(facets, kind.value)
            if dimension is not None:
                self._put_scalars(dimension, values)
        return found

    def _put_string(self, facets: Facets, text: str) -> None:
        """Add the only value of an attribute."""
        dimension, keys, mismatched = self._dimensions.string_keys(facets, text)
        self.dimension += dimension
        self.lo += keys
        self.hi += keys
        self.mismatched += mismatched

    def _put_scalars(self, dimension: Dimension, values: Iterable[Any]) -> None:
        for value in values:
            self.dimension.append(dimension.number)
            if isinstance(value, Interval):
                self.lo.append(dimension.key(value.lo))
                self.hi.append(dimension.key(value.hi))
            else:
                key = dimension.key(value)
                self.lo.append(key)
                self.hi.append(key)

    def _put(self, dimension: Dimension, keys: Sequence[int]) -> None:
        self.dimension.extend([dimension.number] * len(keys))
        self.lo.extend(keys)
        self.hi.extend(keys)

    def finish(self) -> EncodedEvents:
        batch = EventBatch(
            np.array(self._start, np.int64),
            np.array(self.dimension, np.int32),
            np.array(self.lo, np.int64),
            np.array(self.hi, np.int64),
        )
        return EncodedEvents(batch, self.mismatched)
