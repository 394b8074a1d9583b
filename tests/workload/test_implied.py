"""Every operator's literals are satisfied by the value they are implied by, and have the shape of the paper."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.operators import Operator
from tamis.workload.implied import CODE, IMPLIED, MAX_SET, OPERATORS, implied_literals, implied_operators
from tests.workload.satisfaction import holds

CHECKED = [operator for operator in OPERATORS if operator is not Operator.LIKE]


def literals_of(
    operator: Operator, values: list[int], cardinality: int, range_share: float = 0.12, seed: int = 1
) -> list[list[int]]:
    codes = np.full(len(values), CODE[operator], np.uint8)
    rng = np.random.default_rng(seed)
    ptr, literals = implied_literals(rng, codes, np.array(values, np.int64), cardinality, range_share)
    return [literals[start:stop].tolist() for start, stop in pairwise(ptr)]


@given(
    cardinality=st.one_of(st.integers(2, 12), st.integers(2, 10_000_000)),
    range_share=st.floats(0, 0.5),
    operator=st.sampled_from(CHECKED),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_the_value_satisfies_what_it_implies(
    cardinality: int, range_share: float, operator: Operator, seed: int, data: st.DataObject
) -> None:
    edges = [1, 2, cardinality - 1, cardinality]
    inner = data.draw(st.lists(st.integers(1, cardinality), max_size=20))
    values = [value for value in edges + inner if value >= 1]
    for value, literals in zip(values, literals_of(operator, values, cardinality, range_share, seed), strict=True):
        assert holds(operator, literals, value)
        assert len(set(literals)) == len(literals) or operator is Operator.BETWEEN
        assert literals == sorted(literals)
        strict = operator in (Operator.LT, Operator.GT)
        assert min(literals) >= (0 if strict else 1)
        assert max(literals) <= (cardinality + 1 if strict else cardinality)


def test_mixed_operators_keep_their_literals_apart() -> None:
    rng = np.random.default_rng(5)
    codes = rng.integers(0, len(CHECKED), 5_000).astype(np.uint8)
    values = rng.integers(1, 31, 5_000)
    ptr, literals = implied_literals(rng, codes, values, 30, 0.12)
    for place, value in enumerate(values.tolist()):
        assert holds(OPERATORS[codes[place]], literals[ptr[place] : ptr[place + 1]].tolist(), value)


@pytest.mark.parametrize(
    ("operator", "cardinality", "sizes"),
    [
        (Operator.IN, 100, {2, 3, 4, 5, 6}),
        (Operator.NOT_IN, 100, {2, 3, 4, 5, 6}),
        (Operator.IN, 4, {2, 3, 4}),
        (Operator.NOT_IN, 4, {2, 3}),
        (Operator.IN, 2, {2}),
        (Operator.NOT_IN, 2, {1}),
    ],
)
def test_set_sizes(operator: Operator, cardinality: int, sizes: set[int]) -> None:
    found = literals_of(operator, [1] * 500, cardinality)
    assert {len(literals) for literals in found} == sizes


def test_sets_are_uniform_choices() -> None:
    found = literals_of(Operator.NOT_IN, [3] * 60_000, 7)
    pairs = [tuple(literals) for literals in found if len(literals) == 2]
    _, counts = np.unique(np.array(pairs), axis=0, return_counts=True)
    assert len(counts) == 15  # pairs of the six other values
    assert counts.max() / counts.min() < 1.25
    members = [literal for literals in literals_of(Operator.IN, [3] * 20_000, 50) for literal in literals]
    counts = np.bincount(members, minlength=51)[1:]
    assert counts[2] == 20_000
    assert np.delete(counts, 2).max() / np.delete(counts, 2).min() < 1.25
    assert MAX_SET == 6


@pytest.mark.parametrize(("share", "cardinality"), [(0.06, 1_000), (0.12, 48), (0.12, 100_000), (0.5, 100)])
def test_ranges_have_their_mean_width(share: float, cardinality: int) -> None:
    values = np.random.default_rng(6).integers(1, cardinality + 1, 40_000).tolist()
    widths = [high - low + 1 for low, high in literals_of(Operator.BETWEEN, values, cardinality, share)]
    assert np.mean(widths) / cardinality == pytest.approx(share, rel=0.02)


@pytest.mark.parametrize(
    ("operator", "literals"),
    [
        (Operator.LT, {6, 7, 8, 9, 10, 11}),
        (Operator.LE, {5, 6, 7, 8, 9, 10}),
        (Operator.GT, {0, 1, 2, 3, 4}),
        (Operator.GE, {1, 2, 3, 4, 5}),
        (Operator.NE, {1, 2, 3, 4, 6, 7, 8, 9, 10}),
        (Operator.EQ, {5}),
    ],
)
def test_all_bounds_occur_evenly(operator: Operator, literals: set[int]) -> None:
    found: list[Any] = [only for (only,) in literals_of(operator, [5] * 20_000, 10)]
    values, counts = np.unique(found, return_counts=True)
    assert set(values.tolist()) == literals
    assert counts.max() / counts.min() < 1.2


@pytest.mark.parametrize("name", IMPLIED)
def test_operator_classes(name: str) -> None:
    others = IMPLIED[name]  # type: ignore[index]
    codes = implied_operators(np.random.default_rng(7), 50_000, 0.4, others)
    shares = {OPERATORS[code]: share / 50_000 for code, share in enumerate(np.bincount(codes)) if share}
    assert set(shares) == {Operator.EQ, *others}
    assert shares[Operator.EQ] == pytest.approx(0.4 if others else 1, abs=0.01)
    for operator in others:
        assert shares[operator] == pytest.approx(0.6 / len(others), abs=0.01)


def test_classes_grow_as_in_the_paper() -> None:
    assert IMPLIED["min"] == ()
    assert set(IMPLIED["low"]) == {"in"}
    assert set(IMPLIED["med"]) == {"in", "<", "<=", ">", ">=", "between"}
    assert set(IMPLIED["high"]) == {"in", "<", "<=", ">", ">=", "between", "<>", "not in"}
