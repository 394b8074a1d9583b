"""Needles and regular expressions by number: tiers, columns and single strings, against Python and RE2 one by one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from tamis.encoding.dimensions import patterns
from tamis.encoding.dimensions.patterns import Needles, Patterns, Regexes
from tamis.encoding.dimensions.texts import Texts
from tests.random_cases import REGEXES, STRINGS

LEAD = -1
NEEDLES = ["a", "ab", "b", "é", "É", "😀", "bar", "foo bar", "it's", "\\", "ß", "\n", "%"]
# With and without literals, case-sensitive and not, with lengths.
MANY_REGEXES = [
    *REGEXES, "(?i)foo", "(?i)BAR$", "foo|bar", "(?i)foo|line", "bre[ae]k", "^foo.*bar$", ".{5,}", ".{9,}", "😀", "(?i)ΑΣ",
    "(?i)ss", "(?i)line", "[Ff]oo", "k{3}", "(?i)kkk", "(?i)sss", "a_b|ab%", "say", "\\x{1F600}$",
]  # fmt: skip
TEXTS = [*STRINGS, "FOO Bar", "ſſſ", "\u212a\u212ak", "a" * 30, "x" * 300 + "foo", "Break\nLINE"]


def contains_needle(needle: str, text: str) -> bool:
    return needle in text


def contains_regex(regex: str, text: str) -> bool:
    return re2.search(regex, text) is not None


def check(searched: Patterns, members: dict[str, int], is_in: Callable[[str, str], bool], texts: list[str]) -> None:
    expected = [sorted(number for pattern, number in members.items() if is_in(pattern, text)) for text in texts]
    assert [searched.hits(text) for text in texts] == expected
    for count, searched.few in itertools.product((0, 1, 5, len(texts)), (0, len(texts))):
        keys, counts = searched.keys(Texts(pa.array(texts[:count], pa.string())), LEAD)
        assert keys.tolist() == [key for numbers in expected[:count] for key in (LEAD, *numbers)]
        assert counts.tolist() == [len(numbers) + 1 for numbers in expected[:count]]


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("make", "pool", "is_in"),
    [(Needles, NEEDLES, contains_needle), (Regexes, MANY_REGEXES, contains_regex)],
)
def test_patterns_are_added_and_removed(
    make: Callable[[], Patterns], pool: list[str], is_in: Callable[[str, str], bool]
) -> None:
    chance = random.Random(1)
    searched = make()
    members: dict[str, int] = {}
    for step in range(12):
        for pattern in chance.choices(pool, k=chance.randint(0, 6)):
            number = searched.add(pattern)
            assert members.setdefault(pattern, number) == number
        if step % 5 == 4:
            kept = set(chance.sample(sorted(members.values()), len(members) // 2))
            searched.keeping(kept)()
            members = {pattern: number for pattern, number in members.items() if number in kept}
        assert len(searched) == len(members)
        check(searched, members, is_in, TEXTS)


@pytest.mark.parametrize("largest_set", [1, 4, 128])
def test_regexes_in_several_sets(largest_set: int) -> None:
    searched = Regexes(largest_set=largest_set)
    check(searched, {regex: searched.add(regex) for regex in MANY_REGEXES}, contains_regex, TEXTS)


def test_regexes_in_lower_case() -> None:
    searched = Regexes(one_case=True)
    members = {regex: searched.add(regex) for regex in [*MANY_REGEXES, r"(?s)\Afoo.*bar\z"]}
    check(searched, members, contains_regex, [text.lower() for text in TEXTS])


@given(
    st.lists(st.sampled_from(MANY_REGEXES), max_size=8),
    st.lists(st.text("fFoOsSkKſ\u212ab ar", max_size=8), max_size=20),
)
def test_regexes_find_what_re2_finds(regexes: list[str], texts: list[str]) -> None:
    searched = Regexes()
    check(searched, {regex: searched.add(regex) for regex in regexes}, contains_regex, texts)


def test_regexes_are_run_on_few_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def matcher(_: list[str]) -> Callable[[bytes | memoryview], list[int] | None]:
        return lambda data: asked.append(bytes(data))

    monkeypatch.setattr(patterns, "regex_matcher", matcher)
    searched = Regexes()
    searched.few = 0
    for regex in ("foo[0-9]", "(?i)bar[0-9]", "[a-f]{10,}"):
        searched.add(regex)
    texts = ["x" * 9, "a foo", "x", "BAR", "food", "b" * 10, "FOO", "fo", "", "o"]
    searched.keys(Texts(pa.array(texts)), LEAD)
    assert sorted(asked) == [b"BAR", b"FOO", b"a foo", b"b" * 10, b"food"]


def test_many_needles_and_one_more() -> None:
    """The new needle gets its own tier: the automaton of the other needles stays."""
    searched = Needles()
    members = {f"<{number}>": searched.add(f"<{number}>") for number in range(2000)}
    texts = ["<5><1999>", "<new>", *(f"x<{number}>y" for number in range(20))]
    check(searched, members, contains_needle, texts)
    (tier,) = searched.tiers()
    members["<new>"] = searched.add("<new>")
    check(searched, members, contains_needle, texts)
    assert searched.tiers()[0] is tier
    assert [len(tier.members) for tier in searched.tiers()] == [2000, 1]


def test_fifty_thousand_needles() -> None:
    chance = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz.\\-é"
    searched = Needles()
    members = {"".join(chance.choices(letters, k=chance.randint(4, 20))): 0 for _ in range(50_000)}
    members = {needle: searched.add(needle) for needle in members}
    check(searched, members, contains_needle, ["".join(chance.choices(list(members), k=3)) for _ in range(40)])


def test_there_are_few_tiers() -> None:
    searched = Needles()
    for number in range(300):
        searched.add(f"<{number}>")
        assert searched.hits(f"<{number}>") == [number]
    assert len(searched.tiers()) <= 5
    assert sum(len(tier.members) for tier in searched.tiers()) == 300


@pytest.mark.parametrize("make", [Needles, Regexes])
def test_threads_may_search_at_once(make: Callable[[], Patterns]) -> None:
    searched = make()
    with ThreadPoolExecutor(8) as pool:
        for step in range(20):
            for number in range(20 * step, 20 * step + 20):
                searched.add(f"<{number}>")
            texts = [f"<{number}>" for number in range(20 * step + 20)]
            found = list(pool.map(lambda _, texts=texts: [searched.hits(text) for text in texts], range(8)))
            assert found == [[[number] for number in range(len(texts))]] * 8
            assert sum(len(tier.members) for tier in searched.tiers()) == len(texts)
