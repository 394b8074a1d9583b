"""Matchers with a history, against the reference evaluator over a list of the events that the history retains."""

from __future__ import annotations

import threading
import tracemalloc
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.engine.limits import Limits
from tamis.language.expression import Expression
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tests.earlier.cases import events, histories, joined_expressions
from tests.earlier.reference import ReferenceHistory

CHEAPEST = "price < ALL (SELECT price FROM history)"
SEEN = "author = ANY (SELECT author FROM history)"
FEW = st.sampled_from([0, 2, 100])


def matcher_with(history: tamis.History, few: int = 0) -> tamis.Matcher[Any]:
    limits = StoreLimits(Limits(delta_rows=8), gone_per_look=4, scanned_history=few, prefilter_from=0)
    return matcher_over(new_store(history=history, limits=limits))


def pairs(table: pa.Table) -> list[tuple[int, Any]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@settings(deadline=None, max_examples=settings().max_examples * 2 // 3)
@given(histories(), FEW, st.lists(joined_expressions(), min_size=1, max_size=6), st.lists(events(), max_size=12))
def test_one_by_one_and_in_batches(
    history: tamis.History, few: int, expressions: list[Expression], given_events: list[dict[str, Any]]
) -> None:
    single, batch, reference = matcher_with(history, few), matcher_with(history, few), ReferenceHistory(history)
    for number, expression in enumerate(expressions):
        single.add(number, expression)
    batch.add_many(range(len(expressions)), expressions)
    expected = []
    for row, event in enumerate(given_events):
        before = reference.before(event)
        wanted = [
            number for number, expression in enumerate(expressions) if tamis.evaluate(expression, event, before) is True
        ]
        explained = [number for number in range(len(expressions)) if single.explain(number, event).matched]
        assert explained == wanted
        assert sorted(single.match(event)) == wanted
        reference.add(event)
        expected += [(row, number) for number in wanted]
    middle = len(given_events) // 2
    first, second = batch.match_batch(given_events[:middle]), batch.match_batch(given_events[middle:])
    assert pairs(first) + [(middle + row, number) for row, number in pairs(second)] == expected
    assert batch.stats()["history"]["events"] == single.stats()["history"]["events"] == len(reference)


@settings(deadline=None, max_examples=settings().max_examples * 2 // 3)
@given(
    FEW,
    st.lists(st.tuples(st.sampled_from("arpwmc"), st.integers(0, 3), joined_expressions()), max_size=20),
    st.lists(events(), min_size=1, max_size=6),
)
def test_subscriptions_come_and_go(
    few: int, changes: list[tuple[str, int, Expression]], given_events: list[dict[str, Any]]
) -> None:
    history = tamis.History(rows=4)
    matcher, reference = matcher_with(history, few), ReferenceHistory(history)
    model: dict[int, Expression] = {}
    for step, (change, number, expression) in enumerate(changes):
        if change == "a" and number not in model:
            matcher.add(number, expression)
            model[number] = expression
        elif change == "p" and number not in model:
            model[number] = tamis.attr("a") == 1
            matcher.add(number, model[number])
        elif change == "w":
            matcher.upsert(number, expression)
            model[number] = expression
        elif change == "r" and number in model:
            matcher.remove(number)
            del model[number]
        elif change == "c" and step % 3 == 0:
            matcher.clear()
            model = {}
        elif change == "m":
            event = given_events[step % len(given_events)]
            before = reference.before(event)
            wanted = [each for each in sorted(model) if tamis.evaluate(model[each], event, before) is True]
            assert sorted(matcher.match(event)) == wanted
            reference.add(event)


def test_top_k_counts_only_what_the_joins_leave() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("heavy", f"price < 100 AND {SEEN}", weight=9)
    matcher.add("cheapest", CHEAPEST, weight=5)
    matcher.add("plain", "price < 100", weight=1)
    first, second = {"price": 5, "author": "Verne"}, {"price": 4, "author": "Verne"}
    assert matcher.match(first, k=1) == ["cheapest"]
    assert matcher.match(second, k=2) == ["heavy", "cheapest"]
    table = matcher.match_batch([{"price": 3, "author": "Woolf"}, {"price": 9, "author": "Woolf"}], k=1)
    assert table["subscription"].to_pylist() == ["cheapest", "heavy"]


def test_each_distinct_join_is_decided_once_for_an_event() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=100))
    matcher.add_many(range(1000), [f"a > {number % 10} AND {(CHEAPEST, SEEN)[number % 2]}" for number in range(1000)])
    matcher.match({"a": 20, "price": 3, "author": "Verne"})
    assert len(matcher.match({"a": 20, "price": 2, "author": "Verne"})) == 1000
    history = matcher.stats()["history"]
    assert history == {"events": 2, "keys": 1, "joins": 2, "decided": 4, "skipped": 0, "skips": 0, "left_out": 0}
    # No candidate, no join.
    assert matcher.match({"a": 0, "price": 1, "author": "Verne"}) == []
    assert matcher.stats()["history"]["decided"] == 4


def test_strings_get_an_order_in_the_middle_of_a_batch() -> None:
    """The second expression asks for the order of strings, which changes their keys. The third one needs the new keys."""
    matcher = matcher_with(tamis.History(rows=50))
    matcher.add("seen", f"price > 0 AND {SEEN}")
    matcher.add("below", "price > 0 AND author < ALL (SELECT author FROM history)")
    matcher.add("other", "price > 0 AND author <> ALL (SELECT author FROM history)")
    authors = [f"x{(7 * row) % 40}" for row in range(100)]
    before = [authors[max(0, row - 50) : row] for row in range(100)]
    expected = {(row, "seen") for row, author in enumerate(authors) if author in before[row]}
    expected |= {(row, "below") for row, author in enumerate(authors) if all(author < each for each in before[row])}
    expected |= {(row, "other") for row, author in enumerate(authors) if author not in before[row]}
    found = matcher.match_batch(pa.table({"author": authors, "price": [1] * 100}))
    assert pairs(found) == sorted(expected)


def test_a_limit_of_rows_may_be_larger_than_any_array_holds() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10**30))
    matcher.add("d", "price > 0 AND price < ALL (SELECT price FROM history)")
    matcher.match({"price": 9})
    assert matcher.match_batch([{"price": 4}, {"price": 5}, {"price": 3}])["event"].to_pylist() == [0, 2]


def test_long_chains_take_little_memory() -> None:
    """Each event has the same author as all others, and each row of a batch asks."""
    matcher = tamis.Matcher(history=tamis.History(rows=3000))
    matcher.add("dearer", "price > 0 AND EXISTS (SELECT 1 FROM history h WHERE h.author = author AND h.price > price)")
    prices = np.random.default_rng(28).permutation(12_000) + 1
    events = pa.table({"author": pa.array(["x"] * 12_000), "price": prices})
    matcher.match_batch(events.slice(0, 8000))
    tracemalloc.start()
    found = matcher.exists_batch(events.slice(8000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    dearest = [prices[row - 3000 : row].max() for row in range(8000, 12_000)]
    assert found.tolist() == (dearest > prices[8000:]).tolist()
    assert peak < 60e6  # All chains together have 12 million events.


def test_joins_alone_take_little_memory() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add_many(range(4000), [CHEAPEST, "price >= ALL (SELECT price FROM history)"] * 2000)
    events = pa.table({"price": np.zeros(2000)})
    tracemalloc.start()
    counts = matcher.count_batch(events, threads=1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.tolist() == [4000, *[2000] * 1999]
    assert peak < 120e6  # There are four million matches.


def test_tables_are_events_row_after_row() -> None:
    rows = [
        {"price": 5.0, "author": "Verne", "tags": ["a", "b"], "at": datetime(2026, 1, 1, 10), "who": {"age": 3}},
        {"price": float("nan"), "author": None, "tags": [], "at": datetime(2026, 1, 1, 11), "who": None},
        {"price": 4.0, "author": "Verne", "tags": ["b"], "at": datetime(2026, 1, 1, 12), "who": {"age": 3}},
        {"price": 4.5, "author": "Woolf", "tags": ["c"], "at": datetime(2026, 1, 1, 13), "who": {"age": 4}},
    ]
    asked = {
        "cheapest": CHEAPEST,
        "seen": SEEN,
        "tag": "tags = ANY (SELECT tags FROM history)",
        "age": "who.age = ANY (SELECT who.age FROM history)",
        "later": "at > ALL (SELECT at FROM history)",
        "unknown": f"({CHEAPEST}) IS UNKNOWN",
    }
    history = tamis.History(age=timedelta(hours=2), order="at")
    one, many, expected = tamis.Matcher(history=history), tamis.Matcher(history=history), []
    for matcher in (one, many):
        matcher.add_many(list(asked), list(asked.values()))
    for row, event in enumerate(rows):
        expected += [(row, each) for each in one.match(event)]
    assert "tag" in [each for row, each in expected if row == 2]
    assert (2, "age") in expected
    assert pairs(many.match_batch(pa.Table.from_pylist(rows))) == sorted(expected)


def test_a_wrong_event_is_not_retained() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10, key="host"))
    matcher.add("seen", "user = ANY (SELECT author FROM history)")
    for name in ("user", "author", "host"):
        with pytest.raises(tamis.EventError, match=name):
            matcher.match({"host": "a", name: b"bytes"})
        with pytest.raises(tamis.EventError) as caught:
            matcher.match_batch([{"host": "a", "author": "Verne"}, {"host": "a", name: b"bytes"}])
        assert caught.value.row == 1
    assert matcher.stats()["history"]["events"] == 0
    matcher.match({"host": "a", "other": b"bytes"})
    assert matcher.stats()["history"]["events"] == 1
    # Nobody asked about `other` when the event came. Now it counts as missing.
    matcher.add("late", "author = ALL (SELECT other FROM history)")
    assert matcher.match({"host": "a", "author": "x", "other": "x"}) == []
    assert matcher.explain("late", {"host": "a", "author": "x"}).truth is None


WRONG_OR_MISSING: list[tuple[Any, bool]] = [(2**70, True), ("\ud800", True), (None, False), (float("nan"), False)]


@pytest.mark.parametrize(("value", "is_wrong"), WRONG_OR_MISSING)
def test_values_that_only_joins_ask_about(value: Any, is_wrong: bool) -> None:
    """From the second or third event on, the engine knows the form of the events, and need not look at these values."""
    matcher = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("seen", f"a = 1 AND {SEEN}")
    matcher.add("some", "a = 1 AND EXISTS (SELECT 1 FROM history h WHERE h.author <> 7)")
    for number in range(6):
        if is_wrong:
            with pytest.raises(tamis.EventError, match="author"):
                matcher.match({"a": 1, "author": value})
        else:
            assert matcher.match({"a": 1, "author": value}) == []
        assert sorted(matcher.match({"a": 1, "author": 7})) == (["seen"] if number else [])
    matcher.match({"a": 1, "author": 8})
    assert matcher.match({"a": 1, "author": value} if not is_wrong else {"a": 1}) == ["some"]
    assert matcher.stats()["history"]["events"] == (8 if is_wrong else 10)


@pytest.mark.parametrize("wrong", [2**70, "\ud800", float("nan"), None])
def test_a_value_that_nobody_asked_about_is_missing_later(wrong: Any) -> None:
    """Events of one form, so that they are packed together, and alone."""
    for count in (3, 1100):
        matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=5000))
        matcher.add("cheap", "price < 3")
        for number in range(count):
            matcher.match({"price": number, "n": wrong if number == 1 else 5, "s": "x"})
        matcher.add("same", "n = ANY (SELECT n FROM history)")
        matcher.add("all", "n >= ALL (SELECT n FROM history)")
        matcher.add("unknown", "price = 7 AND (n >= ALL (SELECT n FROM history)) IS UNKNOWN")
        assert matcher.match({"price": 7, "n": 5}) == ["same", "unknown"]
        explained = matcher.explain("all", {"n": 5})
        assert explained.truth is None


def test_events_without_the_key_or_the_time_are_left_out() -> None:
    matcher = tamis.Matcher(history=tamis.History(rows=10, order="time", key="host"))
    matcher.add("first", "NOT EXISTS (SELECT 1 FROM history h WHERE h.a = a)")
    for event in ({"a": 1, "time": 1}, {"a": 1, "host": "x"}, {"a": 1, "host": "x", "time": "noon"}):
        assert matcher.match(event) == ["first"]
    assert matcher.stats()["history"]["left_out"] == 3
    assert matcher.match({"a": 1, "host": "x", "time": 1}) == ["first"]
    assert matcher.match({"a": 1, "host": "x", "time": 1}) == []
    assert matcher.match({"a": 1, "host": "y", "time": 1}) == ["first"]


def test_a_matcher_without_history_refuses_joins() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher()
    with pytest.raises(tamis.HistoryError, match="Matcher\\(history="):
        matcher.add("cheapest", CHEAPEST)


def test_a_schema_checks_joins() -> None:
    matcher = tamis.Matcher(schema={"price": "number", "author": "string"}, history=tamis.History(rows=3))
    matcher.add("cheapest", CHEAPEST)
    with pytest.raises(tamis.KindError):
        matcher.add("wrong", "price < ANY (SELECT author FROM history)")
    with pytest.raises(tamis.UnknownAttributeError):
        matcher.add("wrong", "price < ANY (SELECT cost FROM history)")
    assert matcher.match({"price": 3}) == ["cheapest"]
    assert matcher.match({"price": 3}) == []


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (tamis.History(rows=3, key="shop"), "key is 'shop', but the schema has no such attribute"),
        (tamis.History(rows=3, order="tine"), "did you mean 'time'"),
        (tamis.History(rows=3, order="name"), "declares as a string, but times must be a number or a timestamp"),
        (tamis.History(age=3, order="time"), "declares as a timestamp, but times must be a number for age=3"),
        (
            tamis.History(age=timedelta(1), order="place"),
            "declares as a number, but times must be a timestamp for age=",
        ),
    ],
)
def test_a_schema_checks_the_options_of_a_history(history: tamis.History, message: str) -> None:
    schema = {"name": "string", "time": "timestamp", "place": "number"}
    with pytest.raises(tamis.OptionError, match=message):
        tamis.Matcher(schema=schema, history=history)
    tamis.Matcher(schema=schema, history=tamis.History(age=3, order="place", key="name"))


def test_indexes_go_with_the_subscriptions_that_asked() -> None:
    matcher = matcher_with(tamis.History(rows=10))
    matcher.add(1, CHEAPEST)
    matcher.add(2, SEEN)
    for price in (3, 2, 1):
        matcher.match({"price": price, "author": "Verne"})
    matcher.remove(1)
    assert matcher.stats()["history"]["joins"] == 2
    assert matcher.match({"price": 0, "author": "Verne"}) == [2]
    assert matcher.stats()["history"]["joins"] == 1
    matcher.clear()
    assert matcher.match({"price": 0, "author": "Verne"}) == []
    assert matcher.stats()["history"]["events"] == 5
    matcher.add(1, SEEN)
    assert matcher.match({"author": "Verne"}) == [1]


def test_a_slot_that_is_given_again_has_no_joins_of_its_first_owner() -> None:
    matcher = matcher_with(tamis.History(rows=10))
    # The constant part is never true, so the engine has no rows of it, and its slot is free at once.
    matcher.add_many(range(20), ["a BETWEEN 5 AND 3 AND a = ANY (SELECT never FROM history)"] * 20)
    matcher.remove_many(range(19))
    for number in range(100, 120):
        matcher.add(number, "a = 1")
    assert sorted(matcher.match({"a": 1})) == list(range(100, 120))


def test_threads_take_turns_and_changes_do_not_disturb_them() -> None:
    """Each event finds exactly the events before it: its number is above all that were retained."""
    matcher = tamis.Matcher(history=tamis.History(rows=100_000))
    matcher.add("always", "a > 0 AND b = ANY (SELECT b FROM history)")
    wrong: list[Any] = []
    found: list[int] = []

    def match(thread: int) -> None:
        for number in range(300):
            matches = matcher.match({"a": 1, "b": number, "thread": thread})
            found.extend([number] * ("always" in matches))
            wrong.extend(each for each in matches if each == "never")

    def change() -> None:
        for _ in range(100):
            matcher.add("never", "a > 0 AND c = ANY (SELECT b FROM history)")
            matcher.replace("never", "a > 0 AND d = ANY (SELECT b FROM history)")
            matcher.remove("never")

    threads = [threading.Thread(target=match, args=(thread,)) for thread in range(3)]
    threads.append(threading.Thread(target=change))
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not wrong
    # Of the three events with a number, the first finds no other one.
    assert sorted(found) == sorted([*range(300)] * 2)
    assert matcher.stats()["history"]["events"] == 900


def test_a_match_beside_a_thread_that_replaces_names_each_id_once() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=1000))
    event = {"a": 1, "b": 1}
    matcher.match(event)
    matcher.add("one", "a = 1")
    is_done = threading.Event()

    def replace() -> None:
        bound = 2
        while not is_done.is_set():
            matcher.replace("one", f"EXISTS (SELECT 1 FROM history h WHERE h.a = a AND h.b < {bound})")
            matcher.replace("one", "a = 1")
            bound += 1

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(60):
            assert matcher.match(event) == ["one"]
            assert matcher.match_batch([event] * 3)["subscription"].to_pylist() == ["one"] * 3
    finally:
        is_done.set()
        thread.join()
