"""Numbers of keys: every key that a predicate names has its own number in its dimension. Other keys have no number."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.engine.layout.aspects import UNKNOWN
from tamis.engine.layout.key_numbers import LINE, KeyNumbers, line_of, may_be_in, number_of_key
from tamis.engine.layout.lookup import ABOUT, ALL_NUMBERED, NUMBERED, SHIFT_AT
from tamis.engine.rows import Rows
from tamis.engine.segment import Segment
from tamis.kernels.hashing import spread
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I64
from tests.engine.naive import rows_with
from tests.engine.test_segment import check
from tests.papers.naive import Event

BESIDE = (1 << 40) + 1
"""Multiples of this key lie beside the grid: codes do not tell them apart, so they are numbered."""


def named(keys: list[int], dimensions: int = 1) -> Rows:
    """Subscriptions that name one key each."""
    return rows_with([[Leaf(d, Mode.SOME, ((key, key),))] for key in keys for d in range(dimensions)])


def number(keyed: KeyNumbers, dimension: int, key: int) -> int:
    start = keyed.start
    return int(number_of_key(I64(key), int(start[dimension]), int(start[dimension + 1]), keyed.mark, keyed.key))


@lean_kernel
def line(key: int, end: int) -> int:
    return line_of(spread(key), 0, end)


@lean_kernel
def may_be_known(key: int, end: int, marks: Any) -> bool:
    return may_be_in(spread(key), marks[line(key, end)])


def in_line(wanted: int, lines: int, count: int) -> list[int]:
    """Keys beside the grid that all belong in the line `wanted` of `lines` lines."""
    keys: list[int] = []
    key = BESIDE
    while len(keys) < count:
        if line(I64(key), lines) == wanted:
            keys.append(key)
        key += BESIDE
    return keys


def test_each_named_key_has_its_own_number() -> None:
    chance = random.Random(1)
    keys = [BESIDE * each for each in chance.sample(range(-(1 << 20), 1 << 20), 3000)]
    keyed = Segment.of(named(keys, 2), None).body.key_numbers
    for dimension in range(2):
        numbers = [number(keyed, dimension, key) for key in keys]
        assert len({*numbers, UNKNOWN}) == len(keys) + 1
        assert max(numbers) <= UNKNOWN + LINE * (keyed.start[dimension + 1] - keyed.start[dimension])
    known = set(keys)
    others = [key + step for key in keys for step in (-1, 1, BESIDE)] + [KEY_MIN, KEY_MAX, 0, -1]
    assert {number(keyed, 0, key) for key in others if key not in known} == {UNKNOWN}


def test_marks_reject_nearly_all_other_keys() -> None:
    chance = random.Random(2)
    keyed = Segment.of(named([BESIDE * each for each in chance.sample(range(1 << 20), 3000)]), None).body.key_numbers
    keys = [BESIDE * chance.randrange(1 << 21, 1 << 22) for _ in range(2000)]
    wrong = sum(may_be_known(I64(key), int(keyed.start[1]), keyed.mark) for key in keys)
    assert 0 < wrong < 0.06 * len(keys)


@pytest.mark.parametrize("of_line", [0, 7, 49])
def test_full_lines(of_line: int) -> None:
    """If a line is full, keys go to the next line, and from the last line to the first. They and their lists are found there."""
    lines = 50
    crowd, chance = in_line(of_line, lines, 30), random.Random(of_line)
    # Keys are entered in ascending order. Some of the crowd find the lines of other keys full, or fill these lines first.
    elsewhere = [key for key in range(BESIDE, BESIDE << 11, BESIDE) if line(I64(key), lines) != of_line]
    rest = chance.sample(elsewhere, 6 * lines - len(crowd))
    rows = named([*crowd, *rest])
    segment = Segment.of(rows, None)
    keyed = segment.body.key_numbers
    assert keyed.start.tolist() == [0, lines]
    assert np.count_nonzero(keyed.key.reshape(-1, LINE)[:, -1] != KEY_MAX) > 3
    assert len({number(keyed, 0, key) for key in crowd}) == len(crowd)
    strangers = in_line(of_line, lines, 60)[len(crowd) :]
    assert {number(keyed, 0, key) for key in strangers} == {UNKNOWN}
    events: list[Event] = [{0: [(key, key)]} for key in [*crowd, *strangers, *rest[:50], KEY_MAX]]
    assert check(rows, events, segment=segment).compared == 0


@pytest.mark.kernels
def test_numbers_of_a_few_keys() -> None:
    keys = [BESIDE * each for each in range(-150, 150)]
    keyed = Segment.of(named(keys), None).body.key_numbers
    assert len({number(keyed, 0, key) for key in keys} | {UNKNOWN}) == len(keys) + 1
    assert {number(keyed, 0, key + 1) for key in keys} == {UNKNOWN}


def test_the_highest_key_has_no_number() -> None:
    """It may still have a list of its own."""
    keys = [BESIDE * each for each in range(1, 600)]
    rows = named([*keys, KEY_MAX])
    segment = Segment.of(rows, None)
    assert number(segment.body.key_numbers, 0, KEY_MAX) == UNKNOWN
    events: list[Event] = [{0: [(key, key)]} for key in (KEY_MAX, KEY_MAX - 1, keys[5], keys[5] + 1)]
    check(rows, events, segment=segment)


def test_lists_of_keys_without_numbers() -> None:
    """Neighbours of keys with numbers have lists of their own too. So a key without a number may have a list."""
    keys = [BESIDE * each for each in range(1, 600)]
    neighbours = [Leaf(0, Mode.SOME, ((key + 5, key + 7), (key + 9, key + 9))) for key in keys[::3]]
    alike = [[Leaf(d, Mode.SOME, ((key, key),))] for d in range(2) for key in keys]
    rows = rows_with([*alike, *([leaf] for leaf in neighbours)])
    segment = Segment.of(rows, None)
    flags = segment.body.lookup.about.reshape(-1, ABOUT)[segment.body.lookup.local[:2], SHIFT_AT]
    assert [bool(each & NUMBERED) for each in flags] == [True, True]
    assert [bool(each & ALL_NUMBERED) for each in flags] == [False, True]
    events: list[Event] = [
        {0: [(key + step, key + step)], 1: [(key, key)]} for key in keys[:40] for step in (0, 4, 5, 6, 7, 8, 9, 10)
    ]
    check(rows, events, segment=segment)
