"""Fabret's workload: fixed and free names, the domains, skew and its correlation, the focus."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tamis.workload import OPERATORS, FabretConfig, WorkloadError, generate

EQ, LT, GT = (OPERATORS.index(operator) for operator in ("=", "<", ">"))


def columns(**parameters: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """The attributes, operators and literals of 10,000 subscriptions, with a row for each subscription."""
    config = FabretConfig(subscriptions=10_000, **parameters)
    arrays = generate(config).arrays()
    assert set(np.diff(arrays.ptr).tolist()) == {config.subscription_size}
    return tuple(  # type: ignore[return-value]
        flat.reshape(10_000, config.subscription_size) for flat in (arrays.attribute, arrays.operator, arrays.literals)
    )


def test_fixed_and_free_names() -> None:
    sizes = {"subscription_size": 6, "fixed_equal": 2, "fixed_less": 1, "fixed_greater": 1, "equality_ratio": 0.5}
    attribute, operator, literal = columns(**sizes)
    assert (attribute[:, :4] == np.arange(4)).all()
    assert (operator[:, :4] == [EQ, EQ, LT, GT]).all()
    assert (attribute[:, 4] != attribute[:, 5]).all()
    free = np.bincount(attribute[:, 4:].ravel(), minlength=32)
    assert free[:4].sum() == 0
    assert free[4:].min() / free[4:].max() > 0.8
    shares = np.bincount(operator[:, 4:].ravel(), minlength=len(OPERATORS)) / 20_000
    assert shares[[EQ, LT, GT]] == pytest.approx([0.5, 0.25, 0.25], abs=0.02)
    values = np.bincount(literal.ravel())
    assert len(values) == 36
    assert values[1:].min() / values[1:].max() > 0.8


@pytest.mark.parametrize(("fixed", "size"), [(0, 1), (5, 5)])
def test_no_fixed_or_no_free_names(fixed: int, size: int) -> None:
    attribute, _, _ = columns(fixed_equal=fixed, subscription_size=size)
    assert len(set(attribute[:, 0].tolist())) == (32 if fixed == 0 else 1)


def test_events_have_their_fixed_names_and_domain() -> None:
    config = FabretConfig(
        subscriptions=1, dimensions=40, event_size=12, fixed_event_size=3, event_lowest=5, event_highest=9
    )
    for events in (generate(config).event_arrays(), generate(config).other_event_arrays()):
        assert (events.attribute[:, :3] == np.arange(3)).all()
        assert all(len(set(row)) == 12 for row in events.attribute.tolist())
        counts = np.bincount(events.attribute[:, 3:].ravel(), minlength=40)[3:]
        assert counts.min() / counts.max() > 0.6
        assert np.unique(events.value).tolist() == [5, 6, 7, 8, 9]


def test_the_focus_moves_all_names_of_subscriptions() -> None:
    first, _, literals = columns(focus_names=16)
    other, _, same = columns(focus_names=16, focus_start=16)
    assert (first.max(), other.min()) == (15, 16)
    assert (first + 16 == other).all()
    assert (literals == same).all()
    assert set(np.unique(columns(focus_names=8, focus_start=28)[0])) == {28, 29, 30, 31, 0, 1, 2, 3}


def most_popular(values: npt.NDArray[Any]) -> list[int]:
    counts: list[int] = np.argsort(-np.bincount(values.ravel()), kind="stable")[:4].tolist()
    return counts


@pytest.mark.parametrize(("correlation", "shared"), [(1.0, True), (0.0, False)])
def test_skew_and_correlation(correlation: float, shared: bool) -> None:
    config = FabretConfig(subscriptions=10_000, subscription_skew=1, event_skew=1, correlation=correlation)
    literals, values = generate(config).arrays().literals, generate(config).event_arrays().value
    for drawn in (literals, values):
        counts = np.sort(np.bincount(drawn.ravel())[1:])[::-1]
        assert counts[0] / counts[9] == pytest.approx(10, rel=0.1)
    assert (most_popular(literals) == most_popular(values)) is shared


def test_half_a_correlation_mixes_both_orders() -> None:
    values = [
        generate(FabretConfig(event_skew=3, correlation=share)).event_arrays().value.ravel() for share in (0, 0.5, 1)
    ]
    own, mixed, shared = (np.bincount(each, minlength=36) / len(each) for each in values)
    assert mixed == pytest.approx((own + shared) / 2, abs=0.01)


def test_few_values_on_the_fixed_names() -> None:
    config = FabretConfig(subscriptions=10_000, few_values=2, focus_start=4)
    arrays, events = generate(config).arrays(), generate(config).event_arrays()
    fixed = np.isin(arrays.attribute, [4, 5])
    few = set(arrays.literals[fixed].tolist())
    assert len(few) == 2
    assert set(events.value[np.isin(events.attribute, [4, 5])].tolist()) == few
    assert len(set(arrays.literals[~fixed].tolist())) == 35
    assert len(set(events.value[~np.isin(events.attribute, [4, 5])].tolist())) == 35


def test_values_outside_the_other_domain() -> None:
    config = FabretConfig(subscriptions=10, lowest=3, highest=4, event_lowest=4, event_highest=8, event_skew=1)
    values = generate(config).event_arrays().value
    assert most_popular(values)[0] == 4
    assert np.unique(values).tolist() == [4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"fixed_equal": 4, "fixed_less": 2},
            r"fixed_less \+ fixed_greater must not be above subscription_size: 6 is ab",
        ),
        ({"subscription_size": 33}, "subscription_size must not be above dimensions: 33 is above 32"),
        ({"focus_names": 4}, "subscription_size must not be above focus_names: 5 is above 4"),
        ({"focus_names": 33}, "focus_names must not be above dimensions"),
        ({"focus_start": 32}, r"focus_start \+ 1 must not be above dimensions: 33 is above 32"),
        ({"event_size": 33}, "event_size must not be above dimensions"),
        ({"fixed_event_size": 33}, "fixed_event_size must not be above event_size"),
        ({"lowest": 40}, "lowest must not be above highest: 40 is above 35"),
        ({"event_lowest": 40}, "event_lowest must not be above event_highest"),
        ({"few_values": 36}, "few_values must not be above the number of values: 36 is above 35"),
        ({"few_values": 1, "fixed_equal": 0}, "few_values needs fixed names"),
        ({"correlation": 2}, "correlation must be from 0 to 1"),
        ({"subscription_size": 2.5}, "subscription_size must be a whole number"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        FabretConfig(**parameters)
