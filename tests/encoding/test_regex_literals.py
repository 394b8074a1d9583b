"""Literals of regular expressions: every string that RE2 matches contains one of them."""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
import re2

from tamis.encoding.dimensions.regex_literals import Needed, needed, needed_in_any_case
from tamis.language.like import LikePattern


@pytest.mark.parametrize(
    ("pattern", "literals", "shortest"),
    [
        (r"abc", {"abc"}, 3),
        (r"\Aabc.*defg\z", {"defg"}, 7),
        (r"(?s)\A.*\\cmd\.exe.*\ \/c.*\z", {"\\cmd.exe"}, 11),
        (r"abc|defg", {"abc", "defg"}, 3),
        (r"(foo|bar)baz", {"foobaz", "barbaz"}, 6),
        (r"foo(bar)?baz", {"foobaz", "foobarbaz"}, 6),
        (r"https?://", {"http://", "https://"}, 7),
        (r"abc+de", {"abc"}, 5),
        (r"ab(c|d)+ef", {"abc", "abd"}, 5),
        (r"abcd(xy)*ef", {"abcd"}, 6),
        (r"(abc){2}d", {"abcabcd"}, 7),
        (r"(abc){2,}d", {"abcabc"}, 7),
        (r"(abc){0,3}d", set(), 1),
        (r"(abc){0}wxyz", {"wxyz"}, 4),
        (r"[ab]cde", {"acde", "bcde"}, 4),
        (r"[a-c]xyz", {"axyz", "bxyz", "cxyz"}, 4),
        (r"[]x]abc", {"]abc", "xabc"}, 4),
        (r"[^a]bcd", {"bcd"}, 4),
        (r"[\]\\\x41]bcd", {"]bcd", "\\bcd", "Abcd"}, 4),
        (r"[[:digit:]x]bcd", {"bcd"}, 4),
        (r"[\d-]bcd", {"bcd"}, 4),
        (r"[a-z]{8,}", set(), 8),
        (r"\d+\.\w+", set(), 3),
        (r"\x{1F600}ab\t", {"😀ab\t"}, 4),
        (r"\101\x42\0", {"AB\0"}, 3),
        (r"\pLabc\p{Greek}", {"abc"}, 5),
        (r"\Qa.b*\E+c", {"a.b*"}, 5),
        (r"\Qa.b", {"a.b"}, 3),
        (r"^abc$|\bxyz\B", {"abc", "xyz"}, 3),
        (r"a{,2}bc", {"a{,2}bc"}, 7),
        (r"(?P<name>abc)(?<other>def)(?:ghi)", {"abcdefghi"}, 9),
        (r"abc|", set(), 0),
        (r"abc|d", set(), 1),
        (r"ab", set(), 2),
        (r"", set(), 0),
        (r"(?i)abc", set(), 3),
        (r"(?i)123-45", {"123-45"}, 6),
        (r"(?i:abc)defg", {"defg"}, 7),
        (r"(?i)ab(?-i)cdef", {"cdef"}, 6),
        (r"(?i)abc|(?-i:defg)", set(), 3),
        (r"é中文x", {"é中文x"}, 4),
        (r"\Cabc", {"abc"}, 4),
        (r"abcd(?i)*", set(), 0),  # RE2 repeats the d
        (r"abc\Q\E+", set(), 0),
        (r"(" * 60 + "abc" + ")" * 60, set(), 0),
    ],
)
def test_literals(pattern: str, literals: set[str], shortest: int) -> None:
    assert re2.compile(pattern)
    assert needed(pattern) == Needed(frozenset(literals), False, shortest)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        (r"(?i)Power", {"power"}),
        (r"(?i)Shell", {"shell", "ſ"}),
        (r"Shell", {"shell"}),
        (r"[Pp][Oo][Ww][Ee][Rr]", {"power"}),
        (r"(?i)[xs]yz", {"xyz", "syz", "ſ"}),
        (r"(?i)éabc", {"abc"}),
        (r"ÉABC", {"abc"}),
        (r"(?i:abc)DEF", {"abcdef"}),
    ],
)
def test_literals_in_lower_case(pattern: str, literals: set[str]) -> None:
    assert needed(pattern, lower=True).literals == literals


def test_the_longer_literals_are_taken() -> None:
    assert needed_in_any_case("(?i)power") == Needed(frozenset({"power"}), True, 5)
    assert needed_in_any_case("Power") == Needed(frozenset({"power"}), True, 5)
    assert needed_in_any_case("éÉabc") == Needed(frozenset({"éÉabc"}), False, 5)
    assert needed_in_any_case("(?i)tasks") == Needed(frozenset({"tasks", "ſ"}), True, 5)
    assert not needed_in_any_case(".*").literals


def test_characters_that_re2_folds_to_ascii_letters() -> None:
    """`regex_literals` relies on this."""
    everything = "".join(chr(point) for point in range(sys.maxunicode + 1) if not 0xD800 <= point < 0xE000)
    for letter in map(chr, range(ord("a"), ord("z") + 1)):
        others = {"k": {"\u212a"}, "s": {"ſ"}}.get(letter, set())
        assert set(re2.findall(f"(?i){letter}", everything)) == {letter, letter.upper()} | others
    assert "\u212a".lower() == "k"
    assert "ſ".lower() == "ſ"
    for character in map(chr, range(128)):
        if not character.isalpha():
            assert re2.findall(f"(?i){re2.escape(character)}", everything) == [character]


def holds(need: Needed, text: str) -> bool:
    text_in_case = text.lower() if need.lower else text
    long_enough = len(text.encode()) >= need.shortest
    return long_enough and (not need.literals or any(literal in text_in_case for literal in need.literals))


class RandomRegex:
    """Expressions in RE2's syntax, with strings that they are likely to match."""

    CHARACTERS = "aAbBsSkKxé1-.\\[]^ſ\u212aİΣ😀{}|"

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def regex(self, depth: int = 3) -> tuple[str, str]:
        chance = self._chance
        kind = chance.random()
        if depth == 0 or kind < 0.3:
            return self._literal()
        if kind < 0.55:
            parts = [self.regex(depth - 1) for _ in range(chance.randint(1, 4))]
            return "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)
        if kind < 0.7:
            parts = [self.regex(depth - 1) for _ in range(chance.randint(2, 3))]
            opening = chance.choice(["(", "(?:", "(?P<g>", "(?i:", "(?-i:", "(?s:"])
            return opening + "|".join(pattern for pattern, _ in parts) + ")", chance.choice(parts)[1]
        if kind < 0.85:
            pattern, text = self.regex(depth - 1)
            least = chance.randint(0, 3)
            mark = chance.choice(["*", "+", "?", "{2}", "{1,}", "{0,2}", f"{{{least},{least + 1}}}", "+?", "{2,3}?"])
            times = {"*": 0, "+": 1, "?": 0, "{2}": 2, "{1,}": 1, "{0,2}": 0, "+?": 1, "{2,3}?": 2}.get(mark, least)
            return f"(?:{pattern}){mark}", text * (times + (chance.random() < 0.4 and mark != "{2}"))
        return chance.choice([("(?i)", ""), ("^", ""), ("$", ""), (r"\b", ""), (r"\B", ""), (".", "z"), (".*", "..")])

    def _literal(self) -> tuple[str, str]:
        chance = self._chance
        character = chance.choice(self.CHARACTERS)
        escaped = re2.escape(character)
        other = chance.choice("aszé1")
        return chance.choice(
            [
                (escaped, character),
                (escaped, character),
                (escaped + escaped + re2.escape(other), character * 2 + other),
                (f"\\x{{{ord(character):x}}}", character),
                (f"[{escaped}{other}]", chance.choice([character, other])),
                (f"[^{escaped}]", other),
                (f"[{other}-{chr(ord(other) + chance.choice([0, 2, 30]))}]", other),
                (rf"[\d{escaped}]", character),
                (r"[[:alpha:]]", "a"),
                (r"\w", "s"),
                (r"\pL", "é"),
                (rf"\Q{character}{other}\E", character + other),
            ]
        )


def compiled(pattern: str) -> Any:
    """The regular expression compiled by RE2. None if RE2 refuses it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def check(pattern: str, texts: list[str], shortest: int) -> int:
    """Check that all texts that match a pattern have its needed literals. Returns how many texts match."""
    regex = compiled(pattern)
    needs = [needed(pattern, lower=lower, shortest=shortest) for lower in (False, True)]
    needs.append(needed_in_any_case(pattern, shortest=shortest))
    matched = [text for text in texts if regex is not None and regex.search(text)]
    for text in matched:
        assert all(holds(need, text) for need in needs), (pattern, text, needs)
    return len(matched)


@pytest.mark.parametrize("shortest", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_every_match_contains_a_needed_literal(seed: int, shortest: int) -> None:
    chance = random.Random(seed)
    source = RandomRegex(seed)
    matched = 0
    for _ in range(400):
        parts = [source.regex() for _ in range(chance.randint(1, 3))]
        pattern, sample = "".join(pattern for pattern, _ in parts), "".join(text for _, text in parts)
        swapped = "".join(chance.choice([letter, letter.swapcase()]) for letter in sample)
        folded = sample.replace("s", "ſ").replace("K", "\u212a").replace("k", "\u212a")
        texts = [sample, swapped, folded, "x" + sample + "y", swapped[: len(swapped) // 2], swapped * 2, ""]
        matched += check(pattern, texts, shortest)
    assert matched > 400


PIECES = [
    *"ab-]^[\\:(){}|*+?,2.isSk$", "\\Q", "\\E", "(?i)", "(?i:", "(?-i)", "(?:", "[:alpha:]", "[:^a", "\\d", "\\]", "\\-", "\\\\",
    "{2}", "{0,1}", "{1,}", "\\x41", "\\x{73}", "\\101", "\\b", "\\pL", "\\p{L}", "[^", "[a-c", "[]", "[^]", "é", "ſ", "\\z",
    "\\A", "(?P<n>", "(?<n>", "\\C", "\\n",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_syntax_at_random(seed: int) -> None:
    """RE2 reads some syntax in its own way."""
    chance = random.Random(seed)
    matched = 0
    for _ in range(2000):
        pattern = "".join(chance.choices(PIECES, k=chance.randint(1, 9)))
        texts = ["".join(chance.choices("absSkKA2\u212aſ]-^\\[:{}\n", k=length)) for length in (0, 1, 2, 2, 3, 4, 8)]
        matched += check(pattern, [pattern, "a", "b", "]", "-", "[", *texts], shortest=1)
    assert matched > 1000


def test_like_patterns_have_literals() -> None:
    for pattern, literal in [("%ab_cde%f", "cde"), ("a.b*c%d", "a.b*c"), ("x%\\(é)%", "\\(é)"), ("%a%b%", None)]:
        regex = LikePattern.read(pattern).to_regex()
        assert needed(regex).literals == (frozenset() if literal is None else {literal})
