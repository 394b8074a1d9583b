"""`tamis generate` with presets of all styles: every parameter has its option, and none goes unheard."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest

from tamis.cli.generate import generate
from tamis.workload import (
    AdsConfig,
    AlertsConfig,
    AnyConfig,
    DerivedGramsConfig,
    DetectionConfig,
    FabretConfig,
    GramsConfig,
    KeywordsConfig,
    PrefixesConfig,
    ProductsConfig,
    TatbulConfig,
    read_config,
)
from tests.cli.running import pairs, run


@pytest.mark.parametrize("config", get_args(AnyConfig))
def test_every_parameter_has_an_option(config: type[AnyConfig]) -> None:
    options = {parameter.name for parameter in generate.params}
    assert {field.name for field in fields(config)} <= options


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("alerts", AlertsConfig(
            subscriptions=50, symbols=20, alpha=0.5, distance=1.2, band_share=0.1, volume_share=0.3, events=4,
            other_events=2, seed=3,
        )),
        ("detection", DetectionConfig(subscriptions=50, planted_share=0.5, events=4, other_events=2, seed=3)),
        ("fabret", FabretConfig(
            subscriptions=50, dimensions=40, subscription_size=7, fixed_equal=1, fixed_less=2, fixed_greater=3,
            equality_ratio=0.5, lowest=2, highest=50, event_size=20, fixed_event_size=2, event_lowest=3, event_highest=60,
            subscription_skew=0.5, event_skew=1, correlation=0.5, focus_start=5, focus_names=10, few_values=4, events=4,
            other_events=2, seed=3,
        )),
        ("tatbul", TatbulConfig(
            subscriptions=50, dimensions=3, length=5, alpha=0.5, spread=40, events=4, other_events=2, seed=3
        )),
        ("ps-tree-ads", AdsConfig(
            subscriptions=50, dimensions=30, cardinality=9, subscription_size=4, largest_size=12, event_size=6,
            match_probability=0.5, equality_ratio=0.5, operator_class="med", range_share=0.2, alpha=1, events=4,
            other_events=2, seed=3,
        )),
        ("be-tree-authors", GramsConfig(
            subscriptions=50, text="titles", text_file="README.md", events=4, other_events=2, seed=3
        )),
        ("be-tree-match-authors", DerivedGramsConfig(
            subscriptions=50, text="titles", text_file="README.md", subscription_size=4, event_size=12,
            match_probability=0.5, equality_ratio=0.5, operator_class="high", range_share=0.2, events=4, other_events=2,
            seed=3,
        )),
        ("op-index-twitter", KeywordsConfig(
            subscriptions=50, predicates="halves", queries_file="README.md", documents_file="CHANGELOG.md",
            documents="pages", vocabulary=500, planted_share=0.5, events=4, other_events=2, seed=3,
        )),
        ("op-index-ebay", ProductsConfig(
            subscriptions=50, conditions="set", subscription_size=4, products=500, planted_share=0.5, events=4,
            other_events=2, seed=3,
        )),
        ("op-index-prefixes", PrefixesConfig(
            subscriptions=50, number_attributes=20, word_attributes=5, cardinality=9, subscription_size=4, like_share=0.3,
            prefix_length=2, event_size=10, event_words=3, text_file="README.md", planted_share=0.5, events=4,
            other_events=2, seed=3,
        )),
    ],
)  # fmt: skip
def test_all_parameters_reach_the_config(tmp_path: Path, name: str, config: AnyConfig) -> None:
    given = [
        field.name for field in fields(config) if field.name != "style" and getattr(config, field.name) is not None
    ]
    assert all(getattr(config, field.name) != field.default for field in fields(config) if field.name in given)
    words = [word for each in given for word in (f"--{each.replace('_', '-')}", getattr(config, each))]
    wide = [] if name == "op-index-ebay" else ["--wide"]  # it has too many attributes
    result = run("generate", tmp_path / "w", "--preset", name, *words, *wide)
    assert result.stderr.startswith("50 subscriptions, 4 events and 2 other events:\n")
    assert read_config(tmp_path / "w") == config
    assert pq.read_schema(tmp_path / "w" / "events.parquet").names != ["event"] or not wide


def test_a_text_that_is_missing(tmp_path: Path) -> None:
    text = tmp_path / "none.txt"
    result = run("generate", tmp_path / "w", "--preset", "be-tree-titles", "--text-file", text)
    assert result.exit_code == 1
    assert f"{text}: cannot read the text (text_file): No such file" in result.stderr
    assert not (tmp_path / "w").exists()


def test_planted_rules_are_matched(tmp_path: Path) -> None:
    small = ["--subscriptions", 60, "--events", 60, "--other-events", 0, "--quiet"]
    assert run("generate", tmp_path, "--preset", "detection", *small).exit_code == 0
    matched = run("match", tmp_path / "subscriptions.parquet", tmp_path / "events.parquet")
    assert {(number, number) for number in range(60)} <= pairs(matched.stdout)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--preset", "alerts", "--dimensions", 3],
            "Error: --dimensions has no effect in preset alerts. Hint: leave it",
        ),
        (
            ["--preset", "detection", "--match-probability", 1],
            "Error: --match-probability has no effect in preset detect",
        ),
        (["--preset", "dense", "--planted-share", 1], "Error: --planted-share has no effect in preset dense"),
        (["--preset", "op-index", "--symbols", 1], "Error: --symbols has no effect in preset op-index"),
        (["--preset", "alerts", "--style", "op-index"], "Error: --style must be alerts, not 'op-index'"),
        (["--preset", "alerts", "--distance", 0], "Error: --distance must be from 1 to 100, not 0"),
        (["--preset", "detection", "--planted-share", 2], "Error: --planted-share must be from 0 to 1, not 2"),
    ],
)
def test_a_wrong_command_line(tmp_path: Path, words: list[object], message: str) -> None:
    result = run("generate", tmp_path / "w", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "w").exists()
