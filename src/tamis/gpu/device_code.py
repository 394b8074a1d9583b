"""Functions of the engine for a card: the same Python, compiled by numba-cuda.

The engine describes its arrays by small functions, such as `range_holds`. A card reads the same arrays, so it needs the same
functions. `on_card` compiles one of them for cards, with all functions that it calls. A simulator runs them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

from numba import cuda as _cuda

from tamis.gpu.toolkit import is_simulated

cuda: Any = _cuda
SIMULATED = is_simulated(cuda)

device: Any = (lambda function: function) if SIMULATED else cuda.jit(device=True)
"""Decorates a function that kernels for cards call. One that uses `cuda` must be in the module of its kernel: the simulator puts
its own `cuda` there while the kernel runs."""
_made: dict[Any, Any] = {}
"""Functions of the engine that were compiled for cards."""


def on_card(function: Callable[..., Any]) -> Any:
    """A helper of the engine, as a function that kernels for cards can call."""
    plain: Any = getattr(function, "py_func", function)
    if SIMULATED:
        return plain
    if plain not in _made:
        names = _names_in(plain.__code__)
        known = {name: value for name, value in plain.__globals__.items() if name in names}
        called = {name: on_card(value) for name, value in known.items() if hasattr(value, "py_func")}
        same = FunctionType(plain.__code__, {**plain.__globals__, **called}, plain.__name__, plain.__defaults__)
        _made[plain] = device(same)
    return _made[plain]


def instead_of(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """Decorate a device function that takes the place of a helper that numba-cuda cannot compile. The meaning is the same."""

    def put(twin: Any) -> Any:
        _made[getattr(function, "py_func", function)] = twin
        return twin

    return put


def _names_in(code: CodeType) -> set[str]:
    """The global names that some code uses, in functions inside of it too."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    return set(code.co_names).union(*map(_names_in, inner))
