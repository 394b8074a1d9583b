"""Mappings to columns: all values of an attribute together, without a call of Python for each value.

    events    {a: 5, b: 'x', c: 1}  {a: 7, b: 'y', c: 2}
    places     0     1       -       0     1       -        by form: the asked attribute of each name, - is NOT_ASKED
    values     5     'x'     1       7     'y'     2
    columns   a, NUMBER: rows 0 1, values 5 7               b, STRING: rows 0 1, values 'x' 'y'

A stream has few *forms*: names that events have together, in one order. Objects, lists and unusual classes are flattened event by
event, and their values become columns, too. What is wrong is not decided here: the caller then flattens all events.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tamis.encoding.columns import Column, Odd
from tamis.encoding.dimensions.dimension_set import NOT_ASKED, Dimensions
from tamis.encoding.events.event_batch import BETWEEN, has_known_classes
from tamis.encoding.events.json_columns import flat_columns
from tamis.encoding.events.mappings import Mappings
from tamis.kernels.numbers import I32s, I64s
from tamis.kernels.ranges import grouped
from tamis.language.event import FlatEvent, flatten
from tamis.language.values import Interval, Kind

_MOST_FORMS = 4096
_SAMPLED = 64
"""The most events from which `values_per_attribute` estimates."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
Places: TypeAlias = I32s
_NO_PLACES: Places = np.zeros(0, np.int32)
Objects: TypeAlias = npt.NDArray[Any]


class UnevenError(Exception):
    """Some event must be flattened as a whole, because it is wrong, or has values that columns cannot hold."""


class UnknownClassesError(Exception):
    """Some events must be flattened first, since reading them may run any code. `rows` are their places."""

    def __init__(self, rows: Iterable[int]) -> None:
        super().__init__()
        self.rows = list(rows)


class _Form(NamedTuple):
    """What is known of the asked attributes while no dimension comes or goes."""

    place_of: Mapping[str, int]
    """Asked names, and behind them the names of objects around these."""
    attributes: list[str]
    """The names by their places."""
    asked: int
    """How many of them are asked about."""
    places: dict[str, Places]
    """The places of the names of an event, by the joined names."""


def mapping_columns(events: Mappings, dimensions: Dimensions) -> list[Column]:
    """The values that predicates ask about, in columns. Several columns may have values of one attribute.

    Raises
    ------
    UnevenError, UnknownClassesError
    """
    form = _form_of(dimensions)
    plain = _plain_events(events)
    parts = _places(plain, form)
    places = np.concatenate([_NO_PLACES, *parts])
    wanted = places != NOT_ASKED
    rows = np.repeat(np.arange(len(plain)), [len(part) for part in parts])[wanted]
    places = places[wanted]
    every = itertools.chain.from_iterable(map(dict.values, plain))
    values = np.fromiter(itertools.compress(every, wanted.tobytes()), object, len(places))
    order = grouped(places)
    values, rows = values[order], rows[order]
    bounds = np.append(0, np.cumsum(np.bincount(places, minlength=len(form.attributes)))).tolist()
    columns: list[Column] = []
    rest: dict[int, dict[str, Any]] = {}
    for place, (begin, end) in enumerate(itertools.pairwise(bounds)):
        if begin < end:
            name, is_asked = form.attributes[place], place < form.asked
            columns += _columns(name, is_asked, rows[begin:end], values[begin:end].tolist(), rest)
    unknown = [row for row, some in rest.items() if not _is_known(some)]
    if unknown:
        raise UnknownClassesError(unknown)
    flat = events.flattened | {row: _flat_rest(some, plain[row], form) for row, some in rest.items()}
    if any(type(value) is Interval for event in flat.values() for values in event.values() for value in values):
        raise UnevenError
    for found in flat_columns(dict(sorted(flat.items())), form.attributes[: form.asked]):
        if isinstance(found, Odd):
            raise UnevenError
        columns.append(found)
    return columns


def values_per_attribute(events: Mappings, dimensions: Dimensions) -> float:
    """About how many values the asked attributes have on average, estimated from a sample of the events.

    The share of values in the sample whose attribute has no second one tells how often further values have a new attribute.
    """
    given, asked = events.events, dimensions.by_attribute
    sample = [list(event) for event in given[:: -(-len(given) // _SAMPLED)] if type(event) is dict]
    counts = Counter(name for name in itertools.chain.from_iterable(sample) if type(name) is str and name in asked)
    if not counts:
        return math.inf
    seen, once = counts.total(), sum(count == 1 for count in counts.values())
    values = seen * len(given) / len(sample)
    attributes = len(counts) + (values - seen) * once / seen
    return values / min(attributes, len(asked))


def _plain_events(events: Mappings) -> list[dict[str, Any]]:
    """The events, with an empty one in place of each that was flattened."""
    plain = list(events.events)
    for row in events.flattened:
        plain[row] = {}
    if set(map(type, plain)) - {dict}:
        raise UnknownClassesError(row for row, event in enumerate(plain) if type(event) is not dict)
    return plain


def _is_known(some: dict[str, Any]) -> bool:
    try:
        return has_known_classes(some)
    except Exception:  # a class that cannot be hashed, or an object that contains itself
        return False


def _form_of(dimensions: Dimensions) -> _Form:
    form: _Form | None = dimensions.mapping_form
    if form is None:
        attributes = [name for name in dimensions.by_attribute if name]
        parents = [name for name in dimensions.parents if name and name not in dimensions.by_attribute]
        every = attributes + parents
        form = dimensions.mapping_form = _Form(
            {name: place for place, name in enumerate(every)}, every, len(attributes), {}
        )
    return form


def _places(events: list[dict[str, Any]], form: _Form) -> list[Places]:
    """The place of each name of each event. Raises UnevenError if names of an event are no strings, or equal."""
    try:
        joined = list(map(BETWEEN.join, events))
    except TypeError:
        raise UnevenError from None
    found = list(map(form.places.get, joined, itertools.repeat(_NO_PLACES)))
    # Lengths tell names with the separator, whose joined names are ambiguous, from the others.
    sizes, known = (np.fromiter(map(len, each), np.int64, len(events)) for each in (events, found))
    for row in np.flatnonzero(sizes != known).tolist():
        found[row] = _new_places(events[row], joined[row], form)
    return found


def _new_places(event: dict[str, Any], joined: str, form: _Form) -> Places:
    names = [str.__str__(name) for name in event]
    if len(set(names)) < len(names):
        raise UnevenError
    found = np.array([form.place_of.get(name, NOT_ASKED) for name in names], np.int32)
    if joined.count(BETWEEN) == len(names) - 1:
        if len(form.places) >= _MOST_FORMS:
            form.places.clear()
        form.places[joined] = found
    return found


def _columns(
    name: str, is_asked: bool, rows: I64s, values: list[Any], rest: dict[int, dict[str, Any]]
) -> Iterator[Column]:
    """The columns of one attribute. Values that are no scalars go to `rest`, by row."""
    kinds = set(map(type, values))
    for kind in kinds - _SCALARS:
        for row, value in zip(rows.tolist(), values, strict=True):
            if type(value) is kind:
                rest.setdefault(row, {})[name] = value
    kinds &= _SCALARS - {type(None)}
    if not is_asked:
        return
    of_kind = rows, values
    for kind in kinds:
        if len(kinds) > 1 or len(set(map(type, values))) > 1:
            chosen = [at for at, value in enumerate(values) if type(value) is kind]
            of_kind = rows[chosen], [values[at] for at in chosen]
        yield from _column(name, kind, *of_kind)


def _column(name: str, kind: type, rows: I64s, values: list[Any]) -> Iterator[Column]:
    """The column of values of one class."""
    try:
        if kind is str:
            yield Column(name, Kind.STRING, rows, pa.array(values, pa.large_string()))
        elif kind is bool:
            yield Column(name, Kind.BOOLEAN, rows, np.array(values, np.bool_))
        elif kind is int:
            yield Column(name, Kind.NUMBER, rows, np.array(values, np.int64))
        else:
            numbers = np.array(values, np.float64)
            present = numbers == numbers  # NaN is a missing value
            yield Column(name, Kind.NUMBER, rows[present], numbers[present])
    except (OverflowError, UnicodeEncodeError, pa.ArrowInvalid):  # beyond 64 bits, lone surrogates
        raise UnevenError from None


def _flat_rest(some: dict[str, Any], event: Mapping[str, Any], form: _Form) -> FlatEvent:
    """The flat form of some attributes of an event, if the event gives none of them elsewhere."""
    flat = flatten(some)
    if any(name in event and name not in some and name in form.place_of for name in flat):
        raise UnevenError
    return flat
