"""The heaviest matches of each event, compared with a plain sort."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.engine.top_k import keep_heaviest

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("k", [1, 2, 7, 1000])
def test_against_a_plain_sort(seed: int, k: int) -> None:
    chance = np.random.default_rng(seed)
    counts = chance.integers(0, 30, 12)
    slots = np.concatenate([chance.permutation(50)[:count] for count in counts]).astype(np.int32)
    weights = chance.choice([-1.5, 0.0, 0.0, 2.0, 2.0, 1e300], 50)
    kept, out = keep_heaviest(counts, slots, weights, k)
    assert kept.tolist() == np.minimum(counts, k).tolist()
    at = to = 0
    for count, few in zip(counts.tolist(), kept.tolist(), strict=True):
        ranked = sorted(slots[at : at + count].tolist(), key=lambda slot: (-weights[slot], slot))
        assert out[to : to + few].tolist() == ranked[:few]
        at, to = at + count, to + few


def test_nothing_to_keep() -> None:
    kept, out = keep_heaviest(np.zeros(3, np.int64), np.zeros(0, np.int32), np.zeros(0), 5)
    assert (kept.tolist(), out.tolist()) == ([0, 0, 0], [])
