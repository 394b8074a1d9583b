"""One event at a time: the calls of a thread reuse its buffers, and no other call uses them at the same time."""

from __future__ import annotations

import gc
import math
import sys
import threading
import weakref
from collections import OrderedDict, UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.evaluation import EventPlaces
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.one_event import EventValues, OneEvent
from tamis.engine import single
from tamis.engine.limits import USUAL_LIMITS, Limits
from tamis.engine.matching.thread_scratch import ScratchSizes, SegmentScratch
from tamis.language.event import flatten
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.gate import Gate
from tamis.matcher.ids import Ids
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over
from tests.matcher.small import small_matcher

COUNT = 300


def matcher_of(
    texts: bool = False, count: int = COUNT, limits: Limits = USUAL_LIMITS, store: EngineStore | None = None
) -> tamis.Matcher:
    """Subscription i is x = i. If i is a multiple of ten, it is x >= i AND y > 0."""
    matcher = matcher_over(EngineStore(limits=StoreLimits(limits)) if store is None else store)
    ids: list[Any] = [f"s{number}" if texts else number for number in range(count)]
    matcher.add_many(ids, [f"x = {number}" if number % 10 else f"x >= {number} AND y > 0" for number in range(count)])
    return matcher


def wanted(x: int, texts: bool = False) -> list[Any]:
    found = [number for number in range(COUNT) if (number == x if number % 10 else number <= x)]
    return sorted(f"s{number}" for number in found) if texts else found


class Nosy(Mapping[str, Any]):
    """An event that matches another event while it is read."""

    def __init__(self, matcher: tamis.Matcher, event: dict[str, Any], seen: list[Any]) -> None:
        self.matcher, self.event, self.seen = matcher, event, seen

    def __getitem__(self, name: str) -> Any:
        self.seen.append(self.matcher.match({"x": 250, "y": 1}))
        return self.event[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.event)

    def __len__(self) -> int:
        return len(self.event)


@pytest.mark.parametrize("texts", [False, True])
def test_threads_do_not_disturb_each_other(texts: bool) -> None:
    matcher = matcher_of(texts)
    expected = {x: wanted(x, texts) for x in range(0, COUNT, 7)}
    errors: list[Any] = []
    together = threading.Barrier(8, timeout=60)

    def match(first: int) -> None:
        together.wait()
        for turn in range(40):
            for x, ids in expected.items():
                event: dict[str, Any] = {"x": x, "y": 1 + first} if turn % 2 else {"y": 2.5, "x": float(x), "z": "text"}
                if sorted(matcher.match(event)) != ids:
                    errors.append((first, turn, x))

    threads = [threading.Thread(target=match, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert matcher.stats()["events"] == 8 * 40 * len(expected)


def test_reading_an_event_may_match_other_events() -> None:
    matcher = matcher_of()
    seen: list[Any] = []
    inner = Nosy(matcher, {"a": 1}, seen)
    for event in (
        Nosy(matcher, {"x": 33, "y": 1}, seen),
        {"x": 33, "y": 1, "inner": inner},
        {"x": 33, "y": 1, "l": (1, 2)},
    ):
        assert sorted(matcher.match(event)) == wanted(33)
    assert [sorted(ids) for ids in seen] == [wanted(250)] * len(seen)
    assert len(seen) >= 3


@pytest.mark.parametrize("texts", [False, True])
def test_a_match_within_a_match_has_its_own_buffers(texts: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = matcher_of(texts)
    expected = wanted(123, texts)
    slots = single.Single.slots if texts else single.Single.names
    depth: list[int] = []

    def nosy(self: Any, count: int) -> Any:
        if len(depth) < 3:
            depth.append(1)
            assert sorted(matcher.match({"x": 250, "y": 1})) == wanted(250, texts)
            assert matcher.match_batch([{"x": 250, "y": 1}] * 3).num_rows == 3 * len(wanted(250))
        return slots(self, count)

    monkeypatch.setattr(single.Single, slots.__name__, nosy)
    assert sorted(matcher.match({"x": 123, "y": 1})) == expected
    assert len(depth) == 3


def test_a_match_within_a_batch_has_its_own_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = matcher_of()
    matcher.add(9999, "x = 7")
    making_room = SegmentScratch.places
    inside: list[int] = []

    def nosy(self: SegmentScratch, dimensions: int) -> EventPlaces:
        if not inside:
            inside.append(1)
            assert sorted(matcher.match({"x": 250, "y": 1})) == wanted(250)
            assert matcher.match_batch([{"x": 250, "y": 1}] * 3).num_rows == 3 * len(wanted(250))
        return making_room(self, dimensions)

    monkeypatch.setattr(SegmentScratch, "places", nosy)
    found = matcher.match_batch([{"x": 7, "y": 1}, {"x": 123, "y": 1}], threads=1)
    assert sorted(found["subscription"].to_pylist()) == sorted([*wanted(7), 9999, *wanted(123)])


def test_room_grows() -> None:
    sizes = ScratchSizes(entries=2, lists=1)
    limits = Limits(event_matches=2, event_rows=2, event_dimensions=1, scratch=sizes)
    for texts in (False, True):
        matcher = matcher_of(texts, limits=limits)
        assert sorted(matcher.match({"x": 299, "y": 1})) == wanted(299, texts)
        assert sorted(matcher.match({"x": [11, 12, 13], "y": 1})) == sorted(
            {*wanted(11, texts), *wanted(12, texts), *wanted(13, texts)}
        )


def test_changes_between_matches() -> None:
    matcher = small_matcher()
    assert matcher.match({"x": 1}) == []
    living: set[int] = set()
    for number in range(120):
        matcher.add(number, f"x < {number} OR d{number} = 1")
        living.add(number)
        if number % 3 == 2:
            matcher.remove(number - 1)
            living.discard(number - 1)
        assert sorted(matcher.match({"x": 50})) == sorted(each for each in living if each > 50)
        assert matcher.match({f"d{number}": 1}) == [number]
        assert sorted(matcher.match({"x": tamis.Interval(100, 110)})) == sorted(each for each in living if each > 100)


def test_old_segments_are_freed() -> None:
    store = EngineStore()
    matcher = matcher_of(count=5000, store=store)
    matcher.match({"x": 5, "y": 1})
    lease = store.engine.version.segments[0].lease
    gone = weakref.ref(lease)
    del lease
    matcher.optimize()
    gc.collect()
    assert gone() is None
    assert matcher.match({"x": 5}) == [5]


def test_numbers_that_only_labels_tell_apart() -> None:
    matcher = tamis.Matcher()
    large = [2**53, 2**53 + 1, 2**60 + 1, -(2**63), 2**63 - 1]
    matcher.add_many(range(len(large)), [f"x = {number}" for number in large])
    for _ in range(3):
        for at, number in enumerate(large):
            assert matcher.match({"x": number}) == [at]
            assert matcher.match({"x": number, "y": float("nan")}) == [at]
        assert matcher.match({"x": float("nan")}) == []
        assert matcher.match({"x": np.int64(2**53 + 1)}) == [1]
        with pytest.raises(tamis.EventError):
            matcher.match({"x": 2**63})


def test_ids_that_are_added_later_are_named() -> None:
    ids = Ids()
    assert ids.numbers is None
    ids.add([5, 6], np.array([0, 1]))
    before = ids.numbers
    assert before is not None
    assert before[:2].tolist() == [5, 6]
    ids.add(list(range(100, 200)), np.arange(2, 102))
    assert ids.numbers is not before


def test_predicates_on_attributes_that_the_event_lacks_are_false_however_many_there_are() -> None:
    matcher = tamis.Matcher()
    matcher.add("first", "x = 1")
    assert matcher.match({"x": 1}) == ["first"]
    for number in range(2_000):
        matcher.add(f"other {number}", f"x = 1 AND a{number} = 2")
        if number % 100 == 0:
            assert matcher.match({"x": 1}) == ["first"]
    assert matcher.match({"x": 1, "a1999": 2}) == ["first", "other 1999"]


def test_attributes_without_predicates() -> None:
    matcher = matcher_of()
    event = {"a": 1, "x": 123, "unheard": 7, "of": 2.5, "y": 1}
    for _ in range(4):  # the first time, the second time, and then by its form
        assert sorted(matcher.match(event)) == wanted(123)
        assert matcher.match({"unheard": 7, "of": 2.5}) == []
    assert sorted(matcher.match(event | {"of": True})) == wanted(123)
    assert sorted(matcher.match(event | {"of": "text"})) == wanted(123)
    assert sorted(matcher.match(event | {"of": 2**62 + 1})) == wanted(123)
    assert sorted(matcher.match(event | {"of": float("nan")})) == wanted(123)
    matcher.add(7777, "of > 2 AND unheard = 7")
    for _ in range(4):
        assert sorted(matcher.match(event)) == [*wanted(123), 7777]
    matcher.add(8888, "a = 'text' OR a = 1")
    for _ in range(4):
        assert sorted(matcher.match(event)) == [*wanted(123), 7777, 8888]


def test_names_that_contain_the_separator() -> None:
    matcher = tamis.Matcher()
    matcher.add(1, "`a` = 1 AND `b` = 2")
    for event, expected in (
        ({"a": 1, "b": 2}, [1]),
        ({"a\0b": 1}, []),
        ({"a\0b": 1, "c": 2}, []),
        ({"a": 1, "b\0c": 2}, []),
        ({"a": 1, "b": 2, "c": 3}, [1]),
    ) * 4:
        assert matcher.match(event) == expected


def test_an_event_is_packed_again_if_dimensions_got_new_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add_many([0, 1, 2, 3], ["a = 1", "b = 1", "c = 1", "d = 1"])
    event = {"d": 1, "a": 2}
    for _ in range(3):  # until its form is known
        assert matcher.match(event) == [3]
    pack_known, pack, dimensions = OneEvent.pack_known, OneEvent.pack, store.dimensions
    calls: list[Any] = []

    def interrupted(room: OneEvent, given: Any, known: Dimensions) -> bool:
        calls.append(pack_known(room, given, known))
        for number in range(3):
            matcher.remove(number)
        with store.lock:
            store.keyed.sweep()
        assert store.dimensions is not dimensions
        return bool(calls[-1])

    def packed_again(room: OneEvent, given: Any, known: Dimensions, flat: Any) -> int | None:
        calls.append(known)
        return pack(room, given, known, flat)

    monkeypatch.setattr(OneEvent, "pack_known", interrupted)
    monkeypatch.setattr(OneEvent, "pack", packed_again)
    assert matcher.match(event) == [3]
    assert calls == [True, store.dimensions]  # The second time, the event is packed for the new dimensions.
    monkeypatch.undo()
    assert matcher.match(event) == [3]


def test_the_values_of_an_event_are_copied_into_a_batch_as_they_are() -> None:
    assert ("start", *EventValues._fields) == EventBatch._fields


def test_a_gate_tells_whether_its_data_is_changing() -> None:
    gate = Gate()
    before = gate.changes
    with gate.writing():
        assert gate.changes % 2 == 1
        with gate.writing():
            assert gate.changes % 2 == 1
        assert gate.changes % 2 == 1
        assert gate.is_writer()
    assert gate.changes % 2 == 0
    assert gate.changes != before


def flattens_of(call: Callable[[], Any]) -> int:
    """How often a call flattens an event or a part of one."""
    seen = 0

    def profile(frame: Any, kind: str, _: Any) -> None:
        nonlocal seen
        seen += kind == "call" and frame.f_code is flatten.__code__

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.parametrize("schema", [None, {"x": "number", "y": "number", "n.z": "number"}])
@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize(
    "event",
    [
        {"x": 1, "n": {"z": 1}},
        OrderedDict(x=1, y=1),
        {"x": 1, "y": math.nan, "n": {"z": 1}},
        {"x": 1, "y": 2**60, "n": {"z": 1}},
        {"x": 1, "n": UserDict(z=1)},
    ],
    ids=str,
)
def test_an_event_is_flattened_once(event: Any, index: str, schema: Any) -> None:
    matcher = tamis.Matcher(index=index, schema=schema)
    matcher.add_many([1, 2, 3], ["x = 1", "y > 0", "n.z = 1"])
    # The sample takes the first events, and later only some events.
    assert {flattens_of(lambda: matcher.match(event)) for _ in range(200)} == {1}
    assert 1 in matcher.match(event)


def test_plain_events_are_flattened_only_for_the_sample() -> None:
    matcher = tamis.Matcher()
    matcher.add_many([1, 2], ["x = 1", "y > 0"])
    events = [{"x": 1, "y": 2}, {"x": 1, "y": math.nan}, {"x": 1, "y": 2**60}]
    found = [flattens_of(lambda event=event: matcher.match(event)) for event in events * 500]  # type: ignore[misc]
    assert set(found) == {0, 1}
    assert sum(found[-300:]) < 100
