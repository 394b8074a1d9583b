"""The automaton against Python's ``in``."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.encoding.dimensions import automaton
from tamis.encoding.dimensions.automaton import LONGEST_TAIL, PLANS, Automaton, Plan, build, search, search_one
from tamis.encoding.dimensions.texts import Texts

pytestmark = pytest.mark.kernels

# Characters of one to four bytes, some of which share bytes.
LETTERS = ["a", "b", "\0", "é", "è", "Ã", "©", "中", "\ud7ff", "😀", "😁", "\U0010ffff"]
WORDS = st.text(st.sampled_from(LETTERS), max_size=6)


def check(
    needles: Sequence[str], strings: Sequence[str], plans: Sequence[Plan] = PLANS, longest_tail: int = LONGEST_TAIL
) -> Automaton:
    """Search all strings at once and one by one. The numbers of needles differ from their places in the list."""
    numbers = [7 * number + 3 for number in range(len(needles))]
    built = build(needles, numbers, plans, longest_tail)
    expected = [[number for needle, number in zip(needles, numbers, strict=True) if needle in text] for text in strings]
    assert [search_one(built, text) for text in strings] == expected
    assert found(built, Texts(pa.array(strings, pa.string()))) == expected
    return built


def found(built: Automaton, texts: Texts) -> list[list[int]]:
    places, numbers = search(built, texts)
    hits: list[set[int]] = [set() for _ in range(len(texts))]
    for place, number in zip(places.tolist(), numbers.tolist(), strict=True):
        hits[place].add(number)
    return [sorted(numbers) for numbers in hits]


@given(st.lists(WORDS, unique=True, max_size=12), st.lists(st.text(st.sampled_from(LETTERS), max_size=20), max_size=40))
def test_finds_needles_in_strings(needles: list[str], strings: list[str]) -> None:
    check(needles, strings)


@pytest.mark.parametrize(
    "needles",
    [
        ["he", "she", "his", "hers"],
        ["a", "aa", "aaa", "aaaaaaaa"],
        ["abc", "bc", "c", "abcd", "bcd", "d"],
        ["ab", "abab", "ba", "babab"],
        [""],
        ["", "a"],
        [],
        ["x" * 600, "x" * 599 + "y", "y" * 600 + "x"],
        ["\0", "\0\0", "a\0"],
        ["é", "\u00c3", "\u00a9", "中", "😀"],
    ],
)
def test_needles_inside_needles(needles: list[str]) -> None:
    texts = ["", "a", "ushers", "aaaaaaa", "abcd", "ababab", "bcab", "a\0\0", "é中😀", "Ã©", "x" * 599, *needles]
    check(needles, [*texts, *(first + second for first in texts for second in texts[:6])])


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("longest_tail", [0, 2, LONGEST_TAIL])
def test_needles_may_be_cut_anywhere(plan: Plan, longest_tail: int) -> None:
    chance = random.Random(3)
    for letters in ("ab", "abcdé"):
        needles = list({"".join(chance.choices(letters, k=chance.randint(1, 12))) for _ in range(60)})
        strings = ["".join(chance.choices(letters, k=chance.randint(0, 60))) for _ in range(40)]
        check(needles, strings, [plan], longest_tail)


def test_more_needles_than_the_largest_plan_can_hold() -> None:
    plans = [(others, more, 1 << (12 - place)) for place, (others, more, _) in enumerate(PLANS)]
    chance = random.Random(4)
    sizes = []
    for count in (5, 20, 50, 150):
        needles = list({"".join(chance.choices("abc", k=chance.randint(4, 9))) for _ in range(count)})
        built = check(needles, ["".join(chance.choices("abc", k=40)) for _ in range(20)], plans)
        sizes.append(built.nbytes)
    assert sizes[-1] < 20 * sizes[0]


@pytest.mark.parametrize("count", [1, automaton.LANES - 1, automaton.LANES, automaton.LANES + 1, 100])
def test_strings_of_very_different_lengths(count: int) -> None:
    chance = random.Random(count)
    lengths = [
        chance.choice([0, 1, 5, automaton.CHUNK - 1, automaton.CHUNK, 3 * automaton.CHUNK + 1]) for _ in range(count)
    ]
    check(["ab", "b" * 9, "aab"], ["".join(chance.choices("ab", k=length)) for length in lengths])


def test_room_for_hits_grows() -> None:
    needles = [f"{number:02}" for number in range(100)]
    check(needles, ["".join(needles), "", "x", "".join(reversed(needles)) * 3])
    check(needles, ["".join(needles)] * 70)


def test_a_slice_of_a_column() -> None:
    strings = pa.array(["abc", "é", "xx", "", "bca", "ab"])
    built = build(["ab", "b", "é"], [0, 1, 2])
    for start in range(len(strings) + 1):
        for length in range(len(strings) - start + 1):
            part = strings.slice(start, length)
            assert found(built, Texts(part)) == [search_one(built, text) for text in part.to_pylist()]


@pytest.mark.parametrize("needles", [["a", "aa"], [*("a" * length for length in range(1, 90)), "a" * 40 + "b"]])
def test_a_repeated_needle_is_reported_once(needles: list[str]) -> None:
    """So memory is proportional to the number of needles found, not to how often each occurs."""
    built = build(needles, range(len(needles)))
    places, numbers = search(built, Texts(pa.array(["a" * 300] * 20)))
    pairs = sorted(zip(places.tolist(), numbers.tolist(), strict=True))
    assert pairs == [
        (place, number) for place in range(20) for number, needle in enumerate(needles) if "b" not in needle
    ]


def test_numbers_may_be_large() -> None:
    built = build(["a", "b"], [2**31 - 1, 5])
    assert search_one(built, "ba") == [5, 2**31 - 1]
    assert np.sort(search(built, Texts(pa.array(["ba"])))[1]).tolist() == [5, 2**31 - 1]
