"""Keyword workloads: what words become, the sizes of the papers, planted documents, files of the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.errors import FileError
from tamis.workload import OPERATORS, KeywordsConfig, WorkloadError, generate, preset
from tamis.workload.keywords import halves
from tests.workload.satisfaction import event_dicts, matches

FORMS = ["halves", "words", "counts"]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("boolean", ("boo", "lea")),
        ("vldb", ("vl", "db")),
        ("matcher", ("mat", "che")),
        ("search", ("sea", "rch")),
        ("index", ("in", "dex")),
        ("or", ("o", "r")),
    ],
)
def test_halves(word: str, expected: tuple[str, str]) -> None:
    assert halves(word) == expected


def of_files(folder: Path, queries: str, documents: str, **changes: Any) -> Any:
    (folder / "queries").write_text(queries, encoding="utf-8")
    (folder / "documents").write_text(documents, encoding="utf-8")
    given: dict[str, Any] = {"subscriptions": 1, "planted_share": 0, **changes}
    return generate(
        KeywordsConfig(queries_file=str(folder / "queries"), documents_file=str(folder / "documents"), **given)
    )


def test_a_line_with_halves(tmp_path: Path) -> None:
    made = of_files(tmp_path, "Boolean a vldb boomerang", "The boomerang: boolean, B vldb vldb", predicates="halves")
    assert made.subscriptions()["predicates"].to_pylist() == [
        [
            {"attribute": "boo", "operator": "=", "values": ["lea"]},
            {"attribute": "vl", "operator": "=", "values": ["db"]},
        ]
    ]
    assert event_dicts(made.events(1)) == [{"t": "he", "boo": "mer", "vl": "db"}]


def test_a_line_with_words(tmp_path: Path) -> None:
    made = of_files(tmp_path, "sea, moon sea", "moon a Moon über sea", predicates="words")
    assert made.subscriptions()["predicates"].to_pylist() == [
        [{"attribute": "sea", "operator": "=", "values": [1]}, {"attribute": "moon", "operator": "=", "values": [1]}]
    ]
    assert event_dicts(made.events(1)) == [{"moon": 1, "a": 1, "über": 1, "sea": 1}]


def test_a_line_with_counts(tmp_path: Path) -> None:
    made = of_files(tmp_path, "sea, moon sea", "moon a Moon über sea", predicates="counts")
    (row,) = made.subscriptions()["predicates"].to_pylist()
    assert [(each["attribute"], each["operator"]) for each in row] == [("sea", "between"), ("moon", "between")]
    assert all(1 <= low < high for low, high in (each["values"] for each in row))
    assert event_dicts(made.events(1)) == [{"moon": 2, "a": 1, "über": 1, "sea": 1}]


@pytest.mark.parametrize(
    ("name", "predicates", "pairs"),
    [
        ("ps-tree-query-log", 2.78, 93.07),
        ("op-index-twitter", 2.8, 5.4),
        ("op-index-wikipedia-counts", 2.8, 123),
    ],
)
def test_the_sizes_of_the_papers(name: str, predicates: float, pairs: float) -> None:
    made = generate(preset(name, subscriptions=20_000))
    arrays = made.arrays()  # type: ignore[attr-defined]
    assert np.diff(arrays.ptr).mean() == pytest.approx(predicates, rel=0.02)
    events = made.other_event_arrays(1_000)  # type: ignore[attr-defined]
    assert (events.attribute >= 0).sum(axis=1).mean() == pytest.approx(pairs, rel=0.03)
    planted = made.event_arrays(1_000)  # type: ignore[attr-defined]
    assert (planted.attribute >= 0).sum(axis=1).mean() == pytest.approx(pairs, rel=0.06)


def test_the_dimensions_of_the_query_log() -> None:
    assert len(generate(preset("ps-tree-query-log")).attribute_names) == pytest.approx(17_577, rel=0.06)


def test_intervals_of_counts() -> None:
    arrays = generate(KeywordsConfig(subscriptions=10_000, predicates="counts")).arrays()
    assert (arrays.operator == OPERATORS.index("between")).all()
    low, high = arrays.literals.reshape(-1, 2).T
    assert np.mean(low == 1) == pytest.approx(0.5, abs=0.02)
    assert set(np.unique(high - low)) == set(range(1, 16))


@pytest.mark.parametrize("predicates", FORMS)
@pytest.mark.parametrize("documents", ["messages", "pages"])
def test_planted_documents_match(predicates: Any, documents: Any) -> None:
    made = generate(KeywordsConfig(subscriptions=300, predicates=predicates, documents=documents))
    matcher = tamis.Matcher()
    matcher.add_table(made.subscriptions())
    found = matcher.match_batch(made.events(310)).to_pylist()
    assert {(row, row % 300) for row in range(310)} <= {(match["event"], match["subscription"]) for match in found}
    rows = made.subscriptions()["predicates"].to_pylist()
    assert all(matches(rows[row], event) for row, event in enumerate(event_dicts(made.events(40))))


def test_a_share_of_planted_documents() -> None:
    config = KeywordsConfig(subscriptions=30, planted_share=0.25)
    none = KeywordsConfig(subscriptions=30, planted_share=0)
    events, natural = event_dicts(generate(config).events(200)), event_dicts(generate(none).events(200))
    rows = generate(config).subscriptions()["predicates"].to_pylist()
    changed = [row for row in range(200) if events[row] != natural[row]]
    assert changed == list(range(3, 200, 4))
    assert all(matches(rows[place % 30], events[row]) for place, row in enumerate(changed))
    assert generate(none).other_events(50).equals(generate(config).other_events(50))


def test_blocks_of_events_do_not_depend_on_each_other() -> None:
    made = generate(KeywordsConfig(subscriptions=700))
    whole = made.events(2_100)
    assert generate(made.config).event_block(2, 2_100).equals(whole.slice(2_000).combine_chunks().to_batches()[0])


def test_only_the_most_frequent_words_of_a_file(tmp_path: Path) -> None:
    lines = [f"common{number % 100:03d}" for number in range(300)] + ["rare1 rare2", "rare3 common000"]
    made = of_files(tmp_path, "\n".join(lines), "\n".join(lines), vocabulary=100, subscriptions=301)
    assert made.attribute_names == [f"common{number:03d}" for number in range(100)]
    assert len(made.subscriptions()) == 301
    assert np.diff(made.arrays().ptr).tolist() == [1] * 301


def test_queries_repeat_after_the_last(tmp_path: Path) -> None:
    made = of_files(tmp_path, "sea\nmoon\n", "sun\n", subscriptions=5)
    names = [row[0]["attribute"] for row in made.subscriptions()["predicates"].to_pylist()]
    assert names[:2] * 2 == names[:4]
    assert {*names} == {"sea", "moon"}


@pytest.mark.parametrize(
    ("queries", "documents", "message"),
    [
        ("", "sea", r"queries_file\) is empty"),
        ("sea", "- -", r"documents_file\) has no words"),
        ("a", "b", "has no words"),
    ],
)
def test_bad_files(tmp_path: Path, queries: str, documents: str, message: str) -> None:
    with pytest.raises(FileError, match=message):
        of_files(tmp_path, queries, documents, predicates="halves")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"predicates": "thirds"}, "predicates must be one of halves, words, counts"),
        ({"documents": "books"}, "documents must be one of messages, pages, articles"),
        ({"vocabulary": 10}, "vocabulary must be from 100"),
        ({"planted_share": 2}, "planted_share must be from 0 to 1"),
        ({"queries_file": 1}, "queries_file must be the path of a file, not 1"),
    ],
)
def test_wrong_parameters(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        KeywordsConfig(**parameters)
