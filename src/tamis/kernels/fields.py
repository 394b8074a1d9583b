"""Named tuples of arrays, passed to kernels as one array and read there by name.

    class Points(NamedTuple):                packed_fields(points)     address length  address length  ...  number
        start: I64s                                   start           key                  size
        key: I64s           read = reader_of(Points)
        size: int                            read(packed).key          in a kernel: the array

The order of the packed words comes from the fields, so a new array is one new field. Fields may be named tuples themselves. The
caller keeps packed arrays alive, and at their place, for as long as the packed form is used.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED
from tamis.kernels.packed import Packed, address_of, array_at, array_type, uncompiled_array


class _Field(NamedTuple):
    """An array or a number, and its place among the packed words."""

    name: str
    dtype: str
    """The type of the elements of an array. Empty: the field is a number."""
    word: int
    """The place of the number, or of the address of the array. The length of the array follows."""


class _Group(NamedTuple):
    """A named tuple: its class, its fields and the words behind them."""

    name: str
    cls: Any
    fields: tuple[_Field | _Group, ...]
    end: int


def packed_fields(values: Any) -> Packed:
    """Pack a named tuple of contiguous arrays and numbers."""
    words: list[int] = []
    cls: Any = type(values)
    _pack(_plan(cls), values, words)
    return np.array(words, np.int64)


def _pack(group: _Group, values: Any, words: list[int]) -> None:
    for field, value in zip(group.fields, values, strict=True):
        if isinstance(field, _Group):
            _pack(field, value, words)
        elif field.dtype:
            assert value.dtype == field.dtype, (group.cls, field.name)
            assert value.flags.c_contiguous, (group.cls, field.name)
            words += (address_of(value), value.size)
        else:
            words.append(value)


def word_of(cls: Any, path: str) -> int:
    """The place of a field among the packed words: of a number, or of the address of an array.

    `path` has the names of the field and of the named tuples around it, joined by dots.
    """
    field: _Field | _Group = _plan(cls)
    for name in path.split("."):
        assert isinstance(field, _Group)
        [field] = [each for each in field.fields if each.name == name]
    assert isinstance(field, _Field), f"{path} is a named tuple"
    return field.word


def words_in(cls: Any) -> int:
    """The number of words of a packed named tuple."""
    return _plan(cls).end


def reader_of(cls: Any) -> Any:
    """A function for kernels that turns packed words into the named tuple again."""
    plan = _plan(cls)
    if not COMPILED:
        return lambda words: _uncompiled(plan, words)
    kind = _type(plan)

    def typed(typing_context: Any, words: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return _made(context, builder, data, kind, plan)

        return kind(words), generate

    return intrinsic(typed)


@functools.cache
def _plan(cls: Any) -> _Group:
    return _placed("", cls, 0)


def _placed(name: str, cls: Any, word: int) -> _Group:
    """A named tuple whose words begin at `word`."""
    fields: list[_Field | _Group] = []
    for each, hint in get_type_hints(cls).items():
        if hasattr(hint, "_fields"):
            group = _placed(each, hint, word)
            fields.append(group)
            word = group.end
        else:
            dtype = _dtype(hint)
            fields.append(_Field(each, dtype, word))
            word += 2 if dtype else 1
    return _Group(name, cls, tuple(fields), word)


def _dtype(hint: Any) -> str:
    """The type of the elements of `npt.NDArray[...]`; empty for int and bool."""
    if hint in (int, bool):
        return ""
    # Up to NumPy 2.4, the alias is `ndarray[shape, dtype[scalar]]`. From 2.5 on, its only argument is the scalar.
    element = get_args(hint)[-1]
    return str(np.dtype(get_args(element)[0] if get_args(element) else element).name)


def _type(field: _Field | _Group) -> Any:
    """Numba's type of a field."""
    if isinstance(field, _Field):
        return array_type(field.dtype) if field.dtype else types.int64
    base: Any = types.BaseTuple
    return base.from_types([_type(each) for each in field.fields], field.cls)


def _made(context: Any, builder: Any, data: Any, kind: Any, field: _Field | _Group) -> Any:
    """Generate the code that makes a field from packed words."""
    if isinstance(field, _Group):
        values = [_made(context, builder, data, *each) for each in zip(kind, field.fields, strict=True)]
        return context.make_tuple(builder, kind, values)
    first = builder.load(builder.gep(data, [context.get_constant(types.intp, field.word)]))
    if not field.dtype:
        return first
    length = builder.load(builder.gep(data, [context.get_constant(types.intp, field.word + 1)]))
    return array_at(context, builder, kind, first, length)


def _uncompiled(field: _Field | _Group, words: Any) -> Any:
    """The uncompiled twin."""
    if isinstance(field, _Group):
        return field.cls(*[_uncompiled(each, words) for each in field.fields])
    first = int(words[field.word])
    return uncompiled_array(field.dtype, first, int(words[field.word + 1])) if field.dtype else first
