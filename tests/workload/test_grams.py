"""Strings as 3-grams: the paper's example, its sizes, files of the user, and subscriptions derived from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import FileError
from tamis.workload import DerivedGramsConfig, GramsConfig, WorkloadError, generate
from tests.workload.satisfaction import event_dicts, matches, planted_holds


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("string", {"st": "r", "tr": "i", "ri": "n", "in": "g"}),
        ("STRING thread", {"st": "r", "tr": "i", "ri": "n", "in": "g", "th": "r", "hr": "e", "re": "a", "ea": "d"}),
        ("string star", {"st": "r", "tr": "i", "ri": "n", "in": "g", "ta": "r"}),
        ("Dvořák 3rd of", {"dv": "o", "vo": "r", "or": "a", "ra": "k"}),
        ("Bo Li", {"short": "b"}),
        ("aaaa", {"aa": "a"}),
    ],
)
def test_a_line(tmp_path: Path, line: str, expected: dict[str, str]) -> None:
    (tmp_path / "lines").write_text(f"{line}\n{line.upper()}\n12\nzzz\n", encoding="utf-8")
    found = []
    for seed in range(6):
        workload = generate(GramsConfig(subscriptions=1, text_file=str(tmp_path / "lines"), seed=seed))
        assert len(workload.attribute_names) == 677
        (row,) = workload.subscriptions()["predicates"].to_pylist()
        assert all(each["operator"] == "=" for each in row)
        found.append({each["attribute"]: each["values"][0] for each in row})
    assert expected in found
    assert all(each in (expected, {"zz": "z"}) for each in found)


@pytest.mark.parametrize(("text", "size"), [("authors", 8), ("titles", 35)])
def test_the_sizes_of_the_paper(text: Any, size: float) -> None:
    workload = generate(GramsConfig(subscriptions=20_000, text=text))
    arrays = workload.arrays()
    assert np.diff(arrays.ptr).mean() == pytest.approx(size, rel=0.05)
    assert (arrays.literals.min(), arrays.literals.max()) == (1, 26)
    assert len(np.unique(arrays.attribute)) > 450
    events = workload.event_arrays()
    assert (events.attribute >= 0).sum(axis=1).mean() == pytest.approx(size, rel=0.07)
    lines = {
        row.tobytes() for row in np.split(arrays.attribute.astype(np.int64) * 32 + arrays.literals, arrays.ptr[1:-1])
    }
    assert len(lines) > 0.99 * 20_000


@pytest.mark.parametrize("text", ["authors", "titles"])
def test_an_event_is_the_line_of_its_subscription(text: Any) -> None:
    workload = generate(GramsConfig(subscriptions=300, text=text))
    matcher = tamis.Matcher()
    matcher.add_table(workload.subscriptions())
    found = matcher.match_batch(workload.events(310)).to_pylist()
    assert {(row, row % 300) for row in range(310)} <= {(match["event"], match["subscription"]) for match in found}
    wide = workload.events(20, wide=True).to_pylist()
    listed = event_dicts(workload.events(20))
    assert [{name: value for name, value in row.items() if value is not None} for row in wide] == listed


def test_a_file_gives_subscriptions_and_other_events(tmp_path: Path) -> None:
    names = [f"{first}{second}{first}" for first in ("anna", "bert", "carl") for second in ("xyz", "uvw", "rst")]
    (tmp_path / "lines").write_text("\n".join(names * 3))
    config = GramsConfig(subscriptions=6, text_file=str(tmp_path / "lines"))
    workload = generate(config)
    rows = [[each["attribute"] for each in row] for row in workload.subscriptions()["predicates"].to_pylist()]
    assert [list(event) for event in event_dicts(workload.events(12))] == rows * 2
    others = event_dicts(workload.other_events(6))
    assert others[:3] == others[3:]
    assert all(list(event) not in rows for event in others)
    with pytest.raises(
        FileError, match=r"has 9 different lines with letters. 9 subscriptions need more.*Hint: choose fewer"
    ):
        generate(GramsConfig(subscriptions=9, text_file=str(tmp_path / "lines")))
    (tmp_path / "digits").write_text("12\n13\n")
    with pytest.raises(FileError, match="has no words"):
        generate(GramsConfig(subscriptions=1, text_file=str(tmp_path / "digits")))


@pytest.mark.parametrize("operator_class", ["min", "low", "med", "high"])
@pytest.mark.parametrize(("text", "sizes"), [("authors", (8, 16)), ("titles", (30, 43))])
def test_derived_subscriptions(text: Any, sizes: tuple[int, int], operator_class: Any) -> None:
    config = DerivedGramsConfig(
        subscriptions=2_000, text=text, subscription_size=sizes[0], event_size=sizes[1], operator_class=operator_class
    )
    workload = generate(config)
    arrays = workload.arrays()
    assert np.diff(arrays.ptr).mean() == pytest.approx(sizes[0], rel=0.03)
    for events in (workload.event_arrays(), workload.other_event_arrays()):
        assert events.attribute.shape == (len(events.value), sizes[1])
        assert np.mean(events.attribute >= 0) > 0.9999
    assert planted_holds(arrays, workload.event_arrays(2_000)).all()
    rows = workload.subscriptions()["predicates"].to_pylist()
    events_ = event_dicts(workload.events(100))
    assert all(matches(rows[number], events_[number % 100]) for number in range(0, 2_000, 17))


def test_derived_from_a_file_of_short_lines(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("anna\nbert\ncarl\n")
    workload = generate(DerivedGramsConfig(subscriptions=500, text_file=str(tmp_path / "lines")))
    events = workload.event_arrays()
    assert (events.attribute >= 0).sum(axis=1).max() == 6
    assert planted_holds(workload.arrays(), workload.event_arrays(500)).all()
    assert len(workload.other_events(5)) == 5


@pytest.mark.parametrize(
    ("config", "parameters", "message"),
    [
        (GramsConfig, {"text": "books"}, "text must be one of authors, titles, not 'books'"),
        (GramsConfig, {"text_file": 3}, "text_file must be the path of a file, not 3"),
        (GramsConfig, {"text_file": ""}, "text_file must be the path of a file, not ''"),
        (DerivedGramsConfig, {"subscription_size": 17}, "subscription_size is 17, but .* has 16"),
        (DerivedGramsConfig, {"operator_class": "x"}, "operator_class must be one of"),
    ],
)
def test_wrong_parameters(config: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        config(**parameters)


def test_a_path_object_is_a_path(tmp_path: Path) -> None:
    config = GramsConfig(text_file=tmp_path / "lines")  # type: ignore[arg-type]
    assert config.text_file == str(tmp_path / "lines")
    assert GramsConfig.from_json(config.to_json()) == config
    with pytest.raises(FileError, match="cannot read the text"):
        generate(config)
