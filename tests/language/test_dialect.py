"""How text is split into words: quotes, comments, names, and words without an end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ExpressionError, ParseError
from tamis.language.dialect import END, NAME, NUMBER, QUOTED, STRING, split_words


def words(text: str, dialect: str = "tamis") -> list[tuple[str, str]]:
    return [(word.kind, word.text) for word in split_words(text, dialect)[:-1]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", [(NAME, "a")]),
        ("aNd", [("AND", "aNd")]),
        ("'it''s'", [(STRING, "it's")]),
        (r"'C:\dir\'", [(STRING, "C:\\dir\\")]),
        (r"'\n'", [(STRING, "\\n")]),
        ("'a\nb'", [(STRING, "a\nb")]),
        ("'\0'", [(STRING, "\0")]),
        ('"any ""name"""', [(QUOTED, 'any "name"')]),
        ("`any ``name```", [(QUOTED, "any `name`")]),
        ("a<>1", [(NAME, "a"), ("<>", "<>"), (NUMBER, "1")]),
        ("a!=1", [(NAME, "a"), ("<>", "!="), (NUMBER, "1")]),
        ("a<=-1.5e-3", [(NAME, "a"), ("<=", "<="), ("-", "-"), (NUMBER, "1.5e-3")]),
        ("größe", [(NAME, "größe")]),
        ("नमस्ते", [(NAME, "नमस्ते")]),
        ("n'x'", [(NAME, "n"), (STRING, "x")]),
        ("i\u017f", [(NAME, "i\u017f")]),
        ("\u0131n", [(NAME, "\u0131n")]),
        ("\ufeffa", [(NAME, "a")]),
        ("\u00a0a\u2003", [(NAME, "a")]),
        ("", []),
    ],
)
def test_words(text: str, expected: list[tuple[str, str]]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a --x\n= 1",
        "a --x\r= 1",
        "a /* x */ = 1",
        "/**/a/***/=--\n1",
        "a = 1 -- 'x",
        "a = 1 /* \" ' ` -- */",
        "--\n--\na = 1--",
    ],
)
def test_comments_are_skipped(text: str) -> None:
    assert words(text) == [(NAME, "a"), ("=", "="), (NUMBER, "1")]


def test_jinja_and_hints_are_not_skipped() -> None:
    assert [kind for kind, _ in words("a {# b #}")] == [NAME, "{", "#", NAME, "#", "}"]
    assert words("/*+ hint */ a") == [(NAME, "a")]


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("a = 'x", 4, "string"),
        ("a = 'x''", 4, "string"),
        ("a = '", 4, "string"),
        ('  "a = 1', 2, "quoted text"),
        ("a = 1 AND `b", 10, "quoted name"),
        ("a = 1 /* b", 6, "comment"),
        ("a = 1 /*", 6, "comment"),
        ("a = 1 /*/", 6, "comment"),
        ("/* a", 0, "comment"),
        ("a /* x */ -- y\n /* 'z", 16, "comment"),
        ("a = 'ü' AND b = 'ö", 16, "string"),
    ],
)
def test_quotes_and_comments_without_end(text: str, position: int, reason: str) -> None:
    with pytest.raises(ParseError, match=f"the {reason} has no end") as error:
        split_words(text)
    assert error.value.position == position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("a\0b = 1", 1),
        ("\0", 0),
        ("ab\ud800", 2),
        ("a\u200b = 1", 1),
        ("٣ = 1", 0),
        ("x = 1 AND naïve\u2028\ufeffa", 16),
    ],
)
def test_characters_that_no_name_holds(text: str, position: int) -> None:
    with pytest.raises(ParseError, match="unexpected character") as error:
        split_words(text)
    assert error.value.position == position
    str(error.value).encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"'it\'s'", "it's"),
        ("'it''s'", "it's"),
        ('"it\'s"', "it's"),
        ('"a""b"', 'a"b'),
        (r"'\\'", "\\"),
        (r"'a\nb\tc'", "a\nb\tc"),
        (r"'\%\_'", r"\%\_"),
        (r"'\u0041\U00000042\103'", "ABC"),
        (r"'\uD83D\uDE00'", "\U0001f600"),
        (r"'\z\0'", "z\0"),
        (r"r'\d+'", r"\d+"),
        (r'R"\d+"', r"\d+"),
    ],
)
def test_strings_of_spark(text: str, expected: str) -> None:
    """As Spark 4 reads them."""
    assert words(text, "spark") == [(STRING, expected)]


def test_names_of_spark_are_quoted_with_backticks() -> None:
    assert words("`a b`", "spark") == [(QUOTED, "a b")]


@pytest.mark.parametrize("dialect", ["duckdb", "Spark", "", None, []])
def test_unknown_dialect(dialect: str) -> None:
    with pytest.raises(ExpressionError, match=r"unknown dialect.*the dialects are: tamis, spark"):
        split_words("a", dialect)


@given(st.text(), st.sampled_from(["tamis", "spark"]))
def test_words_follow_each_other_in_the_text(text: str, dialect: str) -> None:
    try:
        found = split_words(text, dialect)
    except ParseError:
        return
    assert found[-1].kind == END
    ends = [0, *[word.end for word in found]]
    assert all(end <= word.start <= word.end <= len(text) for end, word in zip(ends, found, strict=False))
