"""The comparison itself: what the random cases hold, and that a wrong evaluator or matcher is caught."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

import tamis.language.evaluate
from tamis.language.expression import CasePredicate, Predicate, TruthTest
from tamis.language.like import LikePattern
from tamis.language.operators import CALLED, CASED, ORDER_COMPARISONS, PATTERNS, RANGES, Case, Operator
from tamis.language.values import INT64_MAX, INT64_MIN, Kind, compare
from tamis.matcher.matcher import Matcher
from tests.differential import mutants
from tests.differential.attributes import ATTRIBUTES
from tests.differential.comparison import Answers, Batch, Disagreement, ask, batches, disagreements, random_batch
from tests.differential.engines import DuckDB

EVALUATOR = tamis.language.evaluate


@pytest.fixture(scope="module")
def drawn() -> list[Batch]:
    """What is compared with DuckDB and with Spark."""
    return list(batches(6))


@pytest.fixture(scope="module")
def asked(drawn: list[Batch]) -> list[tuple[Batch, Answers]]:
    """The same with the answers of DuckDB."""
    with duckdb.connect() as connection:
        engine = DuckDB(connection)
        return [(batch, ask(engine, batch)) for batch in drawn]


@pytest.mark.parametrize(
    ("owner", "name", "mutant"),
    [
        (EVALUATOR, "negation", mutants.unknown_is_false),
        (EVALUATOR, "conjunction", mutants.unknown_before_false),
        (EVALUATOR, "disjunction", mutants.unknown_before_true),
        (EVALUATOR, "compare", mutants.numbers_as_doubles),
        (EVALUATOR, "compare", mutants.strings_as_utf_16),
        (EVALUATOR, "compare", mutants.dates_at_noon),
        (EVALUATOR, "flatten", mutants.nan_above_all),
        (EVALUATOR, "some_satisfies", mutants.every_element),
        (EVALUATOR, "some_satisfies", mutants.other_kind_is_false),
        (EVALUATOR, "satisfies", mutants.between_in_any_order),
        (EVALUATOR, "satisfies", mutants.between_without_its_ends),
        (EVALUATOR, "satisfies", mutants.ilike_with_case),
        (EVALUATOR, "satisfies", mutants.like_without_escape),
        (LikePattern, "matches", mutants.like_within_a_line),
        (EVALUATOR, "compile_regex", mutants.WholeText),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_wrong_evaluator_is_caught(
    owner: Any, name: str, mutant: Any, asked: list[tuple[Batch, Answers]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, mutant)
    assert any("evaluate" in {found.who for found in disagreements(*pair)} for pair in asked)


def test_a_wrong_matcher_is_caught(asked: list[tuple[Batch, Answers]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Matcher, "match_batch", mutants.first_match_lost)
    assert {found.who for found in disagreements(*asked[0])} == {"Arrow", "dictionaries", "schema"}


def test_a_wrong_engine_is_caught(asked: list[tuple[Batch, Answers]]) -> None:
    batch, answers = asked[0]
    assert disagreements(batch, answers) == []
    wrong = answers._replace(kept=[rows[1:] for rows in answers.kept])
    assert {found.who for found in disagreements(batch, wrong)} == {"WHERE"}


def test_a_disagreement_shows_the_values_it_is_about() -> None:
    disagreement = Disagreement("evaluate", Predicate("whole", "<", [3]), {"whole": 2, "text": "a"}, True, None)
    assert str(disagreement) == "evaluate: None, engine: True, for {'whole': 2} and\nwhole < 3"


def test_every_operator_meets_every_kind(drawn: list[Batch]) -> None:
    met = set()
    changed = set()
    tested = set()
    for expression in itertools.chain.from_iterable(batch.expressions for batch in drawn):
        for node in expression.walk():
            if isinstance(node, TruthTest):
                tested.add((node.truth, node.negated))
            if isinstance(node, CasePredicate):
                changed.add((node.case, node.operator))
            if isinstance(node, Predicate):
                attribute = ATTRIBUTES[node.attribute]
                met |= {(node.operator, kind, attribute.several) for kind in node.kinds or attribute.types}
    several = [False, True]
    # Engines have no ip_in, the only operator that is a function.
    expected = set(itertools.product(set(Operator) - CALLED, Kind, several))
    expected -= set(itertools.product(ORDER_COMPARISONS | RANGES, [Kind.BOOLEAN], several))
    expected -= set(itertools.product(PATTERNS, set(Kind) - {Kind.STRING}, several))
    assert met == expected
    assert changed == set(itertools.product(Case, CASED))
    assert tested == set(itertools.product([True, False, None], several))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("whole", lambda value: value is None),
        ("whole", lambda value: value == 2**53 + 1),
        ("whole", lambda value: value == INT64_MAX),
        ("user.count", lambda value: value == INT64_MIN),
        ("real", math.isnan),
        ("real", math.isinf),
        ("real", lambda value: value == 0 and math.copysign(1, value) < 0),
        ("real", lambda value: type(value) is int),
        ("text", lambda value: "\n" in value),
        ("text", lambda value: "\\" in value),
        ("text", lambda value: "'" in value),
        ("text", lambda value: value == ""),
        ("text", lambda value: any(ord(symbol) > 0xFFFF for symbol in value)),
        ("instant", lambda value: value.utcoffset()),
        ("wholes", lambda value: value == []),
        ("wholes", lambda value: value == [None]),
        ("reals", lambda value: any(element != element for element in value)),
        ("mixed", lambda value: len({type(element) for element in value}) > 2),
    ],
)
def test_events_hold_what_is_awkward(name: str, found: Callable[[Any], bool], drawn: list[Batch]) -> None:
    values = [event.get(name) for batch in drawn for event in batch.events]
    assert any(found(value) for value in values if value is not None or name == "whole")


def test_expressions_hold_what_is_awkward(drawn: list[Batch]) -> None:
    predicates = [
        node
        for batch in drawn
        for expression in batch.expressions
        for node in expression.walk()
        if isinstance(node, Predicate)
    ]
    assert any(node.operator in RANGES and compare(*node.values) > 0 for node in predicates)
    assert any(len(node.kinds) > 1 for node in predicates)
    assert any(not ATTRIBUTES[node.attribute].types.keys() & set(node.kinds) for node in predicates if node.kinds)
    assert {node.escape for node in predicates} >= {None, "!", "\\", "%", "é"}
    assert {type(value) for node in predicates for value in node.values} == {bool, int, float, str, date, datetime}
    for batch in drawn:
        assert len(batch.plain) >= len(batch.expressions) / 2
        assert len(batch.plain) <= len(batch.expressions) * 3 / 4


def test_one_seed_one_batch() -> None:
    assert repr(random_batch(3, expressions=20, events=5)) == repr(random_batch(3, expressions=20, events=5))
