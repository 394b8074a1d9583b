"""Named tuples of arrays, handed to kernels as one array and read there by name.

    class Points(NamedTuple):                packed_fields(points)     address length  address length  ...  number
        start: npt.NDArray[np.int64]                                   start           key                  size
        key: npt.NDArray[np.int64]           read = reader_of(Points)
        size: int                            read(packed).key          in a kernel: the array

The order of the packed words comes from the fields, so a new array is one new field. Fields may be named tuples themselves. The
caller keeps packed arrays alive, and at their place, for as long as the packed form is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np
from numba import types
from numba.extending import intrinsic

from tamis.kernels.kernel import COMPILED
from tamis.kernels.packed import Packed, array_at, array_type, packed, plain_array


class _Field(NamedTuple):
    """A field whose place among the packed words is known."""

    name: str
    dtype: str
    """The type of the elements of an array. Empty: the field is a number."""
    word: int
    """The place of the address, before the length; or of the number."""


class _Group(NamedTuple):
    """A field that is a named tuple; or all of them."""

    name: str
    fields: tuple[Any, ...]


def packed_fields(values: Any) -> Packed:
    """Pack a named tuple of contiguous arrays and numbers."""
    leaves = list(_leaves(values))
    return packed(
        [leaf for leaf in leaves if isinstance(leaf, np.ndarray)],
        [int(leaf) for leaf in leaves if not isinstance(leaf, np.ndarray)],
    )


def word_of(cls: Any, path: str) -> int:
    """The place of a field among the packed words, for whoever changes it there: of a number, or of the address of an array.

    `path` has the names of the field and of the named tuples around it, joined by dots.
    """
    fields = _plan(cls)
    for name in path.split("."):
        [field] = [field for field in fields if field.name == name]
        fields = field.fields if isinstance(field, _Group) else ()
    assert isinstance(field, _Field), f"{path} is a named tuple"
    return field.word


def words_in(cls: Any) -> int:
    """How many words a packed named tuple has."""
    arrays, numbers = _sizes(cls)
    return 2 * arrays + numbers


def reader_of(cls: Any) -> Any:
    """A function for kernels that gives the named tuple that was packed."""
    plan = _plan(cls)
    if not COMPILED:
        return lambda given: _plain(cls, plan, given)
    made = _type(cls, plan)

    def typed(typing_context: Any, given: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
            return _made(context, builder, data, signature.return_type, plan)

        return made(given), generate

    return intrinsic(typed)


def _leaves(values: Any) -> Iterator[Any]:
    for value in values:
        if isinstance(value, tuple):
            yield from _leaves(value)
        else:
            yield value


def _dtype(hint: Any) -> str:
    """The type of the elements of `npt.NDArray[...]`; empty for int and bool."""
    if hint in (int, bool):
        return ""
    _, dtype = get_args(hint)
    return str(np.dtype(get_args(dtype)[0]).name)


def _hints(cls: Any) -> list[tuple[str, Any]]:
    hints = get_type_hints(cls)
    return [(name, hints[name]) for name in cls._fields]


def _sizes(cls: Any) -> tuple[int, int]:
    """How many arrays and numbers there are."""
    arrays, numbers = 0, 0
    for _, hint in _hints(cls):
        inner = _sizes(hint) if hasattr(hint, "_fields") else (1, 0) if _dtype(hint) else (0, 1)
        arrays, numbers = arrays + inner[0], numbers + inner[1]
    return arrays, numbers


def _plan(cls: Any) -> tuple[_Field | _Group, ...]:
    arrays, _ = _sizes(cls)
    return _placed(cls, [0, 2 * arrays])


def _placed(cls: Any, place: list[int]) -> tuple[_Field | _Group, ...]:
    """The fields with their places; `place` says where the next array and the next number go."""
    placed: list[_Field | _Group] = []
    for name, hint in _hints(cls):
        if hasattr(hint, "_fields"):
            placed.append(_Group(name, _placed(hint, place)))
            continue
        dtype = _dtype(hint)
        kind = 0 if dtype else 1
        placed.append(_Field(name, dtype, place[kind]))
        place[kind] += 2 if dtype else 1
    return tuple(placed)


def _type(cls: Any, plan: tuple[_Field | _Group, ...]) -> Any:
    """What a named tuple is to Numba."""
    hints = dict(_hints(cls))
    inner = [
        _type(hints[field.name], field.fields)
        if isinstance(field, _Group)
        else (array_type(field.dtype) if field.dtype else types.int64)
        for field in plan
    ]
    made: Any = types.BaseTuple
    return made.from_types(inner, cls)


def _made(context: Any, builder: Any, data: Any, made: Any, plan: tuple[_Field | _Group, ...]) -> Any:
    """Code that makes a named tuple of packed words."""
    values = []
    for field, kind in zip(plan, made, strict=True):
        if isinstance(field, _Group):
            values.append(_made(context, builder, data, kind, field.fields))
            continue
        first = builder.load(builder.gep(data, [context.get_constant(types.intp, field.word)]))
        if field.dtype:
            length = builder.load(builder.gep(data, [context.get_constant(types.intp, field.word + 1)]))
            values.append(array_at(context, builder, kind, first, length))
        else:
            values.append(first)
    return context.make_tuple(builder, made, values)


def _plain(cls: Any, plan: tuple[_Field | _Group, ...], given: Any) -> Any:
    """The plain twin."""
    hints = dict(_hints(cls))
    values = []
    for field in plan:
        if isinstance(field, _Group):
            values.append(_plain(hints[field.name], field.fields, given))
        elif field.dtype:
            values.append(plain_array(field.dtype, int(given[field.word]), int(given[field.word + 1])))
        else:
            values.append(int(given[field.word]))
    return cls(*values)
