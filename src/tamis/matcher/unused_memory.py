"""Memory that allocators keep after a large call, given back to the system.

Arrow and the allocator of C keep what was freed, for later calls. After a million subscriptions from a table, they kept 730 bytes
for each, more than the subscriptions themselves take.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa


def give_back() -> None:
    """Give unused memory back, in some milliseconds. Only Linux with glibc can give back what the allocator of C keeps."""
    pa.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@cache
def _trim() -> Callable[[int], Any] | None:
    try:
        trim: Callable[[int], Any] = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # Other systems have no such function.
        return None
    return trim
