"""Conversions to the numbers of the machine, for kernels, and arrays of these numbers.

Numba distinguishes 32 from 64 bits and signed from unsigned, where Python has one int. Type checkers cannot follow, so for them
these functions return Any.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

F64: Any = np.float64
I32: Any = np.int32
I64: Any = np.int64
U8: Any = np.uint8
U32: Any = np.uint32
U64: Any = np.uint64
UP: Any = np.uintp
"""An unsigned index: Numba does not check whether it is negative."""

Bools = npt.NDArray[np.bool_]
F64s = npt.NDArray[np.float64]
I8s = npt.NDArray[np.int8]
I32s = npt.NDArray[np.int32]
I64s = npt.NDArray[np.int64]
U8s = npt.NDArray[np.uint8]
U16s = npt.NDArray[np.uint16]
U32s = npt.NDArray[np.uint32]
U64s = npt.NDArray[np.uint64]
