"""The truth of joins, against the reference evaluator, which scans."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.earlier.chunks import ListedEvents
from tamis.earlier.join_table import EventJoins, split
from tamis.earlier.retained import Retained
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import COMPARISONS, Quantifier
from tests.earlier.cases import NAMES, events, histories, joined_expressions
from tests.earlier.reference import ReferenceHistory
from tests.strategies import history_predicates

KEYED = tamis.History(rows=5, key="k")
WINDOW = tamis.History(rows=5)


def retain(retained: Retained, event: FlatEvent) -> None:
    retained.begin(event)
    retained.add(event)


def retaining(history: tamis.History, earlier: list[dict[str, Any]], block: int = 2) -> Retained:
    retained = Retained(history, few=0, block=block)
    for each in earlier:
        retain(retained, flatten(each))
    return retained


@given(
    st.lists(events(), max_size=12),
    st.lists(st.tuples(history_predicates(st.sampled_from(NAMES)), events()), max_size=6),
    st.integers(1, 8),
    st.sampled_from([None, "k"]),
    st.integers(1, 3),
)
def test_indexes_decide_as_the_evaluator(
    earlier: list[dict[str, Any]],
    asked: list[tuple[Quantified | Exists, dict[str, Any]]],
    rows: int,
    key: str | None,
    block: int,
) -> None:
    retained = Retained(tamis.History(rows=rows, key=key), few=0, block=block)
    for number, each in enumerate(earlier):
        retain(retained, flatten({**each, "k": "one"}))
        kept = [flatten({**other, "k": "one"}) for other in earlier[max(0, number + 1 - rows) : number + 1]]
        for join, event in asked:
            flat = flatten({**event, "k": "one"})
            joins = EventJoins(flat, retained.begin(flat))
            assert joins.truth(join) is evaluate_flat(join, flat, kept), (join, flat, kept)


def test_joins_of_few_values() -> None:
    """Random joins and events that meet often: two or three comparisons under EXISTS, booleans, several values, intervals."""
    draw = random.Random(28)
    values: list[Any] = [0, 1, 2, 3, True, False, "a", "b", [0, 3], [1, "a"], tamis.Interval(1, 2), [True, 2], None]
    conditions = [
        "b < 2",
        "b >= 2",
        "b = 1",
        "b IN (0, 'a')",
        "b BETWEEN 1 AND 2",
        "b BETWEEN 2 AND 1",
        "b NOT BETWEEN 1 AND 2",
        "b NOT IN (1, 3)",
        "b NOT IN (1, 'a')",
        "b <> 1",
        "b > 'a'",
        "b LIKE 'a'",
        "b IS NULL",
        "b IS NOT NULL",
    ]
    predicates = [each for each in map(tamis.parse, conditions) if isinstance(each, Predicate)]
    assert len(predicates) == len(conditions)
    comparisons = sorted(COMPARISONS)

    def event() -> FlatEvent:
        return flatten({name: draw.choice(values) for name in "abc"} | {"k": 1})

    def join() -> Quantified | Exists:
        if draw.random() < 0.3:
            return Quantified("a", draw.choice(comparisons), draw.choice(list(Quantifier)), draw.choice("ab"))
        joins = [Join(draw.choice("ab"), draw.choice(comparisons), draw.choice("ac")) for _ in range(draw.randrange(3))]
        return Exists(joins, draw.sample(predicates, draw.randrange(3)))

    truths: Counter[bool | None] = Counter()
    for _ in range(180):
        retained, rows = (
            Retained(draw.choice([KEYED, WINDOW]), few=draw.choice([0, 9]), block=draw.choice([1, 2, 9])),
            [],
        )
        for _ in range(8):
            rows.append(event())
            retain(retained, rows[-1])
            for _ in range(8):
                asked, new = join(), event()
                expected = evaluate_flat(asked, new, rows[-5:])
                assert EventJoins(new, retained.begin(new)).truth(asked) is expected, (asked, new, rows[-5:])
                truths[expected] += 1
    assert min(truths.values()) > 600


@given(joined_expressions(), events(), st.lists(events(), max_size=4))
def test_an_expression_is_its_parts(
    expression: Expression, event: dict[str, Any], earlier: list[dict[str, Any]]
) -> None:
    constant, rest, always = split(expression)
    assert not constant.needs_history()
    flat, retained = flatten(event), retaining(tamis.History(rows=9), earlier)
    joins = EventJoins(flat, retained.begin(flat))
    assert joins.truth(expression) is tamis.evaluate(expression, event, earlier)
    found = joins.truth(constant) is True and (rest is None or joins.truth(rest) is True)
    holds = found or (always is not None and joins.truth(always) is True)
    assert holds is (tamis.evaluate(expression, event, earlier) is True)


@given(histories(), st.lists(events(), max_size=25), st.sampled_from([0, 3]), st.integers(1, 9))
def test_retention(history: tamis.History, given_events: list[dict[str, Any]], few: int, size: int) -> None:
    retained, reference = Retained(history, few=few, block=2), ReferenceHistory(history)
    batches, flats = Retained(history, few=few, block=2), [flatten(event) for event in given_events]
    for start in range(0, len(flats), size):
        part = flats[start : start + size]
        with batches.taking(ListedEvents(part)) as intake:
            for row, flat in enumerate(part):
                before = reference.before(given_events[start + row])
                assert retained.earlier(flat) == before
                for events_of, log in ((retained.begin(flat), retained.log), (intake.history(row), batches.log)):
                    assert len(events_of) == len(before)
                    assert log.events(log.positions(events_of.numbers())) == before
                retained.add(flat)
                reference.add(given_events[start + row])
            intake.retain_all()
        assert len(retained) == len(batches) == len(reference)
    assert retained.left_out == batches.left_out
    for attribute in NAMES:
        retained.keep_indexes([attribute])


def test_an_index_is_made_when_a_join_asks_and_dropped_when_none_does() -> None:
    retained = Retained(tamis.History(rows=9))
    below = Quantified("a", "<", Quantifier.ALL, "b")
    for number in range(3):
        retain(retained, {"b": (number + 5,)})
    window = retained.begin({"a": (1,)})
    assert window.indexed() == set()
    assert EventJoins({"a": (1,)}, window).truth(below) is True
    assert EventJoins({"a": (5,)}, window).truth(below) is False
    assert window.indexed() == {"b"}
    retained.keep_indexes(())
    assert window.indexed() == set()
    assert retained.log.columns == {}


@pytest.mark.parametrize(
    ("price", "truth"),
    [(0, True), (5000, True), (5001, False), (None, False), (tamis.Interval(5001, 6000), False), ([1, 9000], True)],
)
def test_exists_walks_chains_of_any_length(price: Any, truth: bool) -> None:
    """The only event that satisfies both comparisons is the first of a chain that is longer than a walk."""
    retained = Retained(tamis.History(rows=6000))
    some = tamis.parse("EXISTS (SELECT 1 FROM history h WHERE h.item = item AND h.price >= price)")
    for row in range(5000):
        retain(retained, flatten({"item": "pen", "price": 5000 if row == 0 else -1}))
    event = flatten({"item": "pen", "price": price})
    assert EventJoins(event, retained.begin(event)).truth(some) is truth
    retain(retained, flatten({"item": "pen", "price": [3, 9000]}))
    assert EventJoins(event, retained.begin(event)).truth(some) is (price is not None)
    other = {**event, "item": ("ink",)}
    assert EventJoins(other, retained.begin(other)).truth(some) is False


def test_events_of_silent_keys_leave_when_they_are_old() -> None:
    retained = Retained(tamis.History(age=10, order="t", key="k"))
    for number in range(100):
        retain(retained, {"t": (0,), "k": (number,)})
    assert (len(retained), retained.keys) == (100, 100)
    retained.begin({"t": (10,)})
    assert len(retained) == 100
    retained.begin({"t": (11,)})
    assert (len(retained), retained.keys) == (0, 0)


def test_rows_leave_no_trace() -> None:
    retained = Retained(tamis.History(rows=2, age=10, order="t", key="k"))
    for number in range(9000):
        retain(retained, flatten({"t": number % 3, "k": number % 2}))
    assert len(retained) == 4
    assert retained.waiting < 2000
    assert len(retained.log) < 4000
