"""What was found for each event, put in the order of the events: a warp for each event.

The kernel that matches reserves places in the order in which events are done. These kernels run when all counts are known.
"""

from __future__ import annotations

from typing import Any

from tamis.gpu.device_code import cuda
from tamis.gpu.warp import WARP
from tamis.kernels.numbers import I32s, I64s


@cuda.jit
def put_in_order(count: I32s, found_at: I64s, found: Any, ordered_at: I64s, ordered: Any) -> None:
    """Copy what was found for each event to its place in the order of the events: a warp for each event."""
    lane = cuda.threadIdx.x % WARP
    event = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    while event < len(count):
        for i in range(lane, count[event], WARP):
            ordered[ordered_at[event] + i] = found[found_at[event] + i]
        event += cuda.gridDim.x * cuda.blockDim.x // WARP


@cuda.jit
def name_in_order(
    count: I32s, found_at: I64s, found: I32s, ordered_at: I64s, first: int, place: Any, events: I64s, names: Any
) -> None:
    """Write the row of the event, from `first` on, and `place` of the slot for each match, in the order of the events."""
    lane = cuda.threadIdx.x % WARP
    event = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    while event < len(count):
        for i in range(lane, count[event], WARP):
            events[ordered_at[event] + i] = first + event
            names[ordered_at[event] + i] = place[found[found_at[event] + i]]
        event += cuda.gridDim.x * cuda.blockDim.x // WARP
