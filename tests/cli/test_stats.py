"""`tamis stats` and `tamis plan`: what is in an index on disk, and how it finds a subscription."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tamis
from tests.cli.running import run, write


@pytest.fixture
def index(tmp_path: Path) -> Path:
    matcher = tamis.Matcher(schema={"price": "number", "genre": "string"})
    matcher.add_many(range(4100), [f"price < {number} AND genre = 'g{number % 7}'" for number in range(4100)])
    matcher.add(5000, "price > 5")
    matcher.remove(3)
    matcher.save(tmp_path / "i.tamis")
    return tmp_path / "i.tamis"


def test_figures_as_text(index: Path) -> None:
    result = run("stats", index)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{index}: 4,100 subscriptions, 0.")
    shown = dict(line.split(maxsplit=1) for line in lines[1:8] if "delta" not in line)
    assert shown["dimensions"] == "2"
    assert shown["dead"] == "1"
    assert shown["expected"].endswith(" candidates per event")
    assert shown["schema"] == "2 attributes"
    assert shown["segments"] == "1"
    assert lines[8].startswith("  segment 0     4,100 rows, ")


def test_figures_as_json(index: Path) -> None:
    figures = json.loads(run("stats", index, "--json").stdout)
    assert figures["file"] == str(index)
    assert figures["file_bytes"] == index.stat().st_size
    assert figures["subscriptions"] == 4100
    assert figures["delta_rows"] == 1
    assert figures["schema"] == {"price": "number", "genre": "string"}
    assert [segment["rows"] for segment in figures["segments"]] == [4100]


@pytest.mark.parametrize("words", [["stats"], ["plan", "x"]])
def test_other_files(tmp_path: Path, words: list[str]) -> None:
    path = write(tmp_path / "s.txt", "price < 3")
    result = run(words[0], path, *words[1:])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}: ")
    assert run(words[0], tmp_path / "nothing", *words[1:]).exit_code == 1


def test_plans(index: Path) -> None:
    matcher = tamis.load(index)
    assert run("plan", index, "17").stdout == f"{matcher.plan(17)}\n"
    assert "price < 17" in run("plan", index, "17").stdout
    told = json.loads(json.dumps(matcher.plan(17).to_dict()))
    assert json.loads(run("plan", index, 17, "--json").stdout) == told
    for word, message in (
        ("ann", "the ids of this matcher are int, but 'ann' is str"),
        ("3", "no subscription 3"),
        ("-3", "no subscription -3"),
    ):
        result = run("plan", index, "--", word)
        assert result.exit_code == 1
        assert result.stderr == f"Error: {message}\n"


def test_plans_of_named_subscriptions(tmp_path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add("17", "price < 3")
    matcher.save(tmp_path / "i")
    assert run("plan", tmp_path / "i", "17").stdout == f"{matcher.plan('17')}\n"
    assert run("plan", tmp_path / "i", "18").stderr == "Error: no subscription '18'\n"
