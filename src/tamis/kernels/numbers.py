"""Conversions to the numbers of the machine, for kernels.

Numba distinguishes 32 from 64 bits and signed from unsigned, where Python has one int. Type checkers cannot follow, so for them
these functions return Any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

F64: Any = np.float64
I64: Any = np.int64
U8: Any = np.uint8
U32: Any = np.uint32
U64: Any = np.uint64
UP: Any = np.uintp
"""An unsigned index: Numba does not check whether it is negative."""
