"""Which strings match predicates and patterns."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tamis.language.evaluate import evaluate
from tamis.language.expression import Predicate


def truth(operator: str, literals: Any, value: Any, *, escape: str | None = None) -> bool | None:
    """The truth of a predicate on attribute `a` for the event {"a": value}."""
    values = literals if isinstance(literals, list) else [literals]
    return evaluate(Predicate("a", operator, values, escape=escape), {"a": value})


def test_strings_have_no_collation_trimming_or_padding() -> None:
    assert truth("=", "a", "a ") is False
    assert truth("=", "a", "A") is False
    assert truth("<", "a", "B") is True
    assert truth("=", "é", "e\u0301") is False
    assert truth(">", "\uffff", "\U00010000") is True


@pytest.mark.parametrize(
    ("pattern", "value", "like", "ilike"),
    [
        ("abc", "abc", True, True),
        ("abc", "ABC", False, True),
        ("a%", "Abc", False, True),
        ("A%", "abc", False, True),
        ("%É%", "café", False, True),
        ("STRASSE", "straße", False, False),
        ("a_c", "aBc", True, True),
        ("a_c", "ac", False, False),
    ],
)
def test_ilike_lowers_both_sides(pattern: str, value: str, like: bool, ilike: bool) -> None:
    assert truth("like", pattern, value) is like
    assert truth("ilike", pattern, value) is ilike
    assert truth("not ilike", pattern, value) is (not ilike)


@pytest.mark.parametrize(
    ("pattern", "escape", "value", "expected"),
    [
        ("", None, "", True),
        ("", None, "a", False),
        ("%", None, "", True),
        ("_", None, "", False),
        ("_", None, "\U0001f600", True),
        ("a%", None, "a", True),
        ("%c", None, "abc", True),
        ("%b%", None, "abc", True),
        ("a%c%e", None, "abcde", True),
        ("a%c%e", None, "abde", False),
        ("%\n%", None, "a\nb", True),
        ("a.c", None, "abc", False),
        # No escape unless one is written: a backslash is a backslash.
        (r"a\%", None, r"a\bc", True),
        (r"a\%", None, "a%", False),
        (r"a\%", "\\", "a%", True),
        (r"a\%", "\\", "ab", False),
        ("100!%", "!", "100%", True),
        ("100!%", "!", "1000", False),
        ("!!%", "!", "!x", True),
        ("a!_c", "!", "abc", False),
        ("a!_c", "!", "a_c", True),
    ],
)
def test_like_and_escape(pattern: str, escape: str | None, value: str, expected: bool) -> None:
    assert truth("like", pattern, value, escape=escape) is expected
    assert truth("not like", pattern, value, escape=escape) is (not expected)


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("^abc$", "abc", True),
        ("", "abc", True),
        ("a.c", "abc", True),
        ("a.c", "a\nc", False),
        ("(?s)a.c", "a\nc", True),
        ("(?i)ABC", "xabcx", True),
        (r"\d+", "x1", True),
        (r"C:\\", r"C:\dir", True),
        ("é", "café", True),
        ("^.$", "\U0001f600", True),
    ],
)
def test_rlike_finds_anywhere(pattern: str, value: str, expected: bool) -> None:
    assert truth("rlike", pattern, value) is expected
    assert truth("not rlike", pattern, value) is (not expected)


def test_a_regex_that_exceeds_its_memory_is_silent_and_correct(capfd: pytest.CaptureFixture[str]) -> None:
    """RE2 then searches without its automaton."""
    pattern = "a[ab]{20}c"
    text = "".join(random.Random(1).choices("ab", k=100_000))
    assert truth("rlike", [pattern], text) is False
    assert truth("rlike", [pattern], f"{text}a{'b' * 20}c") is True
    assert capfd.readouterr() == ("", "")
