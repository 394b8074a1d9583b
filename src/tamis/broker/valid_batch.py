"""Many events as columns, so that they enter the columns of valid events together: a tenth of the time of one after another.

    {"price": 15, "tags": ["a", "b"]}       price   rows 0 1      values 15 9.9
    {"price": 9.9}                          tags    rows 0 0      values "a" "b"

Only plain events can be read so: dictionaries with scalars and lists of scalars. Their normal form is known without reading them
one by one (`language.event`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.broker.valid_columns import Form
from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.language.values import is_well_formed

_FORMS = {float: Form.NUMBER, int: Form.NUMBER, str: Form.STRING, bool: Form.BOOLEAN}
_PLAIN = frozenset((*_FORMS, type(None)))


class Entries(NamedTuple):
    """The values of one attribute and form."""

    name: str
    form: Form
    rows: Sequence[int]
    values: Sequence[Any] | npt.NDArray[Any]


class _NotPlainError(Exception):
    """An event is not plain."""


def read_batch(events: Sequence[Any]) -> list[Entries] | None:
    """The values of events, with their places as rows; None if one of the events is not plain."""
    gathered: dict[str, tuple[list[int], list[Any]]] = {}
    for row, event in enumerate(events):
        if type(event) is not dict:
            return None
        for name, value in event.items():
            found = gathered.get(name)
            if found is None:
                found = gathered[name] = ([], [])
            found[0].append(row)
            found[1].append(value)
    if not all(type(name) is str and name and is_well_formed(name) for name in gathered):
        return None
    try:
        return [entries for name, (rows, values) in gathered.items() for entries in _entries(name, rows, values)]
    except _NotPlainError:
        return None


def _entries(name: str, rows: list[int], values: list[Any]) -> Iterable[Entries]:
    types = set(map(type, values))
    if list in types:
        several = [value if type(value) is list else (value,) for value in values]
        rows = list(chain.from_iterable([row] * len(some) for row, some in zip(rows, several, strict=True)))
        values = list(chain.from_iterable(several))
        types = set(map(type, values))
    if not types <= _PLAIN:
        raise _NotPlainError
    forms = {_FORMS[each] for each in types if each in _FORMS}
    for form in forms:
        own_rows, own = rows, values
        if len(forms) > 1 or type(None) in types:
            pairs = [pair for pair in zip(rows, values, strict=True) if _FORMS.get(type(pair[1])) is form]
            own_rows, own = [row for row, _ in pairs], [value for _, value in pairs]
        yield _numbers(name, own_rows, own) if form is Form.NUMBER else _others(name, form, own_rows, own)


def _numbers(name: str, rows: list[int], values: list[Any]) -> Entries:
    """Numbers without NaN, which is a missing value. Large integers are not plain."""
    try:
        doubles = np.array(values, np.float64)
    except OverflowError:
        raise _NotPlainError from None
    if np.isfinite(doubles).all() and np.abs(doubles).max() <= INT_EXACT:
        return Entries(name, Form.NUMBER, rows, doubles)
    if any(type(value) is int and not -INT_EXACT <= value <= INT_EXACT for value in values):
        raise _NotPlainError
    is_there = ~np.isnan(doubles)
    return Entries(name, Form.NUMBER, np.array(rows)[is_there].tolist(), doubles[is_there])


def _others(name: str, form: Form, rows: list[int], values: list[Any]) -> Entries:
    if form is Form.STRING and not is_well_formed("".join(values)):
        raise _NotPlainError
    return Entries(name, form, rows, values)
