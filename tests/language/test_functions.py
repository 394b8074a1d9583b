"""The functions of the language and lists with quantifiers: their expressions and their meaning."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tamis.errors import ExpressionError, LiteralError
from tamis.language.builder import attr
from tamis.language.evaluate import evaluate
from tamis.language.expression import CasePredicate
from tamis.language.json_form import from_json
from tamis.language.json_writer import to_json
from tamis.language.parser import parse, parse_afresh
from tamis.language.simplify import simplify


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("'x' = ANY (tags)", "tags = 'x'"),
        ("'x' = SOME(tags)", "tags = 'x'"),
        ("5 < ANY (a)", "a > 5"),
        ("5 >= ANY (a.b)", "a.b <= 5"),
        ("5 <> ANY (a)", "a < 5 OR a > 5"),
        ("TRUE <> ANY (a)", "a = FALSE"),
        ("5 <> ALL (a)", "a <> 5"),
        ("5 = ALL (a)", "NOT (a < 5 OR a > 5)"),
        ("FALSE = ALL (a)", "NOT a = TRUE"),
        ("5 < ALL (a)", "NOT a <= 5"),
        ("5 >= ALL (a)", "NOT a > 5"),
        ("a LIKE ANY ('x%', '%y')", "a LIKE 'x%' OR a LIKE '%y'"),
        ("a LIKE ALL ('x%', '%y')", "a LIKE 'x%' AND a LIKE '%y'"),
        ("a NOT LIKE ANY ('x%', '%y')", "a NOT LIKE 'x%' OR a NOT LIKE '%y'"),
        ("a NOT ILIKE ALL ('x%', '%y')", "a NOT ILIKE 'x%' AND a NOT ILIKE '%y'"),
        ("NOT a ILIKE SOME ('x')", "NOT a ILIKE 'x'"),
        ("lower(a) LIKE ANY ('x!%', 'y') ESCAPE '!'", "lower(a) LIKE 'x!%' ESCAPE '!' OR lower(a) LIKE 'y' ESCAPE '!'"),
        ("a REGEXP 'x' AND b NOT REGEXP 'y'", "a RLIKE 'x' AND b NOT RLIKE 'y'"),
        ("starts_with(a, '10%')", "a LIKE '10!%%' ESCAPE '!'"),
        ("STARTSWITH(a, 'x')", "a LIKE 'x%'"),
        ("ends_with(a, '')", "a LIKE '%'"),
        ("contains(upper(a), 'X')", "upper(a) LIKE '%X%'"),
        ("'x' = lower(a)", "lower(a) = 'x'"),
        ("UPPER(a) != 'x'", "upper(a) <> 'x'"),
        ("lower(a) IS DISTINCT FROM 'x'", "(lower(a) = 'x') IS NOT TRUE"),
        ("a = +1 AND b > +.5", "a = 1 AND b > 0.5"),
        ("a > TIMESTAMPTZ '2026-11-14 10:00:00+02:00'", "a > TIMESTAMP '2026-11-14 08:00:00'"),
        ("array_contains(lower(a), 'x')", "lower(a) = 'x'"),
        ("regexp = 1 AND unknown = 2 AND distinct = 3 AND timestamptz = 4", None),
        ("lower = 1 AND contains = 2 AND ip_in = 3 AND any = 4", None),
    ],
)
def test_functions_are_read_into_predicates(text: str, meaning: str | None) -> None:
    assert str(parse(text)) == (text if meaning is None else meaning)
    assert parse_afresh(text) == parse(text) == parse(str(parse(text)))


@pytest.mark.parametrize(
    ("text", "event", "truth"),
    [
        ("5 <> ANY (a)", {"a": [5, 6]}, True),
        ("5 <> ANY (a)", {"a": [5, 5]}, False),
        ("5 = ALL (a)", {"a": [5, 6]}, False),
        ("5 = ALL (a)", {"a": [5, "x"]}, True),
        ("5 = ALL (a)", {"a": []}, None),
        ("5 < ALL (a)", {"a": [6, 7]}, True),
        ("5 < ANY (a)", {}, None),
        ("a NOT LIKE ANY ('x%', '%y')", {"a": "xa"}, True),
        ("a NOT LIKE ANY ('x%', '%y')", {"a": "xy"}, False),
        ("lower(a) = 'straße'", {"a": "STRAßE"}, True),
        ("upper(a) = 'STRASSE'", {"a": "straße"}, True),
        ("lower(a) = 'X'", {"a": "x"}, False),
        ("lower(a) <> 'X'", {"a": "x"}, True),
        ("lower(a) NOT IN ('x', 'y')", {"a": ["Z", "Y"]}, False),
        ("lower(a) LIKE 'é%'", {"a": "École"}, True),
        ("lower(a) = 'x'", {"a": 5}, None),
        ("starts_with(a, 'x')", {"a": ["y", 5]}, False),
    ],
)
def test_meaning(text: str, event: dict[str, Any], truth: bool | None) -> None:
    assert evaluate(text, event) is truth


def test_json() -> None:
    expression = parse("lower(a) IN ('x', 'y') AND NOT ip_in(b, '10.0.0.0/8') AND upper(c) LIKE 'X!%' ESCAPE '!'")
    form = [
        [{"lower": "a"}, "in", ["x", "y"]],
        ["b", "not ip_in", ["10.0.0.0/8"]],
        [{"upper": "c"}, "like", "X!%", "!"],
    ]
    assert to_json(expression) == form
    assert from_json(form) == expression
    assert from_json(form[0]) == parse("lower(a) IN ('x', 'y')")
    assert from_json([{"exists": [[{"lower": "a"}, "=", "x"]]}]).needs_history()


@pytest.mark.parametrize(
    "wrong",
    [
        [{"trim": "a"}, "=", "x"],
        [{"lower": 5}, "=", "x"],
        [{"lower": "a"}, "<", "x"],
        [{"lower": "a"}, "=", 5],
        [{"lower": "a"}, "=", {"any": "b"}],
        [{"exists": [[{"lower": "a"}, "=", {"attribute": "b"}]]}],
        ["a", "ip_in", "10.0.0.0/8"],
        ["a", "ip_in", ["10.0.0.1/8"]],
    ],
)
def test_wrong_json(wrong: Any) -> None:
    with pytest.raises(ExpressionError):
        from_json(wrong)


def test_predicates_on_other_cases_differ() -> None:
    lower, upper = parse("lower(a) = 'x'"), parse("upper(a) = 'x'")
    assert len({lower, upper, parse("a = 'x'")}) == 3
    for each in (lower, upper):
        again = pickle.loads(pickle.dumps(each))
        assert again == each
        assert hash(again) == hash(each)
        assert isinstance(again, CasePredicate)
    assert lower.attributes() == {"a"}


def test_the_builder_refuses_wrong_calls_of_functions() -> None:
    with pytest.raises(ExpressionError, match="works with =, <>, IN and LIKE, not with <"):
        _ = attr("a").lower() < "x"
    with pytest.raises(ExpressionError, match=r"must be compared with a string, not with attr\('b'\)"):
        _ = attr("a").lower() == attr("b")
    with pytest.raises(LiteralError, match="must be compared with a string, not with 5"):
        attr("a").upper().isin([5])


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("lower(a) = 'X'", "lower(a) = 'X': lower(a) is never 'X', which is not in lower case"),
        ("b AND upper(a) IN ('X', 'y')", "upper(a) IN ('X', 'y'): upper(a) is never 'y', which is not in upper case"),
        ("lower(a) NOT LIKE 'X%'", "lower(a) NOT LIKE 'X%': lower(a) is never 'X%', which is not in lower case"),
    ],
)
def test_a_literal_that_is_never_equal_is_reported(text: str, remark: str) -> None:
    assert remark in [str(each) for each in simplify(parse(text)).remarks]
    assert not simplify(parse("lower(a) = 'x' AND upper(a) LIKE 'X_'")).remarks


def test_a_literal_that_is_never_equal_never_matches() -> None:
    assert str(simplify(parse("lower(a) = 'X'")).expression) == "FALSE"
    assert str(simplify(parse("upper(a) LIKE '%x%' OR b = 1")).expression) == "b = 1"
