"""Expressions to conjunctions: which predicates are merged, which forms are multiplied out, and which keep their tree."""

from __future__ import annotations

import pytest

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.intervals import EVERYTHING, complement, intersection, union
from tamis.encoding.expressions.compile import MAX_CLAUSES, Compiled, Compiler, prefix_range
from tamis.language.parser import parse


def no_relabelling(*_: object) -> None:
    raise AssertionError("no label should move")


def compiled(text: str, scalars: tuple[str, ...] = ()) -> tuple[Compiled, Dimensions]:
    dimensions = Dimensions()
    return Compiler(dimensions, no_relabelling, scalars).compile(parse(text)), dimensions


def described(text: str, scalars: tuple[str, ...] = ()) -> list[list[str]]:
    """The clauses as sorted words: attribute, facet, mode and number of intervals."""
    result, dimensions = compiled(text, scalars)
    return [
        sorted(
            f"{dimensions[leaf.dimension].attribute} {dimensions[leaf.dimension].facet} {leaf.mode.name} {len(leaf.intervals)}"
            for leaf in clause
        )
        for clause in result.clauses
    ]


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("a = 5", [["a number SOME 1"]]),
        ("a <> 5", [["a number NONE 1"]]),
        ("a IN (1, 2, 3)", [["a number SOME 3"]]),
        ("a = 1 OR a = 2 OR a > 7", [["a number SOME 3"]]),
        ("a < 5 OR a > 3", [["a number SOME 1"]]),
        ("a <> 1 AND a <> 2", [["a number NONE 2"]]),
        ("a > 1 AND a < 5", [["a number SOME 1", "a number SOME 1"]]),
        ("NOT (a < 3)", [["a number NONE 1"]]),
        ("a IS NULL", [["a presence ABSENT 0"]]),
        ("a IS NOT NULL", [["a presence SOME 1"]]),
        ("NOT a IS NULL", [["a presence SOME 1"]]),
        ("a", [["a boolean SOME 1"]]),
        ("NOT a", [["a boolean NONE 1"]]),
        ("a = DATE '2026-11-14'", [["a timestamp SOME 1"]]),
        ("a LIKE 'x'", [["a string SOME 1"]]),
        ("a LIKE 'x%'", [["a string SOME 1"]]),
        ("a LIKE '%x'", [["a reversed SOME 1"]]),
        ("a LIKE '%x%'", [["a needle SOME 1"]]),
        ("a LIKE '%'", [["a string SOME 1"]]),
        ("a LIKE 'x_y'", [["a regex SOME 1"]]),
        ("a NOT LIKE '%x%'", [["a needle NONE 1"]]),
        ("a ILIKE 'X'", [["a lower SOME 1"]]),
        ("a ILIKE 'X%'", [["a lower SOME 1"]]),
        ("a ILIKE '%X'", [["a lower reversed SOME 1"]]),
        ("a ILIKE '%X%'", [["a lower needle SOME 1"]]),
        ("a ILIKE 'X_Y'", [["a lower regex SOME 1"]]),
        ("a RLIKE 'x+'", [["a regex SOME 1"]]),
        ("a LIKE '%x%' OR a LIKE '%y%' OR a LIKE '%z%'", [["a needle SOME 1"]]),
        ("a IN (1, 'x')", [["a number SOME 1"], ["a string SOME 1"]]),
        ("a NOT IN (1, 'x')", [["a number NONE 1", "a string NONE 1"]]),
        ("TRUE", [[]]),
        ("FALSE", []),
        ("a BETWEEN 5 AND 3", []),
        ("a NOT BETWEEN 5 AND 3", [["a number SOME 1"]]),
        ("a = 1 AND FALSE", []),
        ("a = 1 OR TRUE", [[]]),
        ("a = 1 OR b = 2", [["a number SOME 1"], ["b number SOME 1"]]),
        (
            "(a = 1 OR b = 1) AND (c = 1 OR d = 1)",
            [
                ["a number SOME 1", "c number SOME 1"],
                ["a number SOME 1", "d number SOME 1"],
                ["b number SOME 1", "c number SOME 1"],
                ["b number SOME 1", "d number SOME 1"],
            ],
        ),
    ],
)
def test_clauses(text: str, clauses: list[list[str]]) -> None:
    assert sorted(described(text)) == sorted(clauses)


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("a > 1 AND a < 5", [["a number SOME 1"]]),
        ("a > 1 AND a < 5 AND a <> 3", [["a number SOME 2"]]),
        ("a <> 3 AND a <> 4", [["a number SOME 3"]]),
        ("a < 3 AND a > 5", []),
        ("a LIKE 'ab%' AND a LIKE 'abc%'", [["a string SOME 1"]]),
        ("a LIKE '%x%' AND a LIKE '%y%'", [["a needle SOME 1", "a needle SOME 1"]]),
        ("b > 1 AND b < 5", [["b number SOME 1", "b number SOME 1"]]),
    ],
)
def test_predicates_on_a_declared_scalar_are_intersected(text: str, clauses: list[list[str]]) -> None:
    assert described(text, scalars=("a",)) == clauses


def test_a_dnf_that_would_explode_keeps_its_tree_and_a_necessary_condition() -> None:
    text = "z = 1 AND " + " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(20))
    result, dimensions = compiled(text)
    assert result.tree is not None
    assert 1 <= len(result.clauses) <= MAX_CLAUSES
    asked = {dimensions[leaf.dimension].attribute for leaf in result.clauses[0]}
    assert "z" in asked


def test_a_small_dnf_needs_no_tree() -> None:
    assert compiled("(a = 1 OR b = 1) AND (c = 1 OR d = 1)")[0].tree is None


def test_an_or_of_thousands_on_one_attribute_is_one_leaf() -> None:
    text = " OR ".join(f"a ILIKE '%needle{i}%'" for i in range(4400))
    assert described(text) == [["a lower needle SOME 1"]]


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("abc", "abd"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff", None),
        ("", None),
        ("\ud7ff", "\ue000"),
        ("z\U0010ffff\U0010ffff", "{"),
    ],
)
def test_the_end_of_a_prefix(prefix: str, end: str | None) -> None:
    assert prefix_range(prefix) == (prefix, end)


def test_interval_sets() -> None:
    low, high = EVERYTHING[0]
    assert union([((1, 3),), ((4, 6), (9, 9)), ((2, 2),)]) == ((1, 6), (9, 9))
    assert complement(((1, 3), (7, high))) == ((low, 0), (4, 6))
    assert complement(EVERYTHING) == ()
    assert complement(()) == EVERYTHING
    assert intersection(((1, 5), (8, 9)), ((4, 8),)) == ((4, 5), (8, 8))
