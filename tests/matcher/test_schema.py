"""A declared schema: what it refuses, and which predicates it allows to merge."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.language.evaluate import matches
from tamis.language.expression import Expression, Not, Predicate, all_of, any_of
from tests.matcher.test_tables import table_of

pytestmark = [pytest.mark.kernels, pytest.mark.usefixtures("each_index")]

SCHEMA = {"price": "number", "genre": "string", "tags": "list<string>", "seen": "timestamp", "paid": "boolean"}


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        ("prize > 5", tamis.UnknownAttributeError, "did you mean 'price'"),
        ("price > 'x'", tamis.KindError, "'price' is a number"),
        ("genre = 5", tamis.KindError, "'genre' is a string"),
        ("paid = 1", tamis.KindError, "'paid' is a boolean"),
        ("seen > 5", tamis.KindError, "'seen' is a timestamp"),
    ],
)
def test_subscriptions_outside_the_schema(expression: str, error: type[Exception], message: str) -> None:
    matcher = tamis.Matcher(schema=SCHEMA)
    with pytest.raises(error, match=message):
        matcher.add("x", expression)
    with pytest.raises(error, match=f"(?s)subscription 'y'.*{message}"):
        matcher.add_many(["x", "y"], ["price > 5", expression])
    with pytest.raises(error, match=f"(?s)subscription 'y'.*{message}"):
        matcher.add_table(pa.table({"id": ["x", "y"], "expression": ["price > 5", expression]}))
    assert len(matcher) == 0


@pytest.mark.parametrize(
    ("attribute", "value", "error", "message"),
    [
        ("prize", {"integer": 5}, tamis.UnknownAttributeError, "did you mean 'price'"),
        ("price", {"string": "x"}, tamis.KindError, "'price' is a number"),
        ("genre", {"integer": 5}, tamis.KindError, "'genre' is a string"),
    ],
)
def test_tables_outside_the_schema(attribute: str, value: Any, error: type[Exception], message: str) -> None:
    matcher = tamis.Matcher(schema=SCHEMA)
    table = table_of(
        [[("price", "<", [{"number": 5.0}])], [("price", ">", [{"integer": 1}]), (attribute, "=", [value])]]
    )
    with pytest.raises(error, match=f"subscription 1: .*{message}"):
        matcher.add_table(table)
    assert len(matcher) == 0


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"price": "5"}, "attribute 'price'.*the schema declares a number"),
        ({"price": [1, 2]}, "several values|2 values"),
        ({"genre": True}, "the schema declares a string"),
    ],
)
def test_events_outside_the_schema(event: dict[str, Any], message: str) -> None:
    matcher = tamis.Matcher(schema=SCHEMA)
    matcher.add("x", "price > 5")
    with pytest.raises(tamis.EventError, match=message):
        matcher.match(event)
    with pytest.raises(tamis.EventError, match=f"event 1, {message}" if message.startswith("attribute") else message):
        matcher.match_batch([{}, event])
    with pytest.raises(tamis.EventError, match=message):
        matcher.match_batch(pa.Table.from_pylist([event]))


def test_an_integer_and_a_double_of_one_attribute_are_two_values() -> None:
    matcher = tamis.Matcher(schema=SCHEMA)
    matcher.add("x", "price > 5 AND price < 3")
    value = pa.struct([("integer", pa.int64()), ("number", pa.float64())])
    column = pa.array(
        [[{"attribute": "price", "value": {"integer": 1}}, {"attribute": "price", "value": {"number": 9.0}}]],
        pa.list_(pa.struct([("attribute", pa.string()), ("value", value)])),
    )
    with pytest.raises(tamis.EventError, match="several values"):
        matcher.match_batch(pa.table({"event": column}))


def test_unknown_attributes_of_events_and_a_schema_from_arrow() -> None:
    matcher = tamis.Matcher(schema=pa.schema([("price", pa.float64()), ("user", pa.struct([("age", pa.int32())]))]))
    matcher.add(1, "price > 5 AND user.age >= 18")
    assert matcher.match({"price": 6, "user": {"age": 18}, "other": "x"}) == [1]
    with pytest.raises(tamis.SchemaError):
        tamis.Matcher(schema={"price": "money"})


def random_expression(chance: random.Random, depth: int = 3) -> Expression:
    if depth == 0 or chance.random() < 0.4:
        operator = chance.choice(["=", "<>", "<", "<=", ">", ">=", "in", "not in", "between", "not between"])
        count = {"in": 3, "not in": 3, "between": 2, "not between": 2}.get(operator, 1)
        return Predicate(chance.choice("ab"), operator, [chance.randint(0, 9) for _ in range(count)])
    operands = [random_expression(chance, depth - 1) for _ in range(chance.randint(2, 4))]
    if chance.random() < 0.2:
        return Not(operands[0])
    return all_of(*operands) if chance.random() < 0.6 else any_of(*operands)


@pytest.mark.parametrize("seed", range(3))
def test_merging_on_scalars_is_exact(seed: int) -> None:
    chance = random.Random(seed)
    expressions = [random_expression(chance) for _ in range(100)]
    matcher, one_by_one = (
        tamis.Matcher(schema={"a": "number", "b": "number"}),
        tamis.Matcher(schema={"a": int, "b": int}),
    )
    matcher.add_many(range(100), expressions)
    for number, expression in enumerate(expressions):
        one_by_one.add(number, expression)
    plain = tamis.Matcher()
    plain.add_many(range(100), expressions)
    assert matcher.stats()["conjunctions"] < plain.stats()["conjunctions"]
    values = [None, *range(-1, 11), 4.5]
    for event in [{"a": a, "b": b} for a in values for b in values]:
        expected = [number for number, expression in enumerate(expressions) if matches(expression, event)]
        assert sorted(matcher.match(event)) == sorted(one_by_one.match(event)) == sorted(plain.match(event)) == expected
