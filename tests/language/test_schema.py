"""Declared schemas: reading them, and checking expressions and events."""

from __future__ import annotations

import pickle
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import EventError, KindError, SchemaError, TamisError, UnknownAttributeError
from tamis.language.declared import Declared
from tamis.language.event import flatten
from tamis.language.expression import TRUE, Expression, Not, Or, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.parser import parse
from tamis.language.schema import Schema
from tamis.language.values import Interval, Kind

NUMBER, STRING, BOOLEAN, TIMESTAMP = (Declared(kind) for kind in Kind)


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        *[(word, NUMBER) for word in ("number", "integer", "int", "float", "double", "NUMBER", " bigint ", "decimal")],
        *[(word, STRING) for word in ("string", "str", "text", "varchar")],
        *[(word, BOOLEAN) for word in ("boolean", "bool")],
        *[(word, TIMESTAMP) for word in ("timestamp", "date", "datetime", "Timestamp")],
        *[
            (word, Declared(Kind.STRING, True))
            for word in ("list<string>", "LIST<str>", "list < string >", "array<text>")
        ],
        ("list<number>", Declared(Kind.NUMBER, True)),
        (int, NUMBER),
        (float, NUMBER),
        (Decimal, NUMBER),
        (str, STRING),
        (bool, BOOLEAN),
        (datetime, TIMESTAMP),
        (date, TIMESTAMP),
        (Kind.NUMBER, NUMBER),
        (Kind.TIMESTAMP, TIMESTAMP),
        (list[str], Declared(Kind.STRING, True)),
        (set[int], Declared(Kind.NUMBER, True)),
        (frozenset[bool], Declared(Kind.BOOLEAN, True)),
        (tuple[str, ...], Declared(Kind.STRING, True)),
        (Declared(Kind.STRING, True), Declared(Kind.STRING, True)),
        (pa.int64(), NUMBER),
        (pa.uint8(), NUMBER),
        (pa.float16(), NUMBER),
        (pa.float64(), NUMBER),
        (pa.decimal128(10, 2), NUMBER),
        (pa.string(), STRING),
        (pa.large_string(), STRING),
        (pa.string_view(), STRING),
        (pa.dictionary(pa.int32(), pa.string()), STRING),
        (pa.bool_(), BOOLEAN),
        (pa.timestamp("ns", tz="UTC"), TIMESTAMP),
        (pa.date32(), TIMESTAMP),
        (pa.date64(), TIMESTAMP),
        (pa.list_(pa.string()), Declared(Kind.STRING, True)),
        (pa.large_list(pa.int64()), Declared(Kind.NUMBER, True)),
        (pa.list_(pa.float32(), 3), Declared(Kind.NUMBER, True)),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), Declared(Kind.STRING, True)),
    ],
)
def test_kinds(kind: Any, declared: Declared) -> None:
    schema = Schema.of({"a": kind})
    assert schema["a"] == declared
    assert Schema.of(schema.to_dict()) == schema


def test_an_arrow_schema() -> None:
    arrow = pa.schema(
        [
            ("price", pa.float64()),
            ("tags", pa.list_(pa.string())),
            ("user", pa.struct([("age", pa.int32()), ("geo", pa.struct([("country", pa.string())]))])),
            ("a.b", pa.bool_()),
        ]
    )
    assert Schema.of(arrow) == Schema.of(
        {
            "price": "number",
            "tags": "list<string>",
            "user": {"age": int, "geo": {"country": str}},
            "a": {"b": "boolean"},
        }
    )
    assert list(Schema.of(arrow)) == ["price", "tags", "user.age", "user.geo.country", "a.b"]


def test_the_constructor_reads_the_same_as_of() -> None:
    declared = {"price": "number", "tags": list[str], "user": {"age": int}}
    schema = Schema(declared)
    assert schema == Schema.of(declared) == Schema(schema)
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert 5 not in schema
    assert [] not in schema


@pytest.mark.parametrize("declared", [5, None, {"a": 5}, {"": int}, {5: int}, ["a"]])
def test_the_constructor_refuses_the_same_as_of(declared: Any) -> None:
    with pytest.raises(SchemaError) as one:
        Schema(declared)
    with pytest.raises(SchemaError) as other:
        Schema.of(declared)
    assert str(one.value) == str(other.value)


def test_few_declared_attributes_are_listed() -> None:
    with pytest.raises(UnknownAttributeError, match=r"unknown attribute 'xyz'; the attributes are: price, title$"):
        Schema({"title": str, "price": int})["xyz"]
    with pytest.raises(UnknownAttributeError, match=r"unknown attribute 'prize'; did you mean 'price'\?$"):
        Schema({"title": str, "price": int})["prize"]
    with pytest.raises(UnknownAttributeError, match=r"unknown attribute 'xyz'$"):
        Schema({f"attribute{number}": int for number in range(13)})["xyz"]
    with pytest.raises(UnknownAttributeError, match=r"unknown attribute 'xyz'; the schema declares none$"):
        Schema({})["xyz"]


def test_a_schema_is_returned_as_it_is() -> None:
    schema = Schema.of({"a": "number"})
    assert Schema.of(schema) is schema


def itself() -> dict[str, Any]:
    inner: dict[str, Any] = {}
    inner["a"] = inner
    return inner


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (None, "a schema must be a mapping"),
        ([("a", "number")], "a schema must be a mapping"),
        ("number", "a schema must be a mapping"),
        (pa.table({"a": [1]}), "a schema must be a mapping"),
        (pa.int64(), "a schema must be a mapping"),
        ({"a": "nubmer"}, "attribute 'a': 'nubmer' is not a kind; did you mean 'number'"),
        ({"a": "xyz"}, "attribute 'a': 'xyz' is not a kind; the kinds are number, string"),
        ({"a": "list<list<string>>"}, "attribute 'a': 'list<list<string>>' is not a kind"),
        ({"a": "list<>"}, "is not a kind"),
        ({"a": None}, "attribute 'a': None is not a kind"),
        ({"a": 5}, "attribute 'a': 5 is not a kind"),
        ({"a": bytes}, "attribute 'a': .*bytes.* is not a kind"),
        ({"a": list}, "is not a kind"),
        ({"a": list[bytes]}, "is not a kind"),
        ({"a": tuple[int, str]}, "is not a kind"),
        ({"a": dict[str, int]}, "is not a kind"),
        ({"a": [1]}, "is not a kind"),
        ({"user": {"age": "x"}}, r"attribute 'user\.age'"),
        ({1: "number"}, "name must be a string, not 1"),
        ({"": "number"}, "empty"),
        ({"a": {"": "number"}}, "non-empty string, not '' .inside 'a'"),
        ({"a": {1: "number"}}, "non-empty string, not 1"),
        ({"a.b": "number", "a": {"b": "number"}}, r"'a\.b' is declared twice"),
        (itself(), "nested deeper than 100 levels"),
        ({"a": pa.binary()}, "attribute 'a': the Arrow type binary is not supported"),
        ({"a": pa.null()}, "the Arrow type null"),
        ({"a": pa.time32("s")}, r"the Arrow type time32"),
        ({"a": pa.duration("s")}, "the Arrow type duration"),
        ({"a": pa.map_(pa.string(), pa.string())}, "the Arrow type map"),
        ({"a": pa.list_(pa.struct([("b", pa.binary())]))}, "attribute 'a.b': the Arrow type binary"),
        ({"a": [{"b": "numbr"}]}, "attribute 'a.b': 'numbr' is not a kind"),
        (pa.schema([("a", pa.int8()), ("a", pa.int8())]), "'a' is declared twice"),
        (pa.schema([("u", pa.struct([("x", pa.binary())]))]), r"attribute 'u\.x'"),
    ],
)
def test_refused(declared: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        Schema.of(declared)


SCHEMA = Schema.of(
    {
        "price": "number",
        "pages": "number",
        "genre": "string",
        "tags": "list<string>",
        "numbers": "list<number>",
        "paid": "boolean",
        "seen": "timestamp",
    }
)


def test_properties_of_a_schema() -> None:
    assert SCHEMA.scalars == {"price", "pages", "genre", "paid", "seen"}
    assert "price" in SCHEMA
    assert "prize" not in SCHEMA
    assert len(SCHEMA) == 7
    assert repr(Schema.of({"a": int, "b": list[str]})) == "Schema({'a': 'number', 'b': 'list<string>'})"
    assert hash(SCHEMA) == hash(Schema.of(SCHEMA.to_dict()))
    assert Schema.of({"a": int}) != Schema.of({"a": str})
    assert pickle.loads(pickle.dumps(SCHEMA)) == SCHEMA


@pytest.mark.parametrize(
    "expression",
    [
        TRUE,
        Predicate("price", "<", [5]),
        Predicate("price", "in", [5, 1.5]),
        Predicate("genre", "like", ["x%"]),
        Predicate("tags", "=", ["x"]),
        Predicate("paid", "=", [True]),
        Predicate("seen", "between", [date(2026, 1, 1), datetime(2026, 1, 2)]),
        Predicate("tags", "is null"),
        Quantified("price", "<", "any", "pages"),
        Quantified("genre", "=", "any", "tags"),
        Quantified("paid", "=", "any", "paid"),
        Exists([Join("genre", "=", "genre")], [Predicate("price", ">", [5])]),
        Not(Or([Predicate("price", "<", [5]), Predicate("genre", "=", ["x"])])),
    ],
)
def test_expressions_that_keep_to_the_schema(expression: Expression) -> None:
    SCHEMA.check(expression)
    SCHEMA.check(Not(expression) & Predicate("price", "=", [1]))


@pytest.mark.parametrize(
    ("expression", "error", "message"),
    [
        (Predicate("prize", "<", [5]), UnknownAttributeError, "unknown attribute 'prize'; did you mean 'price'"),
        (Predicate("Price", "is null"), UnknownAttributeError, "did you mean 'price'"),
        (Quantified("price", "<", "any", "prize"), UnknownAttributeError, "'prize'"),
        (Quantified("prize", "<", "any", "price"), UnknownAttributeError, "'prize'"),
        (Exists([Join("prize", "=", "price")]), UnknownAttributeError, "'prize'"),
        (Exists([Join("price", "=", "prize")]), UnknownAttributeError, "'prize'"),
        (Exists([], [Predicate("prize", "=", [1])]), UnknownAttributeError, "'prize'"),
        (Predicate("price", "=", ["5"]), KindError, "attribute 'price' is a number: = with the string '5'"),
        (Predicate("price", "like", ["5%"]), KindError, "LIKE with the string '5%'"),
        (Predicate("price", "in", [5, "x"]), KindError, "IN with the string 'x'"),
        (Predicate("price", "=", [True]), KindError, "the boolean True"),
        (Predicate("paid", "=", [1]), KindError, "attribute 'paid' is a boolean"),
        (Predicate("seen", ">", ["2026-01-01"]), KindError, "attribute 'seen' is a timestamp"),
        (Predicate("tags", "=", [5]), KindError, "attribute 'tags' is a string"),
        (Quantified("price", "<", "any", "genre"), KindError, "'price' .a number. and 'genre' .a string."),
        (Quantified("paid", "<", "any", "paid"), KindError, "booleans have no order"),
        (Exists([Join("genre", "=", "price")]), KindError, "cannot be compared"),
        (Exists([], [Predicate("price", "=", ["x"])]), KindError, "attribute 'price' is a number"),
    ],
)
def test_expressions_that_violate_the_schema(expression: Expression, error: type[TamisError], message: str) -> None:
    for whole in (expression, Not(Predicate("price", "=", [1]) & expression)):
        with pytest.raises(error, match=message):
            SCHEMA.check(whole)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("price < 20 AND prize < 5", "prize"),
        ("price < 20\n  AND (title = 'prize' OR `prize` < 5)", "`prize`"),
        ("price < 20 AND price = 'x' OR price = 3", "'x'"),
        ("price IN (5, 7, 'x', 9)", "'x'"),
        ("price BETWEEN 'a' AND 'x'", "'a'"),
        ("price LIKE '5%'", "'5%'"),
        ("contains(price, '5')", "'5'"),
        ("ip_in(price, '10.0.0.0/8')", "'10"),
        ("5 = ANY (tags)", "5"),
        ("price AND paid", "price"),
        ("lower(title) = 'x' AND upper(price) = 'X'", "'X'"),
        ("title < ANY (SELECT price FROM history)", "title"),
        ("price < ANY (SELECT prize FROM history)", "prize"),
        ("EXISTS (SELECT 1 FROM history h WHERE h.prize = price)", "h.prize"),
        ("EXISTS (SELECT 1 FROM history h WHERE h.title = title AND h.price = 'x')", "'x'"),
        ("paid > ANY (SELECT paid FROM history)", "paid"),
    ],
)
def test_the_caret_of_what_violates_the_schema(text: str, place: str) -> None:
    schema = Schema({"price": "number", "title": "string", "paid": "boolean", "tags": "list<string>"})
    with pytest.raises((UnknownAttributeError, KindError)) as caught:
        schema.check(parse(text), text)
    error = caught.value
    assert error.position is not None
    assert text[error.position :].startswith(place)
    before = text[: error.position]
    assert (error.line, error.column) == (before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)
    assert f"(line {error.line}, column {error.column})" in str(error)
    line, caret = str(error).splitlines()[1:3]
    assert line[caret.index("^") :].startswith(place)
    assert pickle.loads(pickle.dumps(error)).position == error.position
    with pytest.raises(type(error)) as plain:
        schema.check(parse(text))
    assert (plain.value.position, "\n" in str(plain.value)) == (None, False)
    with pytest.raises(type(error)) as added:
        tamis.Matcher(schema=schema, history=tamis.History(rows=1)).add("a", text)
    assert str(added.value).endswith(str(error))


def test_a_fault_in_another_text_has_no_place() -> None:
    """A text that is not that of the expression, or of another dialect."""
    for text in ("price <", "other = 1", ""):
        with pytest.raises(UnknownAttributeError, match=r"'prize'; did you mean 'price'\?$") as caught:
            Schema({"price": int}).check(Predicate("prize", "<", [5]), text)
        assert caught.value.position is None


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"price": 5, "genre": "x", "paid": True, "seen": date(2026, 1, 1)},
        {"price": None, "tags": []},
        {"tags": ["x", "y"]},
        {"tags": "x"},
        {"price": [5]},
        {"numbers": Interval(1, 2)},
        {"unknown": [1, "x"]},
    ],
)
def test_events_that_keep_to_the_schema(event: dict[str, Any]) -> None:
    SCHEMA.check_event(flatten(event))


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"price": "5"}, "^event 7, attribute 'price': '5' is a string, but the schema declares a number"),
        ({"price": True}, "True is a boolean"),
        ({"paid": 1}, "1 is a number, but the schema declares a boolean"),
        ({"seen": 5}, "declares a timestamp"),
        ({"numbers": Interval(date(2026, 1, 1), date(2026, 1, 2))}, "is a timestamp, but the schema declares a number"),
        ({"price": Interval(1, 2)}, "found an Interval, but the schema declares one value. Hint: declare list<number>"),
        ({"price": [1, 2]}, "found 2 values, but the schema declares one"),
        ({"tags": ["x", 5]}, "5 is a number, but the schema declares a string"),
    ],
)
def test_events_that_violate_the_schema(event: dict[str, Any], message: str) -> None:
    with pytest.raises(EventError, match=message):
        SCHEMA.check_event(flatten(event), 7)


@pytest.mark.parametrize(
    ("attribute", "kind", "rows"),
    [
        ("price", Kind.NUMBER, [0, 1, 5]),
        ("price", Kind.NUMBER, []),
        ("price", Kind.STRING, []),
        ("tags", Kind.STRING, [0, 0, 1]),
        ("unknown", Kind.STRING, [0, 0, 1]),
    ],
)
def test_columns_that_keep_to_the_schema(attribute: str, kind: Kind, rows: list[int]) -> None:
    SCHEMA.check_column(attribute, kind, np.array(rows, np.int64))


@pytest.mark.parametrize(
    ("attribute", "kind", "rows", "message"),
    [
        (
            "price",
            Kind.STRING,
            [3, 4],
            "^event 3, attribute 'price': the value is a string, but the schema declares a number",
        ),
        ("tags", Kind.NUMBER, [3], "the value is a number, but the schema declares a string"),
        ("price", Kind.NUMBER, [3, 4, 4, 5], "^event 4, attribute 'price': found several values"),
    ],
)
def test_columns_that_violate_the_schema(attribute: str, kind: Kind, rows: list[int], message: str) -> None:
    with pytest.raises(EventError, match=message):
        SCHEMA.check_column(attribute, kind, np.array(rows, np.int64))


def test_an_arrow_value_is_not_a_type() -> None:
    with pytest.raises(SchemaError, match="attribute 'a'"):
        Schema({"a": pa.scalar(1)})
