"""Kernels that call another kernel by its address.

LLVM puts a copy of every function that a kernel calls into that kernel. A large function that several kernels call is compiled
once instead. Its callers get its address. It takes one number, the address of its data (`packed`), and returns one number.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED

_uncompiled: dict[int, Callable[[int], int]] = {}
"""The uncompiled twin of addresses."""


@functools.cache
def address_of_kernel(kernel: Any) -> int:
    """The address of a kernel that takes one number and returns one. It is compiled now, unless it was before."""
    if not COMPILED:
        _uncompiled[id(kernel)] = kernel
        return id(kernel)
    signature = (types.int64,)
    if signature not in kernel.overloads:
        kernel.compile(signature)
    compiled = kernel.overloads[signature]
    address: int = compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)
    return address


def _call(typing_context: Any, address: Any, given: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(word, [word]).as_pointer())
        return builder.call(function, [arguments[1]])

    return types.int64(types.int64, types.int64), generate


def _uncompiled_call(address: int, given: int) -> int:
    """The uncompiled twin."""
    return _uncompiled[int(address)](int(given))


call_kernel: Any = intrinsic(_call) if COMPILED else _uncompiled_call
"""Call the kernel at an address."""
