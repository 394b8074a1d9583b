"""The parameters are checked, and the errors say what would be right."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.workload import PRESETS, AlertsConfig, AnyConfig, DetectionConfig, WorkloadConfig, WorkloadError, preset
from tamis.workload.presets import PaperPreset
from tamis.workload.styles import config_from_json


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"style": "begen"}, "style must be one of be-gen, op-index, not 'begen'"),
        ({"operator_class": "max"}, "operator_class must be one of min, low, med, high"),
        ({"operator_class": ["med"]}, "operator_class must be one of"),
        ({"numbers": "double"}, "numbers must be one of integer, float"),
        ({"subscriptions": 0}, "subscriptions must be from 1 to"),
        ({"subscriptions": 10**13}, "subscriptions must be from 1 to"),
        ({"subscriptions": 1.5}, "subscriptions must be a whole number, not 1.5"),
        ({"subscriptions": True}, "subscriptions must be a whole number, not True"),
        ({"subscriptions": None}, "subscriptions must be a whole number, not None"),
        ({"dimensions": 0}, "dimensions must be from 1"),
        ({"cardinality": 1}, "cardinality must be from 2"),
        ({"event_size": 0}, "event_size must be from 1"),
        ({"event_size": 101}, "event_size is 101, but there are only 100 attributes"),
        ({"subscription_size": 0.5}, "subscription_size must be from 1"),
        ({"subscription_size": "10"}, "subscription_size must be a number, not '10'"),
        ({"subscription_size": 31}, "subscription_size is 31, but .* has 30"),
        ({"style": "op-index", "subscription_size": 2.5}, "a whole number, not 2.5"),
        ({"style": "op-index", "subscription_size": 101}, "only 100 attributes"),
        ({"match_probability": 0}, "match_probability must be from 1e-09 to 1"),
        ({"match_probability": 1.1}, "match_probability must be from"),
        ({"match_probability": 1e-10}, "match_probability must be from"),
        ({"equality_ratio": -0.1}, "equality_ratio must be from 0 to 1, not -0.1"),
        ({"equality_ratio": float("nan")}, "equality_ratio must be from 0 to 1, not nan"),
        ({"alpha": -1}, "alpha must be from 0"),
        ({"alpha": float("inf")}, "alpha must be from 0"),
        ({"range_share": 0.6}, "range_share must be from 0 to 0.5"),
        ({"string_share": 2}, "string_share must be from 0 to 1"),
        ({"prefix_share": 0.5}, "prefix_share needs attributes with strings. Hint: set string_share"),
        ({"events": -1}, "events must be from 0"),
        ({"other_events": -1}, "other_events must be from 0"),
        ({"seed": -1}, "seed must be from 0"),
        ({"seed": 2**64}, "seed must be from 0"),
    ],
)
def test_wrong_parameters_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        WorkloadConfig(**parameters)


def test_the_error_is_ours_and_a_value_error() -> None:
    assert issubclass(WorkloadError, TamisError)
    assert issubclass(WorkloadError, ValueError)


def test_numpy_scalars_become_plain_numbers() -> None:
    config = WorkloadConfig(subscriptions=np.int64(7), alpha=np.float32(1))  # type: ignore[arg-type]
    assert type(config.subscriptions) is int
    assert type(config.alpha) is float
    assert config == WorkloadConfig(subscriptions=7, alpha=1)


@pytest.mark.parametrize(
    ("probability", "count"),
    [
        (1.0, 1),
        (0.7, 1),
        (0.51, 1),
        (0.5, 2),
        (0.4, 2),
        (0.3, 3),
        (1 / 3, 3),
        (0.3333333333, 3),
        (0.09, 11),
        (0.01, 100),
        (0.001, 1_000),
        (1e-9, 10**9),
    ],
)
def test_base_events_follow_the_match_probability(probability: float, count: int) -> None:
    assert WorkloadConfig(match_probability=probability).base_events == count


def test_number_of_events_when_none_is_given() -> None:
    assert WorkloadConfig(match_probability=0.01).event_count == 100
    assert WorkloadConfig(match_probability=0.01, style="op-index").event_count == 1_000
    assert WorkloadConfig(match_probability=0.01, events=7).event_count == 7


@pytest.mark.parametrize(
    "config",
    [
        *PRESETS.values(),
        WorkloadConfig(events=3, seed=2**64 - 1),
        AlertsConfig(symbols=5, alpha=0, distance=1.5, band_share=0.1, volume_share=0.3, events=0, seed=9),
        DetectionConfig(subscriptions=5, planted_share=0.5, other_events=3),
    ],
)
def test_json_round_trip(config: AnyConfig) -> None:
    assert type(config).from_json(config.to_json()) == config
    assert config_from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"style": "be-gen"}, "style must be alerts, not 'be-gen'"),
        ({"symbols": 0}, "symbols must be from 1"),
        ({"alpha": -1}, "alpha must be from 0"),
        ({"distance": 0.9}, "distance must be from 1 to 100, not 0.9"),
        ({"band_share": 2}, "band_share must be from 0 to 1"),
        ({"volume_share": "all"}, "volume_share must be a number, not 'all'"),
        ({"subscriptions": 0}, "subscriptions must be from 1"),
        ({"events": -1}, "events must be from 0"),
    ],
)
def test_wrong_parameters_of_alerts_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        AlertsConfig(**parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"style": "alerts"}, "style must be detection, not 'alerts'"),
        ({"planted_share": 1.1}, "planted_share must be from 0 to 1, not 1.1"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_wrong_parameters_of_detection_are_refused(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        DetectionConfig(**parameters)


STYLES = [
    "be-gen", "op-index", "alerts", "fabret", "tatbul", "ads", "grams", "derived-grams", "keywords", "products", "prefixes",
    "detection",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"style": "alert"}',
            f"style must be one of {', '.join(STYLES)}, not 'alert'",
        ),
        ('{"style": ["alerts"]}', "style must be one of be-gen"),
        ('{"style": "alerts", "symbol": 3}', "AlertsConfig has no parameter 'symbol'; did you mean 'symbols'"),
        ('{"style": "detection", "symbols": 3}', "DetectionConfig has no parameter 'symbols'"),
        ('{"symbols": 3}', "WorkloadConfig has no parameter 'symbols'"),
    ],
)
def test_json_of_any_style_is_checked(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        config_from_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"dimension": 3}', "no parameter 'dimension'; did you mean 'dimensions'"),
        ('{"alpha": NaN}', "alpha must be from 0"),
        ('{"alpha": "1"}', "alpha must be a number"),
    ],
)
def test_wrong_json_is_refused(text: str, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        WorkloadConfig.from_json(text)


def test_presets_are_the_columns_of_the_papers_and_our_shapes() -> None:
    assert list(PRESETS) == [
        "be-tree",
        "ps-tree-dense",
        "ps-tree-sparse",
        "op-index",
        "dense",
        "sparse",
        "zipf",
        "range",
        "ads",
        "wide-dense",
        "wide-range",
        "wide-12",
        "wide-12-range",
        "alerts",
        "detection",
        "fabret",
        "fabret-inequalities",
        "fabret-focus",
        "fabret-other-focus",
        "fabret-few-values",
        "tatbul",
        "ps-tree-intervals",
        "ps-tree-ads",
        "be-tree-authors",
        "be-tree-titles",
        "be-tree-match-authors",
        "be-tree-match-titles",
        "ps-tree-query-log",
        "op-index-twitter",
        "op-index-twitter-counts",
        "op-index-wikipedia",
        "op-index-wikipedia-counts",
        "op-index-ebay",
        "op-index-ebay-sets",
        "op-index-prefixes",
    ]
    be_tree = preset("be-tree")
    assert (be_tree.dimensions, be_tree.cardinality, be_tree.base_events) == (400, 48, 100)
    assert (be_tree.subscription_size, be_tree.event_size, be_tree.equality_ratio) == (7, 15, 0.3)
    assert preset("ps-tree-sparse").dimensions == 30_000
    assert preset("op-index").style == "op-index"
    assert preset("ads").operator_class == "high"


def test_the_types_of_presets_are_known() -> None:
    of_papers = [name for name, config in PRESETS.items() if isinstance(config, WorkloadConfig)]
    assert list(get_args(PaperPreset)) == of_papers


def test_presets_take_changes() -> None:
    assert preset("zipf", subscriptions=5, seed=9) == preset("zipf", seed=9, subscriptions=5)
    assert preset("zipf", subscriptions=5).subscriptions == 5
    assert preset("zipf", subscriptions=5).alpha == preset("zipf").alpha
    assert preset("alerts", symbols=9) == AlertsConfig(symbols=9)
    assert preset("detection", planted_share=0.1) == DetectionConfig(planted_share=0.1)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("wide-dense", (100, 10, 30, 0.4)),
        ("wide-range", (100, 10, 30, 0)),
        ("wide-12", (12, 4, 10, 0.4)),
        ("wide-12-range", (12, 4, 10, 0)),
    ],
)
def test_wide_domains(name: str, sizes: tuple[float, ...]) -> None:
    config = preset(name)
    assert isinstance(config, WorkloadConfig)
    assert (config.dimensions, config.subscription_size, config.event_size, config.equality_ratio) == sizes
    assert config.cardinality == 1_000_000
    assert preset(name, cardinality=100, numbers="float") == replace(config, cardinality=100, numbers="float")
    assert preset("wide-dense", cardinality=100) == preset("dense")


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("zip", {}, "no workload 'zip'; did you mean 'zipf'.*the workloads are: be-tree"),
        ("zipf", {"aplha": 1}, "no parameter 'aplha'; did you mean 'alpha'"),
        ("zipf", {"alpha": -1}, "alpha must be from"),
        ("alerts", {"dimensions": 3}, "AlertsConfig has no parameter 'dimensions'"),
        ("detection", {"alpha": 1}, "DetectionConfig has no parameter 'alpha'"),
    ],
)
def test_unknown_presets_and_parameters_are_refused(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        preset(name, **changes)


def test_configs_do_not_load_arrow() -> None:
    code = "import sys, tamis.workload; sys.exit(any(name in sys.modules for name in ('pyarrow', 'numba', 'pandas')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
