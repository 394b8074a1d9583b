"""numba-cuda, which compiles Python for cards, and what is missing where it cannot be used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

import numpy as np

from tamis.errors import CapabilityError

_HINT = "Hint: pip install 'tamis[gpu]'"


def cuda_library() -> ModuleType:
    """The module `numba.cuda` of numba-cuda.

    Raises
    ------
    CapabilityError
        If numba-cuda is not installed, or finds no driver or no card. The message says what is missing.
    """
    try:
        import numba_cuda  # noqa: F401
        from numba import cuda

        _load(cuda)
    except ImportError as error:
        raise CapabilityError(f"matching on a GPU needs numba-cuda ({error}). {_HINT}") from None
    _check_driver(cuda)
    found: ModuleType = cuda
    return found


def is_simulated(cuda: Any) -> bool:
    """Whether this is the simulator of numba-cuda, which runs kernels thread by thread in plain Python."""
    return "simulator" in cuda.jit.__module__


def _load(cuda: ModuleType) -> None:
    """Load what kernels need. numba-cuda 0.30 asks for `numpy.row_stack`, another name of `vstack`, which NumPy 2.5 lacks."""
    if is_simulated(cuda):
        return
    settings: Any = importlib.import_module("numba.cuda.core.config")
    settings.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # A batch may well be small.
    names: Any = np
    if hasattr(names, "row_stack"):
        return
    names.row_stack = np.vstack
    try:
        importlib.import_module("numba.cuda.cudaimpl")
    finally:
        del names.row_stack


def _check_driver(cuda: Any) -> None:
    if cuda.is_available():
        return
    reason = cuda.cuda_error() if hasattr(cuda, "cuda_error") else None
    if reason is not None:
        lines = [line.strip() for line in str(reason).splitlines() if line.strip(" :")]
        raise CapabilityError(
            f"no driver for an NVIDIA GPU can be used: {' '.join(lines)} Hint: install NVIDIA's driver, or match without a GPU"
        )
    raise CapabilityError("this machine has no NVIDIA GPU that can be used. Hint: match without device='gpu'")
