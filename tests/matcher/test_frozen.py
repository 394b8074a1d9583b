"""A saved matcher opened only for matching finds the same as a matcher from `load`."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from tamis.matcher.frozen import FrozenMatcher


def found(frozen: FrozenMatcher, events: pa.Table, k: int | None = None) -> list[list[int]]:
    counts, slots = frozen.match(events, k)
    ids = iter(frozen.ids(slots).tolist())
    return [[next(ids) for _ in range(count)] for count in counts.tolist()]


@pytest.mark.parametrize("removed", [0, 700])
@pytest.mark.parametrize("late", [0, 30])
def test_it_finds_what_a_loaded_matcher_finds(tmp_path: Path, removed: int, late: int) -> None:
    chance = random.Random(removed + late)
    matcher = tamis.Matcher()
    texts = [f"a = {chance.randrange(9)} AND (b > {chance.randrange(9)} OR s LIKE '%{n % 7}%')" for n in range(2500)]
    matcher.add_many(range(2500), texts, [chance.random() for _ in range(2500)])
    for number in range(late):
        matcher.add(5000 + number, f"b = {number % 9}", weight=2.0)
    for number in chance.sample(range(2500), removed):
        matcher.remove(number)
    matcher.save(tmp_path / "saved.tamis")
    rows = [{"a": chance.randrange(9), "b": chance.randrange(9), "s": str(chance.randrange(99))} for _ in range(50)]
    events = pa.Table.from_pylist(rows)
    frozen = FrozenMatcher(tmp_path / "saved.tamis")
    assert [sorted(ids) for ids in found(frozen, events)] == [sorted(matcher.match(row)) for row in rows]
    assert found(frozen, events, 5) == [matcher.match(row, 5) for row in rows]
    assert found(frozen, events.slice(0, 0)) == []


def test_it_keeps_to_the_schema(tmp_path: Path) -> None:
    matcher = tamis.Matcher(schema={"a": "number"})
    matcher.add(1, "a > 3")
    matcher.save(tmp_path / "saved.tamis")
    with pytest.raises(tamis.EventError, match="a"):
        FrozenMatcher(tmp_path / "saved.tamis").match(pa.table({"a": ["x"]}))


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1")
    matcher.save(tmp_path / "saved.tamis")
    with pytest.raises(tamis.SnapshotError, match="not integers"):
        FrozenMatcher(tmp_path / "saved.tamis")
    with pytest.raises(tamis.SnapshotError):
        FrozenMatcher(tmp_path / "nothing.tamis")
