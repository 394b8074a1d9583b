"""Runs of consecutive places in flat arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def run_indices(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices ``start, start + 1, ...`` of every run, one run after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    first: npt.NDArray[np.int64] = np.repeat(starts - (ends - counts), counts)
    return np.arange(total, dtype=np.int64) + first
