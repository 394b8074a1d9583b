"""Search in bytes, many at a time: where text stops being plain, and words of bytes for hashes.

The compiled forms are vectors of LLVM, so they run on every processor. Their uncompiled twins go byte by byte.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED
from tamis.kernels.numbers import U64, U8s

LANES = 32
"""Bytes that `plain_bytes` looks at. They must lie within the array."""
WORD_BYTES = 8
QUOTE, BACKSLASH, FIRST_PRINTABLE = 0x22, 0x5C, 0x20


def _plain_bytes(typing_context: Any, data: Any, at: Any) -> Any:
    """Compares all lanes at once, and counts the zeros below the lowest lane that is not plain."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        vector, mask = ir.VectorType(ir.IntType(8), LANES), ir.IntType(LANES)
        lanes = builder.load(builder.bitcast(builder.gep(pointer, [arguments[1]]), vector.as_pointer()), align=1)

        def each(byte: int) -> Any:
            return ir.Constant(vector, [byte] * LANES)

        found = builder.or_(
            builder.or_(
                builder.icmp_unsigned("==", lanes, each(QUOTE)), builder.icmp_unsigned("==", lanes, each(BACKSLASH))
            ),
            builder.icmp_unsigned("<", lanes, each(FIRST_PRINTABLE)),
        )
        count = builder.module.declare_intrinsic("llvm.cttz", (mask,), ir.FunctionType(mask, [mask, ir.IntType(1)]))
        plain = builder.call(count, [builder.bitcast(found, mask), ir.IntType(1)(0)])
        return builder.zext(plain, ir.IntType(64))

    return types.int64(data, types.intp), generate


def _count_plain_bytes(data: U8s, at: int) -> int:
    """The uncompiled twin."""
    for lane in range(LANES):
        byte = int(data[at + lane])
        if byte in (QUOTE, BACKSLASH) or byte < FIRST_PRINTABLE:
            return lane
    return LANES


def _word_at(typing_context: Any, data: Any, at: Any) -> Any:
    """A load of eight bytes at any place."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        word = ir.IntType(64)
        return builder.load(builder.bitcast(builder.gep(pointer, [arguments[1]]), word.as_pointer()), align=1)

    return types.uint64(data, types.intp), generate


def _uncompiled_word_at(data: U8s, at: int) -> Any:
    """The uncompiled twin. All processors that Numba compiles for here have the lowest byte first."""
    return U64(int.from_bytes(data[at : at + WORD_BYTES].tobytes(), "little"))


plain_bytes: Any = intrinsic(_plain_bytes) if COMPILED else _count_plain_bytes
"""How many of the next `LANES` bytes come before the first quote, backslash or control character of JSON; `LANES` if all do."""

word_at: Any = intrinsic(_word_at) if COMPILED else _uncompiled_word_at
"""The eight bytes from a place on, as one word."""
