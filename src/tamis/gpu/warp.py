"""What the threads of a warp do together, each with a plain twin for the simulator, where a warp is one thread.

A card runs the threads of a warp in step, and they can exchange values. The simulator runs threads in any order.
"""

from __future__ import annotations

from typing import Any

from tamis.gpu.device_code import SIMULATED, cuda, device
from tamis.kernels.numbers import I32, U32

WARP = 1 if SIMULATED else 32
"""Threads of a warp."""
_ALL = 0xFFFFFFFF


def _votes(flag: bool) -> Any:
    """The threads of the warp whose flag is set, as bits."""
    return U32(cuda.ballot_sync(_ALL, flag))


def _votes_of_one(flag: bool) -> Any:
    return U32(1) if flag else U32(0)


def _from_first(value: Any) -> Any:
    """The value of the first thread of the warp."""
    return cuda.shfl_sync(_ALL, value, 0)


def _of_itself(value: Any) -> Any:
    return value


def _meet() -> None:
    """Wait until all threads of the warp are here, and see what each has written."""
    cuda.syncwarp()


def _alone() -> None:
    """A warp of one thread never waits."""


def _count(votes: Any) -> Any:
    """How many threads voted."""
    return I32(cuda.popc(votes))


def _count_of_one(votes: Any) -> Any:
    return I32(votes)


def _before(votes: Any, lane: int) -> Any:
    """How many threads voted that come before this one."""
    return I32(cuda.popc(votes & ((U32(1) << U32(lane)) - U32(1))))


def _none_before(votes: Any, lane: int) -> Any:
    return I32(0)


def _heaviest(weight: Any, slot: Any) -> Any:
    """The heaviest slot of those that the threads of the warp have, and its weight. Of equal weights, the lower slot."""
    step = 1
    while step < WARP:
        other_weight, other = cuda.shfl_xor_sync(_ALL, weight, step), cuda.shfl_xor_sync(_ALL, slot, step)
        if other_weight > weight or (other_weight == weight and other < slot):
            weight, slot = other_weight, other
        step *= 2
    return weight, slot


def _only(weight: Any, slot: Any) -> Any:
    return weight, slot


votes, from_first, meet, count, before, heaviest = map(
    device,
    (_votes_of_one, _of_itself, _alone, _count_of_one, _none_before, _only)
    if SIMULATED
    else (_votes, _from_first, _meet, _count, _before, _heaviest),
)
