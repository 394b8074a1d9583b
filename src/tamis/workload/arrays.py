"""The flat arrays of a workload. `arrow` converts them to Arrow, and benchmarks also use them directly.

    ptr           0        2     3            subscription i has the predicates ptr[i] to ptr[i + 1]
    attribute     4   0    7                  predicate j is about attribute[j] ...
    operator      =   in   between            ... with OPERATORS[operator[j]] ...
    literal_ptr   0   1    3        5         ... and the literals literal_ptr[j] to literal_ptr[j + 1]
    literals      42  7 9  20 31

A literal is the number of a value, from 1 to the cardinality. Strict bounds may be one below or above. On an attribute with
strings, the number stands for its string. LIKE has the number of a string that satisfies it, and `prefix` has the number of
digits that the pattern keeps (0 for the other operators). In style alerts, prices and volumes are the values themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.numbers import I32s, I64s, U8s


class PredicateArrays(NamedTuple):
    """Subscriptions, as drawn at the top of this module. `literals` are doubles if numbers are floats."""

    ptr: I64s
    attribute: I32s
    operator: U8s
    literal_ptr: I64s
    literals: npt.NDArray[Any]
    prefix: U8s


class EventArrays(NamedTuple):
    """Events, one per row: distinct attributes, and the number of each value. `value` are doubles if numbers are floats.

    If events differ in size, the attributes of the shorter ones end with -1.
    """

    attribute: I32s
    value: npt.NDArray[Any]


def offsets(counts: npt.NDArray[Any]) -> I64s:
    """The start of each run, given the lengths, and the end of the last run."""
    ends = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    return ends


def runs(starts: I64s, sizes: I64s) -> I64s:
    """The places of runs that begin at `starts`, one run after the other."""
    ends = np.cumsum(sizes)
    places: I64s = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - ends + sizes, sizes)
    return places


def first_subscriptions(arrays: PredicateArrays, count: int) -> PredicateArrays:
    """The first `count` subscriptions."""
    predicates = int(arrays.ptr[count])
    return PredicateArrays(
        ptr=arrays.ptr[: count + 1],
        attribute=arrays.attribute[:predicates],
        operator=arrays.operator[:predicates],
        literal_ptr=arrays.literal_ptr[: predicates + 1],
        literals=arrays.literals[: int(arrays.literal_ptr[predicates])],
        prefix=arrays.prefix[:predicates],
    )


def concatenate(parts: Sequence[PredicateArrays]) -> PredicateArrays:
    """Subscriptions of several blocks, one after the other."""
    return PredicateArrays(
        ptr=offsets(np.concatenate([np.diff(part.ptr) for part in parts])),
        attribute=np.concatenate([part.attribute for part in parts]),
        operator=np.concatenate([part.operator for part in parts]),
        literal_ptr=offsets(np.concatenate([np.diff(part.literal_ptr) for part in parts])),
        literals=np.concatenate([part.literals for part in parts]),
        prefix=np.concatenate([part.prefix for part in parts]),
    )
