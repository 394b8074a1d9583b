"""Hypothesis strategies for the language: names, literals, predicates, expressions."""

from __future__ import annotations

from datetime import date

from hypothesis import strategies as st

from tamis.language.expression import FALSE, TRUE, And, CasePredicate, Expression, Not, Or, Predicate, TruthTest
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import (
    CASED,
    COMPARISONS,
    LIKES,
    NULL_TESTS,
    ORDER_COMPARISONS,
    RANGES,
    SETS,
    Case,
    Operator,
    Quantifier,
)
from tamis.language.values import INT64_MAX, INT64_MIN, Kind, Scalar
from tamis.language.words import KEYWORDS

PLAIN_NAMES = [
    "a",
    "b",
    "price",
    "genre",
    "user.geo.country",
    "date",
    "type",
    "order",
    "größe",
    "名前",
    "h",
    "h.x",
    "history.y",
]
ODD_NAMES = [
    ".",
    "a.",
    "a..b",
    "a b",
    "5",
    "a.5",
    "it's",
    'a"b',
    "`",
    "a\nb",
    "--",
    "/*",
    "\0",
    "ıs",
    "ſelect",
    "NOT.x",
]
REGEXES = ["", "a", "^a.*b$", r"\d+\s", "(?i)x|y", "[a-z]{2}", "'", '"', r"\\", "%_", "ü+"]
NETWORKS = ["10.0.0.0/8", "10.1.0.0/16", "10.0.0.1", "0.0.0.0/0", "2001:db8::/32", "::/0", "::ffff:10.0.0.0/104"]
ESCAPES = ["!", "\\", "'", "%", "_", "x", "é"]


def attributes() -> st.SearchStrategy[str]:
    """Names of attributes: everyday ones, keywords, and whatever a string can hold."""
    return st.one_of(
        st.sampled_from(PLAIN_NAMES),
        st.sampled_from(sorted(KEYWORDS)).flatmap(
            lambda word: st.sampled_from([word, word.lower(), f"a.{word}", f"{word}.a"])
        ),
        st.sampled_from(ODD_NAMES),
        st.text(min_size=1, max_size=8),
    )


def numbers() -> st.SearchStrategy[int | float]:
    return st.one_of(
        st.integers(-3, 3),
        st.integers(INT64_MIN, INT64_MAX),
        st.sampled_from([INT64_MIN, INT64_MAX, 1.0, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, -0.0]),
        st.floats(allow_nan=False, allow_infinity=False),
    )


def strings() -> st.SearchStrategy[str]:
    return st.sampled_from(["", "a", "it's", "''", "\\", '"', "--", "/* */", "a b", "5", "%", "\0"]) | st.text(
        max_size=8
    )


def moments() -> st.SearchStrategy[date]:
    return st.one_of(st.dates(), st.datetimes(), st.datetimes().map(lambda moment: moment.replace(microsecond=0)))


def literals(*kinds: Kind) -> st.SearchStrategy[Scalar]:
    """Literals of the kinds, of any kind if none is named."""
    by_kind: dict[Kind, st.SearchStrategy[Scalar]] = {
        Kind.NUMBER: numbers(),
        Kind.STRING: strings(),
        Kind.BOOLEAN: st.booleans(),
        Kind.TIMESTAMP: moments(),
    }
    return st.one_of([by_kind[kind] for kind in kinds or Kind])


@st.composite
def like_patterns(draw: st.DrawFn) -> tuple[str, str | None]:
    """A LIKE pattern and its escape, which may be None."""
    escape = draw(st.none() | st.sampled_from(ESCAPES))
    pieces = ["%", "_"] if escape is None else [escape + "%", escape + "_", escape * 2, *{"%", "_"} - {escape}]
    texts = st.text(max_size=4).filter(lambda text: escape is None or escape not in text)
    return "".join(draw(st.lists(st.sampled_from(sorted(pieces)) | texts, max_size=5))), escape


@st.composite
def predicates(draw: st.DrawFn, names: st.SearchStrategy[str] | None = None) -> Predicate:
    """Predicates of every operator, with literals of every kind it takes."""
    attribute = draw(attributes() if names is None else names)
    operator = draw(st.sampled_from(Operator))
    if operator in CASED and draw(st.integers(0, 3)) == 0:
        return draw(case_predicates(attribute, operator))
    if operator is Operator.IP_IN:
        return Predicate(attribute, operator, draw(st.lists(st.sampled_from(NETWORKS), min_size=1, max_size=3)))
    if operator in NULL_TESTS:
        return Predicate(attribute, operator)
    if operator in SETS:
        return Predicate(attribute, operator, draw(st.lists(literals(), min_size=1, max_size=4)))
    if operator in RANGES | ORDER_COMPARISONS:
        kind = draw(st.sampled_from([Kind.NUMBER, Kind.STRING, Kind.TIMESTAMP]))
        count = 2 if operator in RANGES else 1
        return Predicate(attribute, operator, draw(st.lists(literals(kind), min_size=count, max_size=count)))
    if operator in COMPARISONS:
        return Predicate(attribute, operator, [draw(literals())])
    if operator in (Operator.RLIKE, Operator.NOT_RLIKE):
        return Predicate(attribute, operator, [draw(st.sampled_from(REGEXES))])
    pattern, escape = draw(like_patterns())
    return Predicate(attribute, operator, [pattern], escape=escape)


@st.composite
def case_predicates(draw: st.DrawFn, attribute: str, operator: Operator) -> CasePredicate:
    """Predicates on lower(a) and upper(a)."""
    case = draw(st.sampled_from(Case))
    if operator in LIKES:
        pattern, escape = draw(like_patterns())
        return CasePredicate(case, attribute, operator, [pattern], escape=escape)
    count = 3 if operator in SETS else 1
    return CasePredicate(case, attribute, operator, draw(st.lists(strings(), min_size=1, max_size=count)))


def history_predicates(names: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[Quantified | Exists]:
    """Joins with earlier events."""
    name = attributes() if names is None else names
    comparison = st.sampled_from(sorted(COMPARISONS))
    joins = st.lists(st.builds(Join, name, comparison, name), max_size=3)
    return st.one_of(
        st.builds(Quantified, name, comparison, st.sampled_from(Quantifier), name),
        st.builds(Exists, joins, st.lists(predicates(name), max_size=2)),
    )


def expressions(
    *, history: bool = False, names: st.SearchStrategy[str] | None = None, max_leaves: int = 12
) -> st.SearchStrategy[Expression]:
    """Expressions of any form; with joins to earlier events only when `history` is set."""
    leaves: st.SearchStrategy[Expression] = st.one_of(
        predicates(names), predicates(names), st.sampled_from([TRUE, FALSE])
    )
    if history:
        leaves |= history_predicates(names)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(TruthTest, inner, st.sampled_from([True, False, None]), st.booleans()),
            st.builds(And, st.lists(inner, min_size=2, max_size=4)),
            st.builds(Or, st.lists(inner, min_size=2, max_size=4)),
        ),
        max_leaves=max_leaves,
    )
