"""The one decorator that owns how kernels are compiled.

Kernels are plain Python over flat arrays: they allocate little, never raise and know nothing of Python objects. They run
uncompiled too (``NUMBA_DISABLE_JIT=1``), which the test suite does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, for small helpers that only kernels call; LLVM inlines them."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Callable[P, R], compiled)
