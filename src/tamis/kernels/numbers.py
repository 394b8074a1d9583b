"""The machine's numbers, as kernels convert to them.

Numba tells 32 from 64 bits and signed from unsigned where Python has one int; type checkers cannot follow, so to them these give
anything.
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
"""An index that Numba need not check for being negative."""
