"""Places in flat arrays: runs of consecutive ones, and those of equal values."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def run_indices(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices ``start, start + 1, ...`` of every run, one run after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    first: npt.NDArray[np.int64] = np.repeat(starts - (ends - counts), counts)
    return np.arange(total, dtype=np.int64) + first


def grouped(codes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The order that brings equal codes together, otherwise unchanged. NumPy sorts 16 bits by radix, ten times faster."""
    small = len(codes) > 0 and codes.max() < 2**16
    return np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")
