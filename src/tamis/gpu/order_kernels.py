"""What was found for each event, put in the order of the events: a warp for each event.

The kernel that matches reserves places in the order in which events are done. These kernels run when all counts are known.
"""

from __future__ import annotations

from typing import Any

from tamis.gpu.device_code import cuda
from tamis.gpu.warp import WARP, heaviest
from tamis.kernels.numbers import F64, I64, UP, F64s, I32s, I64s

_INFINITE = float("inf")
_NONE = 1 << 31
"""Above all slots."""


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


@cuda.jit
def keep_heaviest_on_card(
    count: I32s, found_at: I64s, found: I32s, weights: F64s, kept: I32s, kept_at: I64s, out: I32s
) -> None:
    """Write the slots of each event with the largest weights, `kept` of them, the largest first. Of equal weights, the lower slot
    comes first. Each look at all slots of an event finds the next one."""
    lane = cuda.threadIdx.x % WARP
    event = (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x) // WARP
    while event < len(count):
        last_weight, last = F64(_INFINITE), I64(-1)
        for rank in range(kept[event]):
            best_weight, best = F64(-_INFINITE), I64(_NONE)
            for i in range(lane, count[event], WARP):
                slot = I64(found[UP(found_at[event] + i)])
                weight = weights[UP(slot)]
                is_later = weight < last_weight or (weight == last_weight and slot > last)
                if is_later and (weight > best_weight or (weight == best_weight and slot < best)):
                    best_weight, best = weight, slot
            last_weight, last = heaviest(best_weight, best)
            if lane == 0:
                out[UP(kept_at[event] + rank)] = last
        event += cuda.gridDim.x * cuda.blockDim.x // WARP
