"""Draws by popularity have the right distribution and are distinct where they must be."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.workload.zipf import Floats, Popularity


def shares(count: int, alpha: float) -> Floats:
    weights = np.arange(1, count + 1, dtype=np.float64) ** -alpha
    share: Floats = weights / weights.sum()
    return share


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 3])
def test_independent_draws_follow_the_weights(alpha: float) -> None:
    drawn = Popularity(10, alpha).draw(np.random.default_rng(1), (100_000,))
    observed = np.bincount(drawn, minlength=10) / len(drawn)
    assert np.abs(observed - shares(10, alpha)).max() < 0.006


def test_a_shift_makes_the_first_numbers_more_alike() -> None:
    drawn = Popularity(1_000, 2.2, shift=8).draw(np.random.default_rng(1), (100_000,))
    counts = np.bincount(drawn, minlength=1_000)
    weights = np.arange(8, 1_008) ** -2.2
    assert np.abs(counts / len(drawn) - weights / weights.sum()).max() < 0.005
    assert counts[0] / counts[8] == pytest.approx(2**2.2, rel=0.1)


@pytest.mark.parametrize("alpha", [0, 1, 2.5])
@pytest.mark.parametrize("count", [4, 5])
def test_distinct_draws_are_successive_draws(alpha: float, count: int) -> None:
    """Every ordered pair occurs as often as drawing twice, without replacement, makes it."""
    rows = 200_000
    drawn = Popularity(count, alpha).draw_distinct(np.random.default_rng(2), rows, 2)
    share = shares(count, alpha)
    for first, second in permutations(range(count), 2):
        expected = share[first] * share[second] / (1 - share[first])
        observed = np.count_nonzero((drawn[:, 0] == first) & (drawn[:, 1] == second)) / rows
        assert abs(observed - expected) < 5 * np.sqrt(expected / rows) + 1e-4


@pytest.mark.parametrize("alpha", [0.0, 1.0, 1.5])
def test_head_and_tail_draw_as_one(alpha: float) -> None:
    """With many numbers the tail is drawn as one process; inclusion must agree with the race of all numbers."""
    count, size, rows = 300, 8, 30_000
    popularity = Popularity(count, alpha)
    drawn = popularity.draw_distinct(np.random.default_rng(3), rows, size)
    race = np.random.default_rng(4).standard_exponential((rows, count)) / np.arange(1, count + 1) ** -alpha
    reference = np.argsort(race, axis=1)[:, :size]
    for start, stop in [(0, 1), (1, 3), (3, 10), (10, 50), (50, 300)]:
        mean = ((drawn >= start) & (drawn < stop)).sum(axis=1).mean()
        expected = ((reference >= start) & (reference < stop)).sum(axis=1).mean()
        assert abs(mean - expected) < 0.03


@given(
    count=st.integers(1, 2_000),
    size=st.integers(1, 60),
    alpha=st.sampled_from([0.0, 0.3, 1.0, 2.0, 5.0, 10.0]),
    seed=st.integers(0, 2**32),
)
def test_rows_hold_distinct_numbers(count: int, size: int, alpha: float, seed: int) -> None:
    size = min(size, count)
    drawn = Popularity(count, alpha).draw_distinct(np.random.default_rng(seed), 20, size)
    assert drawn.shape == (20, size)
    assert drawn.min() >= 0
    assert drawn.max() < count
    assert all(len(set(row)) == size for row in drawn.tolist())


def test_thirty_thousand_dimensions_at_the_steepest_skew() -> None:
    drawn = Popularity(30_000, 5).draw_distinct(np.random.default_rng(5), 1_000, 90)
    assert all(len(set(row)) == 90 for row in drawn.tolist())
    assert np.median(drawn) < 90
