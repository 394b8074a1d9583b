"""LIKE patterns: their parts and shape, what they match, and their form for RE2."""

from __future__ import annotations

import itertools
import random
import re

import pytest
import re2
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import LiteralError
from tamis.language.like import LikePattern, LikeShape, Wildcard

TEXTS = st.text("ab%_!\n", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "shape", "literal"),
    [
        ("", LikeShape.EXACT, ""),
        ("abc", LikeShape.EXACT, "abc"),
        ("abc%", LikeShape.PREFIX, "abc"),
        ("%abc", LikeShape.SUFFIX, "abc"),
        ("%abc%", LikeShape.CONTAINS, "abc"),
        ("%%abc%%", LikeShape.CONTAINS, "abc"),
        ("%", LikeShape.ANYTHING, ""),
        ("%%%", LikeShape.ANYTHING, ""),
        ("_", LikeShape.GENERAL, ""),
        ("%_", LikeShape.GENERAL, ""),
        ("a%b", LikeShape.GENERAL, "ab"),
        ("a!%%", LikeShape.PREFIX, "a%"),
        ("!_!!", LikeShape.EXACT, "_!"),
    ],
)
def test_shapes(pattern: str, shape: LikeShape, literal: str) -> None:
    read = LikePattern.read(pattern, "!")
    assert (read.shape, read.literal) == (shape, literal)


def test_parts() -> None:
    assert LikePattern.read("a%%b_").parts == ("a", Wildcard("%"), "b", Wildcard("_"))
    assert LikePattern.read("Ab%", fold=True).literal == "ab"


@pytest.mark.parametrize("pattern", ["a!", "!ab", "!!!"])
def test_wrong_escapes(pattern: str) -> None:
    with pytest.raises(LiteralError, match="the escape '!' must come before %, _ or itself"):
        LikePattern.read(pattern, "!")


@pytest.mark.parametrize(
    ("pattern", "right", "wrong"),
    [
        ("a%", ["a", "ab", "a\nb"], ["", "ba", "A"]),
        ("a_c", ["abc", "a\nc", "a\N{MUSICAL SYMBOL G CLEF}c"], ["ac", "abbc"]),
        ("%ab%ab", ["abab", "ababab", "xabyab"], ["ab", "aba", "ababx"]),
        ("a.c", ["a.c"], ["abc"]),
        ("", [""], ["a"]),
    ],
)
def test_matches(pattern: str, right: list[str], wrong: list[str]) -> None:
    read = LikePattern.read(pattern)
    assert [text for text in right + wrong if read.matches(text)] == right


@given(TEXTS, TEXTS)
def test_both_ways_to_match_agree(pattern: str, text: str) -> None:
    """Also with a Python regular expression, made from the pattern character by character."""
    read = LikePattern.read(pattern)
    plain = "".join({"%": ".*", "_": "."}.get(symbol, re.escape(symbol)) for symbol in pattern)
    expected = re.fullmatch(plain, text, re.DOTALL) is not None
    assert read.matches(text) is expected
    assert (re2.fullmatch(read.to_regex(), text) is not None) is expected


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ("%", "", True),
        ("%b%", "abc", True),
        ("%b%", "a_c%", False),
        ("a%", "a_c", True),
        ("a_c", "a%c", False),
        ("a__%", "a_b%", True),
        ("%ab%ab%", "%abab", True),
        ("%ab%ab%", "%aba", False),
        ("!%%", "!%a", True),
        ("!%%", "%a", False),
    ],
)
def test_covers(wide: str, narrow: str, expected: bool) -> None:
    assert LikePattern.read(wide, "!").covers(LikePattern.read(narrow, "!")) is expected


@given(TEXTS, TEXTS, TEXTS)
def test_a_covered_pattern_matches_nothing_else(wide: str, narrow: str, text: str) -> None:
    outer, inner = LikePattern.read(wide), LikePattern.read(narrow)
    if outer.covers(inner):
        assert outer.matches(text) or not inner.matches(text)


@pytest.mark.parametrize(
    "pattern", ["%" + "_" * 5_000 + "b%", "%" + "a_" * 5_000 + "b%", "%a" * 5_000 + "b"], ids=["any", "some", "runs"]
)
def test_a_long_pattern_and_a_long_text(pattern: str) -> None:
    """Trying each place of the text for each part of the pattern would take many minutes."""
    read = LikePattern.read(pattern)
    assert read.matches("a" * 100_000) is False
    assert read.matches("a" * 100_000 + "b") is True


def test_many_different_characters() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4E00 + 2_000)))
    assert LikePattern.read(f"%{'%'.join(text[1:-1:2])}%").matches(text)
    assert not LikePattern.read(f"%{'%'.join(reversed(text))}%").matches(text)


def _read_by_character(pattern: str, escape: str | None) -> str | None:
    """A regular expression of the pattern, read one character after another. None if the escape is wrong."""
    pieces, escaped = [], False
    for symbol in pattern:
        if escaped:
            if symbol not in ("%", "_", escape):
                return None
            pieces.append(re.escape(symbol))
            escaped = False
        elif symbol == escape:
            escaped = True
        else:
            pieces.append({"%": ".*", "_": "."}.get(symbol, re.escape(symbol)))
    return None if escaped else "".join(pieces)


@pytest.mark.parametrize("escape", [None, "!", "%", "_", "^", "]", "-", "\\", "a"])
def test_patterns_are_read_as_character_by_character(escape: str | None) -> None:
    rng = random.Random(5)
    wrong = 0
    for _ in range(400):
        pattern = "".join(rng.choices(f"aXİ%_{escape or '!'}", (4, 2, 1, 4, 1, 2), k=rng.randrange(8)))
        expected = _read_by_character(pattern, escape)
        try:
            read = LikePattern.read(pattern, escape)
        except LiteralError:
            assert expected is None
            wrong += 1
            continue
        assert expected is not None
        text = "".join(rng.choices("aX!%_", k=rng.randrange(6)))
        assert read.matches(text) == bool(re.fullmatch(expected, text, re.DOTALL)), (pattern, escape, text)
        assert all(left != right for left, right in itertools.pairwise(read.parts) if left == Wildcard("%"))
        folded = LikePattern.read(pattern, escape, fold=True)
        assert folded.parts == tuple(part.lower() if isinstance(part, str) else part for part in read.parts)
    assert (wrong > 20) == (escape is not None)
