"""The one decorator that owns how kernels are compiled.

Kernels are plain Python over flat arrays: they allocate little, never raise and know nothing of Python objects. They run
uncompiled too (``NUMBA_DISABLE_JIT=1``), which the test suite does.

Compiled kernels are cached on disk. Numba takes a cached kernel for current while its own file is unchanged, but kernels
inline helpers of other files: here a cached kernel is current only while all sources of Tamis are that its file draws on.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.extending import register_jitable

P = ParamSpec("P")
R = TypeVar("R")

COMPILED: bool = not getattr(numba.config, "DISABLE_JIT", False)
"""Whether kernels are compiled at all; ``NUMBA_DISABLE_JIT=1`` says no."""

_ROOT = Path(__file__).parent.parent
_IMPORT = re.compile(r"^from (tamis[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)


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
        cache._cache_file._source_stamp = _source_stamp(function.__code__.co_filename)
        _survive_damage(cache)
    return cast(Callable[P, R], compiled)


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inlined`, for helpers that Python calls too: there they stay as they are, and nothing is compiled for them."""
    return register_jitable(function)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Like `lean_kernel`, for small helpers that only kernels call; LLVM inlines them."""
    compiled: Any = numba.njit(nogil=True, error_model="numpy", **_WITHOUT_COUNTING)(function)
    return cast(Callable[P, R], compiled)


def merged(function: Callable[P, R]) -> Callable[P, R]:
    """Like `inlined`, for helpers that LLVM would not inline: Numba puts their code in the place of the call.

    Arrays are passed by value, seven words each, so that a call with thirty of them takes a tenth of a microsecond.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy", inline="always", **_WITHOUT_COUNTING)(function)
    return cast(Callable[P, R], compiled)


@functools.cache
def _source_stamp(file: str) -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of all sources that the kernels of a file may draw on: it, and what it imports."""
    sources, added = {Path(file)}, {Path(file)}
    while added:
        added = {imported for source in added for imported in _imported(source)} - sources
        sources |= added
    return tuple((str(source), source.stat().st_mtime_ns, source.stat().st_size) for source in sorted(sources))


@functools.cache
def _imported(source: Path) -> frozenset[Path]:
    """The sources of Tamis that one of them imports from."""
    modules = set()
    for package, names in _IMPORT.findall(source.read_text(encoding="utf-8")):
        modules |= {package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}
    files = (_ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py") for module in modules if "." in module)
    return frozenset(file for file in files if file.is_file())


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
