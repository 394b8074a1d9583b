"""How much memory an object holds in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np


def held_bytes(holder: object, *shared: object) -> int:
    """The size of all arrays reachable from an object, each counted once; arrays of `shared` are left out.

    A view counts with the whole array that it is a part of.

    >>> whole = np.zeros(100, np.int64)
    >>> held_bytes({"some": whole[:10], "others": [whole[10:], np.zeros(5, np.bool_)]})
    805
    """
    seen = {id(each) for each in shared}
    arrays: dict[int, int] = {}
    waiting: list[Any] = [holder]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            while isinstance(each.base, np.ndarray):
                each = each.base
            arrays[id(each)] = each.nbytes
        else:
            waiting.extend(_parts(each))
    return sum(arrays.values())


def _parts(holder: Any) -> Iterator[Any]:
    """The parts of an object that may hold arrays."""
    if isinstance(holder, dict):
        yield from holder.values()
    elif isinstance(holder, list | tuple):
        yield from holder
    elif not (callable(holder) or isinstance(holder, Enum | str)):
        yield from getattr(holder, "__dict__", {}).values()
        for base in type(holder).__mro__:
            for name in getattr(base, "__slots__", ()):
                if hasattr(holder, name):
                    yield getattr(holder, name)
