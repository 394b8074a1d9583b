"""A matcher with a history is the same after it was saved, pickled or copied: the next events are decided as without the stop."""

from __future__ import annotations

import copy
import pickle
import threading
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.earlier.flat_text import flat_text, read_flat
from tamis.errors import SnapshotError
from tamis.language.event import flatten
from tamis.language.expression import Expression
from tamis.matcher.frozen import FrozenMatcher
from tamis.storage import container
from tests.earlier.cases import events, histories, joined_expressions

CHEAPEST = "price < ALL (SELECT price FROM history)"
SEEN = "author = ANY (SELECT author FROM history)"


def renewed(matcher: tamis.Matcher[Any], way: str, folder: Path) -> tamis.Matcher[Any]:
    """The same matcher, made in one of four ways."""
    if way == "load":
        matcher.save(folder / "matcher.tamis")
        return tamis.load(folder / "matcher.tamis")
    pickled: tamis.Matcher[Any] = pickle.loads(pickle.dumps(matcher))
    return pickled if way == "pickle" else copy.copy(matcher) if way == "copy" else copy.deepcopy(matcher)


def figures(matcher: tamis.Matcher[Any]) -> dict[str, int]:
    """What is retained and asked. Work is counted since a matcher was made."""
    return {name: count for name, count in matcher.stats()["history"].items() if name != "decided"}


WAYS = st.sampled_from(["load", "load", "pickle", "copy", "deepcopy"])


@settings(deadline=None, max_examples=settings().max_examples // 6)
@given(histories(), st.lists(joined_expressions(), min_size=1, max_size=5), st.lists(events(), max_size=12), st.data())
def test_a_series_with_stops_is_the_series_without(
    tmp_path_factory: pytest.TempPathFactory,
    history: tamis.History,
    expressions: list[Expression],
    given_events: list[dict[str, Any]],
    data: st.DataObject,
) -> None:
    folder = tmp_path_factory.mktemp("history")
    stays: tamis.Matcher[int] = tamis.Matcher(history=history)
    stays.add_many(range(len(expressions)), expressions, range(len(expressions)))
    goes = renewed(stays, data.draw(WAYS), folder)
    for event in given_events:
        if data.draw(st.booleans()):
            goes = renewed(goes, data.draw(WAYS), folder)
        if data.draw(st.sampled_from([False, False, True])):
            number, other = data.draw(st.integers(0, 5)), data.draw(joined_expressions())
            for matcher in (stays, goes):
                matcher.upsert(number, other)
        if data.draw(st.sampled_from([False, False, True])) and len(stays) > 1:
            number = data.draw(st.sampled_from(stays.ids()))
            for matcher in (stays, goes):
                matcher.remove(number)
        assert [goes.explain(each, event).truth for each in stays.ids()] == [
            stays.explain(each, event).truth for each in stays.ids()
        ]
        k = data.draw(st.sampled_from([None, 2]))
        assert sorted(goes.match(event, k)) == sorted(stays.match(event, k))
        assert figures(goes) == figures(stays)
    assert {each: goes[each].expression for each in goes} == {each: stays[each].expression for each in stays}


@given(events())
def test_the_text_of_an_event(event: dict[str, Any]) -> None:
    flat = flatten({**event, "inner": {"on": date(2026, 1, 1), "at": datetime(2026, 1, 1, 1)}, "é": ["x", {"y": 1}]})
    read = read_flat(flat_text(flat))
    assert read == flat
    assert [list(map(type, values)) for values in read.values()] == [list(map(type, each)) for each in flat.values()]


@pytest.mark.parametrize("text", ["", "[]", '{"a":{"b":1}}', '{"a":{}}', '{"a":{"date":5}}', '{"a":{"interval":[1]}}'])
def test_a_damaged_text(text: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        read_flat(text)
    assert not isinstance(caught.value, tamis.TamisError)


def test_a_value_outside_the_language_is_missing_later() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=3))
    matcher.add("a", "a = ANY (SELECT a FROM history)")
    matcher.match({"a": 1, "b": b"bytes", "c": {"d": b"bytes"}})
    again = copy.copy(matcher)
    again.add("b", "a <> ALL (SELECT b FROM history)")
    assert again.match({"a": 1}) == ["a"]
    assert again.explain("b", {"a": 1}).truth is None


def test_nothing_is_lost_of_what_the_history_has_seen(tmp_path: Path) -> None:
    """The largest time, though its event has no key; the kind of times, though no event is left; the events left out."""
    matcher = tamis.Matcher(history=tamis.History(rows=5, age=10, order="t", key="k"))
    matcher.add("seen", "k = ANY (SELECT k FROM history)")
    matcher.match({"t": 0, "k": 1})
    matcher.match({"t": 100})
    again = renewed(matcher, "load", tmp_path)
    assert figures(again) == figures(matcher)
    assert again.match({"t": 80, "k": 1}) == []  # It is too old to be retained.
    assert again.match({"t": 95, "k": 1}) == []
    assert again.match({"t": 95, "k": 1}) == ["seen"]
    timed = tamis.Matcher(history=tamis.History(rows=5, order="t"))
    timed.match({"t": datetime(2026, 1, 1)})
    later = copy.copy(timed)
    later.match({"t": 5})
    assert later.stats()["history"]["left_out"] == 1


def test_a_schema_comes_back(tmp_path: Path) -> None:
    matcher = tamis.Matcher(schema={"price": "number", "author": "string"}, history=tamis.History(rows=3))
    matcher.add("cheapest", CHEAPEST)
    for way in ("load", "pickle"):
        again = renewed(matcher, way, tmp_path)
        with pytest.raises(tamis.KindError):
            again.add("wrong", "price < ANY (SELECT author FROM history)")
        again.add("right", SEEN)


def test_only_a_matcher_with_a_history_has_the_newer_version(tmp_path: Path) -> None:
    plain, joined = tamis.Matcher[str](), tamis.Matcher[str](history=tamis.History(rows=3))
    for name, matcher in {"plain": plain, "joined": joined}.items():
        matcher.add("a", "a = 1")
        matcher.save(tmp_path / name)
    found = {name: container.open(tmp_path / name) for name in ("plain", "joined")}
    assert {name: opened.meta["content_version"] for name, opened in found.items()} == {"plain": 6, "joined": 7}
    assert "history" not in found["plain"].meta
    assert [name for name in found["plain"].names if name.startswith("history")] == []


def saved(folder: Path) -> Path:
    matcher = tamis.Matcher(history=tamis.History(rows=30, age=timedelta(hours=1), order="at"))
    matcher.add_many(range(3), [CHEAPEST, SEEN, f"price < 5 AND {SEEN}"])
    for price in range(5):
        matcher.match({"price": price, "author": "Verne", "at": datetime(2026, 1, 1, 0, price)})
    path = folder / "matcher.tamis"
    matcher.save(path)
    return path


@pytest.mark.parametrize("name", ["history/events", "history/rests", "history/slot", "history/rest", "history/always"])
def test_a_damaged_part_is_named(tmp_path: Path, name: str) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    at = bytes(data).rindex(container.open(path).array(name).tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    with pytest.raises(SnapshotError, match=name):
        tamis.load(path)


def test_a_foreign_part_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    opened = container.open(path, mmap=False)
    arrays = {name: opened.array(name) for name in opened.names}
    meta: dict[str, Any] = dict(opened.meta)
    for change in (
        {"options": {"rows": 0}},
        {"options": {"rows": 0, "age": None, "order": None, "key": None}},
        {"kind": "x"},
    ):
        container.write(path, arrays, {**meta, "history": {**meta["history"], **change}})
        with pytest.raises(SnapshotError, match="history that cannot be read"):
            tamis.load(path)


def test_processes_do_not_share_a_history(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match="cannot share"):
        FrozenMatcher(saved(tmp_path))


def test_saving_while_others_match(tmp_path: Path) -> None:
    """The file has the history of one moment: the events up to some number, and no gaps."""
    matcher = tamis.Matcher(history=tamis.History(rows=1000))
    matcher.add("next", "NOT EXISTS (SELECT 1 FROM history h WHERE h.a >= a)")
    thread = threading.Thread(target=lambda: [matcher.match({"a": number}) for number in range(2000)])
    thread.start()
    for turn in range(10):
        matcher.add(f"more {turn}", f"a = {turn} AND {SEEN}")
        again = renewed(matcher, "load", tmp_path)
        count = again.stats()["history"]["events"]
        matched = [again.explain("next", {"a": number}).matched for number in (0, 3000)]
        assert matched == [count == 0, True]
        assert f"more {turn}" in again
    thread.join()
