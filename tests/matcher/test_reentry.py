"""Calls during other calls: from finalizers, signal handlers and interrupts."""

from __future__ import annotations

import ast
import gc
import random
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis import Matcher
from tamis.engine.limits import Limits
from tamis.errors import ReentryError, UnknownIdError
from tamis.kernels.background import begin_thread
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tests.matcher.small import matcher_with

PACKAGE = str(Path(tamis.__file__).parent)
SIMPLE = "a = {0} AND b < {1}"
TREE = "a = {0} OR b = {1}"
EVENT = {"a": 1, "b": 5}


class Owner:
    """An object that only the garbage collector frees, since it is part of a cycle."""

    def __init__(self) -> None:
        self.me = self


@contextmanager
def collecting_often() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(5, 1, 1)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def wanted(matcher: Matcher, expressions: dict[Any, str], event: dict[str, Any]) -> list[Any]:
    return sorted(
        identifier
        for identifier, expression in expressions.items()
        if identifier in matcher and is_true(expression, tuple(event.items()))
    )


@cache
def is_true(expression: str, event: tuple[tuple[str, Any], ...]) -> bool:
    return tamis.evaluate(expression, dict(event)) is True


def check_owners(index: str, shape: str, count: int) -> None:
    """Add `count` subscriptions. Each is removed when its owner is freed."""
    matcher = Matcher(index)
    expressions = {0: "a = 1"}
    there = {0}
    matcher.add(0, expressions[0])

    def remove(identifier: int) -> None:
        matcher.remove(identifier)
        there.discard(identifier)

    for number in range(1, count):
        owner = Owner()
        expressions[number] = shape.format(number % 3, number)
        there.add(number)
        matcher.add(number, expressions[number])
        weakref.finalize(owner, remove, number)
        del owner
        matcher.match(EVENT)
        if number % 50 == 0:
            matcher.match_batch([EVENT, {"b": number}])
    gc.collect()
    assert len(matcher) == len(there) < 10
    assert {number for number in expressions if number in matcher} == there
    assert sorted(matcher.match(EVENT)) == wanted(matcher, expressions, EVENT)


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize("shape", [SIMPLE, TREE])
def test_subscriptions_are_removed_with_their_owners(index: str, shape: str) -> None:
    check_owners(index, shape, 300)  # Compile the kernels here. It would take long while garbage is collected often.
    with collecting_often():
        check_owners(index, shape, 1500)


def test_a_call_that_interrupts_matching_may_match_and_remove() -> None:
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add_many(range(10), ["a = 1"] * 10)
    with store.gate.lock:
        matcher.remove(3)
        with pytest.raises(UnknownIdError):
            matcher.remove(99)
        assert len(matcher.match({"a": 1})) == 10
        assert matcher.match_batch([{"a": 1}]).num_rows == 10
        with pytest.raises(ReentryError, match="only remove"):
            matcher.add(11, "a = 1")
    assert 3 not in matcher
    assert len(matcher) == 9
    assert 3 not in matcher.match({"a": 1})


def test_a_call_that_interrupts_a_change_may_only_remove() -> None:
    for index in ("auto", "scan"):
        store = new_store(index)
        matcher = matcher_over(store)
        matcher.add_many(range(10), ["a = 1"] * 10)
        calls: list[Callable[[], Any]] = [
            partial(matcher.match, {"a": 1}),
            partial(matcher.match_batch, [{"a": 1}]),
            partial(matcher.add, 11, "a = 1"),
            partial(matcher.add_many, [11], ["a = 1"]),
            partial(matcher.replace, 1, "a = 2"),
            partial(matcher.upsert, 1, "a = 2"),
            partial(matcher.replace_many, [1], ["a = 2"]),
            partial(matcher.remove_many, [1]),
            partial(matcher.get, 1),
            matcher.clear,
            matcher.ids,
            matcher.stats,
        ]
        with store.lock:
            for call in calls:
                with pytest.raises(ReentryError):
                    call()
            matcher.remove(3)
            matcher.remove(3)  # A second removal before the first takes effect is allowed.
            assert matcher.discard(4)
            assert not matcher.discard(99)
        assert sorted(matcher.match({"a": 1})) == [0, 1, 2, 5, 6, 7, 8, 9]


def test_iterables_of_subscriptions_may_use_the_matcher() -> None:
    matcher = Matcher()
    matcher.add("x", "a = 1")
    expressions = (f"a = {len(matcher.match({'a': 1}))}" for _ in range(3))
    matcher.add_many((f"s{number}" for number in range(len(matcher) + 2)), expressions)
    assert sorted(matcher.match({"a": 1})) == ["s0", "s1", "s2", "x"]


def test_a_reader_may_read_again_while_a_writer_waits() -> None:
    store = EngineStore()
    matcher, gate = matcher_over(store), store.gate
    matcher.add("x", "a = 1")
    matcher.match({"a": 1})
    with gate.reading():
        writer = threading.Thread(target=lambda: matcher.add_many(["y"], ["new = 'constant'"]), daemon=True)
        writer.start()
        while not gate.writers:
            pass
        assert matcher.match_batch([{"a": 1}]).num_rows == 1
        assert matcher.match({"a": 1}) == ["x"]
    writer.join()
    assert sorted(matcher.match({"a": 1, "new": "constant"})) == ["x", "y"]


@cache
def untouched_lines(file: str) -> set[int]:
    """The lines of a file that these tests do not interrupt.

    Python takes no interrupt at the beginning of a `try`, and none at the end of a `with` before its `__exit__` has run.
    In a `finally` it may take one, within some microseconds, and Python code cannot prevent that.
    """
    lines: set[int] = set()
    for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.With | ast.Try):
            lines.add(node.lineno)
        if isinstance(node, ast.Try):
            lines.update(line for each in node.finalbody for line in range(each.lineno, (each.end_lineno or 0) + 1))
    return lines


class Interrupts:
    """Interrupts calls before lines of Tamis. Each round interrupts before a line that was not yet tried.

    One of `share` lines is tried. A line that runs often in a call is interrupted at its first `most` runs.
    """

    def __init__(self, share: int, most: int) -> None:
        self._share = share
        self._most = most
        self._tried: Counter[tuple[str, int]] = Counter()
        """File and line -> how many runs of the line were interrupted."""

    def interrupt(self, call: Callable[[], Any]) -> str:
        """Interrupt a call. Returns the place, or "" if the call ended and all places were tried."""
        runs: Counter[tuple[str, int]] = Counter()
        place = ""

        def trace(frame: FrameType, event: str, _: Any) -> Any:
            nonlocal place
            file = frame.f_code.co_filename
            if not file.startswith(PACKAGE):
                return None
            if event == "line" and frame.f_lineno not in untouched_lines(file):
                here = file, frame.f_lineno
                runs[here] += 1
                if frame.f_lineno % self._share == 0 and self._tried[here] < min(runs[here], self._most):
                    self._tried[here] += 1
                    place = f"{file}:{frame.f_lineno}"
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        return place

    def __len__(self) -> int:
        return self._tried.total()


@pytest.fixture
def interrupts(soak: bool) -> Interrupts:
    return Interrupts(1, 1000) if soak else Interrupts(3, 1)


EXPRESSIONS = {
    0: "a = 1 AND b < 7",
    1: "a = 1 OR b = 5",
    2: "name = 'x' AND a = 1",
    3: "name LIKE '%y%' OR a = 1",
    4: "a = 1",
}
NEW = {5: "a = 1 AND b < 8", 6: "a = 1 OR name = 'new'", 7: "name LIKE '%new%'"}
OTHER = {4: "a = 2", 1: "a BETWEEN 5 AND 3", 0: "a = 1 AND b < 9"}
"""Other expressions for existing subscriptions. No event satisfies one of them."""
LATER = {
    200: "name < 'newb'",
    201: "name = 'newer'",
    202: "name > 'nez'",
    203: "name LIKE '%ewe%'",
    204: "name LIKE '%o%'",
    205: "name BETWEEN 'neu' AND 'wx'",
}
EVENTS: list[dict[str, Any]] = [EVENT, {"a": 1, "b": 9, "name": "xyz"}, {"a": 2, "b": 5, "name": "new"}]
TABLE = pa.Table.from_pylist(6 * EVENTS)  # A thread can begin with some rows while others are encoded.


def add_and_match(matcher: Matcher) -> None:
    matcher.add(7, NEW[7])
    matcher.match(EVENTS[2])


def remove_all(matcher: Matcher) -> None:
    for number in EXPRESSIONS:
        matcher.remove(number)


CALLS: dict[str, Callable[[Matcher], Any]] = {
    "add a plain one": lambda matcher: matcher.add(5, NEW[5]),
    "add another": lambda matcher: matcher.add(6, NEW[6]),
    "add and match": add_and_match,
    "add many": lambda matcher: matcher.add_many(NEW.keys(), NEW.values()),
    "remove": lambda matcher: matcher.remove(0),
    "remove another": lambda matcher: matcher.remove(1),
    "remove all": remove_all,
    "replace": lambda matcher: matcher.replace(4, "a = 2"),
    "replace many": lambda matcher: matcher.replace_many(OTHER.keys(), OTHER.values()),
    "upsert": lambda matcher: matcher.upsert(5, NEW[5]),
    "remove many": lambda matcher: matcher.remove_many([1, 4, 0]),
    "remove many, which are all": lambda matcher: matcher.remove_many(list(EXPRESSIONS)),
    "discard": lambda matcher: matcher.discard(1),
    "clear": lambda matcher: matcher.clear(),
    "match": lambda matcher: matcher.match(EVENT),
    "match a batch": lambda matcher: matcher.match_batch(EVENTS),
    "match a table in threads": lambda matcher: matcher.match_batch(TABLE, threads=2),
}


ADDING_CONSTANTS = ("add and match", "add many")
AT_ONCE: dict[str, list[int]] = {
    "replace": list(EXPRESSIONS),
    "replace many": list(EXPRESSIONS),
    "upsert": [*EXPRESSIONS, 5],
    "remove many": [2, 3],
    "remove many, which are all": [],
    "discard": [0, 2, 3, 4],
    "clear": [],
}
"""Call -> the ids in the matcher after the call."""


def check_constants(matcher: Matcher, place: str) -> None:
    """Check that constants and patterns work as if there had been no interrupt."""
    matcher.add_many(LATER.keys(), LATER.values())
    for text in ("mew", "newer", "xx"):
        found = sorted(number for number in matcher.match({"name": text}) if number in LATER)
        assert found == wanted(matcher, LATER, {"name": text}), place
    for number in LATER:
        matcher.remove(number)


@pytest.mark.parametrize("name", CALLS)
def test_an_interrupt_leaves_all_or_nothing(name: str, interrupts: Interrupts) -> None:
    chance = random.Random(name)
    while True:
        matcher = Matcher()
        matcher.add_many(list(EXPRESSIONS)[:3], list(EXPRESSIONS.values())[:3])
        matcher.match(EVENT)
        for number in (3, 4):
            matcher.add(number, EXPRESSIONS[number])
        if chance.random() < 0.5:
            matcher.match(EVENT)
        place = interrupts.interrupt(partial(CALLS[name], matcher))
        if not place:
            break
        forms = [{**EXPRESSIONS, **NEW}]
        if name == "replace":
            forms.append({**EXPRESSIONS, 4: "a = 2"})
        if name == "replace many":
            forms.append({**EXPRESSIONS, **OTHER})
        if name == "add many":
            assert sum(number in matcher for number in NEW) in (0, len(NEW)), place
        if name in AT_ONCE:
            assert matcher.ids() in (list(EXPRESSIONS), AT_ONCE[name]), place
        for _ in range(2):
            found = [sorted(matcher.match(event)) for event in EVENTS]
            assert found in [[wanted(matcher, form, event) for event in EVENTS] for form in forms], place
            together = [matcher.match_batch([event])["subscription"].to_pylist() for event in EVENTS]
            assert [sorted(each) for each in together] == found, place
            matcher.add(100 + _, "z = 1")  # it goes on
        if name in ADDING_CONSTANTS:
            check_constants(matcher, place)
        for number in [number for number in (*EXPRESSIONS, *NEW) if number in matcher]:
            matcher.remove(number)
        assert [matcher.match(event) for event in EVENTS] == [[], [], []], place
    assert len(interrupts) > 6


@pytest.mark.parametrize("many", [False, True])
def test_an_interrupt_while_slots_are_added(many: bool, interrupts: Interrupts) -> None:
    while True:
        matcher = matcher_with(StoreLimits(Limits(slots_at_once=4)))
        for number in range(4):  # as many as the first slots
            matcher.add(number, "a = 1")
        added: dict[int, str] = dict.fromkeys(range(4, 7), "a = 1")
        call = partial(matcher.add_many, added.keys(), added.values()) if many else partial(matcher.add, 4, "a = 1")
        if not interrupts.interrupt(call):
            break
        for number in range(10, 16):
            matcher.add(number, "a = 1")
        matcher.add_many(range(20, 26), ["a = 1"] * 6)
        found = matcher.match({"a": 1})
        assert sorted(found) == sorted(number for number in range(30) if number in matcher)
        assert len(found) == len(matcher) in (16, 17, 19)
    assert len(interrupts) > 6


def test_an_interrupt_while_a_subscription_that_is_never_true_is_replaced(interrupts: Interrupts) -> None:
    while True:
        matcher = Matcher()
        matcher.add_many([0, 1], ["a BETWEEN 5 AND 3", "a = 1"])
        place = interrupts.interrupt(partial(matcher.replace, 0, "a = 1"))
        if not place:
            break
        for number in range(10, 14):  # in free slots
            matcher.add(number, "a = 2")
        assert matcher.ids() == [0, 1, 10, 11, 12, 13], place
        assert matcher[0].text in ("a BETWEEN 5 AND 3", "a = 1"), place
        assert sorted(matcher.match({"a": 1})) == [0, 1][matcher[0].text != "a = 1" :], place
        assert sorted(matcher.match({"a": 2})) == [10, 11, 12, 13], place
    assert len(interrupts) > 6


def begin_other_thread(labour: Callable[[], None]) -> bool:
    """Call a function in a thread that Tamis did not start."""
    threading.Thread(target=labour, daemon=True).start()
    return True


def returns_at_once(call: Callable[[], Any], begin: Callable[[Callable[[], None]], bool] = begin_other_thread) -> bool:
    """Whether a call in another thread returns without waiting for this thread."""
    returned = threading.Event()

    def labour() -> None:
        call()
        returned.set()

    assert begin(labour)
    return returned.wait(20)


def test_a_finalizer_in_a_thread_of_tamis_does_not_wait() -> None:
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add_many(range(5), ["a = 1"] * 5)
    with store.lock:  # optimize() holds this lock while it waits for the thread
        assert returns_at_once(lambda: matcher.remove(3), begin_thread)
    with store.gate.reading():  # as in match_batch()
        assert returns_at_once(lambda: matcher.remove(3), begin_thread)
    assert sorted(matcher.match({"a": 1})) == [0, 1, 2, 4]


def test_finalizers_of_two_matchers_do_not_wait_for_each_other() -> None:
    one_store, other_store = EngineStore(), EngineStore()
    one, other = matcher_over(one_store), matcher_over(other_store)
    for matcher in (one, other):
        matcher.add_many(range(5), ["a = 1"] * 5)

    def change_and_finalize() -> None:
        with other_store.lock:
            one.remove(3)

    with one_store.lock:
        assert returns_at_once(change_and_finalize)
    assert sorted(one.match({"a": 1})) == [0, 1, 2, 4]


def test_a_removal_that_is_interrupted_is_not_forgotten(interrupts: Interrupts) -> None:
    store = EngineStore()
    matcher = matcher_over(store)
    matcher.add_many(range(5), ["a = 1"] * 5)
    while True:
        with store.lock:
            matcher.remove(3)
        place = interrupts.interrupt(store.catch_up)
        assert 3 not in matcher, place
        if not place:
            break
        matcher.add(3, "a = 1")
    assert sorted(matcher.match({"a": 1})) == [0, 1, 2, 4]
    assert len(interrupts) > 1


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_an_event_may_match_other_events_while_it_is_read(index: str) -> None:
    matcher = Matcher(index)
    matcher.add_many(["x", "y"], ["a = 1", "b = 2"])

    class Enriched(dict[str, Any]):
        def items(self) -> Any:
            return {"a": len(matcher.match({"b": 2}))}.items()

    assert matcher.match(Enriched(a=0)) == ["x"]
