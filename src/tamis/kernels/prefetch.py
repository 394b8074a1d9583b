"""A hint to the processor to fetch memory that is needed soon. It changes no result, so uncompiled it does nothing."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED

LINE = 16
"""Words of 32 bits in a cache line."""


def _prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """``llvm.prefetch`` of array[index] for reading, to be kept in all caches."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch",
            (address.type,),
            ir.FunctionType(ir.VoidType(), [address.type, word, word, word]),
        )
        builder.call(function, [address, word(0), word(3), word(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _nothing(array: Any, index: int) -> None:
    """The uncompiled twin."""


prefetch: Any = _nothing if not COMPILED else intrinsic(_prefetch)
