"""`tamis generate` has an option for every parameter of a workload, and writes what the library would."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tamis.cli.generate import generate
from tamis.workload import PRESETS, WorkloadConfig, preset, read_config
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
    assert result.stderr.startswith("200 subscriptions, 10 events and 3 others:\n")
    expected = preset("zipf", subscriptions=200, match_probability=0.1, other_events=3, seed=7)
    assert read_config(folder) == expected
    matched = run("match", folder / "subscriptions.parquet", folder / "events.parquet")
    assert {(n % 10, n) for n in range(200)} <= pairs(matched.stdout)


def test_all_parameters_reach_the_config(tmp_path: Path) -> None:
    config = WorkloadConfig(
        style="op-index", subscriptions=50, dimensions=20, cardinality=9, subscription_size=4, event_size=6,
        match_probability=0.5, equality_ratio=0.3, alpha=0.7, operator_class="high", range_share=0.2, string_share=0.5,
        prefix_share=0.1, numbers="float", events=4, other_events=2, seed=3,
    )  # fmt: skip
    assert all(getattr(config, field.name) != field.default for field in fields(config))
    words = [
        word for field in fields(config) for word in (f"--{field.name.replace('_', '-')}", getattr(config, field.name))
    ]
    assert run("generate", tmp_path / "w", *words, "--wide", "--quiet").stderr == ""
    assert read_config(tmp_path / "w") == replace(config, subscription_size=4.0)
    assert pq.read_schema(tmp_path / "w" / "events.parquet").names != ["event"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--preset", "dens"], "Error: no workload 'dens'; did you mean 'dense'"),
        (["--subscriptions", 0], "Error: subscriptions must be from 1 to"),
        (["--style", "x"], "Error: style is one of be-gen, op-index"),
    ],
)
def test_what_is_wrong(tmp_path: Path, words: list[object], message: str) -> None:
    result = run("generate", tmp_path / "w", *words)
    assert result.exit_code == 1
    assert result.stderr.startswith(message)


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    result = run("generate", tmp_path / "file", "--subscriptions", 10)
    assert result.exit_code == 1
    assert "cannot write a workload here" in result.stderr
