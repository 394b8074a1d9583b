"""The one decorator that owns how kernels are compiled.

Kernels are plain Python over flat arrays: they allocate little, never raise and know nothing of Python objects. They run
uncompiled too (``NUMBA_DISABLE_JIT=1``), which the test suite does.

Compiled kernels are cached on disk. Numba takes a cached kernel for current while its own file is unchanged, but kernels
inline helpers of other files: here a cached kernel is current only while all sources of the package are.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: bool = not getattr(numba.config, "DISABLE_JIT", False)
"""Whether kernels are compiled at all; ``NUMBA_DISABLE_JIT=1`` says no."""

# The packages that hold kernels, or what kernels inline.
_PACKAGES = ("encoding", "storage", "index", "engine", "matcher")


# An array that is handed to a function has its references counted there and back, atomically, which made helpers of a few
# lines cost more than their work: 20 times, measured on helpers with five arrays. Functions that allocate nothing need no count.
# The option is Numba's own and undocumented; `test_kernel` tells when it goes.
_WITHOUT_COUNTING: Any = {"_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy."""
    return _compiled(function)


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, for functions that allocate nothing: references are not counted."""
    return _compiled(function, **_WITHOUT_COUNTING)


def brief_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for what is done in some microseconds: the GIL is kept.

    A thread that lets go of it and wants it back must wait while others that wait for it use it; with a busy one beside it,
    that is up to the interpreter's switch interval, a hundred times as long as the kernel runs.
    """
    return _compiled(function, nogil=False, **_WITHOUT_COUNTING)


def _compiled(function: Callable[P, R], nogil: bool = True, **options: Any) -> Callable[P, R]:
    compile_with = functools.partial(numba.njit, nogil=nogil, error_model="numpy", **options)
    compiled: Any
    try:
        compiled = compile_with(cache=True)(function)
    except RuntimeError:  # no folder that a cache could be written to
        compiled = compile_with()(function)
    cache: Any = getattr(compiled, "_cache", None)
    if hasattr(cache, "_cache_file"):
        cache._cache_file._source_stamp = _source_stamp()
        _survive_damage(cache)
    return cast(Callable[P, R], compiled)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for small helpers that only kernels call; LLVM inlines them."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **_WITHOUT_COUNTING)(function)
    return cast(Callable[P, R], compiled)


@functools.cache
def _source_stamp() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all sources that a kernel may draw on."""
    root = Path(__file__).parent.parent
    files = sorted(file for package in _PACKAGES for file in (root / package).glob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def _survive_damage(cache: Any) -> None:
    """Let a cache whose files are damaged be compiled anew, where Numba would raise what unpickling them does."""
    load = cache.load_overload

    def load_or_forget(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception:
            cache.flush()
            return None

    cache.load_overload = load_or_forget
