"""Scales: both ways to find the cuts of dimensions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import all_differ
from tamis.encoding.expressions.predicates import Predicates
from tamis.engine.layout.scale import CUTS_PER_BLOCK, MOST_SPACES, Scales, scales_of


def predicates_of(dimension: npt.NDArray[np.int32], lo: npt.NDArray[np.int64], hi: npt.NDArray[np.int64]) -> Predicates:
    """Predicates with one interval each."""
    mode = np.full(len(dimension), Mode.SOME, np.uint8)
    return Predicates(dimension, mode, np.arange(len(dimension) + 1, dtype=np.int64), lo, hi)


def drawn(values: list[int], each: int) -> Predicates:
    """`each` predicates per dimension, with ends among its number of `values`; some are open on one side or both."""
    random = np.random.default_rng(len(values))
    parts = []
    for d, count in enumerate(values):
        lo, hi = np.sort(random.integers(0, count, (2, each)) * 10, axis=0)
        lo[random.random(each) < 0.2], hi[random.random(each) < 0.2] = KEY_MIN, KEY_MAX
        parts.append((np.full(each, d, np.int32), lo, hi))
    return predicates_of(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def cuts_of(scales: Scales, dimension: int) -> list[int]:
    d = int(scales.local[dimension])
    at = int(scales.cut[d]) + (CUTS_PER_BLOCK if scales.blocks[d] > 1 else 0)
    return [int(cut) for cut in scales.cuts[at : at + int(scales.spaces[d]) - 1]]


def ends_of(predicates: Predicates, dimension: int) -> list[int]:
    here = predicates.dimension == dimension
    lo, hi = predicates.lo[here], predicates.hi[here]
    return sorted({*lo[lo != KEY_MIN].tolist(), *(hi[hi != KEY_MAX] + 1).tolist()})


@pytest.mark.kernels
def test_if_ends_are_few_they_are_the_cuts() -> None:
    predicates = drawn([3, 100, 126, 1], 2_000)
    scales = scales_of(predicates)
    for dimension in range(4):
        assert cuts_of(scales, dimension) == ends_of(predicates, dimension)
        assert scales.ends[scales.local[dimension]] == len(ends_of(predicates, dimension))
    assert (scales.shift_at < 0).all()


def test_cuts_are_the_same_from_collected_ends_and_from_tables() -> None:
    few = drawn([5, 120, 200, 60_000, 126], 3_000)
    others = np.arange(100, 1_600, dtype=np.int32)  # With this many dimensions there are no tables.
    key = np.arange(1_500, dtype=np.int64)
    many = predicates_of(np.append(few.dimension, others), np.append(few.lo, key), np.append(few.hi, key))
    looked_up, collected = scales_of(few), scales_of(many)
    for dimension in range(5):
        a, b = int(looked_up.local[dimension]), int(collected.local[dimension])
        assert cuts_of(looked_up, dimension) == cuts_of(collected, dimension)
        assert looked_up.ends[a] == collected.ends[b]
        assert (looked_up.shift_at[a] < 0) == (collected.shift_at[b] < 0)
        wide = len(ends_of(few, dimension)) > MOST_SPACES - 1
        assert (looked_up.shift_at[a] >= 0) == wide
    assert cuts_of(collected, 107) == [7, 8]


@pytest.mark.kernels
@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 500])
def test_whether_hashes_differ(count: int) -> None:
    hashes = np.random.default_rng(count).integers(0, 2**64, count, np.uint64, endpoint=False)
    assert all_differ(hashes)
    # All belong in the last place of the table, and continue at its beginning.
    assert all_differ(np.arange(1, count + 1, dtype=np.uint64) << np.uint64(32) | np.uint64(0xFFFFFFFF))
    if count:
        assert not all_differ(np.append(hashes, hashes[count // 2]))
