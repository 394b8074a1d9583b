"""The decorators that decide how kernels are compiled.

Kernels are plain Python over flat arrays: they allocate little, never raise and use no Python objects. They also run uncompiled
(``NUMBA_DISABLE_JIT=1``), as they do in a part of the tests.

Compiled kernels are kept on disk (`cache`). Helpers are compiled only as far as their callers need (`parts`).
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
"""Whether kernels are compiled. ``NUMBA_DISABLE_JIT=1`` turns this off."""

# Numba counts references, atomically, for every array that is passed to a function. Helpers of a few lines then cost more than
# their work: 20 times, measured on helpers with five arrays. Functions that allocate nothing need no count. The option is Numba's
# own and undocumented; `test_kernel` fails if it goes.
_WITHOUT_COUNTING: Any = {"_nrt": False}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function: cached on disk, without the GIL, division by zero as in NumPy."""
    return _compiled(function)


def lean_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `kernel`, for functions that allocate nothing: references are not counted."""
    return _compiled(function, **_WITHOUT_COUNTING)


def brief_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for kernels of some microseconds: they keep the GIL.

    A thread that releases the GIL may wait for it while another thread runs. It waits up to the interpreter's switch interval,
    which is a hundred times as long as the kernel takes.
    """
    return _compiled(function, nogil=False, **_WITHOUT_COUNTING)


def addressed_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for a kernel that others call by its address, see `tamis.kernels.by_address`."""
    return _compiled(function, is_entry=True, **_WITHOUT_COUNTING)


def _compiled(function: Callable[P, R], nogil: bool = True, is_entry: bool = False, **options: Any) -> Callable[P, R]:
    if not COMPILED:
        return function
    compiled = compiled_kernel(function, nogil, is_entry, **options)
    _keep(compiled, KernelCache(function, repr((nogil, is_entry, options))))
    call_as_part(compiled, compiled_part(function, **options))
    return cast(Callable[P, R], compiled)


def _keep(compiled: Any, cache: KernelCache) -> None:
    """Keep compiled code on disk."""
    compile_or_load = compiled.compile

    def compile_once(signature: Any) -> Any:
        collects = gc.isenabled()
        gc.disable()  # Numba makes millions of objects that stay. Collecting among them takes a tenth of the time.
        try:
            return compile_or_load(signature)
        finally:
            cache.release(signature)
            if collects:
                gc.enable()

    compiled._cache, compiled.compile = cache, compile_once


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for helpers of kernels; LLVM inlines them. When Python calls them, nothing is compiled."""
    helper: Any = Helper(function, compiled_part(function, **_WITHOUT_COUNTING)) if COMPILED else function
    return cast(Callable[P, R], helper)


def merged(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inlined`, for helpers that LLVM would not inline: Numba puts their code in the place of the call.

    A call passes arrays by value, seven words each: with thirty arrays, that takes a tenth of a microsecond.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy", inline="always", **_WITHOUT_COUNTING)(function)
    return cast(Callable[P, R], compiled)
