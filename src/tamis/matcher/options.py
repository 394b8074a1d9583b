"""Weights, limits and threads as users give them."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import OptionError, shortened
from tamis.language.values import INT64_MAX, is_iterable

_FEWEST_FOR_THREADS = 256
"""Events from which on several threads take less time than one."""
_MOST_THREADS = 1024
"""Threads of one call, however many are asked for."""


def plain_weight(weight: object) -> float:
    """A weight as a float.

    Raises
    ------
    OptionError
    """
    if type(weight) is float and math.isfinite(weight):
        return weight
    if isinstance(weight, int | float | np.integer | np.floating) and not isinstance(weight, bool):
        try:
            plain = float(weight)
        except OverflowError:  # An integer beyond all doubles.
            plain = math.inf
        if math.isfinite(plain):
            return plain
    raise OptionError(f"a weight must be a finite number, not {shortened(weight)}")


def list_of_weights(weights: object, count: int) -> list[Any]:
    """The weights of `count` subscriptions as a list. The weights themselves are not checked.

    Raises
    ------
    OptionError
    """
    if not is_iterable(weights):
        raise OptionError(f"weights must be a list with one entry for each id, not {type(weights).__name__}")
    assert isinstance(weights, Iterable)
    given = list(weights)
    if len(given) != count:
        raise OptionError(f"ids and weights differ in number: {count} and {len(given)}")
    return given


def weights_of(column: pa.ChunkedArray) -> list[float]:
    """The weights of a column of numbers; null is 0.

    Raises
    ------
    OptionError
    """
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise OptionError(f"the column 'weight' must be numbers, not {kind}")
    return [0.0 if weight is None else weight for weight in column.to_pylist()]


def plain_limit(k: object, meaning: str = "k is the number of matches for each event") -> int:
    """The largest number of matches as an int.

    Raises
    ------
    OptionError
    """
    limit = _whole(k)
    if limit is None or limit < 1:
        raise OptionError(f"{meaning} and must be a whole number of at least 1, not {shortened(k)}")
    return min(limit, INT64_MAX)


def checked_threads(threads: object, events: int) -> int:
    """The number of threads for a batch of `events` events: what the user asked for, or one per processor if the batch is large.

    Raises
    ------
    OptionError
    """
    if threads is None:
        return processors() if events >= _FEWEST_FOR_THREADS else 1
    count = _whole(threads)
    if count is None or count < 1:
        raise OptionError(
            f"threads is the number of threads and must be a whole number of at least 1, not {shortened(threads)}"
        )
    return min(count, _MOST_THREADS)


def checked_device(device: object) -> int | None:
    """The number of the card that a device names: ``"gpu"`` is the first one. None for ``"cpu"``.

    Raises
    ------
    OptionError
    """
    if device == "cpu":
        return None
    if isinstance(device, str):
        kind, colon, number = device.partition(":")
        if kind == "gpu" and (not colon or (number.isascii() and number.isdigit())):
            return int(number or 0)
    raise OptionError(f"device must be 'cpu', 'gpu', or a card by its number such as 'gpu:1', not {shortened(device)}")


def processors() -> int:
    """The number of processors that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _whole(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None
