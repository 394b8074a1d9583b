"""Subscriptions from Arrow tables in both forms match as if added one by one. Wrong tables are refused as a whole."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.language.expression import And, Expression, Predicate, all_of
from tamis.matcher.limits import USUAL_STORE_LIMITS
from tests.matcher.small import matcher_with
from tests.random_cases import RandomCases

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("each_index")]

VARIANT = pa.struct(
    [
        ("integer", pa.int64()),
        ("number", pa.float64()),
        ("string", pa.string()),
        ("boolean", pa.bool_()),
        ("timestamp", pa.timestamp("us")),
    ]
)


def predicates_type(value: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(value))]))


def variant(value: Any) -> dict[str, Any]:
    if isinstance(value, datetime):
        return {"timestamp": value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value}
    if isinstance(value, date):
        return {"timestamp": datetime(value.year, value.month, value.day)}
    return {{bool: "boolean", int: "integer", float: "number", str: "string"}[type(value)]: value}


def table_of(rows: Any, value: pa.DataType = VARIANT, ids: Any = None) -> pa.Table:
    listed = [[{"attribute": a, "operator": o, "values": v} for a, o, v in row] for row in rows]
    return pa.table(
        {"id": range(len(rows)) if ids is None else ids, "predicates": pa.array(listed, predicates_type(value))}
    )


def conjunction(cases: RandomCases, chance: random.Random) -> list[Predicate]:
    predicates = [cases.predicate() for _ in range(chance.randint(1, 4))]
    # A table has no column for an escape or for lower(a).
    return [each for each in predicates if each.escape is None and type(each) is Predicate]


@pytest.mark.parametrize("seed", range(4))
def test_random_tables_match_as_the_same_expressions_one_by_one(seed: int) -> None:
    cases, chance = RandomCases(seed), random.Random(seed)
    rows = [conjunction(cases, chance) for _ in range(200)]
    table = table_of([[(p.attribute, str(p.operator), [variant(v) for v in p.values]) for p in row] for row in rows])
    bulk, single, many = tamis.Matcher(), tamis.Matcher(), tamis.Matcher()
    bulk.add_table(table)
    expressions: list[Expression] = [all_of(*row) for row in rows]
    many.add_many(range(len(rows)), expressions)
    for number, expression in enumerate(expressions):
        single.add(number, expression)
    events = [cases.event() for _ in range(100)]
    expected = single.match_batch(events).sort_by([("event", "ascending"), ("subscription", "ascending")])
    for matcher in (bulk, many):
        found = matcher.match_batch(events).sort_by([("event", "ascending"), ("subscription", "ascending")])
        assert found.equals(expected)
        assert matcher.stats()["conjunctions"] == single.stats()["conjunctions"]
    for number, expression in enumerate(expressions[:20]):
        explained = bulk.explain(number, events[0]).expression
        assert set(operands(explained)) == set(operands(all_of(*[with_timestamps(p) for p in operands(expression)])))


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize("seed", range(3))
def test_a_table_that_is_encoded_in_parts(seed: int, index: str) -> None:
    """Constants of later parts lie between those of earlier ones, which moves labels if they come part by part."""
    cases, chance = RandomCases(seed), random.Random(seed)
    rows = [conjunction(cases, chance) for _ in range(60)]
    texts = [[Predicate("s", "<", [f"a{''.join(chance.choices('abc', k=8))}"])] for _ in range(60)]
    rows = [row for pair in zip(rows, texts, strict=True) for row in pair]
    table = table_of([[(p.attribute, str(p.operator), [variant(v) for v in p.values]) for p in row] for row in rows])
    matcher = matcher_with(USUAL_STORE_LIMITS._replace(rows_at_once=7), index)
    matcher.add(1000, "s >= 'ab'")
    matcher.add_table(table)
    model = {number: all_of(*[with_timestamps(p) for p in row]) for number, row in enumerate(rows)}
    for event in [cases.event() for _ in range(40)] + [
        {"s": f"a{''.join(chance.choices('abc', k=5))}"} for _ in range(40)
    ]:
        expected = {number for number, each in model.items() if matches(each, event)}
        assert set(matcher.match(event)) - {1000} == expected
    assert {number: set(operands(matcher[number].expression)) for number in model} == {
        number: set(operands(each)) for number, each in model.items()
    }


def test_wrong_rows_of_all_parts_are_reported() -> None:
    rows = [[("a", "=", [1] if number % 5 else [1, 2])] for number in range(23)]
    matcher = matcher_with(USUAL_STORE_LIMITS._replace(rows_at_once=4))
    rejected = matcher.add_table(table_of(rows, pa.int64()), on_error="collect")
    assert [each.id for each in rejected] == [0, 5, 10, 15, 20]
    assert sorted(matcher.match({"a": 1})) == [number for number in range(23) if number % 5]
    with pytest.raises(tamis.ExpressionError, match=r"subscription 5: = takes one literal, not 2"):
        matcher_with(USUAL_STORE_LIMITS._replace(rows_at_once=4)).add_table(
            table_of(rows[1:], pa.int64(), range(1, 23))
        )


def operands(expression: Expression) -> tuple[Any, ...]:
    return (
        expression.operands
        if isinstance(expression, And)
        else (expression,)
        if isinstance(expression, Predicate)
        else ()
    )


def with_timestamps(predicate: Predicate) -> Predicate:
    values = [next(iter(variant(value).values())) for value in predicate.values]
    return Predicate(predicate.attribute, predicate.operator, values)


@pytest.mark.parametrize(
    ("value", "literals", "hit", "miss"),
    [
        (pa.int64(), [5], 5, 6),
        (pa.int8(), [5], 5.0, "5"),
        (pa.float64(), [0.5], 0.5, 1),
        (pa.float32(), [0.1], np.float32(0.1).item(), 0.1),
        (pa.string(), ["x"], "x", "y"),
        (pa.large_string(), ["x"], "x", "y"),
        (pa.dictionary(pa.int32(), pa.string()), ["x"], "x", "y"),
        (pa.bool_(), [True], True, 1),
        (pa.timestamp("us"), [datetime(2026, 1, 1)], date(2026, 1, 1), datetime(2026, 1, 2)),
        (pa.timestamp("ms", "UTC"), [datetime(2026, 1, 1)], date(2026, 1, 1), datetime(2026, 1, 2)),
        (pa.date32(), [date(2026, 1, 1)], datetime(2026, 1, 1), date(2026, 1, 2)),
    ],
)
def test_each_type_of_literal(value: pa.DataType, literals: list[Any], hit: Any, miss: Any) -> None:
    matcher = tamis.Matcher()
    matcher.add_table(table_of([[("a", "=", literals)], [("a", "<>", literals)], [("a", "in", literals * 2)]], value))
    assert sorted(matcher.match({"a": hit})) == [0, 2]
    assert matcher.match({"a": miss}) in ([1], [])


def test_every_operator_in_predicate_form() -> None:
    rows = [
        [("a", "=", ["m"])], [("a", "<>", ["m"])], [("a", "<", ["m"])], [("a", "<=", ["m"])], [("a", ">", ["m"])],
        [("a", ">=", ["m"])], [("a", "in", ["m", "z"])], [("a", "not in", ["m", "z"])], [("a", "between", ["a", "m"])],
        [("a", "not between", ["a", "m"])], [("a", "like", ["m%"])], [("a", "not like", ["%m%"])], [("a", "ilike", ["M"])],
        [("a", "rlike", ["^m$"])], [("a", "is null", [])], [("a", "is not null", [])], [],
    ]  # fmt: skip
    matcher = tamis.Matcher()
    matcher.add_table(table_of(rows, pa.string()))
    assert sorted(matcher.match({"a": "m"})) == [0, 3, 5, 6, 8, 10, 12, 13, 15, 16]
    assert sorted(matcher.match({"a": "p"})) == [1, 4, 5, 7, 9, 11, 15, 16]
    assert sorted(matcher.match({})) == [14, 16]


def test_sql_text_in_a_table() -> None:
    matcher = tamis.Matcher()
    matcher.add_table(pa.table({"id": ["x", "y"], "expression": ["a = 1", "a > 0 OR b LIKE 'z%'"]}))
    assert sorted(matcher.match({"a": 1})) == ["x", "y"]
    matcher.add_table(pa.RecordBatch.from_pydict({"id": ["z"], "expression": ["a = 1"]}))
    assert sorted(matcher.match({"a": 1})) == ["x", "y", "z"]


def test_a_chunked_and_sliced_table() -> None:
    whole = table_of([[("a", "=", [number])] for number in range(10)], pa.int64())
    matcher = tamis.Matcher()
    matcher.add_table(pa.concat_tables([whole.slice(2, 3), whole.slice(7, 2)]))
    assert len(matcher) == 5
    assert [matcher.match({"a": number}) for number in (1, 2, 4, 5, 7, 8, 9)] == [[], [2], [4], [], [7], [8], []]


WRONG: list[tuple[Any, str]] = [
    (pa.table({"id": [1]}), "'id', either 'expression' or 'predicates', and perhaps 'weight'"),
    (pa.table({"id": [1], "expression": ["a = 1"], "predicates": [[]]}), "either"),
    (pa.table({"expression": ["a = 1"]}), "'id'"),
    (pa.table({"id": [1.5], "expression": ["a = 1"]}), "strings or integers"),
    (pa.table({"id": [1, None], "expression": ["a = 1", "b = 1"]}), "row 1: id is null"),
    (pa.table({"id": [1, 2], "expression": ["a = 1", None]}), "row 1: expression is null"),
    (pa.table({"id": [1], "expression": [5]}), "must be strings"),
    (pa.table({"id": [1, 1], "expression": ["a = 1", "b = 1"]}), "the id 1 is given twice"),
    (pa.table({"id": [1, 2], "expression": ["a = 1", "b ="]}), "subscription 2"),
    (pa.table({"id": [1], "predicates": [5]}), "'predicates' must be"),
    (pa.table({"id": [1], "predicates": [[{"attribute": "a"}]]}), "'predicates' must be"),
    (table_of([[("a", "==", [1])]], pa.int64()), "row 0: unknown operator '=='"),
    (table_of([[("a", "=", [1])], [("a", "=", [1, 2])]], pa.int64()), "subscription 1: = takes one literal, not 2"),
    (table_of([[("a", "between", [1])]], pa.int64()), "BETWEEN takes two"),
    (table_of([[("a", "in", [])]], pa.int64()), "IN takes at least one"),
    (table_of([[("a", "is null", [1])]], pa.int64()), "IS NULL takes no literal"),
    (table_of([[("a", "=", None)]], pa.int64()), "takes one literal, not 0"),
    (table_of([[("a", "=", [None])]], pa.int64()), "NULL is not a literal"),
    (table_of([[("a", "=", [float("nan")])]], pa.float64()), "must be finite"),
    (table_of([[("a", "<", [float("inf")])]], pa.float64()), "must be finite"),
    (table_of([[("a", "<", [True])]], pa.bool_()), "no order"),
    (table_of([[("a", "like", [5])]], pa.int64()), "string pattern"),
    (table_of([[("a", "rlike", ["("])]], pa.string()), "cannot read the pattern"),
    (table_of([[("a", "between", [{"integer": 1}, {"string": "x"}])]]), "of one kind"),
    (table_of([[("a", "=", [{"integer": 1, "string": "x"}])]]), "must set one field"),
    (table_of([[("a", "=", [{}])]]), "NULL is not a literal"),
    (table_of([[("", "=", [1])]], pa.int64()), "name cannot be empty"),
    (table_of([[(None, "=", [1])]], pa.int64()), "row 0: a predicate's attribute is null"),
    (table_of([[("a", "=", [1])], [("a", "<", [2**60])]], pa.timestamp("us")), "subscription 1: .*outside the years 1 to 9999"),
    (table_of([[("a", "=", [1])], [("a", "in", [1, 2**64 - 1])]], pa.uint64()), "row 1: a literal is wrong: .*beyond 64 bits"),
    (pa.chunked_array([[1]]), "cannot be read as an Arrow table"),
    ([1, 2], "an Arrow table is needed"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_wrong_table_is_refused_as_a_whole(table: Any, message: str) -> None:
    matcher = tamis.Matcher()
    matcher.add(99, "z = 1")
    with pytest.raises(tamis.TamisError, match=message) as refusal:
        matcher.add_table(table)
    assert not isinstance(refusal.value, tamis.EventError)
    assert len(matcher) == 1
    assert matcher.match({"a": 1, "z": 1}) == [99]


def test_words_of_a_dictionary_that_no_row_uses() -> None:
    attribute = pa.DictionaryArray.from_arrays(pa.array([1, 1], pa.int32()), ["", "a", None])
    operator = pa.DictionaryArray.from_arrays(pa.array([0, 0], pa.int32()), ["=", "foo", None])
    structs = pa.StructArray.from_arrays(
        [attribute, operator, pa.array([[0], [1]])], ["attribute", "operator", "values"]
    )
    matcher = tamis.Matcher()
    matcher.add_table(
        pa.table({"id": [0, 1], "predicates": pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), structs)})
    )
    assert matcher.match({"a": 1}) == [1]


def test_a_null_among_the_predicates() -> None:
    column = pa.array([[], None], predicates_type(pa.int64()))
    with pytest.raises(tamis.TableError, match="row 1: predicates is null"):
        tamis.Matcher().add_table(pa.table({"id": [1, 2], "predicates": column}))


def test_text_that_is_not_utf8() -> None:
    broken = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    like = pa.StructArray.from_arrays(
        [pa.array(["a"]), pa.array(["like"]), pa.ListArray.from_arrays([0, 1], broken)],
        ["attribute", "operator", "values"],
    )
    for table in (
        pa.table({"id": broken, "expression": ["a = 1"]}),
        pa.table({"id": [1], "expression": broken}),
        pa.table({"id": [1], "predicates": pa.ListArray.from_arrays([0, 1], like)}),
    ):
        with pytest.raises(tamis.TableError, match="not UTF-8"):
            tamis.Matcher().add_table(table)
