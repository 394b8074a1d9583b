"""A batch of mappings means what `match` of each mapping means, however it is encoded."""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

import numpy as np
import pytest

from tamis import EventError, Interval, Matcher
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tamis.matcher.matcher import matcher_over, new_store

pytestmark = pytest.mark.kernels

EXPRESSIONS = (
    *("a = 5", "a <> 5", "a < 12", "a = 9007199254740993", "a IN (5, 'x', TRUE)", "a IS NULL", "NOT (a > 3)"),
    *("a = 'x'", "a LIKE 'x%'", "a LIKE '%y%'", "a ILIKE '%XY'", "a RLIKE 'x.*e'", "a > 'w'", "a = TRUE", "a <> 'xy'"),
    *("b = 0.1", "b < 0", "b IS NOT NULL", "b = 'ä€'", "b LIKE '%€%'", "b BETWEEN -1 AND 3", "NOT b", "b ILIKE 'x'"),
    *('"a.b" = 5', "a.b IS NULL", "b.c > 5", "b.c <> 'x'", "b.c IN (5, 12) AND a IS NOT NULL", "a.b.c = 5"),
    *("c = '2026-01-02'", "c > timestamp '2026-01-02 03:00:00'", "c NOT LIKE '%x%'", "ip_in(c, '10.0.0.0/8')"),
    *("lower(c) = 'xy'", "c LIKE '%x%' AND NOT c LIKE '%y%'", "c IS NULL AND a LIKE '%x%'"),
)
NAMES = ("a", "b", "c", "a.b", "b.c", "unasked", "a\0b", "")


class Word(StrEnum):
    NAME = "a"
    TEXT = "xy"


@dataclass
class Record:
    a: Any
    b: Any


class Events:
    """Random events, most of them of few forms, some strange."""

    def __init__(self, seed: int, strange: float) -> None:
        self._random = random.Random(seed)
        self._strange = strange
        self._simple: tuple[Callable[[], Any], ...] = (
            lambda: self._random.choice((5, -7, 12, 0, 2**53 + 1, -(2**53) - 1)),
            lambda: self._random.choice((5.0, 0.1, -0.0, float("nan"), 2.0**53)),
            lambda: self._random.choice(("x", "xy", "XY", "x.e", "ä€", "", "10.1.2.3", "y" * 40)),
            lambda: self._random.choice((True, False, None)),
        )
        self._odd: tuple[Callable[[], Any], ...] = (
            lambda: [self.value(0) for _ in range(self._random.randrange(4))],
            lambda: {self._random.choice(("b", "c", "b.c")): self.value(0)},
            lambda: {"b": {"c": self.value(0)}},
            lambda: [{"c": self.value(0)}, {"c": self.value(0)}],
            lambda: self._random.choice((datetime(2026, 1, 2, 4), date(2026, 1, 2), Decimal("0.1"), Interval(1, 7))),
            lambda: self._random.choice((np.float64(5), np.int32(5), np.array([5, 12]), Word.TEXT)),
            lambda: self._random.choice((2**64, "\ud800", b"x", {5: 1}, object)),
            lambda: OrderedDict(b=OrderedDict(c=self.value(0))),
        )

    def value(self, strange: float) -> Any:
        return self._random.choice(self._odd if self._random.random() < strange else self._simple)()

    def event(self) -> Any:
        names = self._random.sample(NAMES[:3] if self._random.random() < 0.6 else NAMES, self._random.randrange(4))
        event: dict[Any, Any] = {name: self.value(self._strange) for name in names}
        if self._random.random() > self._strange / 8:
            return event
        wrong = {"a": 1, Word.NAME: 2}, {5: 1}, 5, [1], Record("x", 5), OrderedDict(event), {"a.b": 1, "a": {"b": 2}}
        return self._random.choice(wrong)


def matcher_of(**limits: Any) -> Matcher[int]:
    matcher: Matcher[int] = matcher_over(new_store(limits=USUAL_STORE_LIMITS._replace(**limits)))
    for number, expression in enumerate(EXPRESSIONS):
        matcher.add(number, expression)
    return matcher


def answers(matcher: Matcher[int], events: list[Any], threads: int) -> list[list[int]] | tuple[int | None, str]:
    """The matches of each event, or the row and the reason of the error."""
    try:
        pairs = matcher.match_batch(events, threads).to_pydict()
    except EventError as error:
        return error.row, error.reason
    found: list[list[int]] = [[] for _ in events]
    for event, subscription in zip(pairs["event"], pairs["subscription"], strict=True):
        found[event].append(subscription)
    return [sorted(ids) for ids in found]


def expected(matcher: Matcher[int], events: list[Any]) -> list[list[int]] | dict[int, str]:
    """The matches of each event, or the reasons by row."""
    found, problems = [], {}
    for row, event in enumerate(events):
        try:
            found.append(sorted(matcher.match(event)))
        except EventError as error:
            problems[row] = error.reason
    return problems or found


def compare(seed: int, count: int, strange: float, few: int) -> int:
    events, reference = Events(seed, strange), matcher_of()
    batch = [events.event() for _ in range(count)]
    matcher = matcher_of(few_mappings=few, mappings_at_once=16)
    wanted = expected(reference, batch)
    got = answers(matcher, batch, 1 + seed % 3)
    if isinstance(wanted, dict):
        assert isinstance(got, tuple)
        assert wanted[got[0] or 0] == got[1]
        right = [event for row, event in enumerate(batch) if row not in wanted]
        wanted, got = expected(reference, right), answers(matcher, right, 1 + seed % 3)
        batch = right
    assert got == wanted
    assert matcher.stats()["mismatched"] > 0 or len(batch) < 20
    return len(batch) * len(EXPRESSIONS)


@pytest.mark.parametrize("few", [0, 1 << 30])
@pytest.mark.parametrize("strange", [0.0, 0.02, 0.3])
def test_batches_of_mappings_mean_what_single_mappings_mean(few: int, strange: float) -> None:
    assert sum(compare(seed, 60, strange, few) for seed in range(6)) > 4_000


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_the_mismatched_attributes_are_counted_alike(few: int) -> None:
    events = Events(7, 0.1)
    batch = [event for event in (events.event() for _ in range(200)) if _is_right(event)]
    one, many = matcher_of(), matcher_of(few_mappings=few)
    for event in batch:
        one.match(event)
    many.match_batch(batch, 2)
    assert one.stats()["mismatched"] == many.stats()["mismatched"] > 0


def _is_right(event: Any) -> bool:
    try:
        matcher_of().match(event)
    except EventError:
        return False
    return True


SPARSE = 400
"""Attributes of which an event has few."""


def sparse_matcher(only_numbers: bool, **limits: Any) -> Matcher[int]:
    matcher: Matcher[int] = matcher_over(new_store(limits=USUAL_STORE_LIMITS._replace(**limits)))
    texts = [f"n{each} > 3" if only_numbers or each % 3 else f"n{each} LIKE '%x%'" for each in range(SPARSE)]
    matcher.add_many(range(SPARSE), texts)
    return matcher


def sparse_events(seed: int, count: int, strange: float) -> list[dict[str, Any]]:
    """Events of numbers, some of which have other values or attributes that nobody asks about."""
    chosen = random.Random(seed)
    others = "x", "ax", None, True, [5, 9], 2**53 + 1, float("nan"), {"x": 5}, -0.0, 2**64, "\ud800"

    def value() -> Any:
        return chosen.choice(others) if chosen.random() < strange else chosen.choice((5, 3, 3.5, -7))

    return [{f"n{each}": value() for each in chosen.sample(range(SPARSE + 100), 12)} for _ in range(count)]


@pytest.mark.parametrize("few", [0, 40, 1 << 30])
@pytest.mark.parametrize("strange", [0.0, 0.01])
@pytest.mark.parametrize("only_numbers", [False, True])
def test_batches_with_few_values_an_attribute_mean_the_same(only_numbers: bool, strange: float, few: int) -> None:
    matcher = sparse_matcher(only_numbers, few_mappings=few)
    reference = sparse_matcher(only_numbers)
    for seed in range(4):
        batch = sparse_events(seed, 150, strange)
        wanted = expected(reference, batch)
        got = answers(matcher, batch, 1 + seed % 2)
        if isinstance(wanted, dict):
            first = min(wanted)
            assert got == (first, wanted[first])
            batch = [event for row, event in enumerate(batch) if row not in wanted]
            wanted, got = expected(reference, batch), answers(matcher, batch, 1)
        assert got == wanted
        assert sum(map(len, wanted)) > 100


@pytest.mark.parametrize("few", [0, 40, 1 << 30])
def test_an_error_names_the_first_wrong_event_however_it_is_encoded(few: int) -> None:
    batch = sparse_events(3, 150, 0.0)
    batch[70]["n1"] = 2**64
    batch[140] = {"n3": "\ud800"}
    with pytest.raises(EventError) as caught:
        sparse_matcher(False, few_mappings=few).match_batch(batch, 1)
    assert caught.value.row == 70
    assert caught.value.attribute == "n1"


class Calling(dict[str, Any]):
    """A mapping that changes a matcher while it is read."""

    def __init__(self, matcher: Matcher[int]) -> None:
        super().__init__(a="xy")
        self._matcher = matcher

    def items(self) -> Any:
        number = len(self._matcher)
        self._matcher.add(number, f"a LIKE '%x%' AND n{number} IS NULL")
        return super().items()


@pytest.mark.parametrize("few", [0, 1 << 30])
def test_a_mapping_may_change_the_matcher_while_it_is_read(few: int) -> None:
    matcher = matcher_of(few_mappings=few)
    events = [{"a": 5}, Calling(matcher), {"a": "x", "b": Calling(matcher)}]
    found = matcher.match_batch(events, 1).to_pydict()
    assert set(found["event"]) == {0, 1, 2}
    assert len(matcher) > len(EXPRESSIONS)


def test_a_slice_of_mappings_counts_its_own_rows() -> None:
    matcher = matcher_of(few_mappings=0, events_at_once=16)
    events = [{"a": 5} for _ in range(40)]
    events[33] = {"a": 2**64}
    with pytest.raises(EventError) as caught:
        list(matcher.match_iter([events]))
    assert caught.value.row == 33
