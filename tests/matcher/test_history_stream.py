"""Streams of single events with a history: most are plain, have few forms, and are read by joins long after they came."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

import tamis
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tests.earlier.reference import ReferenceHistory

JOINS = (
    "EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price > price)",
    "NOT EXISTS (SELECT 1 FROM history h WHERE h.seller = seller AND h.item = item)",
    "EXISTS (SELECT 1 FROM history h WHERE h.seller = seller AND h.price < 3)",
    "EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.seller <> seller AND h.seller IS NOT NULL)",
    "seller = ANY (SELECT seller FROM history)",
    "price < ALL (SELECT price FROM history)",
    "item <> ALL (SELECT item FROM history)",
)


class Name(str):
    """A name that is a string, with a hash of its own: looking for the plain string does not find it."""

    __slots__ = ()

    def __hash__(self) -> int:
        return 7


def stream(seed: int, count: int) -> list[dict[Any, Any]]:
    """Mostly events of two forms, some of others, with several values, other kinds, and names of a class of their own."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        event: dict[Any, Any] = {"item": draw.randrange(30), "price": draw.randrange(8), "n": 1}
        if draw.random() < 0.7:
            event["seller"] = f"s{draw.randrange(20)}"
        if draw.random() < 0.05:
            event["item"] = draw.choice([[3, 4], True, 7.0, "7", None, 2**60, float("nan")])
        if draw.random() < 0.05:
            event["seller"] = draw.choice([["s1", "s2"], 5, "sé"])
        if draw.random() < 0.02:
            event = {Name("item"): event["item"], Name("price"): event["price"], "n": 1}
        found.append(event)
    return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", [1, 2])
def test_single_events_of_a_long_stream(seed: int) -> None:
    """More events than wait to be packed. Each join is asked at times of its own, and reads events that came long ago."""
    history = tamis.History(rows=60)
    matcher = matcher_over(new_store(history=history, limits=StoreLimits(prefilter_from=0)))
    matcher.add_many(range(len(JOINS)), [f"n = 1 AND turn = {number} AND {join}" for number, join in enumerate(JOINS)])
    reference = ReferenceHistory(history)
    parsed, draw = [tamis.parse(join) for join in JOINS], random.Random(seed)
    for event in stream(seed, 1_600):
        asks = draw.randrange(len(JOINS)) if draw.random() < 0.3 else None
        if asks is not None:
            event["turn"] = asks
        wanted = [] if asks is None else [asks][: tamis.evaluate(parsed[asks], event, reference.before(event)) is True]
        assert matcher.match(event) == wanted, event
        reference.add(event)


@pytest.mark.compiled
def test_many_subscriptions_with_joins_match_one_event() -> None:
    """More than the kernel notes: of some the join holds, of some not, and others have none."""
    matcher: tamis.Matcher[int] = tamis.Matcher(history=tamis.History(rows=10))
    joins = ("AND a = ANY (SELECT a FROM history)", "AND a <> ALL (SELECT a FROM history)", "")
    matcher.add_many(range(300), [f"b > 0 {joins[number % 3]}" for number in range(300)])
    assert sorted(matcher.match({"a": 1, "b": 1})) == [number for number in range(300) if number % 3 != 0]
    assert sorted(matcher.match({"a": 1, "b": 2})) == [number for number in range(300) if number % 3 != 1]
    assert len(matcher.match({"a": 2, "b": 2}, k=150)) == 150


def test_names_of_a_class_of_their_own_are_plain_names_later() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("lower", "item > 0 AND price < ALL (SELECT price FROM history)")
    for _ in range(3):  # A form is known from the third time on.
        matcher.match({"item": 1, "price": 5})
    matcher.match({Name("item"): 1, Name("price"): 3})
    assert matcher.match({"item": 1, "price": 4}) == []
    assert matcher.match({Name("item"): 1, Name("price"): 2}) == ["lower"]


def test_a_list_among_the_latest_events_is_found() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("again", "asks = 1 AND EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price > price)")
    matcher.match({"item": 1, "price": 5})
    assert matcher.match({"item": 1, "price": 4, "asks": 1}) == ["again"]  # Columns and chains are made.
    matcher.match({"item": [7, 8], "price": 5})
    assert matcher.match({"item": 7, "price": 4, "asks": 1}) == ["again"]
    matcher.match({"item": 9, "price": [5]})
    assert matcher.match({"item": 9, "price": 4, "asks": 1}) == ["again"]
    assert matcher.match({"item": 6, "price": 4, "asks": 1}) == []


def test_how_many_events_are_retained_is_known_at_any_time() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=3))
    matcher.add("all", "a > 0")
    for count in range(1, 6):
        matcher.match({"a": count})
        assert matcher.stats()["history"]["events"] == min(count, 3)
        assert matcher.stats()["history"]["keys"] == 1
    matcher.match_batch([{"a": 6}] * 2)
    assert matcher.stats()["history"]["events"] == 3


class Own(dict[str, Any]):
    """A mapping of another class than most."""


@pytest.mark.compiled
@pytest.mark.parametrize("few_mappings", [0, 1_000])
def test_batches_of_mappings_are_their_events_one_by_one(few_mappings: int) -> None:
    given = stream(5, 400)
    given[20], given[50] = Own(given[20]), {**given[50], "n": 1, "shop": {"name": "Hall"}}
    given[60], given[90] = {**given[60], "price": 2**62 + 1}, {"n": 1, "item": tamis.Interval(2, 5), "price": 1}
    joins = [f"n = 1 AND {join}" for join in JOINS]
    joins += [f"shop.name = 'Hall' AND {JOINS[0]}", f"n = 1 AND price < 9 AND {JOINS[4]}", JOINS[5]]
    limits = StoreLimits(few_mappings=few_mappings, history_stretch=8)
    single, batch = (matcher_over(new_store(history=tamis.History(rows=150), limits=limits)) for _ in range(2))
    for matcher in (single, batch):
        matcher.add_many(range(len(joins)), joins)
    found = [sorted(single.match(event)) for event in given]
    ends = [0, 40, 41, 300, 400]
    for start, end in itertools.pairwise(ends):
        table = batch.match_batch(given[start:end])
        rows = zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True)
        by_row: dict[int, list[int]] = {}
        for row, number in rows:
            by_row.setdefault(row, []).append(number)
        assert [sorted(by_row.get(row, [])) for row in range(end - start)] == found[start:end]


@pytest.mark.parametrize("name", ["price", "item"])
def test_the_first_wrong_event_of_a_batch_is_named_and_none_is_retained(name: str) -> None:
    """The engine asks about one of the attributes, joins alone about the other."""
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=10))
    matcher.add("again", "price > 0 AND item = ANY (SELECT item FROM history)")
    other = {"price": "item", "item": "price"}[name]
    with pytest.raises(tamis.EventError) as error:
        matcher.match_batch([{"price": 1, "item": 1}, {name: 2**70, other: 1}, {other: 2**70, name: 1}])
    assert error.value.row == 1
    assert matcher.stats()["history"]["events"] == 0
