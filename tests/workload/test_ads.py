"""Advertisements: the sizes of the paper, the planted matches, and the errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tamis.workload import AdsConfig, WorkloadError, generate
from tests.workload.satisfaction import planted_holds


def test_the_sizes_of_the_paper() -> None:
    config = AdsConfig(subscriptions=50_000)
    workload = generate(config)
    arrays = workload.arrays()
    sizes = np.bincount(np.diff(arrays.ptr), minlength=57)
    assert (len(sizes), sizes[0]) == (57, 0)
    assert sizes[56] > 0
    assert np.diff(arrays.ptr).mean() == pytest.approx(8, rel=0.02)
    assert sizes[1:21].argmax() == 0
    assert len(np.unique(arrays.attribute)) == len(workload.attribute_names) == 122
    assert workload.event_arrays(10).attribute.shape == (10, 20)
    assert config.event_count == 1_000


def test_planted_events_match_what_is_not_larger() -> None:
    config = AdsConfig(subscriptions=3_000, subscription_size=20, match_probability=0.01)
    workload = generate(config)
    arrays = workload.arrays()
    holds = planted_holds(arrays, workload.event_arrays(3_000))
    matched = np.logical_and.reduceat(holds, arrays.ptr[:-1])
    sizes = np.diff(arrays.ptr)
    assert (matched == (sizes <= 20)).all()
    assert np.count_nonzero(sizes > 20) > 500
    assert np.add.reduceat(holds, arrays.ptr[:-1])[sizes > 20].min() == 20


@pytest.mark.parametrize(
    "changes", [{"largest_size": 5, "subscription_size": 3}, {"largest_size": 1, "subscription_size": 1}]
)
def test_smaller_advertisements(changes: dict[str, Any]) -> None:
    arrays = generate(AdsConfig(subscriptions=10_000, **changes)).arrays()
    assert np.diff(arrays.ptr).max() == changes["largest_size"]
    assert np.diff(arrays.ptr).mean() == pytest.approx(changes["subscription_size"], rel=0.03)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"event_size": 123}, "event_size is 123, but there are only 122 attributes"),
        ({"largest_size": 123}, "largest_size is 123, but there are only 122 attributes"),
        ({"subscription_size": 29}, "subscription_size is 29: above the middle of the sizes from 1 to 56"),
        ({"match_probability": 0}, "match_probability must be from"),
        ({"operator_class": "all"}, "operator_class must be one of min, low, med, high"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        AdsConfig(**parameters)
