"""The tables have exactly the forms that Tamis reads."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tamis.language.expression import Predicate
from tamis.workload import PredicateWorkload, WorkloadError, generate, preset
from tests.workload.satisfaction import event_dicts, plain

MIXED = pa.struct([("integer", pa.int64()), ("string", pa.string())])


def small(**changes: Any) -> PredicateWorkload:
    parameters: dict[str, Any] = {"subscriptions": 300, "dimensions": 40, "match_probability": 0.02, **changes}
    return generate(preset("ads", **parameters))


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({}, pa.int64()),
        ({"numbers": "float"}, pa.float64()),
        ({"string_share": 1}, pa.string()),
        ({"string_share": 1, "numbers": "float"}, pa.string()),
        ({"string_share": 0.5}, MIXED),
        (
            {"string_share": 0.5, "numbers": "float"},
            pa.struct([("number", pa.float64()), ("string", pa.string())]),
        ),
    ],
)
def test_schemas(changes: dict[str, Any], value: pa.DataType) -> None:
    workload = small(**changes)
    predicate = pa.struct([("attribute", pa.string()), ("operator", pa.string()), ("values", pa.list_(value))])
    subscriptions = workload.subscriptions()
    assert subscriptions.schema == pa.schema([("id", pa.int64()), ("predicates", pa.list_(predicate))])
    pair = pa.struct([("attribute", pa.string()), ("value", value)])
    for events in (workload.events(), workload.other_events(5)):
        assert events.schema == pa.schema([("event", pa.list_(pair))])
        events.validate(full=True)
    subscriptions.validate(full=True)


@pytest.mark.parametrize("changes", [{}, {"string_share": 0.5, "prefix_share": 0.5}, {"style": "op-index"}])
def test_every_predicate_is_one_of_the_language(changes: dict[str, Any]) -> None:
    for row in small(**changes).subscriptions().to_pylist():
        for predicate in row["predicates"]:
            values = [plain(value) for value in predicate["values"]]
            read = Predicate(predicate["attribute"], predicate["operator"], values)
            assert read.operator == predicate["operator"]
            assert list(read.values) == values
            kind = str if predicate["attribute"].startswith("s") else int
            assert all(type(value) is kind for value in values)


@pytest.mark.parametrize("cardinality", [2, 9, 98, 99, 100_000])
def test_strings_are_spelled_in_the_order_of_their_numbers(cardinality: int) -> None:
    workload = small(string_share=1, cardinality=cardinality, prefix_share=0.4)
    arrays = workload.arrays()
    values = [
        (literal, predicate["operator"])
        for row in workload.subscriptions()["predicates"].to_pylist()
        for predicate in row
        for literal in predicate["values"]
    ]
    digits = len(str(cardinality + 1))
    kept = iter(arrays.prefix[arrays.prefix > 0].tolist())
    for number, (text, operator) in zip(arrays.literals.tolist(), values, strict=True):
        word = f"v{number:0{digits}}"
        assert text == (f"{word[: 1 + next(kept)]}%" if operator == "like" else word)


@pytest.mark.parametrize("changes", [{}, {"numbers": "float"}, {"string_share": 0.5}])
def test_wide_events_have_the_same_values(changes: dict[str, Any]) -> None:
    workload = small(**changes)
    wide = workload.events(30, wide=True)
    wide.validate(full=True)
    assert wide.column_names == workload.attribute_names
    rows = [{name: value for name, value in row.items() if value is not None} for row in wide.to_pylist()]
    assert rows == event_dicts(workload.events(30))
    for name, kind in zip(wide.column_names, wide.schema.types, strict=True):
        assert (kind == pa.string()) == name.startswith("s")


def test_wide_events_of_too_many_dimensions_are_refused() -> None:
    workload = generate(preset("sparse"))
    for method in (workload.events, workload.other_events, workload.event_blocks):
        with pytest.raises(WorkloadError, match=r"30,000 dimensions are too many.*Hint: leave out wide"):
            method(1, wide=True)


def test_no_events_are_an_empty_table() -> None:
    workload = small()
    assert workload.events(0).num_rows == 0
    assert workload.events(0).schema == workload.event_schema()
    assert workload.other_events(0, wide=True).schema == workload.event_schema(wide=True)
