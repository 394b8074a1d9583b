"""`tamis stats` and `tamis plan`: what is in an index on disk, and how it finds a subscription."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tamis
from tests.cli.running import run, write


class FakePlan:
    """A plan that tells whose it is."""

    def __init__(self, identifier: Any) -> None:
        self._identifier = identifier

    def __str__(self) -> str:
        return f"plan of {self._identifier!r}"

    def to_dict(self) -> dict[str, Any]:
        return {"id": self._identifier}


def plan(matcher: tamis.Matcher, identifier: Any) -> FakePlan:
    if identifier not in matcher:
        raise tamis.UnknownIdError(identifier)
    return FakePlan(identifier)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    matcher = tamis.Matcher(schema={"price": "number", "genre": "string"})
    matcher.add_many(range(1100), [f"price < {number} AND genre = 'g{number % 7}'" for number in range(1100)])
    matcher.add(5000, "price > 5")
    matcher.remove(3)
    matcher.save(tmp_path / "i.tamis")
    return tmp_path / "i.tamis"


def test_figures_as_text(index: Path) -> None:
    result = run("stats", index)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{index}: 1,100 subscriptions, 0.")
    shown = dict(line.split(maxsplit=1) for line in lines[1:7] if "delta" not in line)
    assert shown["dimensions"] == "2"
    assert shown["dead"] == "1"
    assert shown["schema"] == "2 attributes"
    assert shown["segments"] == "1"
    assert lines[7].startswith("  segment 0     1,100 rows, ")


def test_figures_as_json(index: Path) -> None:
    figures = json.loads(run("stats", index, "--json").stdout)
    assert figures["file"] == str(index)
    assert figures["file_bytes"] == index.stat().st_size
    assert figures["subscriptions"] == 1100
    assert figures["delta_rows"] == 1
    assert figures["schema"] == {"price": "number", "genre": "string"}
    assert [segment["rows"] for segment in figures["segments"]] == [1100]


@pytest.mark.parametrize("words", [["stats"], ["plan", "x"]])
def test_other_files(tmp_path: Path, words: list[str]) -> None:
    path = write(tmp_path / "s.txt", "price < 3")
    result = run(words[0], path, *words[1:])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"{path}: ")
    assert run(words[0], tmp_path / "nothing", *words[1:]).exit_code == 1


def test_plans(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tamis.Matcher, "plan", plan, raising=False)
    assert run("plan", index, "17").stdout == "plan of 17\n"
    assert json.loads(run("plan", index, 17, "--json").stdout) == {"id": 17}
    result = run("plan", index, "ann")
    assert result.exit_code == 1
    assert result.stderr == "Error: no subscription 'ann'\n"
    assert run("plan", index, "3").exit_code == 1


def test_plans_of_named_subscriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tamis.Matcher, "plan", plan, raising=False)
    matcher = tamis.Matcher()
    matcher.add("17", "price < 3")
    matcher.save(tmp_path / "i")
    assert run("plan", tmp_path / "i", "17").stdout == "plan of '17'\n"
