"""Values that cannot be shown, compared or converted are refused with errors of Tamis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from tamis.errors import DuplicateIdError, EventError, ExpressionError, TamisError, UnknownIdError, shortened
from tamis.language.builder import attr, exists, history
from tamis.language.engine_sql import to_sql
from tamis.language.evaluate import evaluate
from tamis.language.explain import explain
from tamis.language.expression import Expression, Predicate
from tamis.language.joins import Exists, Quantified
from tamis.language.json_form import from_json
from tamis.language.json_writer import to_json
from tamis.language.parser import parse
from tamis.language.reading import to_expression
from tamis.language.schema import Schema
from tamis.language.values import Interval

ANY = parse("a < ANY (SELECT a FROM history)")


def deep(levels: int = 100_000) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


class Spiteful:
    """An object whose methods all raise an error."""

    def _raise(self, *arguments: object) -> NoReturn:
        raise LookupError("nothing of this works")

    __repr__ = __str__ = __eq__ = __ne__ = __lt__ = __gt__ = __hash__ = __bool__ = _raise


class SpitefulNumber(int):
    def __int__(self) -> NoReturn:
        raise LookupError("nothing of this works")

    __repr__ = __int__


VALUES = {
    "deep": deep(),
    "spiteful": Spiteful(),
    "number": SpitefulNumber(5),
    "long": 10**10_000,
    "deep in a tuple": (deep(),),
}
USES: dict[str, Callable[[Any], object]] = {
    "from_json": from_json,
    "from_json, a literal": lambda value: from_json(["a", "=", value]),
    "from_json, an operator": lambda value: from_json(["a", value, 1]),
    "from_json, an escape": lambda value: from_json(["a", "like", "x", value]),
    "from_json, a date": lambda value: from_json(["a", "=", {"date": value}]),
    "from_json, exists": lambda value: from_json([{"exists": value}]),
    "to_json": to_json,
    "to_expression": to_expression,
    "attr": attr,
    "==": lambda value: attr("a") == value,
    "isin": lambda value: attr("a").isin([value]),
    "isin alone": lambda value: attr("a").isin(value),
    "like": lambda value: attr("a").like(value),
    "escape": lambda value: attr("a").like("x%", value),
    "startswith": lambda value: attr("a").startswith(value),
    "any": lambda value: history("a").any() < value,
    "exists": exists,
    "&": lambda value: (attr("a") == 1) & value,
    "EXISTS": lambda value: Exists([value]),
    "a quantifier": lambda value: Quantified("a", "<", value, "b"),
    "an operator": lambda value: Predicate("a", value, [1]),
    "parse": parse,
    "a dialect": lambda value: parse("a = 1", dialect=value),
    "a dialect of to_sql": lambda value: to_sql(ANY, value),
    "Schema": Schema,
    "a kind": lambda value: Schema({"a": value}),
    "an attribute of a schema": lambda value: Schema({"a": int})[value],
    "an event": lambda value: evaluate(ANY, value),
    "an event's value": lambda value: evaluate(ANY, {"a": value}),
    "an event's list": lambda value: evaluate(ANY, {"a": [value]}),
    "a history": lambda value: evaluate(ANY, {}, value),
    "an earlier event": lambda value: explain(ANY, {}, [value]),
    "an interval": lambda value: Interval(value, 5),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("value", VALUES)
def test_refused(value: str, use: str) -> None:
    with pytest.raises(TamisError) as error:
        USES[use](VALUES[value])
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("value", VALUES)
def test_errors_about_ids(value: str) -> None:
    identifier = VALUES[value]
    for error in (
        DuplicateIdError(identifier),
        UnknownIdError(identifier),
        ExpressionError("x", subscription=identifier),
    ):
        assert len(str(error)) < 200


def test_a_value_that_cannot_be_shown_is_named_by_its_type() -> None:
    assert shortened(Spiteful()) == "<Spiteful>"
    assert shortened(deep()) == "<list>"


@pytest.mark.parametrize("history", [5, None, {"a": 1}, "abc", b"abc", True])
@pytest.mark.parametrize("ask", [evaluate, explain])
def test_a_history_is_a_list(ask: Callable[..., object], history: Any) -> None:
    with pytest.raises(EventError, match="the history must be a list of earlier events, not"):
        ask(ANY, {"a": 1}, history)


@pytest.mark.parametrize("source", [None, [], 5, {}, "", Expression])
def test_to_json_of_objects_that_are_not_expressions(source: Any) -> None:
    with pytest.raises(ExpressionError):
        to_json(source)


def test_to_json_of_other_forms_of_expressions() -> None:
    assert to_json("a = 1") == to_json(attr("a") == 1) == to_json([["a", "=", 1]]) == [["a", "=", 1]]
