"""Writes of kernels to arrays that other threads read or write at the same time, without the GIL."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED


def _count_up(typing_context: Any, counts: Any, place: Any, number: Any) -> Any:
    """An atomic addition, in no order with others."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.gep(data, [arguments[1]])
        builder.atomic_rmw("add", address, arguments[2], "monotonic")
        return context.get_dummy_value()

    return types.void(counts, types.intp, types.int64), generate


def _add(counts: Any, place: int, number: int) -> None:
    """The uncompiled twin."""
    counts[place] += number


count_up: Any = _add if not COMPILED else intrinsic(_count_up)
"""Add to counts[place], even if other threads do so at the same time."""


def _store_last(typing_context: Any, array: Any, place: Any, value: Any) -> Any:
    """A store that no thread sees before the stores before it. Some processors would otherwise change their order."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        data = context.make_array(array_type)(context, builder, arguments[0]).data
        stored = context.cast(builder, arguments[2], signature.args[2], array_type.dtype)
        address = builder.gep(data, [arguments[1]])
        builder.store_atomic(stored, address, "release", array_type.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


def _store(array: Any, place: int, value: int) -> None:
    """The uncompiled twin."""
    array[place] = value


store_last: Any = _store if not COMPILED else intrinsic(_store_last)
"""Write array[place]. A thread that reads the new value also sees everything that was written before it."""
