"""Tables of numbers in keys: kernels that read Arrow's buffers give the same keys as encoding column by column."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encoding.dimensions.dimension import Facet
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events import event_table
from tamis.encoding.events.event_batch import EncodedEvents
from tamis.encoding.events.event_table import TableEncoder, encode_table
from tamis.encoding.expressions.compile import Compiler
from tamis.errors import EventError
from tamis.language.parser import parse
from tamis.language.schema import Schema

pytestmark = pytest.mark.kernels

NUMBERS: list[float] = [0, 1, -1, 7, -128, 127, 100]
LARGE: list[float] = [2**53 - 1, 2**53, 2**53 + 1, -(2**53), 2**60, -(2**63), 2**63 - 1]
DOUBLES: list[float] = [0.0, -0.0, 0.1, -2.5, math.nan, math.inf, -math.inf, 5e-324, 1e300, 2.0**53, -(2.0**60)]
TYPES = [pa.int64(), pa.float64(), pa.int32(), pa.float32(), pa.int16(), pa.int8()]
UNSIGNED = [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = ["a > 3", "b < 2 OR b = 9007199254740993", "c = 1", "n.x > 1", "both = 1 OR both = 'x'", "s = 'y'", "p IS NULL"]


def dimensions_of(*texts: str) -> Dimensions:
    dimensions = Dimensions()
    Compiler(dimensions, lambda dimension, relabelling: None).compile_many([parse(text) for text in texts])
    return dimensions


def rows(encoded: EncodedEvents) -> Any:
    """The values of each event, in the order of dimensions."""
    start, dimension, lo, hi = encoded.batch
    assert lo is hi
    assert [array.dtype for array in encoded.batch] == [np.int64, np.int32, np.int64, np.int64]
    assert all(array.flags.c_contiguous and array.flags.writeable for array in encoded.batch)
    bounds = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    values = [list(zip(dimension[f:g].tolist(), lo[f:g].tolist(), strict=True)) for f, g in bounds]
    for row in values:
        numbers = [number for number, _ in row]
        runs = [number for at, number in enumerate(numbers) if at == 0 or numbers[at - 1] != number]
        assert len(runs) == len(set(runs)), "values of one dimension are apart"
    return [sorted(row, key=lambda value: value[0]) for row in values], encoded.mismatched


def slowly(table: pa.Table, dimensions: Dimensions, schema: Schema | None = None) -> EncodedEvents:
    return TableEncoder(table, dimensions, schema).by_column(table)


def check(table: pa.Table, dimensions: Dimensions, many_names: int = 1024) -> None:
    """Encode a table as a whole, in ranges of rows, and as a slice of a larger table; in one chunk and in many."""
    expected = rows(slowly(table, dimensions))
    larger = pa.concat_tables([table, table, table])
    for given in (table, larger.slice(len(table), len(table)), larger.combine_chunks().slice(len(table), len(table))):
        encoder = TableEncoder(given, dimensions)
        encoder.many_names = many_names
        assert rows(encoder.rows(0, len(given))) == expected
        for part in (1, 3, 7):
            parts = [encoder.rows(at, min(at + part, len(given))) for at in range(0, len(given), part)]
            found = [rows(each) for each in parts]
            assert ([row for values, _ in found for row in values], sum(count for _, count in found)) == expected


def column(rng: random.Random, kind: pa.DataType, count: int) -> pa.Array:
    values = NUMBERS if pa.types.is_integer(kind) else DOUBLES + NUMBERS
    if pa.types.is_unsigned_integer(kind):
        values = [abs(value) for value in NUMBERS]
    if kind == pa.int64() and rng.random() < 0.5:
        values = NUMBERS + LARGE
    missing = rng.choice([0, 0.3, 1])
    return pa.array([None if rng.random() < missing else rng.choice(values) for _ in range(count)], kind)


@pytest.mark.parametrize("seed", range(30))
def test_wide_tables(seed: int) -> None:
    rng = random.Random(seed)
    dimensions = dimensions_of(*TEXTS)
    count = rng.choice([1, 5, 20])
    names = rng.sample(["a", "b", "c", "n.x", "both", "p", "unasked", "é"], rng.randint(1, 8))
    columns: dict[str, Any] = {name: column(rng, rng.choice(TYPES + UNSIGNED), count) for name in names}
    if rng.random() < 0.5:
        columns["s"] = pa.array([rng.choice(["x", "y", None]) for _ in range(count)])
    if rng.random() < 0.5 and "n.x" not in columns:
        columns["n"] = pa.array(
            [rng.choice([None, {"x": 2}, {"x": None}]) for _ in range(count)], pa.struct({"x": pa.int64()})
        )
    if rng.random() < 0.3:
        columns["m"] = pa.array([[("k", 1)]] * count, pa.map_(pa.string(), pa.int64()))
    check(pa.table(columns), dimensions)


@pytest.mark.parametrize("many", [0, 1024])
@pytest.mark.parametrize("seed", range(30))
def test_long_tables(seed: int, many: int) -> None:
    rng = random.Random(seed)
    dimensions = dimensions_of(*TEXTS)
    kind = rng.choice(TYPES + UNSIGNED)
    names = rng.choice([["a", "b", "c"], ["a", "unasked", "é"], ["a", "both", "p", "b"]])
    events: list[Any] = []
    for _ in range(rng.choice([1, 5, 20])):
        values = column(rng, kind, len(names)).to_pylist()
        several = (
            rng.choice([names, [*names, names[0]]])
            if rng.random() < 0.2
            else rng.sample(names, rng.randint(0, len(names)))
        )
        events.append(None if rng.random() < 0.1 else list(zip(several, values, strict=False)))
    as_map = pa.array(events, pa.map_(pa.string(), kind))
    check(pa.table({"event": as_map}), dimensions, many)
    structs = [None if event is None else [{"attribute": n, "value": v} for n, v in event] for event in events]
    text = rng.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
    for form in (
        pa.list_(pa.struct({"attribute": text, "value": kind})),
        pa.large_list(pa.struct({"value": kind, "attribute": text})),
    ):
        check(pa.table({"e": pa.array(structs, form)}), dimensions, many)


@pytest.mark.compiled
def test_many_attributes_are_looked_up_together() -> None:
    asked = [f"n{number}" for number in range(3000)]
    dimensions = dimensions_of(*(f"{name} > 3" for name in asked), "both = 1 OR both = 'x'", "text = 'x'")
    rng = random.Random(1)
    for odd in ([], ["both"], ["text"], ["unasked"]):
        events = [[(name, rng.randint(0, 9)) for name in rng.sample(asked, 20)] for _ in range(200)]
        events[7] += [(name, 1) for name in odd]
        check(pa.table({"event": pa.array(events, pa.map_(pa.string(), pa.int64()))}), dimensions)
    dimensions.get("unasked", Facet.NUMBER)
    check(pa.table({"event": pa.array(events, pa.map_(pa.large_string(), pa.int64()))}), dimensions)
    events[7].append(("", 1))  # a name that no predicate can have
    check(pa.table({"event": pa.array(events, pa.map_(pa.string(), pa.int64()))}), dimensions)


def test_plain_tables_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    dimensions = dimensions_of(*TEXTS)
    wide = pa.table(
        {"a": [1, None, 3], "b": [0.5, math.nan, None], "unasked": [1, 2, 3], "c": pa.array([1, 2, 3], pa.int8())}
    )
    long = pa.table({"e": pa.array([[("a", 1), ("unasked", 2)], [], [("b", 5)]], pa.map_(pa.string(), pa.int64()))})
    expected = [rows(slowly(table, dimensions)) for table in (wide, long)]
    monkeypatch.setattr(event_table, "event_columns", None)
    assert [rows(encode_table(table, dimensions)) for table in (wide, long)] == expected


def test_a_table_form_is_for_one_schema_and_its_dimensions() -> None:
    dimensions = dimensions_of("a > 3")
    table = pa.table({"a": [1, 5], "b": [2, 6]})
    assert rows(encode_table(table, dimensions)) == rows(slowly(table, dimensions))
    Compiler(dimensions, lambda dimension, relabelling: None).compile_many([parse("b > 3")])
    found = rows(encode_table(table, dimensions))
    assert found == rows(slowly(table, dimensions))
    assert [len(row) for row in found[0]] == [2, 2]
    schema = Schema.of({"a": "number", "b": "string"})
    with pytest.raises(EventError, match="event 0, attribute 'b'"):
        encode_table(table, dimensions, schema)
    assert rows(encode_table(pa.table({"b": [2], "a": [1]}), dimensions)) == rows(
        slowly(pa.table({"b": [2], "a": [1]}), dimensions)
    )


def test_names_that_are_wrong_or_given_twice() -> None:
    dimensions = dimensions_of("a > 3", "n.x > 1")
    twice = pa.Table.from_arrays([pa.array([1, None]), pa.array([None, 2])], names=["a", "a"])
    check(twice, dimensions)
    for wrong in (
        pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        pa.table({"n": pa.array([{"x": 1}]), "n.x": pa.array([1])}),
    ):
        with pytest.raises(EventError, match="given twice"):
            encode_table(wrong, dimensions)
    for unwritten in (
        pa.Table.from_arrays([pa.array([1])], names=[""]),
        pa.table({"e": pa.array([[("", 1)]], pa.map_(pa.string(), pa.int64()))}),
    ):
        assert rows(encode_table(unwritten, dimensions)) == ([[]], 0)
