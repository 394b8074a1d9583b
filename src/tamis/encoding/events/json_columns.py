"""Values that were found in JSON lines to columns, and the events of odd lines to columns of the same form.

A kernel groups the values by attribute and kind, in two passes. The texts of a group lie one after another:

    group       (a, INTEGER)   (b, STRING)            number: attribute * KINDS + kind
    rows        0  1  4        0      2
    places      7  3  9        -      -               integers, bits of doubles, 0 or 1 of booleans
    ends        0  0  0  0     0  3   8               one more than values in each group: the bytes before each text
    texts                      x\\ty   plain
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encoding.columns import Column, Odd
from tamis.encoding.events.json_scanner import BOOLEAN, DIGITS, INTEGER, KINDS, STRING, Found
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import UP, I64s, U8s
from tamis.language.event import FlatEvent, Refused
from tamis.language.values import Kind, kind_of, to_microseconds


class _Groups(NamedTuple):
    start: I64s
    """The first value of each group."""
    rows: I64s
    places: I64s
    ends: I64s
    texts: U8s


def columns_of(found: Found, count: int, data: U8s, names: list[str]) -> Iterator[Column]:
    """The columns of `count` values. `names` has the attributes by number."""
    sizes = np.zeros((2, len(names) * KINDS), np.int64)
    _measure(found, count, sizes[0], sizes[1])
    counts, lengths = sizes
    groups = _Groups(
        np.append(0, np.cumsum(counts)),
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count + len(counts), np.int64),
        np.empty(lengths.sum(), np.uint8),
    )
    _group(found, count, data, groups, groups.start[:-1].copy(), np.cumsum(lengths) - lengths)
    for group in np.flatnonzero(counts).tolist():
        name, kind = names[group // KINDS], group % KINDS
        first, last = int(groups.start[group]), int(groups.start[group + 1])
        rows, places = groups.rows[first:last], groups.places[first:last]
        if kind == STRING:
            yield Column(name, Kind.STRING, rows, _texts(groups, first + group, last - first))
        elif kind == DIGITS:
            # Arrow's reader finds the nearest double, too.
            doubles = _texts(groups, first + group, last - first).cast(pa.float64()).to_numpy()
            yield Column(name, Kind.NUMBER, rows, doubles)
        elif kind == BOOLEAN:
            yield Column(name, Kind.BOOLEAN, rows, places.astype(np.bool_))
        else:
            yield Column(name, Kind.NUMBER, rows, places if kind == INTEGER else places.view(np.float64))


def _texts(groups: _Groups, first: int, count: int) -> pa.Array:
    """Texts of a group as Arrow has them."""
    ends = groups.ends[first : first + count + 1]
    return pa.Array.from_buffers(
        pa.large_string(), count, [None, pa.py_buffer(ends), pa.py_buffer(groups.texts)], null_count=0
    )


@lean_kernel
def _measure(found: Found, count: int, counts: I64s, lengths: I64s) -> None:
    """Count the values of each group, and the bytes of their texts."""
    for value in range(count):
        group = UP(found.attribute[UP(value)] * KINDS + found.kind[UP(value)])
        counts[group] += 1
        lengths[group] += found.size[UP(value)]


@lean_kernel
def _group(found: Found, count: int, data: U8s, groups: _Groups, free: I64s, begin: I64s) -> None:
    """Write all values to their groups. The next value of a group goes to `free`, its text to `begin`."""
    for group in range(len(begin)):
        groups.ends[UP(groups.start[UP(group)] + group)] = begin[UP(group)]
    for value in range(count):
        group = found.attribute[UP(value)] * KINDS + found.kind[UP(value)]
        at, place, size = free[UP(group)], found.place[UP(value)], found.size[UP(value)]
        free[UP(group)] = at + 1
        groups.rows[UP(at)], groups.places[UP(at)] = found.row[UP(value)], place
        to = begin[UP(group)]
        if place >= 0:
            for byte in range(size):
                groups.texts[UP(to + byte)] = data[UP(place + byte)]
        else:
            for byte in range(size):
                groups.texts[UP(to + byte)] = found.unescaped[UP(~place + byte)]
        begin[UP(group)] = to + size
        groups.ends[UP(at + group + 1)] = to + size


def flat_columns(events: Mapping[int, FlatEvent], attributes: Iterable[str]) -> Iterator[Column | Odd]:
    """The columns of flat events by row, for some attributes. None of the values is an interval."""
    asked = frozenset(attributes)
    found: dict[tuple[str, type], tuple[list[int], list[Any]]] = {}
    for row, event in events.items():
        for name, values in event.items():
            if isinstance(values, Refused):
                if any(values.concerns(name, each) for each in (asked if values.below else asked & {name})):
                    yield Odd(name, np.array([row], np.int64), values.reason)
            elif name in asked:
                for value in values:
                    rows, kept = found.setdefault((name, type(value)), ([], []))
                    rows.append(row)
                    kept.append(value)
    for (name, cls), (rows, kept) in found.items():
        kind = kind_of(kept[0])
        assert kind is not None
        yield Column(name, kind, np.array(rows, np.int64), _values_of(kept, kind, cls))


def _values_of(values: list[Any], kind: Kind, cls: type) -> Any:
    """Values of one class as `Column` holds them."""
    if kind is Kind.STRING:
        return pa.array(values, pa.large_string())
    if kind is Kind.TIMESTAMP:
        return np.array([to_microseconds(value) for value in values], np.int64)
    return np.array(values, _TYPES[cls])


_TYPES: dict[type, type[np.generic]] = {bool: np.bool_, int: np.int64, float: np.float64}
