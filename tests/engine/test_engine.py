"""The engine while rows are added and removed: random histories with small deltas and segments, and what versions promise."""

from __future__ import annotations

import gc
import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.labels import Labels, Relabelling
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine import merging
from tamis.engine.engine import Engine
from tamis.engine.limits import Limits
from tamis.engine.merging import Part
from tamis.engine.version import Version
from tests.engine.naive import Columns, rows_with
from tests.engine.random_rows import RandomRows, Shape
from tests.papers.naive import Event, batch_of

SHAPE = Shape(rows=1, dimensions=5, values=12, longest=3, several=0.2, step=0.0)
DIMENSIONS = SHAPE.dimensions + 2
SMALL = Limits(delta_rows=8)


def engine_of(background: bool = False, limits: Limits = SMALL) -> Engine:
    return Engine(lambda: None, background, limits)


def slots_found(engine: Engine, version: Version, events: list[Event]) -> list[list[int]]:
    found = engine.match(version, batch_of(events), DIMENSIONS)
    assert found.counts.sum() == len(found.slots)
    slots = [sorted(part.tolist()) for part in np.split(found.slots, np.cumsum(found.counts)[:-1])]
    assert [sorted(found_alone(engine, version, event)[0]) for event in events] == slots
    return slots


def found_alone(engine: Engine, version: Version, event: Event) -> tuple[list[int], list[int]]:
    """The slots that match one event, and how much work it took."""
    single = engine.singles.take()  # It is not given back, so the next call gets a new one.
    single.event.put(batch_of([event]))
    before = engine.counters.counts.copy()
    rows = version.deltas[-1][1].number if version.deltas else 0
    found = single.slots(single.match((version, rows, version.life.now), None, DIMENSIONS)).tolist()
    return found, (engine.counters.counts - before)[1:4].tolist()


class History:
    """An engine, and a model with the clause of every living slot."""

    def __init__(self, seed: int, background: bool) -> None:
        self.chance = random.Random(seed)
        self.made = RandomRows(seed, SHAPE)
        self.engine = engine_of(background)
        self.model: dict[int, list[Leaf]] = {}
        self.events = [self.made.event() for _ in range(5)]

    def add(self, count: int) -> None:
        clauses = [self.made.clause() for _ in range(count)]
        slots = self.engine.new_slots(count)
        assert not self.model.keys() & set(slots.tolist())
        self.engine.add(rows_with(clauses, slots))
        self.model.update(zip(slots.tolist(), clauses, strict=True))

    def remove(self, count: int) -> None:
        slots = self.chance.sample(sorted(self.model), min(count, len(self.model)))
        self.engine.remove(np.array(slots, np.int32))
        for slot in slots:
            del self.model[slot]

    def replace(self) -> None:
        if self.model:
            self.remove(1)
            self.add(1)

    def expected(self) -> list[list[int]]:
        slots = np.array(sorted(self.model), np.int32)
        columns = Columns(rows_with([self.model[slot] for slot in slots.tolist()], slots).table)
        return [slots[columns.true_of(event)].tolist() for event in self.events]

    def found(self) -> list[list[int]]:
        return slots_found(self.engine, self.engine.version, self.events)


@pytest.mark.parametrize("background", [False, True])
def test_random_histories(background: bool, cases: Callable[[int], int]) -> None:
    for seed in range(cases(6)):
        history = History(seed, background)
        held: list[tuple[Version, list[list[int]]]] = []
        for step in range(80):
            action = history.chance.choice(["add", "add", "add many", "remove", "remove", "replace", "optimize"])
            if action == "add":
                history.add(history.chance.randint(0, 4))
            elif action == "add many":
                history.add(history.chance.choice([8, 20, 60]))
            elif action == "remove":
                history.remove(history.chance.choice([1, 5, 40]))
            elif action == "replace":
                history.replace()
            elif history.chance.random() < 0.2:
                history.engine.publish()
                history.engine.optimize()
            history.engine.publish()
            expected = history.expected()
            assert history.found() == expected, (seed, step, action)
            if history.chance.random() < 0.2:
                held.append((history.engine.version, expected))
            if len(held) > 5:
                held.pop(history.chance.randrange(len(held)))
        for version, expected in held:
            assert slots_found(history.engine, version, history.events) == expected
        history.engine.wait()
        assert history.found() == history.expected()
        assert history.engine.merges > 0


def one(slot: npt.NDArray[Any], key: int = 1) -> Any:
    return rows_with([[Leaf(0, Mode.SOME, ((key, key),))]] * len(slot), slot.astype(np.int32))


def added(engine: Engine, count: int) -> npt.NDArray[np.int32]:
    slots = engine.new_slots(count)
    engine.add(one(slots))
    return slots


def test_changes_are_seen_together_when_they_are_published() -> None:
    for count in (3, 30):
        engine = engine_of()
        old = added(engine, count)
        engine.publish()
        new = added(engine, count)
        engine.remove(old)
        assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(old.tolist())]
        engine.publish()
        assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(new.tolist())]


def test_a_merge_publishes_no_waiting_change() -> None:
    engine = engine_of()
    old = added(engine, 30)
    engine.publish()
    new = added(engine, 30)
    engine.remove(old)
    engine.running_merges.do_all(engine)
    before = slots_found(engine, engine.version, [{0: [(1, 1)]}])
    assert before == [sorted(old.tolist())]
    engine.publish()
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(new.tolist())]


def test_a_version_stays_as_it_was() -> None:
    engine = engine_of()
    first = added(engine, 20)
    engine.publish()
    version = engine.version
    for _ in range(30):
        engine.remove(added(engine, 5))
        engine.publish()
    engine.remove(first)
    engine.publish()
    engine.optimize()
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [[]]
    assert slots_found(engine, version, [{0: [(1, 1)]}]) == [sorted(first.tolist())]


@pytest.mark.parametrize("rebuilt", [0, 3])
def test_slots_are_reused_only_when_no_version_has_them(rebuilt: int) -> None:
    """Also if parts were built again since."""
    engine = engine_of()
    dead = added(engine, 20)
    engine.publish()
    version = engine.version
    for _ in range(rebuilt):
        engine.optimize()
    engine.remove(dead)
    engine.publish()
    engine.optimize()
    gc.collect()
    assert not set(engine.new_slots(20).tolist()) & set(dead.tolist())
    assert slots_found(engine, version, [{0: [(1, 1)]}]) == [sorted(dead.tolist())]
    del version
    gc.collect()
    assert set(engine.new_slots(20).tolist()) == set(dead.tolist())


def test_slots_are_reused_after_labels_moved() -> None:
    engine = engine_of()
    dead = added(engine, 20)
    engine.publish()
    version = engine.version
    engine.remove(dead)
    engine.publish()
    engine.optimize()
    moved = Relabelling(Labels(0, 100), [], [], np.array([2]), np.array([50]))
    with engine.rewriting(lambda rows: rows.relabelled(0, moved), None) as rewritten:
        engine.put(rewritten)
    del version
    gc.collect()
    assert set(engine.new_slots(20).tolist()) == set(dead.tolist())


def test_slots_without_rows_are_reused() -> None:
    engine = engine_of()
    added(engine, 3)
    for _ in range(5):
        slots = engine.new_slots(4)
        engine.add(one(slots[:0]))
        engine.publish()
        engine.remove(slots)
        engine.publish()
        assert engine.stats()["dead"] == 0
    assert engine.new_slots(1)[0] < 8


def test_slots_from_before_clear_do_not_come_back() -> None:
    engine = engine_of()
    engine.remove(added(engine, 20)[:15])
    engine.publish()
    version = engine.version
    engine.clear()
    assert engine.new_slots(10).tolist() == list(range(10))
    del version
    gc.collect()
    assert engine.new_slots(10).tolist() == list(range(10, 20))
    stats = engine.stats()
    assert (stats["segments"], stats["delta_rows"], stats["dead"]) == ([], 0, 0)


def test_churn_keeps_the_engine_small() -> None:
    engine = engine_of()
    kept = added(engine, 10)
    for _ in range(200):
        engine.remove(added(engine, 3))
        engine.publish()
    assert int(engine.new_slots(1)[0]) < 100
    stats = engine.stats()
    assert sum(part["rows"] for part in stats["segments"]) + stats["delta_rows"] < 40
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(kept.tolist())]
    assert engine.merges > 5


def test_merges_drop_the_dead() -> None:
    engine = engine_of()
    slots = added(engine, 100)
    engine.publish()
    engine.remove(slots[:80])
    engine.publish()
    assert [part["rows"] for part in engine.stats()["segments"]] == [20]


def test_a_merge_that_fails_does_not_end_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of()
    slots = np.concatenate((added(engine, 6), added(engine, 6)))
    with monkeypatch.context() as patched:
        patched.setattr(engine, "build", lambda rows: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.publish()
    engine.publish()
    assert engine.merges > 0
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(slots.tolist())]


def test_keys_follow_labels_in_all_parts() -> None:
    engine = engine_of()
    clauses = [[Leaf(0, Mode.SOME, ((key, KEY_MAX),))] for key in (2, 4, 6)]
    expected = []
    for count in (20, 3, 3, 3):
        for _ in range(count):
            slots = engine.new_slots(3)
            engine.add(rows_with(clauses, slots))
            expected += slots.tolist()
    engine.publish()
    version = engine.version
    moved = Relabelling(Labels(0, 100), [], [], np.array([2, 4, 6]), np.array([20, 40, 60]))
    with engine.rewriting(lambda rows: rows.relabelled(0, moved), None) as rewritten:
        engine.put(rewritten)
    above = sorted(slot for place, slot in enumerate(expected) if place % 3 < 2)
    assert slots_found(engine, engine.version, [{0: [(50, 50)]}, {0: [(19, 19)]}]) == [above, []]
    assert slots_found(engine, version, [{0: [(5, 5)]}]) == [above]


@pytest.mark.parametrize("room", [1, 4, 40])
def test_room_for_the_matches_of_one_event_grows(room: int) -> None:
    engine = engine_of(limits=SMALL._replace(event_matches=room))
    slots = np.concatenate([added(engine, count) for count in (9, 3, 30, 5)])
    engine.publish()
    version = engine.version
    assert len(version.segments) > 1
    assert len(version.deltas) == 1
    for _ in range(2):
        found, work = found_alone(engine, version, {0: [(1, 1)]})
        assert sorted(found) == sorted(slots.tolist())
        assert work[0] >= len(version.segments) + 5


def test_one_event_does_the_same_work_alone_and_in_a_batch() -> None:
    history = History(3, background=False)
    for count in (20, 3, 60, 4):
        history.add(count)
        history.engine.publish()
    for event in history.events:
        version = history.engine.version
        _, alone = found_alone(history.engine, version, event)
        assert tuple(alone[:2]) == history.engine.match(version, batch_of([event]), DIMENSIONS).work[:2]


@pytest.mark.parametrize("fails", [False, True])
def test_the_thread_that_fills_a_delta_builds_it(fails: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(background=True)
    build, builders = engine.build, []

    def built(rows: Any) -> Any:
        builders.append(threading.current_thread())
        if fails and len(builders) == 1:
            raise MemoryError
        return build(rows)

    monkeypatch.setattr(engine, "build", built)
    slots = np.concatenate((added(engine, 6), added(engine, 6)))
    engine.publish()
    engine.wait()
    assert builders[0] is threading.current_thread()
    assert len(set(builders)) == 1 + fails
    assert (engine.merges, len(engine.version.segments), engine.running_merges.threads, engine.running_merges.busy) == (
        1,
        1,
        {},
        set(),
    )
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(slots.tolist())]


def test_many_changes_take_breaks_for_merging_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, breaks = engine_of(), list[float]()
    monkeypatch.setattr("tamis.engine.merging.time.sleep", breaks.append)
    slots = added(engine, 96).tolist()
    engine.publish()
    for slot in slots[:64]:
        engine.remove_one(slot)
    assert breaks == []
    engine.running_merges.threads[False] = threading.Thread()
    for slot in slots[64:]:
        engine.remove_one(slot)
    assert len(breaks) == 1


def test_work_of_parts_that_find_nothing_is_counted() -> None:
    engine = engine_of()
    for _ in range(3):
        below = [[Leaf(0, Mode.SOME, ((KEY_MIN, 5),))]] * 3
        engine.add(rows_with(below, engine.new_slots(3)))
    engine.publish()
    found = engine.match(engine.version, batch_of([{0: [(9, 9)]}]), DIMENSIONS)
    assert (found.counts.tolist(), found.work.candidates > 0) == ([0], True)
    assert engine.match(engine.version, batch_of([]), DIMENSIONS).counts.tolist() == []


def test_freed_slots_do_not_count_as_dead() -> None:
    engine = engine_of(False)
    made = RandomRows(3, SHAPE)
    slots = engine.new_slots(3000)
    engine.add(rows_with([made.clause() for _ in range(3000)], slots))
    engine.publish()
    engine.remove(slots[1:])
    engine.publish()
    assert engine.stats()["dead"] in (0, 2999)
    engine.optimize()
    assert engine.stats()["dead"] == 0


def test_a_merge_that_ends_during_a_rewrite_is_dropped() -> None:
    engine = engine_of()
    slots = np.concatenate([added(engine, count) for count in (20, 20, 20, 3)])
    engine.publish()
    segments: list[Part] = list(engine.version.segments)
    with engine.rewriting(lambda rows: rows, None) as rewritten:
        engine.merge(segments)
        assert list(engine.due()) == []
        assert list(engine.version.segments) == segments
        for _ in range(2):
            engine.put(rewritten)
    assert len(engine.version.segments) == 1
    assert slots_found(engine, engine.version, [{0: [(1, 1)]}]) == [sorted(slots.tolist())]


def test_merges_go_on_in_a_child_of_a_process_that_was_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    merges = merging.Merges()
    merges.busy.add(1)
    merges.threads[False] = threading.Thread()
    monkeypatch.setattr("os.getpid", lambda: -1)
    merges.wait()
    assert merges.busy == set()
    assert merges.threads == {}
