"""The hint to the processor."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pytest
from numba import njit

from tamis.kernels.prefetch import prefetch


@njit  # not one of our kernels: what comes from a cache has no code to look at
def _hint(array: Any, at: int) -> int:
    prefetch(array, at)
    return at


def test_prefetching_changes_nothing() -> None:
    array = np.arange(4)
    assert _hint(array, 2) == 2
    assert array.tolist() == [0, 1, 2, 3]


@pytest.mark.compiled
def test_prefetching_is_an_instruction() -> None:
    _hint(np.arange(4), 2)
    assert any("llvm.prefetch" in text for text in _hint.inspect_llvm().values())
    instruction = {"x86_64": "prefetch", "aarch64": "prfm", "arm64": "prfm"}[platform.machine()]
    assert any(instruction in text for text in _hint.inspect_asm().values())
