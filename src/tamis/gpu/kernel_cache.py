"""Compiled kernels for cards, kept on disk beside those for processors.

Compiling the kernel that matches takes some twenty seconds. numba-cuda has a cache of its own, which looks only at the file of
the kernel. This one looks at all functions that the kernel uses, as `tamis.kernels.cache` does.
"""

from __future__ import annotations

import importlib
import logging
import pickle
from typing import Any

from tamis.kernels.cache import KernelCache
from tamis.kernels.source import digest_of

_log = logging.getLogger("tamis")


class CardKernelCache(KernelCache):
    """The compiled forms of one kernel for cards."""

    def packed(self, result: Any) -> bytes | None:
        serialize: Any = importlib.import_module("numba.cuda.serialize")
        try:
            return bytes(serialize.dumps(result._reduce_states()))
        except Exception:  # Whatever numba-cuda cannot write, the next process compiles again.
            _log.debug("cannot keep the kernel %s", result, exc_info=True)
            return None

    def unpacked(self, payload: bytes, context: Any) -> Any:
        dispatcher: Any = importlib.import_module("numba.cuda.dispatcher")
        utils: Any = importlib.import_module("numba.cuda.utils")
        with utils.numba_target_override():
            return dispatcher._Kernel._rebuild(**pickle.loads(payload))

    def told(self) -> list[str]:
        numba_cuda: Any = importlib.import_module("numba_cuda")
        functions: Any = importlib.import_module("tamis.gpu.engine_functions")
        used = [getattr(each, "py_func", None) for each in vars(functions).values()]
        digests = sorted({digest_of(each) for each in used if each is not None})
        return [*super().told(), numba_cuda.__version__, *digests]


def specialized(kernel: Any, arguments: tuple[Any, ...]) -> Any:
    """A kernel for arguments of these types, loaded or compiled.

    This does what `kernel.specialize` of numba-cuda does, which uses no cache.
    """
    special: Any = type(kernel)(kernel.py_func, targetoptions=kernel.targetoptions)
    types = tuple(special.typeof_pyval(each) for each in arguments)
    cache = special._cache = CardKernelCache(kernel.py_func, repr(sorted(kernel.targetoptions.items(), key=str)))
    try:
        special.compile(types)
    finally:
        cache.release(types)
    special.disable_compile()
    special._specialized = True
    return special
