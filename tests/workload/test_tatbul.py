"""Tatbul's intervals: the overlap that was asked for, distances from the origin, and the documents."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tamis.workload import OPERATORS, TatbulConfig, WorkloadError, generate, measured_overlap
from tamis.workload.tatbul import spread_for


@pytest.mark.parametrize("alpha", [0, 0.5, 1])
@pytest.mark.parametrize("overlap", [0.01, 0.1, 0.5, 0.9, 1])
def test_the_overlap_is_reached(alpha: float, overlap: float) -> None:
    config = TatbulConfig(alpha=alpha, overlap=overlap)
    assert config.expected_overlap == pytest.approx(overlap, rel=0.06, abs=0.04 if overlap > 0.8 else 0)
    assert measured_overlap(generate(config).arrays()) == pytest.approx(config.expected_overlap, rel=0.2)


def test_the_overlap_is_that_of_all_pairs() -> None:
    workload = generate(TatbulConfig(subscriptions=40, overlap=0.3, dimensions=3))
    boxes = [[predicate["values"] for predicate in row["predicates"]] for row in workload.subscriptions().to_pylist()]
    pairs = list(combinations(boxes, 2))
    meeting = sum(
        all(low <= other_high and other_low <= high for (low, high), (other_low, other_high) in zip(*pair, strict=True))
        for pair in pairs
    )
    assert measured_overlap(workload.arrays()) == pytest.approx(meeting / len(pairs))


def test_a_spread_and_a_length_decide_the_overlap() -> None:
    narrow, wide = (TatbulConfig(spread=500, length=length) for length in (10, 400))
    assert narrow.expected_overlap < 0.1 < 0.5 < wide.expected_overlap
    for config in (narrow, wide):
        assert measured_overlap(generate(config).arrays()) == pytest.approx(config.expected_overlap, rel=0.2)


def test_intervals_and_documents() -> None:
    config = TatbulConfig(subscriptions=20_000, spread=40, alpha=1)
    arrays = generate(config).arrays()
    assert (arrays.operator == OPERATORS.index("between")).all()
    low, high = arrays.literals.reshape(-1, 2).T
    assert (high - low == 10).all()
    assert (low.min(), low.max()) == (1, 79)
    distances = np.bincount(np.abs(low - 40))
    assert distances[0] / distances[9] == pytest.approx(10, rel=0.15)
    assert np.mean(low[low != 40] < 40) == pytest.approx(0.5, abs=0.02)
    for events in (generate(config).event_arrays(5_000), generate(config).other_event_arrays(5_000)):
        assert (events.value.min(), events.value.max()) == (1, 89)
        assert np.bincount(events.value.ravel())[1:].min() > 60


def test_the_numbers_of_the_thesis() -> None:
    config = TatbulConfig()
    assert (config.dimensions, config.length, config.event_count) == (2, 10, 50)
    assert config.expected_overlap == pytest.approx(0.1, rel=0.01)
    assert config.used_spread == spread_for(0.1, 10, 1.0, 2)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"overlap": 0.1, "spread": 3}, "overlap and spread exclude each other"),
        ({"overlap": 1.5}, "overlap must be from 0 to 1"),
        ({"overlap": "much"}, "overlap must be a number"),
        ({"spread": 0}, "spread must be from 1"),
        ({"length": -1}, "length must be from 0"),
        ({"length": None}, "length must be a whole number, not None"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        TatbulConfig(**parameters)


def test_an_overlap_that_cannot_be_reached() -> None:
    with pytest.raises(
        WorkloadError, match=r"overlap 0\.1 cannot be reached: with length 10 and alpha 2, it is at least 0\.8"
    ):
        generate(TatbulConfig(overlap=0.1, alpha=2))
    with pytest.raises(WorkloadError, match="at least two subscriptions"):
        measured_overlap(generate(TatbulConfig(subscriptions=1)).arrays())
