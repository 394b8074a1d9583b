"""Tasks without Spark: memory and time stay in proportion, for any number of matches and segments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.spark import match_task, segment_files
from tamis.spark.index_folder import IndexFolder
from tamis.spark.manifest import SegmentFiles, without_rows
from tamis.spark.match_task import CountTask, MatchTask, SegmentMatches, TaskLimits
from tamis.spark.segment_files import OpenSegment, write_removed, write_segment
from tamis.spark.tallies import NAMES
from tamis.spark.work_counters import TellingTask

PAIR = ("id", "subscription")
COUNT = ("subscription", "matches")


@pytest.fixture
def folder(tmp_path: Path) -> IndexFolder:
    folder = IndexFolder(tmp_path)
    folder.prepare()
    return folder


def written(folder: IndexFolder, rows: dict[str, Any]) -> SegmentFiles:
    result = write_segment(folder, pa.table(rows), "expression", None, None)
    assert result.segment is not None
    assert result.refused == []
    return result.segment


def handed_over(task: MatchTask, events: pa.Table, at_once: int) -> pa.Table:
    batches = iter(events.combine_chunks().to_batches(at_once))
    kinds = {"rank": pa.int32()}
    schema = pa.schema([(name, kinds.get(name, pa.int64())) for name in task.names])
    return pa.Table.from_batches(list(task(batches)), schema)


def task_for(
    folder: IndexFolder, segments: list[SegmentFiles], kind: type[MatchTask] = MatchTask, **options: Any
) -> MatchTask:
    names = COUNT if kind is CountTask else PAIR if options.get("k") is None else (*PAIR, "rank")
    return kind(folder, (tuple(segments),), "id", ("price",), names=names, **options)


@pytest.mark.parametrize("k", [None, 2])
def test_the_number_of_pairs_at_a_time_is_bounded(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch, k: int | None
) -> None:
    rows, quiet, loud = 1000, 1500, 300
    segment = written(folder, {"id": range(rows), "expression": [f"price > {number}" for number in range(rows)]})
    pairs, most = 1 << 14, 1 << 17
    limits = TaskLimits(pairs, most)
    sizes: list[int] = []
    named: list[int] = []
    found_in = MatchTask.found_in

    def watched(task: MatchTask, opened: OpenSegment, events: pa.Table, limit: int | None) -> Iterator[SegmentMatches]:
        sizes.append(len(events))
        for found in found_in(task, opened, events, limit):
            named.append(len(found.event))
            yield found

    monkeypatch.setattr(MatchTask, "found_in", watched)
    prices = np.concatenate([np.zeros(quiet), np.full(loud, 5000.0)])
    events = pa.table({"id": range(quiet + loud), "price": prices})
    found = handed_over(task_for(folder, [segment], k=k, limits=limits), events, 700)
    assert max(sizes) == most // rows  # so that it fits even if all subscriptions match
    assert sum(sizes) == quiet + loud
    assert max(named) <= pairs
    if k is None:
        assert found["id"].to_pylist() == np.repeat(np.arange(quiet, quiet + loud), rows).tolist()
        assert sizes[0] == pairs // rows
        assert sizes[-2] == pairs // rows
    else:
        best = [(event, number, number + 1) for event in range(quiet, quiet + loud) for number in range(k)]
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == best
    counted = handed_over(task_for(folder, [segment], CountTask, k=k, limits=limits), events, 700)
    assert counted.to_pydict() == {"subscription": list(range(k or rows)), "matches": [loud] * (k or rows)}


def test_segments_that_cannot_all_be_open_are_opened_once(folder: IndexFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    segments = [
        written(folder, {"id": [2 * number, 2 * number + 1], "expression": [f"price = {number}", "price < 0"]})
        for number in range(6)
    ]
    opened: list[str] = []

    class Watched(OpenSegment):
        def __init__(self, folder: IndexFolder, segment: SegmentFiles) -> None:
            opened.append(segment.name)
            super().__init__(folder, segment)

    monkeypatch.setattr(segment_files, "OpenSegment", Watched)
    limits = TaskLimits(open=3)
    events = pa.table({"id": range(6000), "price": [number % 6 for number in range(6000)]})
    for k in (None, 1):
        opened.clear()
        found = handed_over(task_for(folder, segments, k=k, limits=limits), events, 500).sort_by("id")
        ranks = {} if k is None else {"rank": [1] * 6000}
        assert found.to_pydict() == {
            "id": list(range(6000)),
            "subscription": [2 * (n % 6) for n in range(6000)],
            **ranks,
        }
        assert len(opened) <= 6
    opened.clear()
    counts = handed_over(task_for(folder, segments, CountTask, limits=limits), events, 500).sort_by("subscription")
    assert counts.to_pydict() == {"subscription": [0, 2, 4, 6, 8, 10], "matches": [1000] * 6}
    assert len(opened) <= 12  # Once to match, and once for the ids.


def test_the_largest_weights_of_several_segments(folder: IndexFolder) -> None:
    """Null counts as 0, which is more than negative weights. Of equal weights, lower ids come first, in any segment."""
    shape = {"id": [10, 20, 30], "expression": ["price > 0"] * 3}
    first = written(folder, {**shape, "weight": pa.array([None, -1.0, 0.0])})
    second = written(folder, {"id": [5, 15], "expression": ["price > 0"] * 2, "weight": pa.array([-0.5, 0.0])})
    events = pa.table({"id": [1, 2], "price": [1, 1]})
    for k, best in ((2, [(10, 1), (15, 2)]), (4, [(5, 4), (10, 1), (15, 2), (30, 3)])):
        found = handed_over(task_for(folder, [first, second], k=k), events, 10)
        assert sorted(zip(*found.to_pydict().values(), strict=True)) == [
            (event, *each) for event in (1, 2) for each in best
        ]


def test_removed_rows_are_not_found_and_no_file_is_opened_again(
    folder: IndexFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = pa.array([float(number) for number in range(10)])
    segment = written(folder, {"id": range(10), "expression": ["price > 0"] * 10, "weight": weights})
    events = pa.table({"id": [1], "price": [1]})

    def found(removed: list[int], k: int | None) -> list[int]:
        version = segment
        if removed:
            version = without_rows(segment, *write_removed(folder, np.array(removed)), len(removed))
        return sorted(handed_over(task_for(folder, [version], k=k), events, 10)["subscription"].to_pylist())

    assert found([], None) == list(range(10))
    monkeypatch.setattr(segment_files, "OpenSegment", None)  # opening another file would fail
    for removed in ([9], [3, 8, 9], [], [9]):
        left = [number for number in range(10) if number not in removed]
        assert found(removed, None) == left
        assert found(removed, 2) == left[-2:]


def test_events_of_several_groups(folder: IndexFolder) -> None:
    segments = [written(folder, {"id": [number], "expression": ["price > 0"]}) for number in range(2)]
    task = replace(task_for(folder, segments), groups=tuple((segment,) for segment in segments))
    events = pa.table({"id": range(8), "price": [1] * 8, match_task.GROUP: [number % 2 for number in range(8)]})
    found = handed_over(task, events, 3).sort_by("id")
    assert found.to_pydict() == {"id": list(range(8)), "subscription": [number % 2 for number in range(8)]}


def test_what_a_task_counts(folder: IndexFolder) -> None:
    segments = [written(folder, {"id": [number], "expression": [f"price > {number}"]}) for number in range(3)]
    events = pa.table({"id": range(8), "price": [2] * 8})
    for kind in (MatchTask, CountTask):
        task = task_for(folder, segments, kind)
        handed_over(task, events, 3)
        counts = {name: task.tally[name] for name in ("events", "matches", "files fetched")}
        assert counts == {"events": 8, "matches": 16, "files fetched": 0}
        assert task.tally["candidates"] >= 16
        assert task.tally["seconds matching"] > 0
        assert task.tally.get("segments opened", 0) == (3 if kind is MatchTask else 0)


def test_a_task_that_tells_its_tally_in_a_last_row(folder: IndexFolder) -> None:
    segment = written(folder, {"id": [1], "expression": ["price > 1"]})
    kinds = (pa.int64(), pa.int64())
    for prices, matches in (([2, 1, 3], 2), ([0], 0)):
        task = task_for(folder, [segment])
        events = pa.table({"id": range(len(prices)), "price": prices})
        *rows, last = pa.Table.from_batches(TellingTask(task, kinds)(iter(events.to_batches()))).to_pylist()
        assert [row["id"] for row in rows] == [number for number, price in enumerate(prices) if price > 1]
        assert {row["__tamis_tally"] for row in rows} <= {None}
        tally = dict(zip(NAMES, last.pop("__tamis_tally"), strict=True))
        assert (tally["events"], tally["matches"]) == (len(prices), matches)
        assert set(last.values()) == {None}
