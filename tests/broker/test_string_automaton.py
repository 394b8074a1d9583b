"""Automata of simple regular expressions say what RE2 says, and RE2 decides where they do not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tamis.broker.string_automaton import decided, read_automaton
from tamis.broker.string_search import bytes_of, like, rlike
from tamis.language.like import LikePattern

pytestmark = pytest.mark.kernels

_LETTERS = st.sampled_from("aaabbcA7-]^. _\n\x00\t\v")
TEXTS = st.lists(
    st.text(_LETTERS, max_size=9) | st.text(st.sampled_from("abKkSs_é€😀\u017f\u212a"), max_size=4), max_size=14
)
_ESCAPES = st.sampled_from(
    [r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\n", r"\t", r"\v", r"\.", r"\]", r"\^", r"\\", r"\-"]
)
_ITEMS = st.one_of(
    st.sampled_from(["a", "b", "7", " ", "_", ".", "a-c", "0-9", "+--", "\x00", "\n", "[", "^", "-"]), _ESCAPES
)
_CLASSES = st.builds(
    "[{}{}{}]".format,
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "", "]", "-"]),
    st.lists(_ITEMS, max_size=3).map("".join),
)
_ATOMS = st.one_of(st.sampled_from("aabbc7.\n\x00- ]{}"), _ESCAPES, _CLASSES)
_REPETITIONS = st.sampled_from(
    ["*", "+", "?", "*?", "+?", "??", "{2}", "{0,1}", "{1,3}", "{2,}", "{0}", "{2,3}?", "{,2}", "{1", "{01}"]
)


def _larger(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, parts, parts),
        st.builds("{}|{}".format, parts, parts | st.just("")),
        st.builds("({})".format, parts),
        st.builds("(?:{}){}".format, parts, _REPETITIONS),
        st.builds("{}{}".format, parts, _REPETITIONS),
        st.builds("^{}".format, parts),
        st.builds("{}$".format, parts),
    )


PATTERNS = st.recursive(_ATOMS | st.just(""), _larger, max_leaves=8)
_CHARACTERS = st.text(st.sampled_from("aab7()[]{}|*+?^$.,12\\dwsAzbQE-:\n"), max_size=8)


def _array(texts: list[str]) -> pa.Array:
    """The texts as an array that does not begin at the beginning of its bytes."""
    return pa.array(["before", *texts, "after"], pa.string())[1:-1]


def _check(pattern: str, texts: list[str]) -> None:
    array = _array(texts)
    try:
        expected = pc.match_substring_regex(array, pattern).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        return
    automaton = read_automaton(pattern)
    if automaton is not None:
        is_found, is_open = decided(automaton, *bytes_of(array))
        assert is_found[~is_open].tolist() == expected[~is_open].tolist()
        assert pattern.startswith("(?i)") or not is_open.any()
        assert all({"\u017f", "\u212a", "€"} & set(text) for text, each in zip(texts, is_open, strict=True) if each)
        assert not (is_found & is_open).any()


@settings(max_examples=settings().max_examples // 2)
@given(pattern=PATTERNS | st.builds("(?i){}".format, PATTERNS), texts=TEXTS)
@example(pattern="(?i)k|[^s]$", texts=["K", "\u212a", "\u017f", "s", "S", "€", "é"])
@example(pattern="(?i)[a-c]|b_", texts=["A", "B_", "d", "C"])
@example(pattern="a.b$", texts=["aéb", "a€b", "a😀b", "aéb€", "aééb"])
@example(pattern="^[^a]{2}b", texts=["éb", "ééb", "é€bé", "aéb"])
@example(pattern="", texts=["", "a", "é"])
@example(pattern="|a", texts=["", "a", "é"])
@example(pattern="(^a|b)$", texts=["ba", "a", "b", "ab", "b\n", ""])
@example(pattern="^$", texts=["", "\n", "\x00"])
@example(pattern="b.$", texts=["b\n", "ba", "b\x00", "bé", "abb"])
@example(pattern="[^a]", texts=["\n", "a", "aé", ""])
@example(pattern=r"\s", texts=["\v", "\t", "\x1c", "\x85"])
@example(pattern="[[:digit:]]", texts=["7", ":]", "d]"])
@example(pattern="[][:digit:]]", texts=["7", ":]", "d]", "]", "["])
@example(pattern="a{,2}", texts=["a", "a{,2}", ""])
@example(pattern="a++b", texts=["aab", "a+b"])
@example(pattern="a$", texts=["a\n", "éa", "aé", "a"])
def test_patterns(pattern: str, texts: list[str]) -> None:
    _check(pattern, texts)


@settings(max_examples=settings().max_examples // 2)
@given(pattern=_CHARACTERS, texts=TEXTS)
def test_any_characters_as_a_pattern(pattern: str, texts: list[str]) -> None:
    """What Python and RE2 do not read alike is left to RE2."""
    _check(pattern, texts)


@pytest.mark.parametrize(
    "pattern", [".", r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"[^\w-]", r"[\s!-}]", "[]^]", "[^]]"]
)
def test_classes_have_the_bytes_that_re2_gives_them(pattern: str) -> None:
    assert read_automaton(pattern) is not None
    _check(pattern, list(map(chr, range(130))))


@pytest.mark.parametrize(
    "pattern", ["9[0-9]7$", "^ab?c", "^a.*9$", "(a|b)+[^c]{2,3}", "a|^b", "^(a|b)$|c", r"a+?b*?\$"]
)
def test_patterns_that_an_automaton_has(pattern: str) -> None:
    assert read_automaton(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "(?i:a)",
            "(?s)a",
            "(?i)é",
            r"\ba",
            r"\x41",
            r"\pL",
            "a^b",
            "(a$)*",
            "é",
            "[a",
            r"\Qa\E",
            "a{01}",
            "a{,1}",
            "[a[:digit:]]",
        ),
        *("(a|b)*a.{12}c", "a{200}{200}", "((a{9}){9}){9}"),  # too large
        *("a*", "^", "$", ""),  # found in all strings
    ],
)
def test_patterns_that_are_left_to_re2(pattern: str) -> None:
    assert read_automaton(pattern) is None


_MANY = pa.array([f"title {number} {'é' if number % 3 else ''}of {number % 977}" for number in range(6000)])


@pytest.mark.compiled
@pytest.mark.parametrize(
    "text",
    [
        *(
            "%9_7%",
            "%9_7",
            "title _7%",
            "%t_t%_f 9%7",
            "_____ 7_",
            "%é_f%",
            "%\n_",
            "%[_]%",
            "%f%_____________",
            "____ %",
        ),
        *("%é%_8%", "%z_é%", "%.%\\_%"),
    ],
)
def test_like_with_wildcards_between(text: str) -> None:
    texts = pa.concat_arrays([_MANY, pa.array(["é9€7", "987", "9\n7", "a\nb", "[😀]", "", "€€€€ x", "9é7", "..\\x"])])
    pattern = LikePattern.read(text)
    assert like(texts, pattern).tolist() == list(map(pattern.matches, texts.to_pylist()))


@pytest.mark.compiled
@pytest.mark.parametrize("filler", ["", "é", "e" * 80])
@pytest.mark.parametrize("pattern", ["9[0-9]7$", "7.*7", "of 9[0-9]?", "(for|from) 9+", "(?i)OF 9", "(?i)K", "tle 9"])
def test_many_strings(pattern: str, filler: str) -> None:
    """Whatever searches: automaton, needles first, RE2."""
    texts = pa.array([f"title {number} {filler if number % 3 else ''}of {number % 977}" for number in range(6000)])
    texts = pa.concat_arrays([texts, pa.array(["from 9", "é of 9", "", "é97"])])
    assert rlike(texts, pattern).tolist() == pc.match_substring_regex(texts, pattern).to_pylist()


def test_rows_of_all_lengths() -> None:
    """Four strings are read together as long as the shortest of them."""
    lengths = np.random.default_rng(1).integers(0, 9, 203)
    for pattern in ("a.*b", "b$", "^ab", "^(ab)*$", "[^b]b[^b]"):
        _check(pattern, [("ab" * 5)[place % 2 :][:size] for place, size in enumerate(lengths.tolist())])
