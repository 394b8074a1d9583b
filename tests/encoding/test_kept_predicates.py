"""Predicates kept in little memory are the same rows."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encoding.expressions.kept_predicates import KeptPredicates, narrowed
from tamis.encoding.expressions.predicate_table import PredicateTable, read_predicates
from tamis.errors import ExpressionError
from tamis.language.expression import And, Predicate

VARIANT = pa.struct(
    [
        ("integer", pa.int64()),
        ("number", pa.float64()),
        ("string", pa.string()),
        ("boolean", pa.bool_()),
        ("timestamp", pa.timestamp("us")),
    ]
)
LITERALS: list[tuple[str, Any]] = [
    *(("integer", each) for each in (0, 5, -1, 127, 128, 255, 256, -(2**31), 2**31, 2**53 + 1, 2**63 - 1, -(2**63))),
    *(("number", each) for each in (0.5, 5.0, -0.0, 1e300)),
    *(("string", each) for each in ("", "a", "é", "longer than most")),
    *(("boolean", each) for each in (True, False)),
    *(("timestamp", each) for each in (datetime(2026, 1, 1), datetime(1, 1, 1), datetime(9999, 12, 31))),
]


def table_of(rows: list[list[tuple[str, str, list[Any]]]], value: pa.DataType = VARIANT) -> PredicateTable:
    kind = pa.list_(pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(value))]))
    given = [[{"attribute": a, "operator": o, "values": v} for a, o, v in row] for row in rows]
    return read_predicates(pa.chunked_array([pa.array(given, kind)]))


def random_rows(chance: random.Random, count: int, names: int, most: int) -> list[list[tuple[str, str, list[Any]]]]:
    return [
        [
            (
                f"a{chance.randrange(names)}",
                "in",
                [dict([chance.choice(LITERALS)]) for _ in range(chance.randint(1, most))],
            )
            for _ in range(chance.randint(0, 4))
        ]
        for _ in range(count)
    ]


def typed(table: Any, row: int) -> list[tuple[str, str, list[tuple[type, Any]]]]:
    """A row with the types of its literals: True, 1 and 1.0 are equal in Python."""
    expression = table.expression(row)
    operands: Any = expression.operands if isinstance(expression, And) else (expression,)
    predicates = [each for each in operands if isinstance(each, Predicate)]  # No predicate at all is TRUE.
    return [(p.attribute, str(p.operator), [(type(v), v) for v in p.values]) for p in predicates]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("names", "most"), [(3, 2), (300, 3), (2, 400)])
def test_rows_and_parts_are_those_of_the_table(seed: int, names: int, most: int) -> None:
    chance = random.Random(seed)
    table = table_of(random_rows(chance, 60, names, most))
    kept = KeptPredicates(table)
    assert len(kept) == len(table) == 60
    rows = [typed(table, row) for row in range(60)]
    assert [typed(kept, row) for row in range(60)] == rows
    first, end = sorted(chance.sample(range(61), 2))
    part = kept.part(first, end)
    assert [typed(part, row) for row in range(end - first)] == rows[first:end]
    assert [typed(part, row) for part in kept.parts(7) for row in range(len(part))] == rows


def test_all_columns_are_those_of_the_table() -> None:
    table = table_of(random_rows(random.Random(7), 50, 5, 4))
    again = KeptPredicates(table).part(0, len(table))
    assert again.attributes == table.attributes
    for name in ("start", "attribute", "operator", "value_start"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name), strict=True)
    for given, found in zip(table.values, again.values, strict=True):
        assert found.kind is given.kind
        np.testing.assert_array_equal(found.positions, given.positions, strict=True)
        if isinstance(given.literals, pa.Array):
            assert found.literals.equals(given.literals)
        else:
            np.testing.assert_array_equal(found.literals, given.literals, strict=True)


def test_empty_tables_and_rows() -> None:
    assert [len(part) for part in KeptPredicates(table_of([])).parts(5)] == [0]
    kept = KeptPredicates(table_of([[], [("a", "is null", [])], []]))
    assert [typed(kept, row) for row in range(3)] == [[], [("a", "is null", [])], []]


def test_wrong_literals_are_still_reported() -> None:
    kept = KeptPredicates(table_of([[("a", "=", [{"integer": 1}])], [("a", "=", [{"integer": 1, "string": "x"}])]]))
    with pytest.raises(ExpressionError, match="must set one field"):
        kept.expression(1)


def test_a_predicate_takes_a_few_bytes() -> None:
    rows = [[(f"a{(row + p) % 100}", "=", [p]) for p in range(10)] for row in range(1000)]
    kept = KeptPredicates(table_of(rows, pa.int64()))
    assert kept.nbytes < 5 * 10 * 1000


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 255, np.uint8),
        (0, 256, np.uint16),
        (-1, 127, np.int8),
        (-1, 128, np.int16),
        (0, 2**32 - 1, np.uint32),
        (0, 2**32, np.int64),
        (-1, 2**63 - 1, np.int64),
        (-(2**63), 0, np.int64),
    ],
)
def test_the_narrowest_type(low: int, high: int, expected: type) -> None:
    numbers = np.array([low, high], np.int64)
    narrow = narrowed(numbers)
    assert narrow.dtype == expected
    assert narrow.tolist() == [low, high]


def test_other_numbers_keep_their_type() -> None:
    for numbers in (np.array([0.5]), np.array([True]), np.zeros(0, np.int64)):
        assert narrowed(numbers) is numbers
