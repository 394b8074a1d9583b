"""What a kernel is made of: a digest of its own code and of everything that it uses.

    digest of match_events  <-  its code, and that of match_rows, name_owners, ...  (functions, found by name in their modules)
                                _EVENTS_AT_ONCE = 16, ...                           (constants)
                                EventBatch(start, dimension, lo, hi), ...           (the fields of named tuples)

Kernels inline helpers of other files, so neither the time nor the content of one file shows whether a compiled kernel is
current. The digest is the same on every machine and in every folder. It changes only with the code that is compiled.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

_PACKAGE = __name__.partition(".")[0]
_LIBRARIES = frozenset({"llvmlite", "numba", "numpy"})
"""Libraries whose version stands for their code."""
_described: dict[Any, tuple[bytes, list[Any]]] = {}
"""Function -> its own digest, and the functions that it uses."""


def digest_of(function: Any) -> str:
    """The digest of a kernel. Its module and everything that it names must be imported."""
    digests, waiting, seen = [], [function], {id(function)}
    while waiting:
        own, drawn = _describe(waiting.pop())
        digests.append(own)
        for each in drawn:
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def _describe(function: Any) -> tuple[bytes, list[Any]]:
    known = _described.get(function)
    if known is None:
        known = _described[function] = _described_function(function)
    return known


def _described_function(function: Any) -> tuple[bytes, list[Any]]:
    said: list[str] = [function.__module__, function.__qualname__, _constant(function.__defaults__)]
    functions: list[Any] = []
    names: dict[str, None] = {}
    for code in _codes(function.__code__):
        constants = [each for each in code.co_consts if not isinstance(each, types.CodeType)]
        said += [code.co_code.hex(), _constant(tuple(constants)), repr(code.co_names), repr(code.co_varnames)]
        names.update(dict.fromkeys(code.co_names))
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    values = [*closed, *(function.__globals__[name] for name in names if name in function.__globals__)]
    for value in values:
        drawn = _function_in(value)
        if drawn is not None:
            functions.append(drawn)
            said.append(repr(getattr(value, "targetoptions", None)))
        else:
            said.append(_constant(value))
    return hashlib.sha256("\n".join(said).encode()).digest(), functions


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions that are defined in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _function_in(value: Any) -> Any:
    """The Python function that a value is or was made of, as compiled functions and intrinsics are; None for other values."""
    for function in (value, getattr(value, "py_func", None), getattr(value, "_defn", None)):
        if isinstance(function, types.FunctionType) and function.__module__.partition(".")[0] not in _LIBRARIES:
            return function
    return None


def _constant(value: Any) -> str:
    """A value as text, as far as it matters to the compiler."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape} {value.tobytes().hex()}"
    if isinstance(value, type):
        return f"{value.__qualname__} {getattr(value, '_fields', '')}"
    if isinstance(value, types.ModuleType):
        file = value.__file__ if value.__name__.startswith(f"{_PACKAGE}.") else None
        return value.__name__ if file is None else f"{value.__name__} {Path(file).read_text(encoding='utf-8')}"
    if isinstance(value, tuple | frozenset):
        said = [_constant(each) for each in value]
        return f"({' '.join(said if isinstance(value, tuple) else sorted(said))})"
    if isinstance(value, bool | int | float | str | bytes | np.generic | None):
        return repr(value)
    return type(value).__qualname__
