"""Expressions written in Python."""

from __future__ import annotations

import operator
from collections.abc import Callable
from datetime import date
from typing import Any, assert_type

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ExpressionError, LiteralError
from tamis.language.builder import EarlierTerm, attr, exists, history
from tamis.language.evaluate import matches
from tamis.language.expression import And, CasePredicate, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.quoting import quoted

A = attr("a")
H = history("h")


@pytest.mark.parametrize(
    ("built", "predicate"),
    [
        (A == 5, Predicate("a", "=", [5])),
        (A != 5, Predicate("a", "<>", [5])),
        (A < 5, Predicate("a", "<", [5])),
        (A <= 5, Predicate("a", "<=", [5])),
        (A > 5, Predicate("a", ">", [5])),
        (A >= 5, Predicate("a", ">=", [5])),
        (A == "x", Predicate("a", "=", ["x"])),
        (A == True, Predicate("a", "=", [True])),  # noqa: E712
        (date(2026, 11, 14) == A, Predicate("a", "=", [date(2026, 11, 14)])),
        (np.float64(1.5) == A, Predicate("a", "=", [1.5])),
        (A.isin([1, 2]), Predicate("a", "in", [1, 2])),
        (A.isin(range(3)), Predicate("a", "in", [0, 1, 2])),
        (A.isin(np.array([1, 2])), Predicate("a", "in", [1, 2])),
        (A.isin(x for x in "ab"), Predicate("a", "in", ["a", "b"])),
        (A.not_in({"x"}), Predicate("a", "not in", ["x"])),
        (A.between(20, 40), Predicate("a", "between", [20, 40])),
        (A.not_between(20, 40), Predicate("a", "not between", [20, 40])),
        (A.like("x%"), Predicate("a", "like", ["x%"])),
        (A.like("x!%", escape="!"), Predicate("a", "like", ["x!%"], escape="!")),
        (A.like("x!%", "!"), Predicate("a", "like", ["x!%"], escape="!")),
        (A.not_like("x%"), Predicate("a", "not like", ["x%"])),
        (A.ilike("x%"), Predicate("a", "ilike", ["x%"])),
        (A.not_ilike("x!%", "!"), Predicate("a", "not ilike", ["x!%"], escape="!")),
        (A.rlike("^x"), Predicate("a", "rlike", ["^x"])),
        (A.not_rlike("^x"), Predicate("a", "not rlike", ["^x"])),
        (A.startswith("x"), Predicate("a", "like", ["x%"])),
        (A.endswith("x"), Predicate("a", "like", ["%x"])),
        (A.contains("x"), Predicate("a", "like", ["%x%"])),
        (A.startswith(""), Predicate("a", "like", ["%"])),
        (A.contains("100%"), Predicate("a", "like", ["%100!%%"], escape="!")),
        (A.endswith("a_b!"), Predicate("a", "like", ["%a!_b!!"], escape="!")),
        (A.startswith("a!\\"), Predicate("a", "like", ["a!\\%"])),
        (A.is_null(), Predicate("a", "is null")),
        (A.is_not_null(), Predicate("a", "is not null")),
        (A.condition(), Predicate("a", "=", [True])),
        (A.is_true(), TruthTest(Predicate("a", "=", [True]), True)),
        (A.is_false(), TruthTest(Predicate("a", "=", [True]), False)),
        (A.is_unknown(), TruthTest(Predicate("a", "=", [True]), None)),
        ((A < 1).is_true(), TruthTest(Predicate("a", "<", [1]), True)),
        (~(A < 1).is_unknown(), Not(TruthTest(Predicate("a", "<", [1]), None))),
        (A.is_distinct_from(1), TruthTest(Predicate("a", "=", [1]), True, negated=True)),
        (A.is_not_distinct_from(1), TruthTest(Predicate("a", "=", [1]), True)),
        (A.ip_in("10.0.0.0/8", "::1"), Predicate("a", "ip_in", ["10.0.0.0/8", "::1"])),
        (A.lower() == "x", CasePredicate("lower", "a", "=", ["x"])),
        (A.lower() != "x", CasePredicate("lower", "a", "<>", ["x"])),
        (A.upper().isin(["X", "Y"]), CasePredicate("upper", "a", "in", ["X", "Y"])),
        (A.upper().not_in(["X"]), CasePredicate("upper", "a", "not in", ["X"])),
        (A.lower().like("x%"), CasePredicate("lower", "a", "like", ["x%"])),
        (A.lower().startswith("10%"), CasePredicate("lower", "a", "like", ["10!%%"], escape="!")),
        (~A, Not(Predicate("a", "=", [True]))),
        (attr("user.name") == 1, Predicate("user.name", "=", [1])),
    ],
)
def test_predicates(built: Expression, predicate: Expression) -> None:
    assert isinstance(built, Expression)
    assert built == predicate


MIRRORED: dict[Callable[[Any, Any], Any], str] = {
    operator.eq: "=",
    operator.ne: "<>",
    operator.lt: ">",
    operator.le: ">=",
    operator.gt: "<",
    operator.ge: "<=",
}
WRITTEN = {**MIRRORED, operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">="}


@pytest.mark.parametrize("compare", MIRRORED)
def test_the_attribute_may_stand_on_the_right(compare: Callable[[Any, Any], Any]) -> None:
    assert compare(5, A) == Predicate("a", MIRRORED[compare], [5])
    assert compare(H.any(), A) == Quantified("a", MIRRORED[compare], "any", "h")
    assert compare(H, A).part == Join("h", WRITTEN[compare], "a")
    assert compare(A, H).part == Join("h", MIRRORED[compare], "a")
    assert compare(5, H).part == Predicate("h", MIRRORED[compare], [5])


def test_combinations() -> None:
    one, two, a = Predicate("b", "=", [1]), Predicate("c", "=", [2]), Predicate("a", "=", [True])
    b, c = attr("b") == 1, attr("c") == 2
    assert (b & c) == And([one, two])
    assert (b | c) == Or([one, two])
    assert ~b == Not(one)
    assert (A & b) == And([a, one])
    assert (b & A) == And([one, a])
    assert (A | b) == Or([a, one])
    assert (b | A) == Or([one, a])
    assert (A & attr("b")) == And([a, Predicate("b", "=", [True])])
    assert (A & b & c | ~A) == Or([And([a, one, two]), Not(a)])


@pytest.mark.parametrize(
    ("built", "quantified"),
    [
        (H.any() > A, Quantified("a", "<", "any", "h")),
        (H.all() <= A, Quantified("a", ">=", "all", "h")),
        (H.any() == A, Quantified("a", "=", "any", "h")),
        (H.all() != A, Quantified("a", "<>", "all", "h")),
    ],
)
def test_quantified(built: Expression, quantified: Quantified) -> None:
    assert built == quantified


def test_exists() -> None:
    built = exists(
        history("author") == attr("author"),
        history("price") > attr("price"),
        attr("year") < history("year"),
        history("genre") == "crime",
        history("tags").isin(["x", "y"]),
        history("name").startswith("A"),
        history("sold").is_null(),
        history("pages") > 5,
    )
    assert built == Exists(
        [Join("author", "=", "author"), Join("price", ">", "price"), Join("year", ">", "year")],
        [
            Predicate("genre", "=", ["crime"]),
            Predicate("tags", "in", ["x", "y"]),
            Predicate("name", "like", ["A%"]),
            Predicate("sold", "is null"),
            Predicate("pages", ">", [5]),
        ],
    )
    assert exists() == Exists()


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: A == None, LiteralError, r"attr\('a'\)\.is_null\(\)"),  # noqa: E711
        (lambda: A != None, LiteralError, r"is_not_null\(\)"),  # noqa: E711
        (lambda: A < None, LiteralError, "None is never true"),
        (lambda: A.isin([float("nan")]), LiteralError, "finite"),
        (lambda: A == 2**70, LiteralError, "64 bits"),
        (lambda: A == [1], LiteralError, "not a literal"),
        (lambda: A.isin([1, None]), LiteralError, "NULL"),
        (lambda: A.isin([]), ExpressionError, "at least one literal"),
        (lambda: A.isin("abc"), ExpressionError, "take a list of literals, not 'abc'"),
        (lambda: A.isin(5), ExpressionError, "a list of literals"),  # type: ignore[arg-type]
        (lambda: A.isin(b"ab"), ExpressionError, r"take a list of literals, not b'ab' \(bytes\)"),
        (lambda: A.not_in({1: 2}), ExpressionError, r"take a list of literals, not {1: 2} \(dict\)"),
        (lambda: A.isin(bytearray(b"ab")), ExpressionError, "take a list of literals"),
        (lambda: A.like("x%", escape=["!"]), LiteralError, r"ESCAPE takes one character, not \['!'\]"),  # type: ignore[arg-type]
        (lambda: A.like("x%", escape=5), LiteralError, "ESCAPE takes one character, not 5"),  # type: ignore[arg-type]
        (lambda: A.ilike("x%", escape=b"!"), LiteralError, "ESCAPE takes one character"),  # type: ignore[arg-type]
        (lambda: A.like("x%", escape=""), LiteralError, "ESCAPE takes one character, not ''"),
        (lambda: operator.eq(A, np.timedelta64(5, "ns")), LiteralError, "durations are not supported"),
        (lambda: operator.eq(A, np.datetime64("20000-01-01")), LiteralError, "the year 20000 is not within 1 to 9999"),
        (lambda: operator.eq(A, np.datetime64("0000-01-01")), LiteralError, "the year 0 is not within"),
        (lambda: operator.eq(A, np.datetime64(2**62, "s")), LiteralError, "is not within 1 to 9999"),
        (lambda: operator.eq(A, np.datetime64("NaT")), LiteralError, "not a literal"),
        (lambda: A < True, LiteralError, "no order"),
        (lambda: A.between(1, "x"), LiteralError, "one kind"),
        (lambda: A.like(5), LiteralError, "string pattern"),  # type: ignore[arg-type]
        (lambda: A.like("x!a", "!"), LiteralError, "escape"),
        (lambda: A.rlike("("), LiteralError, "RLIKE cannot read"),
        (lambda: A.startswith(5), LiteralError, "take a string"),  # type: ignore[arg-type]
        (lambda: attr("b") == A, ExpressionError, "two attributes of one event cannot be compared"),
        (lambda: attr("b") > A, ExpressionError, "two attributes"),
        (lambda: history("g") == H, ExpressionError, "two attributes of earlier events"),
        (lambda: operator.eq(H, H.any()), ExpressionError, "two attributes of earlier events"),
        (lambda: H.any() < 5, ExpressionError, "compared with an attribute of the event"),
        (lambda: H.any() == H.all(), ExpressionError, "compared with an attribute of the event"),
        (lambda: H == None, LiteralError, r"history\('h'\)\.is_null\(\)"),  # noqa: E711
        (lambda: exists(A == 1), ExpressionError, r"exists\(\) takes comparisons of history"),  # type: ignore[arg-type]
        (lambda: exists(H.any() == A), ExpressionError, r"exists\(\) takes comparisons"),  # type: ignore[arg-type]
        (lambda: exists(H), ExpressionError, r"exists\(\) takes comparisons"),  # type: ignore[arg-type]
        (lambda: (H == 1) & (H == 2), ExpressionError, r"inside exists\(\)"),
        (lambda: (H == 1) | (H == 2), ExpressionError, r"inside exists\(\)"),
        (lambda: ~(H == 1), ExpressionError, r"inside exists\(\)"),
        (lambda: (A == 1) & (H == 2), ExpressionError, "cannot combine"),
        (lambda: bool(H == 1), ExpressionError, r"inside exists\(\)"),
        (lambda: bool(A), ExpressionError, "no truth value"),
        (lambda: A and A, ExpressionError, "Hint: combine expressions with &"),
        (lambda: not A, ExpressionError, "no truth value"),
        (lambda: 1 < A < 5, ExpressionError, "no truth value"),
        (lambda: bool(H), ExpressionError, "no truth value"),
        (lambda: A & 5, ExpressionError, "cannot combine"),  # type: ignore[operator]
        (lambda: (A == 1) & "x", ExpressionError, "cannot combine"),
        (lambda: attr(""), ExpressionError, "empty"),
        (lambda: attr(5), ExpressionError, "name must be a string"),  # type: ignore[arg-type]
        (lambda: attr("\ud800"), ExpressionError, "surrogate"),
        (lambda: history(""), ExpressionError, "empty"),
    ],
)
def test_refused(build: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        build()


def test_names_are_plain() -> None:
    class Name(str):
        def __hash__(self) -> int:
            return 5

    assert matches(attr(Name("price")) == 5, {"price": 5})
    assert type(attr(Name("price")).name) is str


def test_repr() -> None:
    assert repr(A) == "attr('a')"
    assert repr(H) == "history('h')"
    assert repr(H.all()) == "history('h').all()"
    assert repr(H == 1) == "<EarlierTerm <Predicate h = 1>>"


def test_attributes_can_be_kept_in_sets_and_dictionaries() -> None:
    names = {attr("a"): 1, attr("b"): 2, H: 3, H.any(): 4}
    assert len(names) == 4
    assert names[H] == 3


@given(st.text(alphabet="a%_!\\", max_size=4), st.text(alphabet="a%_!\\", max_size=6))
def test_plain_strings_are_found_as_they_are(needle: str, text: str) -> None:
    event = {"a": text}
    assert matches(A.startswith(needle), event) is text.startswith(needle)
    assert matches(A.endswith(needle), event) is text.endswith(needle)
    assert matches(A.contains(needle), event) is (needle in text)


def test_an_escape_is_used_only_where_it_is_needed() -> None:
    assert quoted("a!b") == ("a!b", None)
    assert quoted("a%b!", before="%") == ("%a!%b!!", "!")


@pytest.mark.parametrize(
    "slip", [lambda: 1 & attr("b"), lambda: attr("a") == 1 & attr("b"), lambda: "x" | (attr("b") == 1)]
)
def test_missing_parentheses_get_a_hint(slip: Callable[[], object]) -> None:
    with pytest.raises(ExpressionError, match="write parentheses"):
        slip()


def test_what_a_type_checker_knows() -> None:
    """mypy checks these lines. When run, they only build expressions."""
    x, h = attr("x"), history("h")
    for comparison in (x == 1, x != 1, x < 1, x <= 1, x > 1, x >= 1, x.lower() == "a", x < h.any()):
        assert_type(comparison, Expression)
    assert_type(x.isin([1]) & (x < 1) | ~x, Expression)
    for term in (x == h, h == x, h < 1, h.like("a%")):
        assert_type(term, EarlierTerm)
    assert_type(exists(h == x), Exists)
