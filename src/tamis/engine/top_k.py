"""Top-k: the matches of each event with the largest weights. Of equal weights, the lower slot comes first.

Matchers and Spark tasks decide it here. If several Spark tasks have matches of one event, `spark.matching` ranks what each kept.
Spark gives slots in the order of ids, so that the lower id comes first there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.engine.matching.results import Counts, are_lazy
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP, F64s, I32s, I64s


def heaviest_slots(counts: Counts, slots: Any, weights: F64s, k: int | None) -> tuple[Counts, Any]:
    """What `keep_heaviest` keeps of slots that may be `LazySlots`, and then still are; all slots if `k` is None."""
    if k is None:
        return counts, slots
    return slots.heaviest(counts, weights, k) if are_lazy(slots) else keep_heaviest(counts, slots, weights, k)


def keep_heaviest(counts: I64s, slots: I32s, weights: F64s, k: int) -> tuple[I64s, I32s]:
    """The `k` slots of each event with the largest weights, largest first; of equal weights, the lower slot first."""
    kept = np.minimum(counts, k)
    out = np.empty(int(kept.sum()), np.int32)
    _keep_heaviest(counts, slots, weights, kept, out)
    return kept, out


@lean_kernel
def _keep_heaviest(counts: I64s, slots: I32s, weights: F64s, kept: I64s, out: I32s) -> None:
    """The part of the output of each event is a heap of its best slots, the lightest on top. In the end it is sorted."""
    at, to = 0, 0
    for event in range(len(counts)):
        size = kept[event]
        for i in range(counts[event]):
            slot = slots[UP(at + i)]
            if i < size:
                out[UP(to + i)] = slot
                if i == size - 1:
                    for parent in range(size // 2 - 1, -1, -1):
                        _sink(out, to, size, parent, weights)
            elif size and _lighter(out[UP(to)], slot, weights):
                out[UP(to)] = slot
                _sink(out, to, size, 0, weights)
        for last in range(size - 1, 0, -1):
            out[UP(to)], out[UP(to + last)] = out[UP(to + last)], out[UP(to)]
            _sink(out, to, last, 0, weights)
        at += counts[event]
        to += size


@inlined
def _lighter(left: int, right: int, weights: F64s) -> bool:
    """Whether slot `left` comes after slot `right` in the ranking."""
    if weights[UP(left)] != weights[UP(right)]:
        return weights[UP(left)] < weights[UP(right)]
    return left > right


@inlined
def _sink(heap: I32s, to: int, size: int, place: int, weights: F64s) -> None:
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and _lighter(heap[UP(to + child + 1)], heap[UP(to + child)], weights):
            child += 1
        if not _lighter(heap[UP(to + child)], heap[UP(to + place)], weights):
            return
        heap[UP(to + place)], heap[UP(to + child)] = heap[UP(to + child)], heap[UP(to + place)]
        place = child
