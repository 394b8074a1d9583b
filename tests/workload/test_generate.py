"""The workload as a whole: planted matches, marginals, the same blocks from any process."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tamis.workload import (
    EVENT_BLOCK,
    OPERATORS,
    PRESETS,
    SUBSCRIPTION_BLOCK,
    WorkloadConfig,
    WorkloadError,
    generate,
    preset,
)
from tamis.workload.domain import PaperDomain
from tamis.workload.papers import PaperDraws
from tests.workload.satisfaction import event_dicts, matches, planted_holds

MIXED = {"string_share": 0.4, "prefix_share": 0.3}
# The two of PS-Tree are our dense and sparse.
DISTINCT = [name for name in PRESETS if not name.startswith("ps-tree")]
OF_PAPERS = [name for name in DISTINCT if isinstance(PRESETS[name], WorkloadConfig)]
BE_GEN = [name for name in OF_PAPERS if PRESETS[name].style == "be-gen"]


def shape(name: str, **changes: Any) -> WorkloadConfig:
    config = preset(name, **{"subscriptions": 2_000, **changes})
    assert isinstance(config, WorkloadConfig)
    return config


@pytest.mark.parametrize("name", OF_PAPERS)
def test_same_config_same_workload(name: str) -> None:
    one, two = generate(shape(name)), generate(shape(name))
    assert one.subscriptions().equals(two.subscriptions())
    assert one.events(20).equals(two.events(20))
    assert one.other_events(20).equals(two.other_events(20))
    assert one.subscriptions().equals(one.subscriptions())


@pytest.mark.parametrize("changes", [{}, MIXED, {"style": "op-index"}])
def test_another_seed_gives_another_workload(changes: dict[str, Any]) -> None:
    one, two = generate(shape("dense", **changes)), generate(shape("dense", seed=2, **changes))
    assert not one.subscriptions().equals(two.subscriptions())
    assert not one.events(20).equals(two.events(20))
    assert not one.other_events(20).equals(two.other_events(20))


@pytest.mark.parametrize("style", ["be-gen", "op-index"])
def test_a_block_does_not_depend_on_the_others(style: str) -> None:
    config = preset("zipf", subscriptions=3 * SUBSCRIPTION_BLOCK - 7, style=style, **MIXED)
    whole = generate(config).subscriptions()
    assert generate(config).blocks == 3
    for block in (2, 0, 1):
        alone = generate(config).subscription_block(block)
        start = block * SUBSCRIPTION_BLOCK
        assert alone["id"][0].as_py() == start
        assert whole.slice(start, alone.num_rows).combine_chunks().to_batches()[0].equals(alone)
    assert whole["id"].to_pylist() == list(range(config.subscriptions))


@pytest.mark.parametrize("style", ["be-gen", "op-index"])
def test_a_smaller_workload_is_the_beginning_of_a_larger_one(style: str) -> None:
    small = generate(preset("dense", subscriptions=1_234, style=style)).subscriptions()
    large = generate(preset("dense", subscriptions=SUBSCRIPTION_BLOCK + 1, style=style)).subscriptions()
    assert large.slice(0, 1_234).equals(small)


def test_events_are_the_same_however_many_are_asked_for() -> None:
    workload = generate(preset("dense", match_probability=0.0004))
    many = workload.events()
    assert many.num_rows == 2_500
    assert many.slice(0, EVENT_BLOCK + 5).equals(workload.events(EVENT_BLOCK + 5))
    assert workload.other_events(1_100).slice(0, 3).equals(workload.other_events(3))


def test_events_repeat_beyond_the_base_events() -> None:
    events = event_dicts(generate(shape("dense", match_probability=0.5)).events(5))
    assert events[0] == events[2] == events[4]
    assert events[1] == events[3] != events[0]


def test_a_workload_travels_as_its_config() -> None:
    workload = generate(shape("dense"))
    workload.events(3)
    again = pickle.loads(pickle.dumps(workload))
    assert again.config == workload.config
    assert again.subscription_block(0).equals(workload.subscription_block(0))


@pytest.mark.parametrize("name", BE_GEN)
@pytest.mark.parametrize("operator_class", ["min", "low", "med", "high"])
def test_planted_events_satisfy_every_predicate(name: str, operator_class: str) -> None:
    config = shape(name, subscriptions=SUBSCRIPTION_BLOCK + 500, operator_class=operator_class, equality_ratio=0.2)
    workload = generate(config)
    events = workload.event_arrays(config.subscriptions)
    assert planted_holds(workload.arrays(), events).all()


@pytest.mark.parametrize("numbers", ["integer", "float"])
@pytest.mark.parametrize("cardinality", [2, 3, 9, 99, 1_000_000])
@pytest.mark.parametrize("string_share", [0, 0.4, 1])
def test_planted_events_match_as_tables(numbers: str, cardinality: int, string_share: float) -> None:
    config = shape(
        "ads",
        subscriptions=600,
        match_probability=0.01,
        numbers=numbers,
        cardinality=cardinality,
        string_share=string_share,
        prefix_share=0.3 if string_share else 0,
    )
    workload = generate(config)
    events = event_dicts(workload.events(100))
    rows = workload.subscriptions().to_pylist()
    assert all(matches(row["predicates"], events[row["id"] % 100]) for row in rows)


@pytest.mark.parametrize(
    ("probability", "planted"),
    [(1, 1000), (0.7, 699), (0.5, 500), (0.4, 399), (0.3, 299), (0.09, 90), (0.01, 10), (0.001, 1)],
)
def test_match_probability(probability: float, planted: int) -> None:
    """Every event is matched by at least its share of the subscriptions; in a sparse space by little more."""
    workload = generate(shape("sparse", subscriptions=1_000, match_probability=probability))
    rows = workload.subscriptions()["predicates"].to_pylist()
    for event in event_dicts(workload.events(10)):
        found = sum(matches(row, event) for row in rows)
        assert planted <= found <= planted + 5


@pytest.mark.parametrize("probability", [0.97, 0.7, 0.3, 0.15, 0.017, 0.0007])
def test_shares_that_do_not_divide_evenly(probability: float) -> None:
    config = preset("dense", match_probability=probability)
    draws = PaperDraws(config, PaperDomain(config))
    for first in (0, 10**11):
        base = draws.base_of(first + np.arange(200_000))
        shares = np.bincount(base, minlength=config.base_events + 1) / len(base)
        assert shares[:-1] == pytest.approx(probability, abs=1e-4)
        assert shares[-1] == pytest.approx(1 - config.base_events * probability, abs=1e-4)


def test_other_events_have_nothing_planted() -> None:
    workload = generate(shape("sparse", subscriptions=1_000))
    rows = workload.subscriptions()["predicates"].to_pylist()
    others = event_dicts(workload.other_events(20))
    assert sum(matches(row, event) for row in rows for event in others) == 0
    assert not any(event in event_dicts(workload.events()) for event in others)


@pytest.mark.parametrize("name", BE_GEN)
def test_marginals(name: str) -> None:
    config = shape(name, subscriptions=20_000)
    arrays = generate(config).arrays()
    sizes = np.diff(arrays.ptr)
    assert sizes.min() >= 1
    assert sizes.max() <= config.event_size
    assert sizes.mean() == pytest.approx(config.subscription_size, rel=0.02)
    equal = np.mean(arrays.operator == OPERATORS.index("="))
    assert equal == pytest.approx(config.equality_ratio, abs=0.01)


@pytest.mark.parametrize(("mean", "event_size"), [(1, 1), (1, 5), (1.5, 3), (2, 4), (30, 30), (29.5, 30)])
def test_mean_sizes_hold_at_the_edges(mean: float, event_size: int) -> None:
    config = shape("dense", subscriptions=10_000, subscription_size=mean, event_size=event_size)
    sizes = np.diff(generate(config).arrays().ptr)
    assert sizes.mean() == pytest.approx(mean, rel=0.02)
    assert sizes.min() >= 1


@pytest.mark.parametrize("name", OF_PAPERS)
def test_attributes_are_distinct(name: str) -> None:
    config = shape(name)
    workload = generate(config)
    arrays = workload.arrays()
    assert all(
        len(set(attributes.tolist())) == len(attributes) for attributes in np.split(arrays.attribute, arrays.ptr[1:-1])
    )
    for events in (workload.event_arrays(200), workload.other_event_arrays(200)):
        assert events.attribute.shape == (200, config.event_size)
        assert all(len(set(row)) == len(row) for row in events.attribute.tolist())


@pytest.mark.parametrize("alpha", [0, 0.5, 1, 2])
def test_zipf_frequencies(alpha: float) -> None:
    """Events of one attribute, so that drawing without replacement changes nothing; subscriptions follow them."""
    config = WorkloadConfig(
        subscriptions=50_000, dimensions=200, alpha=alpha, event_size=1, subscription_size=1, match_probability=2e-5
    )
    weights = np.arange(1, 201) ** -float(alpha)
    expected = 50_000 * weights / weights.sum()
    workload = generate(config)
    for drawn in (workload.event_arrays().attribute, workload.other_event_arrays(50_000).attribute):
        counts = np.bincount(drawn.ravel(), minlength=200)
        assert np.abs(counts - expected).max() < 5 * np.sqrt(expected.max())
        assert np.abs(counts - expected).mean() < 2 * np.sqrt(expected).mean()
    assert np.array_equal(workload.arrays().attribute, workload.event_arrays().attribute.ravel())


def test_values_are_uniform_in_the_cardinality() -> None:
    values = generate(preset("dense", cardinality=50)).event_arrays(1_000).value
    counts = np.bincount(values.ravel(), minlength=51)
    assert counts[0] == 0
    assert len(counts) == 51
    assert counts[1:].min() / counts[1:].max() > 0.7


def test_op_index_style() -> None:
    config = preset("op-index", subscriptions=20_000)
    arrays = generate(config).arrays()
    sizes = np.bincount(np.diff(arrays.ptr))
    assert len(sizes) == config.subscription_size + 1
    assert sizes[0] == 0
    assert sizes[1:].min() / sizes[1:].max() > 0.85
    shares = np.bincount(arrays.operator, minlength=len(OPERATORS)) / len(arrays.operator)
    by_operator = {str(operator): share for operator, share in zip(OPERATORS, shares, strict=True) if share}
    assert by_operator == pytest.approx({"=": 0.6, "<=": 0.2, ">=": 0.2}, abs=0.01)
    assert np.array_equal(arrays.literal_ptr, np.arange(len(arrays.literals) + 1))
    assert (arrays.literals.min(), arrays.literals.max()) == (1, config.cardinality)
    assert generate(config).event_arrays().attribute.shape == (1_000, config.event_size)


def test_op_index_values_follow_zipf_too() -> None:
    config = preset("op-index", subscriptions=SUBSCRIPTION_BLOCK, alpha=1)
    workload = generate(config)
    for values in (workload.arrays().literals, workload.event_arrays(1_000).value.ravel()):
        counts = np.bincount(values)
        assert counts[1] / counts[10] == pytest.approx(10, rel=0.25)
    attributes = np.bincount(workload.arrays().attribute, minlength=config.dimensions)
    assert attributes[:10].min() > 10 * attributes[1_000:].mean()


def test_strings_and_prefixes_have_their_shares() -> None:
    config = preset("dense", subscriptions=10_000, **MIXED)
    workload = generate(config)
    string = np.array([name.startswith("s") for name in workload.attribute_names])
    assert string.mean() == 0.4
    arrays = workload.arrays()
    like = arrays.operator == OPERATORS.index("like")
    on_string = string[arrays.attribute]
    assert not like[~on_string].any()
    assert like[on_string].mean() == pytest.approx(0.3, abs=0.01)
    assert np.array_equal(arrays.prefix > 0, like)
    equal = arrays.operator[~like] == OPERATORS.index("=")
    assert equal.mean() == pytest.approx(0.4, abs=0.01)
    lengths = np.bincount(arrays.prefix[like])[1:]
    assert len(lengths) == 3  # v001 to v101
    assert lengths.min() / lengths.max() > 0.9


@pytest.mark.parametrize(("share", "dimensions", "count"), [(0.01, 10, 1), (0.25, 8, 2), (1, 7, 7), (0, 7, 0)])
def test_string_attributes_are_spread_evenly(share: float, dimensions: int, count: int) -> None:
    config = WorkloadConfig(dimensions=dimensions, event_size=5, subscription_size=2, string_share=share)
    names = generate(config).attribute_names
    places = [rank for rank, name in enumerate(names) if name.startswith("s")]
    assert len(places) == count
    assert names == [f"{'s' if rank in places else 'a'}{rank}" for rank in range(dimensions)]
    assert len(set(np.diff(places).tolist())) <= 1


def test_floats_keep_order_and_equality() -> None:
    integer = generate(shape("dense", cardinality=100_000, **MIXED))
    floats = generate(shape("dense", cardinality=100_000, numbers="float", **MIXED))
    whole, real = integer.arrays(), floats.arrays()
    assert whole.literals.dtype == np.int64
    assert real.literals.dtype == np.float64
    assert np.array_equal(np.floor(real.literals), whole.literals)
    order = np.argsort(whole.literals, kind="stable")
    number = np.array([name.startswith("a") for name in integer.attribute_names])
    number = number[np.repeat(whole.attribute, np.diff(whole.literal_ptr))]
    ordered = order[number[order]]
    assert np.array_equal(np.diff(whole.literals[ordered]) > 0, np.diff(real.literals[ordered]) > 0)
    assert np.mean(real.literals[number] % 1 > 0) > 0.99
    assert (real.literals[~number] % 1 == 0).all()


@pytest.mark.parametrize("block", [-1, 1, 5])
def test_no_such_block(block: int) -> None:
    workload = generate(shape("dense"))
    with pytest.raises(WorkloadError, match=f"there is no block {block}: the workload has 1"):
        workload.subscription_block(block)
    with pytest.raises(WorkloadError, match="there is no block"):
        workload.arrays(block)


def test_a_negative_number_of_events_is_refused() -> None:
    for method in ("events", "other_events", "event_arrays", "other_event_arrays"):
        with pytest.raises(WorkloadError, match="must not be negative: -1"):
            getattr(generate(shape("dense")), method)(-1)


def test_arrays_of_a_block_are_part_of_all_arrays() -> None:
    workload = generate(preset("dense", subscriptions=2 * SUBSCRIPTION_BLOCK, numbers="float"))
    whole, second = workload.arrays(), workload.arrays(1)
    start = whole.ptr[SUBSCRIPTION_BLOCK]
    assert np.array_equal(whole.attribute[start:], second.attribute)
    assert np.array_equal(whole.literals[whole.literal_ptr[start] :], second.literals)
    assert np.array_equal(whole.ptr[SUBSCRIPTION_BLOCK:] - start, second.ptr)
