"""The pre-filter: what is skipped cannot be TRUE, what is counted is there, and what was skipped comes back."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.earlier.chunks import ListedEvents
from tamis.earlier.following import Following
from tamis.earlier.join_table import split
from tamis.earlier.needs import Constraint, Need, compared, need_of
from tamis.earlier.prefilter import NEVER, PreFilter, is_plain
from tamis.earlier.retained import Retained
from tamis.earlier.tally import Tally
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression
from tamis.language.normal import to_nnf
from tamis.language.scalar_set import ScalarSet, common_states, states_of
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store

CONSTANTS = [
    "a = 1",
    "a <> 1",
    "a < 2",
    "a <= 1",
    "a > 1",
    "a >= 2",
    "a BETWEEN 1 AND 2",
    "a IN (0, 3)",
    "a NOT IN (1, 2)",
    "a = 'x'",
    "a > 'x'",
    "a LIKE 'x%'",
    "a LIKE '%y'",
    "a IS NULL",
    "(a = 1) IS NOT TRUE",
    "NOT (a < 2)",
    "b = 1",
    "a = TRUE",
    "a > TIMESTAMP '2026-01-01'",
]
COMPARISONS = ["=", "<>", "<", "<=", ">", ">="]
VALUES: list[Any] = [
    0,
    1,
    1.5,
    2,
    3,
    2**53 + 1,
    "x",
    "xy",
    "y",
    True,
    False,
    None,
    datetime(2026, 1, 1),
    datetime(2026, 1, 2),
]
SEVERAL: list[Any] = [[1, 3], [0, "x"], tamis.Interval(1, 2), [True, 2]]


class Draw:
    """Random joins with constants beside them, and random events."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def join(self) -> str:
        pick = self.random.choice
        new, earlier = pick("aab"), pick("aab")
        if self.random.random() < 0.5:
            text = f"{new} {pick(COMPARISONS)} {pick(['ANY', 'ALL'])} (SELECT {earlier} FROM history)"
        else:
            parts = [f"h.{earlier} {pick(COMPARISONS)} {new}"]
            if self.random.random() < 0.4:
                parts.append(
                    pick(["h.a = 1", "h.b < 2", "h.a IN (1, 'x')", "h.a IS NULL", "h.b LIKE 'x%'", "h.a <> 2"])
                )
            text = f"EXISTS (SELECT 1 FROM history h WHERE {' AND '.join(parts)})"
        return pick([text, text, f"NOT ({text})", f"({text}) IS {pick(['TRUE', 'FALSE', 'NOT FALSE', 'UNKNOWN'])}"])

    def expression(self) -> Expression:
        pick = self.random.choice
        constants = " AND ".join(pick(CONSTANTS) for _ in range(self.random.randrange(3)))
        join = self.join()
        form = self.random.randrange(4)
        if form == 0:
            join = f"({join} OR {pick(CONSTANTS)} AND {self.join()})"
        if form == 1:
            join = f"{join} AND {self.join()}"
        return tamis.parse(f"{constants} AND {join}" if constants else join)

    def event(self, several: float) -> dict[str, Any]:
        values = SEVERAL if self.random.random() < several else VALUES
        few = VALUES[: self.random.choice([5, len(VALUES)])]
        return {name: self.random.choice(values if name == "a" else few) for name in "ab"} | {"k": 1}


def needs_of(expressions: list[Expression]) -> list[Need]:
    found = []
    for each in expressions:
        constant, rest, always = split(each)
        if rest is None or always is not None:
            found.append(need_of(to_nnf(each), one_history=True))
        else:
            found.append(need_of(rest, constant, one_history=True))
    return found


def in_states(constraint: Constraint, values: tuple[Any, ...]) -> bool | None:
    """Whether the values of an earlier event are in the states of a constraint; None if there are several."""
    if not values:
        return constraint.missing
    if len(values) > 1 or isinstance(values[0], tamis.Interval):
        return None
    return bool(common_states([states_of([values[0]]), ScalarSet(constraint.missing, dict(constraint.values))]))


def holds(constraint: Constraint, history: list[FlatEvent]) -> bool:
    found = [in_states(constraint, each.get(constraint.attribute, ())) for each in history]
    return any(each is not False for each in found) if constraint.is_some else True not in found


HISTORIES = [
    tamis.History(rows=4),
    tamis.History(rows=4, key="k"),
    tamis.History(age=3, order="t"),
    tamis.History(age=timedelta(hours=3), order="t", rows=5),
    tamis.History(age=3, order="t", key="k"),
]


def with_time(history: tamis.History, event: dict[str, Any], clock: int) -> dict[str, Any]:
    time: Any = datetime(2026, 1, 1) + timedelta(hours=clock) if isinstance(history.age, timedelta) else clock
    return {**event, "t": time}


def test_no_event_satisfies_what_is_skipped() -> None:
    """Each need that does not hold is held against all plain events of the domain."""
    plain = [flatten({"a": a, "b": b}) for a in VALUES for b in (None, 0, 1, 2, "x")]
    skipped = 0
    for seed in range(25):
        draw = Draw(seed)
        expressions = [draw.expression() for _ in range(8)]
        for _ in range(3):
            several = draw.random.choice([0.0, 0.3])
            history = [flatten(draw.event(several)) for _ in range(draw.random.randrange(4))]
            for expression, need in zip(expressions, needs_of(expressions), strict=True):
                if not all(any(holds(each, history) for each in clause) for clause in need):
                    skipped += 1
                    true = [event for event in plain if evaluate_flat(expression, event, history) is True]
                    assert not true, (str(expression), history, true[0])
    assert skipped > 120


@pytest.mark.kernels
@pytest.mark.parametrize("history", HISTORIES)
def test_a_tally_follows_the_events(history: tamis.History) -> None:
    """The tally says of each constraint what a look at all retained events says, one by one and after batches."""
    for seed in range(3):
        draw, clock = Draw(seed), 0
        found = needs_of([draw.expression() for _ in range(12)])
        needs = dict(enumerate(dict.fromkeys(need for need in found if need)))
        retained = Retained(history, few=0, block=2)
        following = Following(retained, Tally(needs, retained.log))
        constraints = {each for need in needs.values() for clause in need for each in clause}
        for step in range(25):
            batch = []
            for _ in range(draw.random.choice([1, 1, 7])):
                clock += draw.random.randrange(2)
                late = draw.random.choice([0, 0, 0, 2])
                batch.append(flatten(with_time(history, draw.event(0.1), clock - late)))
            if len(batch) == 1:
                retained.begin(batch[0])
                retained.add(batch[0])
            else:
                with retained.taking(ListedEvents(batch)) as intake:
                    intake.retain_all()
            if step % 5 == 4:
                retained.log.rewrite()
            if draw.random.random() < 0.3:
                continue  # Catch up with several steps at once.
            while not (following.is_valid() and following.catch_up()):
                following = Following(retained, Tally(needs, retained.log))
            earlier = list(retained.contents().events)
            for each in constraints:
                assert following.tally.holds(each) is holds(each, earlier), (str(each), earlier)
            rows = following.tally.rows(np.array([*needs, -1, -2, 99], np.int32))
            wanted = [all(any(holds(each, earlier) for each in clause) for clause in need) for need in needs.values()]
            assert following.tally.satisfied(rows).tolist() == [*wanted, True, True, True]


def test_a_batch_that_fails_is_not_counted() -> None:
    retained = Retained(tamis.History(rows=5))
    [need] = needs_of([tamis.parse("a = 1 AND a = ANY (SELECT a FROM history)")])
    following = Following(retained, Tally({0: need}, retained.log))
    [[constraint]] = need

    def fail() -> None:
        with retained.taking(ListedEvents([{"a": (1,)}, {"a": (2,)}])) as intake:
            following.catch_up(intake.end)
            assert following.tally.holds(constraint) is True
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    for value in (3, 1):
        following.catch_up()
        assert following.tally.holds(constraint) is False
        retained.keep({"a": (value,)})
    following.catch_up()
    assert following.tally.holds(constraint) is True


def test_needs_are_planned_when_there_are_enough_and_when_new_ones_came() -> None:
    prefilter, retained = PreFilter(fewest=3), Retained(tamis.History(rows=3))
    retained.keep({"a": (5,)})

    def put(slot: int) -> None:
        parts = split(tamis.parse(f"a = {slot} AND a = ANY (SELECT a FROM history)"))
        assert parts.rest is not None
        prefilter.put(slot, parts.rest, parts.constant)

    def passing() -> list[bool] | None:
        found = prefilter.passing(prefilter.needs_of(np.arange(9, dtype=np.int32)), retained, lambda names: True)
        return None if found is None else found.tolist()

    put(4)
    put(5)
    assert passing() is None
    put(6)
    assert passing() == [True] * 4 + [False, True, False, True, True]
    put(7)
    assert passing() == [True] * 4 + [False, True, False, False, True]
    prefilter.drop(7)
    assert passing() == [True] * 4 + [False, True, False, True, True]
    assert prefilter.state(0, retained).is_skipped
    assert prefilter.state(0, retained).constraints == (("some earlier event has a = 4", False),)
    assert len(prefilter) == 3


def test_needs_that_are_equal_are_counted_once() -> None:
    prefilter = PreFilter()
    numbers = {
        prefilter.number(*(split(tamis.parse(f"a < 5 AND b = {b} AND a = ANY (SELECT a FROM history)"))[1::-1]))  # type: ignore[arg-type]
        for b in range(4)
    }
    assert (len(numbers), len(prefilter)) == (1, 1)
    assert PreFilter(fewest=NEVER).number(tamis.parse("a = ANY (SELECT a FROM history)")) == -1


def test_events_with_several_values_are_not_filtered() -> None:
    names = compared(tamis.parse("a < 3 AND b = ANY (SELECT c FROM history)"))
    assert names == {"b"}
    assert is_plain(flatten({"a": [1, 2], "b": 1}), names)
    assert not is_plain(flatten({"b": [1, 2]}), names)
    assert not is_plain(flatten({"b": tamis.Interval(1, 1)}), names)


def matcher_of(history: tamis.History, prefilter_from: int = 0) -> tamis.Matcher[Any]:
    return matcher_over(new_store(history=history, limits=StoreLimits(prefilter_from=prefilter_from)))


def skipping(matcher: tamis.Matcher[Any]) -> tuple[int, int]:
    history = matcher.stats()["history"]
    return history["skipped"], history["skips"]


def test_what_was_skipped_comes_back() -> None:
    matcher = matcher_of(tamis.History(rows=2))
    matcher.add("below", "price < 10 AND EXISTS (SELECT 1 FROM history h WHERE h.price = price)")
    matcher.add("first", "author = 'Verne' AND NOT EXISTS (SELECT 1 FROM history h WHERE h.author = author)")
    matcher.add("again", "author = ANY (SELECT author FROM history)")
    assert skipping(matcher) == (2, 0)
    verne = {"author": "Verne", "price": 5}
    assert matcher.match(verne) == ["first"]
    assert skipping(matcher) == (1, 2)
    assert sorted(matcher.match(verne)) == ["again", "below"]
    assert matcher.match({"price": 11}) == []
    assert matcher.match({"price": 12}) == []
    assert skipping(matcher)[0] == 2
    assert matcher.match(verne) == ["first"]
    # Nothing is skipped for an event with several values: the first one is 5, and the second one was there before.
    assert matcher.match({"price": [3, 12]}) == ["below"]
    assert skipping(matcher)[0] == 1


def test_batches_skip_what_no_row_can_satisfy() -> None:
    matcher = matcher_of(tamis.History(rows=100))
    texts = [f"price = {price} AND EXISTS (SELECT 1 FROM history h WHERE h.price = price)" for price in range(50)]
    matcher.add_many(range(50), texts)
    found = matcher.match_batch([{"price": price} for price in (1, 2, 1, 3, 2, 2)])
    assert found["event"].to_pylist() == [2, 4, 5]
    assert skipping(matcher) == (47, 0)
    found = matcher.match_batch([{"price": price} for price in (1, 9, 30, 40)])
    assert found["event"].to_pylist() == [0]
    assert matcher.match_batch([{"price": [7, 40]}, {"price": 8}])["subscription"].to_pylist() == [7, 40]
    # An earlier event with several values may be in any state.
    assert skipping(matcher)[0] == 0


def test_a_file_keeps_what_is_needed(tmp_path: Any) -> None:
    matcher = matcher_of(tamis.History(rows=2), prefilter_from=64)
    texts = [f"price = {price} AND EXISTS (SELECT 1 FROM history h WHERE h.price = price)" for price in range(400)]
    matcher.add_many(range(400), texts)
    matcher.match({"price": 5})
    assert skipping(matcher)[0] == 399
    matcher.save(tmp_path / "matcher")
    loaded = tamis.load(tmp_path / "matcher")
    for price in range(300):
        assert loaded.match({"price": price}) == []
    assert loaded.match({"price": 299}) == [299]
    # Each event had one candidate, whose expression was read again. The last of them wait for the next tally.
    assert 262 <= loaded.stats()["history"]["skipped"] <= 298


def test_a_pre_filter_that_skips_nothing_pauses() -> None:
    prefilter, retained = PreFilter(fewest=0, patience=2), Retained(tamis.History(rows=1))
    prefilter.put(0, *split(tamis.parse("a = 1 AND a = ANY (SELECT a FROM history)"))[1::-1])  # type: ignore[arg-type]
    need, found = prefilter.needs_of(np.array([0], np.int32)), []
    for value in [1] * 8 + [2] * 8:
        retained.keep({"a": (value,)})
        is_asked = prefilter.is_asked(of_batch=False)
        found.append(is_asked and prefilter.passing(need, retained, lambda names: True) is not None)
    # Two in vain, a pause of two, two in vain, a pause of four. Then all are skipped.
    assert found == [False] * 10 + [True] * 6
