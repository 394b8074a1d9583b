"""Price alerts: the mix of their predicates, how many a quote satisfies, and the same answers from NumPy and the matcher."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import tamis
from tamis.language.operators import Operator
from tamis.workload import OPERATORS, SUBSCRIPTION_BLOCK, PredicateArrays, PredicateWorkload, generate, preset
from tests.workload.satisfaction import event_dicts, plain

VALUE = pa.struct([("number", pa.float64()), ("string", pa.string())])


def small(**changes: Any) -> PredicateWorkload:
    return generate(preset("alerts", **{"subscriptions": 20_000, **changes}))


def shares(arrays: PredicateArrays) -> dict[str, float]:
    """How many predicates with each operator there are, per alert."""
    counts = np.bincount(arrays.operator, minlength=len(OPERATORS)) / (len(arrays.ptr) - 1)
    return {str(operator): share for operator, share in zip(OPERATORS, counts, strict=True) if share}


def satisfied(workload: PredicateWorkload, events: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """How many alerts each event satisfies, by comparing all with all."""
    arrays = workload.arrays()
    first, last = arrays.literals[arrays.literal_ptr[:-1]], arrays.literals[arrays.literal_ptr[1:] - 1]
    holds = np.empty((len(events), len(first)), np.bool_)
    for attribute in range(3):
        asked = np.flatnonzero(arrays.attribute == attribute)
        value, low, high = events[:, attribute, None], first[asked], last[asked]
        answers = {
            Operator.EQ: value == low,
            Operator.LT: value < low,
            Operator.GT: value > low,
            Operator.GE: value >= low,
            Operator.BETWEEN: (low <= value) & (value <= high),
        }
        holds[:, asked] = np.select(
            [arrays.operator[asked] == OPERATORS.index(operator) for operator in answers], list(answers.values())
        )
    counts: npt.NDArray[np.int64] = np.logical_and.reduceat(holds, arrays.ptr[:-1], axis=1).sum(axis=1)
    return counts


def test_same_config_same_workload() -> None:
    one, two, other = small(), small(), small(seed=2)
    assert one.subscriptions().equals(two.subscriptions())
    assert one.events(20).equals(two.events(20))
    assert one.other_events(20).equals(two.other_events(20))
    assert not one.events(20).equals(one.other_events(20))
    assert not one.subscriptions().equals(other.subscriptions())
    assert not one.events(20).equals(other.events(20))


def test_blocks_are_independent_and_beginnings_the_same() -> None:
    whole = small(subscriptions=2 * SUBSCRIPTION_BLOCK - 3, volume_share=0.5)
    table = whole.subscriptions()
    alone = small(subscriptions=2 * SUBSCRIPTION_BLOCK - 3, volume_share=0.5).subscription_block(1)
    assert pa.Table.from_batches([alone]).equals(table.slice(SUBSCRIPTION_BLOCK).combine_chunks())
    assert small(subscriptions=77, volume_share=0.5).subscriptions().equals(table.slice(0, 77))
    assert whole.events(1_500).slice(0, 3).equals(whole.events(3))


def test_forms() -> None:
    workload = small(volume_share=0.5)
    predicate = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(VALUE))])
    subscriptions = workload.subscriptions()
    assert subscriptions.schema == pa.schema([("id", pa.int64()), ("predicates", pa.list_(predicate))])
    subscriptions.validate(full=True)
    events = workload.events(30)
    assert events.schema == pa.schema([("event", pa.list_(pa.struct([("attribute", pa.string()), ("value", VALUE)])))])
    wide = workload.events(30, wide=True)
    assert wide.schema == pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.float64())])
    assert wide.to_pylist() == event_dicts(events)
    assert workload.attribute_names == wide.column_names
    for row in subscriptions["predicates"].slice(0, 200).to_pylist():
        assert [predicate["attribute"] for predicate in row] == ["symbol", "price", "volume"][: len(row)]
        symbol = plain(row[0]["values"][0])
        assert symbol.startswith("SYM")
        assert len(symbol) == 7


@pytest.mark.parametrize(("symbols", "spelled"), [(1, "SYM0000"), (10_000, "SYM0000"), (10_001, "SYM00000")])
def test_symbols_have_the_same_length(symbols: int, spelled: str) -> None:
    wide = small(symbols=symbols, alpha=10).events(1_000, wide=True)
    assert spelled in wide["symbol"].to_pylist()


def test_mix_of_predicates() -> None:
    assert shares(small().arrays()) == pytest.approx({"=": 1, ">": 0.4, "<": 0.4, "between": 0.2}, abs=0.015)
    with_volume = {"=": 1, ">": 0.25, "<": 0.25, ">=": 0.3, "between": 0.5}
    assert shares(small(band_share=0.5, volume_share=0.3).arrays()) == pytest.approx(with_volume, abs=0.015)
    assert shares(small(band_share=0).arrays()) == pytest.approx({"=": 1, ">": 0.5, "<": 0.5}, abs=0.015)


def test_a_volume_is_all_that_its_share_changes() -> None:
    without, some = small().subscriptions(), small(volume_share=0.5).subscriptions()
    for one, other in zip(without["predicates"].to_pylist(), some["predicates"].to_pylist(), strict=True):
        assert other[:2] == one
        assert [(last["attribute"], last["operator"]) for last in other[2:]] in ([], [("volume", ">=")])


def test_bands_have_varied_widths() -> None:
    arrays = small(band_share=1).arrays()
    low, high = arrays.literals.reshape(-1, 3)[:, 1:].T
    widths = high / low - 1
    assert widths.min() == pytest.approx(0.003, rel=0.01)
    assert widths.max() == pytest.approx(0.05, rel=0.01)
    assert np.median(widths) == pytest.approx((0.003 * 0.05) ** 0.5, rel=0.05)


@pytest.mark.parametrize(("alpha", "first", "eight"), [(0, 0.001, 0.008), (2.2, 0.139, 0.571)])
def test_popularity_of_symbols(alpha: float, first: float, eight: float) -> None:
    workload = small(alpha=alpha, subscriptions=100_000)
    arrays = workload.arrays()
    for symbols in (arrays.literals[arrays.literal_ptr[arrays.ptr[:-1]]], workload.event_arrays(50_000).value[:, 0]):
        counts = np.bincount(symbols.astype(np.int64), minlength=1_000)
        assert len(counts) == 1_000
        assert counts[0] / counts.sum() == pytest.approx(first, rel=0.05, abs=5e-4)
        assert counts[:8].sum() / counts.sum() == pytest.approx(eight, rel=0.05, abs=1e-3)


def test_prices_lie_around_a_base_price() -> None:
    values = small(symbols=20).event_arrays(20_000).value
    base = [np.log(values[values[:, 0] == symbol, 1]) for symbol in range(20)]
    assert np.mean([np.std(each) for each in base]) == pytest.approx(0.05, rel=0.05)
    assert np.std([np.mean(each) for each in base]) == pytest.approx(1, abs=0.4)


@pytest.mark.parametrize(
    ("changes", "expected"), [({}, 300), ({"distance": 1.5}, 2_700), ({"distance": 1}, 22_500), ({"alpha": 0}, 5)]
)
def test_distance_says_how_many_alerts_an_event_satisfies(changes: dict[str, Any], expected: int) -> None:
    """Per million alerts; the expectation of few symbols with a hundred thousand alerts is that of many."""
    workload = small(subscriptions=100_000, **changes)
    mean = np.mean(satisfied(workload, workload.event_arrays(200).value)) * 10
    assert mean == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize(
    "changes",
    [
        {"distance": 1},
        {"distance": 1.2, "volume_share": 0.5},
        {"alpha": 0, "symbols": 20, "distance": 1.1, "band_share": 0.7},
    ],
)
def test_numpy_and_the_matcher_agree(changes: dict[str, Any]) -> None:
    workload = small(subscriptions=3_000, **changes)
    matcher = tamis.Matcher(index="scan")
    matcher.add_table(workload.subscriptions())
    for events, arrays in (
        (workload.events(60), workload.event_arrays(60)),
        (workload.other_events(60, wide=True), workload.other_event_arrays(60)),
    ):
        expected = satisfied(workload, arrays.value)
        assert expected.sum() > 60
        assert matcher.count_batch(events).tolist() == expected.tolist()
