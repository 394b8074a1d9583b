"""The one decorator that owns how kernels are compiled.

Kernels are plain Python over flat arrays: they allocate little, never raise and know nothing of Python objects. They run
uncompiled too (``NUMBA_DISABLE_JIT=1``), which the test suite does.

Compiled kernels are kept on disk (`kernel_cache`). Helpers are compiled only as far as their callers need (`kernel_parts`).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

from tamis.kernels.cache import KernelCache
from tamis.kernels.parts import Helper, call_as_part, compiled_kernel, compiled_part

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: bool = not getattr(numba.config, "DISABLE_JIT", False)
"""Whether kernels are compiled at all; ``NUMBA_DISABLE_JIT=1`` says no."""

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


def entry_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for a kernel that others call by its address, see `tamis.kernels.entry`."""
    return _compiled(function, is_entry=True, **_WITHOUT_COUNTING)


def _compiled(function: Callable[P, R], nogil: bool = True, is_entry: bool = False, **options: Any) -> Callable[P, R]:
    if not COMPILED:
        return function
    compiled = compiled_kernel(function, nogil, is_entry, **options)
    _keep(compiled, KernelCache(function, repr((nogil, is_entry, options))))
    call_as_part(compiled, compiled_part(function, **options))
    return cast(Callable[P, R], compiled)


def _keep(compiled: Any, cache: KernelCache) -> None:
    """Let what is compiled be kept on disk."""
    compile_or_load = compiled.compile

    def compile_once(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()  # Numba makes millions of objects that stay: looking through them takes a tenth of the time.
        try:
            return compile_or_load(signature)
        finally:
            cache.release(signature)
            if collects:
                gc.enable()

    compiled._cache, compiled.compile = cache, compile_once


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for helpers of kernels; LLVM inlines them. When Python calls them, nothing is compiled."""
    return _helper(function, **_WITHOUT_COUNTING)


def inlined_with_arrays(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inlined`, for helpers of a `kernel` that make arrays."""
    return _helper(function)


def _helper(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    helper: Any = Helper(function, compiled_part(function, **options)) if COMPILED else function
    return cast(Callable[P, R], helper)


def merged(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inlined`, for helpers that LLVM would not inline: Numba puts their code in the place of the call.

    Arrays are passed by value, seven words each, so that a call with thirty of them takes a tenth of a microsecond.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy", inline="always", **_WITHOUT_COUNTING)(function)
    return cast(Callable[P, R], compiled)
