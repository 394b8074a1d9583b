"""`on_error="collect"` adds the valid rows. Each wrong row has the same error as when it is added alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tests.matcher.test_tables import VARIANT, WRONG, predicates_type, table_of
from tests.random_cases import RandomCases

pytestmark = pytest.mark.usefixtures("each_index")


def errors_of(rejected: list[tamis.Rejected]) -> list[tuple[Any, int, str]]:
    return [(each.id, each.row, type(each.error).__name__) for each in rejected]


def test_valid_rows_are_added() -> None:
    matcher: tamis.Matcher[Any] = tamis.Matcher(schema={"a": "number"})
    matcher.add("there", "a = 1")
    given: list[tuple[Any, Any, Any]] = [
        ("x", "a = 1", 1),
        ("there", "a = 1", 1),
        ("bad", "a =", 1),
        ("bad", "a = 1", 1),
        (5, "a = 1", 1),
        (None, "a = 1", 1),
        ("y", "a > 0", 2),
        ("x", "a = 1", 1),
        ("heavy", "a = 1", "much"),
        ("other", "b = 1", 1),
        ("past", "a < ALL (SELECT a FROM history)", 1),
        ("z", tamis.attr("a") < 5, 3),
    ]
    rejected = matcher.add_many(*map(list, zip(*given, strict=True)), on_error="collect")
    assert errors_of(rejected) == [
        ("there", 1, "DuplicateIdError"),
        ("bad", 2, "ParseError"),
        ("bad", 3, "DuplicateIdError"),
        (5, 4, "IdTypeError"),
        (None, 5, "IdTypeError"),
        ("x", 7, "DuplicateIdError"),
        ("heavy", 8, "OptionError"),
        ("other", 9, "UnknownAttributeError"),
        ("past", 10, "HistoryError"),
    ]
    assert str(rejected[0].error).startswith("subscription 'there' already exists")
    assert str(rejected[1].error).startswith("subscription 'bad': ")
    assert str(rejected[2].error) == "the id 'bad' is given twice"
    assert matcher.ids() == ["there", "x", "y", "z"]
    assert [matcher[each].weight for each in "xyz"] == [1, 2, 3]
    assert matcher.match({"a": 1}, k=2) == ["z", "y"]


def test_calls_with_and_without_wrong_rows() -> None:
    matcher = tamis.Matcher()
    assert matcher.add_many([1, 2], ["a = 1", "a = 2"], on_error="collect") == []
    assert matcher.add_many([3], ["a = 1"], on_error="collect") == []
    assert [each.row for each in matcher.add_many([4, 5], ["a", 7], on_error="collect")] == [1]
    assert [each.row for each in matcher.add_many(["x"], ["a = 1"], on_error="collect")] == [0]
    assert matcher.ids() == [1, 2, 3, 4]


def test_an_error_that_concerns_no_row_is_raised() -> None:
    matcher: tamis.Matcher[Any] = tamis.Matcher()
    collect: Any = {"on_error": "collect"}
    with pytest.raises(tamis.OptionError, match="on_error must be 'raise' or 'collect', not 'skip'"):
        matcher.add_many([1], ["a = 1"], on_error="skip")  # type: ignore[call-overload]
    with pytest.raises(tamis.ExpressionError, match="ids and expressions differ in number: 2 and 1"):
        matcher.add_many([1, 2], ["a = 1"], **collect)
    with pytest.raises(tamis.OptionError, match="ids and weights differ in number: 1 and 2"):
        matcher.add_many([1], ["a = 1"], [1, 2], **collect)
    with pytest.raises(tamis.IdTypeError, match="ids must be a list"):
        matcher.add_many("x", ["a = 1"], **collect)
    for table, message in (
        ({"id": [1]}, "either 'expression' or 'predicates'"),
        ({"id": [1.5], "expression": ["a = 1"]}, "strings or integers"),
        ({"id": [1], "expression": [5]}, "must be strings"),
        ({"id": [1], "predicates": [5]}, "'predicates' must be"),
        ({"id": [1], "expression": ["a = 1"], "weight": ["x"]}, "must be numbers"),
    ):
        with pytest.raises((tamis.TableError, tamis.OptionError), match=message):
            matcher.add_table(pa.table(table), **collect)
    assert len(matcher) == 0


def rows_alone(table: pa.Table, schema: Any = None) -> dict[int, str]:
    """The errors of the rows of a table if each is added alone."""
    wrong = {}
    for row in range(len(table)):
        try:
            tamis.Matcher(schema=schema).add_table(table.slice(row, 1))
        except tamis.TamisError as error:
            wrong[row] = str(error).removeprefix("row 0: ")
    return wrong


def check_as_alone(table: pa.Table, schema: Any = None) -> int:
    """Check the collected errors of a table with distinct ids. Returns the number of wrong rows."""
    matcher = tamis.Matcher(schema=schema)
    rejected = matcher.add_table(table, on_error="collect")
    expected = rows_alone(table, schema)
    assert {each.row: str(each.error).removeprefix(f"row {each.row}: ") for each in rejected} == expected
    assert [each.row for each in rejected] == sorted(expected)
    ids = table["id"].to_pylist()
    assert [each.id for each in rejected] == [ids[row] for row in sorted(expected)]
    assert matcher.ids() == [ids[row] for row in range(len(table)) if row not in expected]
    return len(expected)


@pytest.mark.parametrize("form", ["expression", "predicates"])
def test_each_row_of_a_table_is_checked_as_if_it_were_alone(form: str) -> None:
    kind = predicates_type(VARIANT) if form == "predicates" else pa.string()
    values: list[Any] = ["a = 1", "a =", None, "b = 2", "c LIKE 5"]
    if form == "predicates":
        good = {"attribute": "a", "operator": "=", "values": [{"integer": 1}]}
        changes: list[dict[str, Any]] = [
            {}, {"operator": "=="}, {"operator": "~"}, {"operator": None}, {"attribute": None}, {"attribute": ""},
            {"values": []}, {"values": None}, {"values": [None]}, {"values": [{"number": float("nan")}]},
            {"values": [{"integer": 1, "string": "x"}]}, {"operator": "like"}, {"operator": "<"}, {"attribute": "b"},
            {"operator": "rlike", "values": [{"string": "("}]}, {"operator": "between"}, {"operator": "is null", "values": []},
        ]  # fmt: skip
        values = [[good | change] for change in changes] + [None, [], [good, good | {"operator": "??"}]]
    chance = random.Random(5)
    rows = [chance.choice(values) for _ in range(120)]
    table = pa.table({"id": [f"s{row}" for row in range(120)], form: pa.array(rows, kind)})
    assert 20 < check_as_alone(table) < 110
    assert 20 < check_as_alone(table, {"a": "number"}) < 115


@pytest.mark.parametrize(("table", "message"), WRONG)
def test_a_wrong_row_among_others(table: Any, message: str) -> None:
    matcher: tamis.Matcher[Any] = tamis.Matcher()
    try:
        rejected = matcher.add_table(table, on_error="collect")
    except tamis.TableError:
        return  # the whole table is wrong
    assert len(rejected) == 1
    with pytest.raises(tamis.TamisError, match=message):
        raise rejected[0].error
    assert len(matcher) == len(table) - 1


def test_rows_that_are_not_utf8() -> None:
    texts = [b"x", b"\xff\xfe", b"z", b"\xff"]
    broken = pa.array(texts, pa.binary()).view(pa.string())
    predicates = pa.StructArray.from_arrays(
        [pa.array(["a"] * 4), pa.array(["="] * 4), pa.ListArray.from_arrays([0, 1, 2, 3, 4], broken)],
        ["attribute", "operator", "values"],
    )
    expression = pa.array([b"a = 'x'", b"a = '\xff'", b"a = 'z'", b"a = '\xfe'"], pa.binary()).view(pa.string())
    tables: list[dict[str, Any]] = [
        {"id": broken, "expression": ["a = 1"] * 4},
        {"id": range(4), "expression": expression},
        {"id": range(4), "predicates": pa.ListArray.from_arrays([0, 1, 2, 3, 4], predicates)},
    ]
    for columns in tables:
        matcher = tamis.Matcher()
        rejected = matcher.add_table(pa.table(columns), on_error="collect")
        assert [each.row for each in rejected] == [1, 3]
        assert all("not UTF-8" in str(each.error) for each in rejected)
        assert len(matcher) == 2


def test_timestamps_that_are_out_of_range() -> None:
    table = table_of([[("a", "=", [1])], [("a", "=", [2**62])], [("a", "=", [2])]], pa.timestamp("s"))
    matcher = tamis.Matcher()
    rejected = matcher.add_table(table, on_error="collect")
    assert [each.row for each in rejected] == [1]
    assert matcher.ids() == [0, 2]


def test_expressions_that_an_index_cannot_hold() -> None:
    expressions = [RandomCases(seed).expression() for seed in range(60)]
    matcher = tamis.Matcher("k-index")
    rejected = matcher.add_many(range(60), expressions, on_error="collect")
    taken = []
    for number, expression in enumerate(expressions):
        try:
            tamis.Matcher("k-index").add(number, expression)
            taken.append(number)
        except tamis.CapabilityError:
            pass
    assert 5 < len(taken) < 55
    assert matcher.ids() == taken
    assert {type(each.error) for each in rejected} == {tamis.CapabilityError}
    table = table_of([[("a", "=", [1.0])], [("a", "<", [0.5])], [("a", "=", [2.0])]], pa.float64())
    matcher = tamis.Matcher("k-index")
    assert [each.row for each in matcher.add_table(table, on_error="collect")] == [1]
    assert matcher.ids() == [0, 2]
