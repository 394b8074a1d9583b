"""The covering report: what it finds, that all of it is true, and that it finds all pairs of plain conjunctions."""

from __future__ import annotations

import itertools
import math
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ExpressionError, OptionError
from tamis.language.evaluate import evaluate, matches
from tamis.language.expression import Expression, all_of
from tamis.language.implication import Implications
from tamis.language.value_set import AFTER, BEFORE, ValueSet, above, below, between, intersection, starting_with
from tamis.language.values import Kind, Scalar
from tamis.matcher.covering import CoveringReport, find_covering
from tamis.matcher.covering.corners import Corners
from tamis.matcher.covering.ends import highest, lowest
from tamis.matcher.matcher import Matcher
from tamis.workload import generate, preset
from tests import strategies
from tests.language import close_cases

ALL = 1_000_000
DAY = date(2026, 11, 14)


def report_of(*texts: Any, **options: Any) -> CoveringReport[int]:
    return find_covering(enumerate(texts), **options)


def test_an_example_of_each_finding() -> None:
    report: CoveringReport[Any] = find_covering(
        {
            "cheap": "price < 20",
            "cheap crime": "genre = 'crime' AND price < 10",
            "cheap too": "NOT (NOT (20 > price))",
            "wrong order": "price BETWEEN 20 AND 10",
            "contradiction": "price < 3 AND price > 5",
            "history": "price < ANY (SELECT price FROM history) AND price < 5",
            ("any", "key"): "genre LIKE 'cri%'",
        }.items()
    )
    expected: CoveringReport[Any] = CoveringReport(
        subscriptions=7,
        identical=[["cheap", "cheap too"]],
        implied=[
            ("cheap crime", "cheap"),
            ("cheap crime", ("any", "key")),
            ("contradiction", "cheap"),
            ("history", "cheap"),
        ],
        never=["wrong order"],
        never_single=["contradiction"],
    )
    assert report == expected


def test_no_subscriptions() -> None:
    assert find_covering([]) == CoveringReport()
    assert report_of("FALSE") == CoveringReport(subscriptions=1, never=[0])


def test_a_subscription_that_matches_every_event_covers_all_others() -> None:
    report = report_of("a = 1", "TRUE", "b RLIKE 'x'", "a = 1 AND a <> 1", "NOT FALSE")
    assert report.implied == [(0, 1), (2, 1)]
    assert report.identical == [[1, 4]]
    assert report.never == [3]


def test_the_first_of_identical_ones_stands_for_all() -> None:
    report = report_of("a < 5", "5 > a", "a < 7", "7.0 > a AND a < 9")
    assert report.identical == [[0, 1], [2, 3]]
    assert report.implied == [(0, 2)]


def test_at_most_some_wider_ones_are_reported_and_the_widest_first() -> None:
    texts = [f"a < {i}" for i in range(100)]
    assert report_of(*texts, most=1).implied == [(i, 99) for i in range(99)]
    found = report_of(*texts, most=3).implied
    assert [wide for narrow, wide in found if narrow == 10] == [99, 98, 97]
    assert len(report_of(*texts, most=ALL).implied) == 99 * 100 // 2


def test_single_values_are_contradictions_in_never() -> None:
    texts = ["a < 3 AND a > 5", "a = 1 AND b = 2", "b <> 5"]
    several = report_of(*texts)
    assert (several.never, several.never_single, several.implied) == ([], [0], [])
    single = report_of(*texts, scalars=None)
    assert (single.never, single.never_single, single.implied) == ([0], [], [(1, 2)])
    assert report_of(*texts, scalars={"b"}).never_single == [0]
    assert report_of(*texts, scalars={"a"}).never == [0]


def test_strings_imply_negative_patterns_if_they_are_single() -> None:
    texts = ["a IN ('x', 'y')", "a NOT LIKE '%z'", "NOT ip_in(a, '10.0.0.0/8')", "a = '11.0.0.1'"]
    assert report_of(*texts).implied == []
    assert sorted(report_of(*texts, scalars=None).implied) == [(0, 1), (3, 1), (3, 2)]


def test_patterns_that_imply_each_other_are_one_group() -> None:
    report = report_of("a ILIKE '%Xy'", "a ILIKE '%xY'", "a ILIKE '%y'", "b = 1 AND a ILIKE '%xy'")
    assert report.identical == [[0, 1]]
    assert report.implied == [(0, 2), (3, 2), (3, 0)]


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("a LIKE '%abc%'", "a LIKE '%b%'"),
        ("a LIKE 'abc%'", "a LIKE '%b%'"),
        ("a = 'abc' AND b = 1", "a RLIKE 'bc$'"),
        ("a IN ('abc', 'bc')", "a LIKE '%bc'"),
        ("ip_in(a, '10.1.0.0/16')", "ip_in(a, '10.0.0.0/8')"),
        ("a RLIKE 'x' AND b < 2", "a RLIKE 'x' AND b < 3"),
        ("a NOT RLIKE 'x' AND b < 2", "a NOT RLIKE 'x'"),
        ("lower(a) = 'abc'", "lower(a) LIKE '%c'"),
        ("upper(a) IN ('never', 'X')", "upper(a) IN ('never', 'X', 'Y')"),
        ("a NOT IN (1, 2)", "a <> 2"),
        ("a NOT LIKE 'ab%'", "a <> 'abc'"),
        ("NOT (a < 5)", "a <> 3"),
        ("NOT (a < 'x')", "a <> 'b' AND a >= 'w'"),
        ("a IS NULL", "a IS DISTINCT FROM 5"),
        ("a IS NULL AND b = 1", "(a < 5) IS UNKNOWN"),
        ("a = 5", "a IS NOT NULL"),
        ("a > 5", "(a < 5) IS NOT UNKNOWN"),
        ("a = 1 AND b = 1 OR a = 2 AND c = 1", "a IN (1, 2, 3)"),
        ("a = TRUE", "a IN (TRUE, FALSE)"),
        ("a <> TRUE AND b = 1", "a <> TRUE"),
        ("t > DATE '2026-11-14'", "t >= DATE '2026-11-14'"),
        ("a > 9007199254740993", "a > 9007199254740992"),
    ],
)
def test_a_pair_is_found_among_others(narrow: str, wide: str) -> None:
    others = [f"z{i} = 1" for i in range(20)]
    for options in ({}, {"scalars": None}):
        assert (20, 21) in report_of(*others, narrow, wide, **options).implied


def test_the_search_ends_if_most_candidates_are_false() -> None:
    # All have the same ends and the same middle, so each is a candidate for each. None implies another.
    texts = [f"a IN (0, {i}, 5000, 9000, 9001)" for i in range(1, 301)]
    report = report_of(*texts, "a IN (0, 5000, 9001)", most=1)
    assert [narrow for narrow, _ in report.implied] == [len(texts)]
    assert report.unfinished == list(range(len(texts)))


def test_wrong_input() -> None:
    with pytest.raises(ExpressionError):
        report_of("a <")
    with pytest.raises(OptionError):
        report_of("a < 1", most=0)


HISTORY: list[dict[str, Any]] = [{"a": 1, "b": 2}, {"a": "x"}, {"b": [0, 3]}]

expressions = st.one_of(
    close_cases.expressions(max_leaves=4),
    close_cases.expressions(max_leaves=4, history=True),
    close_cases.predicates(),
    strategies.expressions(names=st.sampled_from(close_cases.NAMES), max_leaves=4),
)


@given(st.lists(expressions, min_size=1, max_size=4), st.lists(close_cases.events(), min_size=1, max_size=8))
def test_the_report_is_true(given_: list[Expression], events: list[dict[str, Any]]) -> None:
    _check_report(given_, events, ())


@given(st.lists(expressions, min_size=1, max_size=4), st.lists(close_cases.scalar_events(), min_size=1, max_size=8))
def test_the_report_is_true_for_scalars(given_: list[Expression], events: list[dict[str, Any]]) -> None:
    _check_report(given_, events, None)


def _check_report(given_: list[Expression], events: list[dict[str, Any]], scalars: tuple[str, ...] | None) -> None:
    pool = [*given_, *[part for each in given_ for part in each.walk()][:6], all_of(*given_)]
    report = find_covering(enumerate(pool), scalars=scalars, most=ALL)
    truths = [[evaluate(each, event, HISTORY) is True for event in events] for each in pool]
    for narrow, wide in report.implied:
        assert all(other for one, other in zip(truths[narrow], truths[wide], strict=True) if one)
    for group in report.identical:
        assert all(truths[number] == truths[group[0]] for number in group)
    assert not any(any(truths[number]) for number in report.never)
    if all(
        not isinstance(value, list) and type(value).__name__ != "Interval"
        for event in events
        for value in event.values()
    ):
        assert not any(any(truths[number]) for number in report.never_single)
    # The search finds what implies says, apart from candidates that no event stands for.
    implications = Implications(scalars)
    forms = [implications.read(each) for each in pool]
    grouped = {number: group[0] for group in report.identical for number in group}
    for (narrow, form), (wide, other) in itertools.permutations(enumerate(forms), 2):
        pair = grouped.get(narrow, narrow), grouped.get(wide, wide)
        if form and narrow not in report.never and implications.implies(form, other) and pair[0] != pair[1]:
            assert pair in report.implied


@given(st.lists(close_cases.plain_conjunctions(3), min_size=2, max_size=6))
def test_the_report_is_complete_for_conjunctions(given_: list[Expression]) -> None:
    events = [{"a": a, "b": b} for a, b in itertools.product(close_cases.PLAIN_DOMAIN, repeat=2)]
    satisfied = [frozenset(row for row, event in enumerate(events) if matches(each, event)) for each in given_]
    report = find_covering(enumerate(given_), scalars=None, most=ALL)
    groups: dict[frozenset[int], list[int]] = {}
    for number, rows in enumerate(satisfied):
        groups.setdefault(rows, []).append(number)
    assert report.never == groups.pop(frozenset(), [])
    assert report.identical == [group for group in groups.values() if len(group) > 1]
    expected = [
        (one[0], other[0]) for (rows, one), (wide, other) in itertools.product(groups.items(), repeat=2) if rows < wide
    ]
    assert sorted(report.implied) == sorted(expected)
    assert report.unfinished == []


@given(expressions, expressions)
def test_a_covered_clause_satisfies_the_conditions_of_the_wider_form(one: Expression, other: Expression) -> None:
    implications = Implications()
    corners = Corners(implications)
    narrow, wide = implications.read(one & other), implications.read(other)
    condition = corners.expression(wide)
    corners.expression(narrow)
    if any(clause.literals for clause in (*narrow, *wide)) or not implications.implies(narrow, wide):
        return
    for clause in narrow:
        assert matches(condition, corners.event(clause)) or not _has_ends(clause)


def _has_ends(clause: Any) -> bool:
    sets = [(one, kind) for _, demand in clause.demands for kind, needed in demand.kinds for one in needed.sets]
    return all(lowest(one, kind) is not None for one, kind in sets)


SMALLEST = math.nextafter(0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "kind", "low", "high"),
    [
        (between(3, 5), Kind.NUMBER, 3, 5),
        (above(0, AFTER), Kind.NUMBER, SMALLEST, math.inf),
        (below(0, BEFORE, Kind.NUMBER), Kind.NUMBER, -math.inf, -SMALLEST),
        (above(2**53, AFTER), Kind.NUMBER, float(2**53 + 2), math.inf),
        (above(2**53 + 1, AFTER), Kind.NUMBER, float(2**53 + 2), math.inf),
        (below(2**53 + 1, BEFORE, Kind.NUMBER), Kind.NUMBER, -math.inf, float(2**53)),
        (intersection([above(0, AFTER), below(SMALLEST, BEFORE, Kind.NUMBER)]), Kind.NUMBER, None, None),
        (starting_with("ab"), Kind.STRING, "ab", "ab\U0010ffff"),
        (above("ab", AFTER), Kind.STRING, "ab\0", "\U0010ffff" * 4),
        (above("\U0010ffff" * 5, BEFORE), Kind.STRING, "\U0010ffff" * 5, "\U0010ffff" * 5),
        (below("ab\0", BEFORE, Kind.STRING), Kind.STRING, "", "ab"),
        (below("\ue000", BEFORE, Kind.STRING), Kind.STRING, "", "\ud7ff\U0010ffff"),
        (above(DAY, AFTER), Kind.TIMESTAMP, datetime(2026, 11, 14, 0, 0, 0, 1), datetime.max),
        (below(DAY, BEFORE, Kind.TIMESTAMP), Kind.TIMESTAMP, datetime.min, datetime(2026, 11, 13, 23, 59, 59, 999999)),
        (above(datetime.max, AFTER), Kind.TIMESTAMP, None, None),
    ],
)
def test_ends(values: ValueSet, kind: Kind, low: Scalar | None, high: Scalar | None) -> None:
    assert (lowest(values, kind), highest(values, kind)) == (low, high)


@pytest.mark.parametrize("name", ["be-tree", "range", "alerts", "detection"])
def test_workloads(name: str) -> None:
    matcher: Matcher[int] = Matcher()
    matcher.add_table(generate(preset(name, subscriptions=60)).subscriptions())
    expressions = [matcher[id].expression for id in matcher]
    report = find_covering(enumerate(expressions), most=ALL)
    implications = Implications()
    forms = list(map(implications.read, expressions))
    pairs = [
        (one, other)
        for (one, narrow), (other, wide) in itertools.permutations(enumerate(forms), 2)
        if implications.implies(narrow, wide)
    ]
    assert sorted(report.implied) == pairs
