"""`tamis generate` has an option for every parameter of a workload, and writes what the library would."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import click
import pyarrow.parquet as pq
import pytest

from tamis.cli.generate import generate
from tamis.workload import (
    PRESETS,
    GramsConfig,
    KeywordsConfig,
    Numbers,
    OperatorClass,
    ProductsConfig,
    Style,
    WorkloadConfig,
    preset,
    read_config,
)
from tests.cli.running import pairs, run


def test_every_parameter_has_an_option() -> None:
    options = {parameter.name for parameter in generate.params}
    assert {field.name for field in fields(WorkloadConfig)} <= options


def test_every_preset_is_named() -> None:
    text = " ".join(run("generate", "--help").stdout.replace("-\n", "-").split()).replace("- ", "-")
    assert all(name in text for name in PRESETS)


def test_a_workload_that_can_be_matched(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    small = ["--subscriptions", 200, "--match-probability", 0.1, "--other-events", 3, "--seed", 7]
    result = run("generate", folder, "--preset", "zipf", *small)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr.startswith("200 subscriptions, 10 events and 3 other events:\n")
    expected = preset("zipf", subscriptions=200, match_probability=0.1, other_events=3, seed=7)
    assert read_config(folder) == expected
    matched = run("match", folder / "subscriptions.parquet", folder / "events.parquet")
    assert {(n % 10, n) for n in range(200)} <= pairs(matched.stdout)


@pytest.mark.parametrize(
    ("style", "others"),
    [("op-index", {}), ("be-gen", {"match_probability": 0.5, "operator_class": "high", "range_share": 0.2})],
)
def test_all_parameters_reach_the_config(tmp_path: Path, style: Style, others: dict[str, Any]) -> None:
    config = WorkloadConfig(
        style=style, subscriptions=50, dimensions=20, cardinality=9, subscription_size=4, event_size=6,
        equality_ratio=0.3, alpha=0.7, string_share=0.5, prefix_share=0.1, numbers="float", events=4, other_events=2,
        seed=3, **others,
    )  # fmt: skip
    changed = [field.name for field in fields(config) if getattr(config, field.name) != field.default]
    assert len(fields(config)) - len(changed) == (1 if style == "be-gen" else 3)
    words = [word for name in changed for word in (f"--{name.replace('_', '-')}", getattr(config, name))]
    assert run("generate", tmp_path / "w", *words, "--wide", "--quiet").stderr == ""
    assert read_config(tmp_path / "w") == config
    assert pq.read_schema(tmp_path / "w" / "events.parquet").names != ["event"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "dens"], "Invalid value for '--preset': 'dens' is not one of 'be-tree'"),
        (["--style", "x"], "Invalid value for '--style'"),
        (["--operator-class", "max"], "Invalid value for '--operator-class'"),
        (["--numbers", "double"], "Invalid value for '--numbers'"),
        (["--subscriptions", 0], "Error: --subscriptions must be from 1 to"),
        (["--match-probability", 2], "Error: --match-probability must be from 1e-09 to 1, not 2"),
        (["--event-size", 200], "Error: --event-size is 200, but there are only 100 attributes (--dimensions)"),
        (["--preset", "sparse", "--wide"], "Error: 30,000 dimensions are too many for a column per attribute"),
    ],
)
def test_a_wrong_command_line(tmp_path: Path, words: list[object], message: str) -> None:
    result = run("generate", tmp_path / "w", *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "w").exists()


@pytest.mark.parametrize(
    ("option", "value"), [("--match-probability", 0.001), ("--operator-class", "high"), ("--range-share", 0.1)]
)
@pytest.mark.parametrize("style", [["--preset", "op-index"], ["--style", "op-index"]])
def test_an_option_without_effect_is_refused(tmp_path: Path, style: list[str], option: str, value: object) -> None:
    result = run("generate", tmp_path / "w", *style, option, value)
    assert result.exit_code == 2
    assert f"Error: {option} has no effect in style op-index" in result.stderr


def test_the_choices_are_those_of_the_library() -> None:
    choices = {option.name: option.type.choices for option in generate.params if isinstance(option.type, click.Choice)}
    assert {name: list(words) for name, words in choices.items()} == {
        "name": list(PRESETS),
        "style": list(get_args(Style)),
        "operator_class": list(get_args(OperatorClass)),
        "numbers": list(get_args(Numbers)),
        "text": list(GramsConfig.words["text"]),
        "predicates": list(KeywordsConfig.words["predicates"]),
        "conditions": list(ProductsConfig.words["conditions"]),
        "documents": list(KeywordsConfig.words["documents"]),
    }


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = run("generate", tmp_path / "file", "--subscriptions", 10)
    assert result.exit_code == 1
    assert "cannot write a workload here" in result.stderr
