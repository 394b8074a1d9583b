"""Many arrays passed to a kernel as one array of their addresses and lengths.

Numba takes about 0.1 us to unpack an array that is passed to a kernel. For the fifty arrays of a segment, that is more than many
events take. So they are packed once, and a call passes one array:

    packed     address length   address length   ...   number number
               array 0          array 1                the numbers that go with them

`fields` packs named tuples. The caller keeps packed arrays alive, and at their place, for as long as the packed form is used.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype

from tamis.kernels.kernel import COMPILED
from tamis.kernels.numbers import I64s

Packed = I64s

_CACHE_LINE = 64


def address_of(array: npt.NDArray[Any]) -> int:
    """The address of the first element of an array."""
    address: int = array.__array_interface__["data"][0]
    return address


def aligned_zeros(size: int, dtype: type[np.generic]) -> npt.NDArray[Any]:
    """An array of zeros that starts at a cache line."""
    each = np.dtype(dtype).itemsize
    zeros = np.zeros(size + _CACHE_LINE // each, dtype)
    skipped = -(address_of(zeros) // each) % (_CACHE_LINE // each)
    return zeros[skipped : skipped + size]


def array_type(dtype: npt.DTypeLike) -> Any:
    """Numba's type of a contiguous array."""
    return types.Array(from_dtype(np.dtype(dtype)), 1, "C")


def array_at(context: Any, builder: Any, kind: Any, address: Any, length: Any) -> Any:
    """Code that makes an array of elements that lie at an address."""
    array = context.make_array(kind)(context, builder)
    size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    arrayobj.populate_array(  # type: ignore[no-untyped-call]
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[length],
        strides=[size],
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()


def uncompiled_array(dtype: npt.DTypeLike, address: int, length: int) -> npt.NDArray[Any]:
    """The uncompiled twin."""
    if length == 0:
        return np.empty(0, dtype)
    memory: Any = (ctypes.c_char * (length * np.dtype(dtype).itemsize)).from_address(address)
    return np.frombuffer(memory, dtype)


def _reader(dtype: type[np.generic]) -> Any:
    """A function for kernels that reads the array at a place of a packed array. Its elements are of one type."""
    if not COMPILED:
        return lambda given, place: uncompiled_array(dtype, int(given[2 * place]), int(given[2 * place + 1]))
    kind = array_type(dtype)

    def typed(typing_context: Any, given: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            first = builder.mul(arguments[1], ir.Constant(arguments[1].type, 2))
            second = builder.add(first, ir.Constant(arguments[1].type, 1))
            address, length = (builder.load(builder.gep(data, [at])) for at in (first, second))
            return array_at(context, builder, kind, address, length)

        return kind(given, types.intp), generate

    return intrinsic(typed)


def _words_at(typing_context: Any, address: Any, length: Any) -> Any:
    """An array of words that lie at an address."""
    kind = array_type(np.int64)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return array_at(context, builder, kind, *arguments)

    return kind(types.intp, types.intp), generate


def _uncompiled_words_at(address: int, length: int) -> Any:
    """The uncompiled twin."""
    return uncompiled_array(np.int64, int(address), int(length))


words_at: Any = intrinsic(_words_at) if COMPILED else _uncompiled_words_at
"""The words at an address, for a kernel that gets a packed array by its address."""

u1 = _reader(np.uint8)
i1 = _reader(np.int8)
i2 = _reader(np.int16)
u2 = _reader(np.uint16)
i4 = _reader(np.int32)
u4 = _reader(np.uint32)
i8 = _reader(np.int64)
f4 = _reader(np.float32)
f8 = _reader(np.float64)
