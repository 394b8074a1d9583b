"""Places in flat arrays: spans of consecutive places, and places grouped by equal values."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.kernel import kernel
from tamis.kernels.numbers import I64s


class Span(NamedTuple):
    """Consecutive places, without `end`."""

    begin: int
    end: int


def span_indices(starts: I64s, counts: I64s) -> I64s:
    """The indices ``start, start + 1, ...`` of every span, one span after another."""
    indices = np.empty(int(counts.sum()), np.int64)
    _write_spans(starts, counts, indices)
    return indices


@kernel
def _write_spans(starts: I64s, counts: I64s, indices: I64s) -> None:
    at = 0
    for span in range(len(starts)):
        for i in range(counts[span]):
            indices[at] = starts[span] + i
            at += 1


def grouped(codes: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """The order that brings equal codes together, otherwise unchanged. NumPy sorts 16 bits by radix: ten times faster."""
    small = len(codes) > 0 and codes.max() < 2**16
    return np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")
