"""Plain conjunctions encoded without the compiler have the same keys as with the compiler."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.dimension import Facet
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.intervals import complement
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.compile import Compiler
from tamis.encoding.expressions.plain_row import (
    Comparisons,
    PlainEncoder,
    PlainRow,
    is_prepared,
    plain_conjunction,
    prepare,
    words_of,
)
from tamis.language.expression import Expression, Predicate, all_of
from tamis.language.operators import COMPARED, Operator
from tamis.language.parser import parse
from tests.random_cases import RandomCases

NUMBERS: list[Any] = [*range(-3, 6), -0.0, 0.5, -2.5, 1e-300, 2**53 - 1, 1 - 2**53, -1e10]
POOLS: dict[str, list[Any]] = {
    "n": NUMBERS,
    "m": NUMBERS,
    "large": [*NUMBERS, 2**53, 2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**63 - 1, -(2**63), 1e300, float(2**60)],
    "s": ["", "a", "ab", "b", "é", "😀"],
    "b": [True, False],
    "t": [date(2026, 11, 14), datetime(2026, 11, 14, 10), datetime(1, 1, 1)],
}

Predicates = list[tuple[int, int, list[tuple[int, int]]]]
"""The dimension, mode and intervals of each predicate."""


def encoder_of(
    expressions: list[Expression], scalars: tuple[str, ...] = (), comparisons: Comparisons | None = None
) -> tuple[Compiler, PlainEncoder]:
    """A compiler that knows some expressions, and an encoder beside it."""
    compiler = Compiler(Dimensions(), lambda dimension, relabelling: None, scalars)
    compiler.compile_many(expressions)
    return compiler, PlainEncoder(compiler) if comparisons is None else PlainEncoder(compiler, comparisons)


def encoded(encoder: PlainEncoder, expression: Expression) -> Predicates | None:
    """The predicates of an expression's row. None if only the compiler can encode the expression."""
    found = _predicates(encoder, encoder.row(expression))
    return _predicates(encoder, encoder.keyed_row(expression)) if found is None else found


def _predicates(encoder: PlainEncoder, row: PlainRow | None) -> Predicates | None:
    if row is None:
        return None
    kept = plain_conjunction(row.scratch, row.codes, row.predicates)
    if kept < 0:
        return None
    found = encoder.scratch
    start = found.start
    return [
        (
            int(found.dimension[p]),
            int(found.mode[p]),
            list(zip(found.lo[start[p] : start[p + 1]], found.hi[start[p] : start[p + 1]], strict=True)),
        )
        for p in found.order[:kept].tolist()
    ]


def compiled(compiler: Compiler, expression: Expression) -> Predicates:
    """The predicates that the compiler makes, in the order of rows."""
    (clause,) = compiler.compile(expression).clauses
    leaves = [(leaf.dimension, int(leaf.mode), list(leaf.intervals)) for leaf in clause]
    return sorted(leaves, key=lambda leaf: (leaf[0], leaf[1], len(leaf[2]), leaf[2]))


def random_predicate(chance: random.Random) -> Predicate:
    attribute = chance.choice(list(POOLS))
    operators = sorted(COMPARED) if attribute != "b" else [Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN]
    operator = chance.choice(operators)
    count = {Operator.BETWEEN: 2, Operator.NOT_BETWEEN: 2, Operator.IN: 4, Operator.NOT_IN: 4}.get(operator, 1)
    return Predicate(attribute, operator, [chance.choice(POOLS[attribute]) for _ in range(count)])


@pytest.mark.kernels
@pytest.mark.parametrize("scalars", [(), ("n", "s", "t")])
def test_the_encoder_gives_the_rows_of_the_compiler(scalars: tuple[str, ...], cases: Callable[[int], int]) -> None:
    chance = random.Random(7)
    expressions = [all_of(*[random_predicate(chance) for _ in range(chance.randint(1, 6))]) for _ in range(cases(1500))]
    compiler, encoder = encoder_of(expressions, scalars)

    def as_some(predicates: Predicates) -> Predicates:
        """NONE of a set as SOME of its complement: the same for a scalar, and the compiler may use either."""
        same = []
        for dimension, mode, intervals in predicates:
            if mode == Mode.NONE and compiler.dimensions[dimension].attribute in scalars:
                others = complement(tuple((int(low), int(high)) for low, high in intervals))
                same.append((dimension, int(Mode.SOME), list(others)))
            else:
                same.append((dimension, mode, intervals))
        return sorted(same)

    taken = 0
    for expression in expressions:
        found = encoded(encoder, expression)
        if found is not None:
            taken += 1
            assert as_some(found) == as_some(compiled(compiler, expression)), expression
        # A prepared expression gives the same row, with this encoder and with a new one.
        fresh = encoded(PlainEncoder(compiler), expression)
        assert encoded(encoder, prepare(expression)) == found
        assert encoded(PlainEncoder(compiler), expression) == fresh
    assert taken > len(expressions) / 4
    assert sum(map(is_prepared, expressions)) > len(expressions) / 20


@pytest.mark.kernels
def test_any_expression_is_encoded_correctly_or_left_to_the_compiler(cases: Callable[[int], int]) -> None:
    made = RandomCases(11)
    expressions = [made.expression() for _ in range(cases(1000))]
    compiler, encoder = encoder_of(expressions)
    for expression in expressions:
        found = encoded(encoder, expression)
        if found is not None:
            assert found == compiled(compiler, expression), expression


@pytest.mark.kernels
@pytest.mark.parametrize(
    "text",
    [
        "n = 1 OR m = 1",
        "NOT n < 1",
        "n IS NULL AND m = 1",
        "s LIKE 'a%' AND m = 1",
        "n IN (1, 'a')",
        "n BETWEEN 3 AND 2",
        "n <> 1 AND n <> 2",
        "n = 9007199254740993",
        "unknown = 1",
        "s = 'unknown'",
        "s = 1",
        "TRUE",
        " AND ".join(f"n < {number}" for number in range(200)),
    ],
)
def test_other_expressions_are_left_to_the_compiler(text: str) -> None:
    compiler, encoder = encoder_of([parse("n = 1 AND m = 1 AND s = 'a'")])
    assert encoded(encoder, parse(text)) is None
    assert compiler.known_dimension("unknown", Facet.NUMBER) is None


@pytest.mark.kernels
def test_predicates_of_one_scalar_are_left_to_the_compiler() -> None:
    known = [parse("n > 1 AND m > 1")]
    for scalars, left in (((), False), (("n",), True), (("m",), False)):
        _, encoder = encoder_of(known, scalars)
        assert (encoded(encoder, parse("n > 1 AND n < 5")) is None) is left


@pytest.mark.kernels
def test_rows_are_in_canonical_order_without_repetition() -> None:
    _, encoder = encoder_of([parse("a = 1 AND b = 1 AND c = 1")])
    found = encoded(encoder, parse("c = 3 AND a IN (2, 1, 7) AND b = 2 AND c = 3 AND a = 1"))
    assert found is not None
    assert [(dimension, len(intervals)) for dimension, _, intervals in found] == [(0, 1), (0, 3), (1, 1), (2, 1)]
    assert all(np.all(np.diff([low for low, _ in intervals]) > 0) for _, _, intervals in found)


@pytest.mark.kernels
def test_more_comparisons_than_can_have_numbers() -> None:
    comparisons = Comparisons(most=2)
    texts = ["a = 1 AND b = 1", "b = 1 AND c = 1", "a = 2 AND b = 3", "c < 5"]
    compiler, encoder = encoder_of([parse(text) for text in texts], comparisons=comparisons)
    for text in texts * 2:
        expression = parse(text)
        assert (words_of(expression, comparisons) is None) == ("c" in text)
        assert encoded(encoder, expression) == compiled(compiler, expression)


@pytest.mark.kernels
def test_numbers_of_comparisons_are_valid_in_one_process_only() -> None:
    first = prepare("a = 1 AND b < 2")
    again = pickle.loads(pickle.dumps(first))
    assert is_prepared(first)
    assert not is_prepared(again)
    compiler, encoder = encoder_of([first])
    assert encoded(encoder, again) == encoded(encoder, first) == compiled(compiler, first)
