"""Objects, lists of objects and values outside the language: every form of events gives the evaluator's answers."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import tamis

pytestmark = pytest.mark.kernels

NAMES = ["a", "a.b", "a.b.c", "a.c", "d", "d.b", "e"]
ODD: list[Any] = [
    b"x",
    uuid.UUID(int=7),
    time(10),
    timedelta(1),
    2**70,
    1j,
    "\ud800",
    object(),
    [1, b"x"],
    {"": 1, 3: 4},
]
INDEXES = ["auto", "scan", "counting", "be-tree"]


def predicate(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    number, text = rng.randint(0, 4), f"'{rng.choice('xyz')}'"
    return rng.choice(
        [
            f"{name} = {number}",
            f"{name} <> {number}",
            f"{name} < {number}",
            f"NOT ({name} >= {number})",
            f"{name} IN ({number}, {text})",
            f"{name} = {text}",
            f"{name} LIKE '%{text[1]}%'",
            f"{name} IS NULL",
            f"{name} IS NOT NULL",
        ]
    )


def questions(rng: random.Random, count: int) -> list[str]:
    return [" AND ".join(predicate(rng) for _ in range(rng.randint(1, 2))) for _ in range(count)]


def value(rng: random.Random, depth: int, odd: float) -> Any:
    drawn = rng.random()
    if drawn < odd:
        return rng.choice(ODD)
    if depth < 4 and drawn < 0.4:
        return [value(rng, depth + 1, odd) for _ in range(rng.randint(0, 3))]
    if depth < 4 and drawn < 0.7:
        return {rng.choice(["b", "c", "b.c"]): value(rng, depth + 1, odd) for _ in range(rng.randint(0, 2))}
    return rng.choice([0, 1, 2, 3.5, "x", "yz", True, None, float("nan"), datetime(2026, 1, 1), tamis.Interval(1, 2)])


def event(rng: random.Random, odd: float) -> dict[str, Any]:
    names = rng.sample(["a", "a.b", "d", "e", "f", "g"], rng.randint(1, 5))
    return {name: value(rng, 0, odd) for name in names}


def truths(expressions: list[tamis.Expression], given: dict[str, Any]) -> list[int] | None:
    """Which expressions are TRUE. None if an expression uses an attribute whose value is outside the language."""
    try:
        return [at for at, each in enumerate(expressions) if tamis.evaluate(each, given) is True]
    except tamis.EventError:
        return None


@pytest.mark.parametrize("index", INDEXES)
def test_random_mappings(index: str) -> None:
    rng = random.Random(5)
    refused = 0
    for odd in (0.0, 0.1):
        texts = questions(rng, 25)
        expressions = [tamis.parse(text) for text in texts]
        matcher = tamis.Matcher(index)
        matcher.add_many(range(len(texts)), texts)
        right, expected = [], []
        for given in (event(rng, odd) for _ in range(150)):
            wanted = truths(expressions, given)
            if wanted is None:
                refused += 1
                with pytest.raises(tamis.EventError, match="attribute '"):
                    matcher.match(given)
                with pytest.raises(tamis.EventError, match="event 1, attribute '"):
                    matcher.match_batch([{}, given])
                continue
            assert sorted(matcher.match(given)) == wanted, given
            right.append(given)
            expected += [(len(right) - 1, each) for each in wanted]
        found = matcher.match_batch(right)
        assert sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected
    assert refused > 20


def test_an_error_names_the_row() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a.b = 1")
    events = [{"a": [{"b": 1}]}, {"a": {"b": uuid.UUID(int=7)}}]
    with pytest.raises(tamis.EventError, match=r"^event 1, attribute 'a\.b': UUID is not a value") as caught:
        matcher.match_batch(events)
    assert (caught.value.row, caught.value.attribute) == (1, "a.b")
    with pytest.raises(tamis.EventError, match=r"^event 3, attribute 'a\.b': UUID"):
        list(matcher.match_iter([events[:1], events[:1] * 1, events]))
    with pytest.raises(tamis.EventError, match=r"^attribute 'a\.b': UUID"):
        matcher.match(events[1])
    with pytest.raises(tamis.EventError, match=r"^event 1, attribute 'a\.b': UUID"):
        matcher.observe(events)
    with pytest.raises(tamis.EventError, match=r"^attribute 'a\.b': UUID"):
        matcher.explain("x", events[1])


LEAVES = [
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.bool_(),
    pa.int8(),
    pa.timestamp("ms"),
    pa.dictionary(pa.int32(), pa.string()),
]
STRANGE = [pa.binary(), pa.time64("us"), pa.duration("s"), pa.binary(4), pa.uuid(), pa.month_day_nano_interval()]


def arrow_type(rng: random.Random, depth: int) -> pa.DataType:
    drawn = rng.random()
    if depth < 3 and drawn < 0.4:
        element = arrow_type(rng, depth + 1)
        return rng.choice([pa.list_(element), pa.large_list(element), pa.list_(element, 2)])
    if depth < 3 and drawn < 0.75:
        names = rng.sample(["b", "c", "b.c"], rng.randint(1, 3))
        return pa.struct([(name, arrow_type(rng, depth + 1)) for name in names])
    if depth < 3 and drawn < 0.85:
        return pa.map_(pa.string(), arrow_type(rng, depth + 1))
    return rng.choice(LEAVES)


def arrow_value(rng: random.Random, kind: pa.DataType) -> Any:
    """A value of a type, with maps as dictionaries."""
    if rng.random() < 0.15:
        return None
    if pa.types.is_fixed_size_list(kind):
        return [arrow_value(rng, kind.value_type) for _ in range(kind.list_size)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [arrow_value(rng, kind.value_type) for _ in range(rng.randint(0, 3))]
    if pa.types.is_struct(kind):
        return {field.name: arrow_value(rng, field.type) for field in kind}
    if pa.types.is_map(kind):
        return {name: arrow_value(rng, kind.item_type) for name in rng.sample(["b", "c", "b.c", ""], rng.randint(0, 3))}
    if pa.types.is_boolean(kind):
        return rng.random() < 0.5
    if pa.types.is_timestamp(kind):
        return datetime(2026, 1, rng.randint(1, 3))
    if pa.types.is_floating(kind):
        return rng.choice([0.0, 1.0, 2.5, float("nan")])
    return rng.randint(0, 4) if pa.types.is_integer(kind) else rng.choice(["x", "y", "xz"])


def as_arrow(given: Any, kind: pa.DataType) -> Any:
    """The same value with maps as lists of pairs, as pyarrow requires."""
    if given is None:
        return None
    if pa.types.is_map(kind):
        return [(name, as_arrow(inner, kind.item_type)) for name, inner in given.items()]
    if pa.types.is_struct(kind):
        return {field.name: as_arrow(given[field.name], field.type) for field in kind}
    if pa.types.is_nested(kind):
        return [as_arrow(inner, kind.value_type) for inner in given]
    return given


def strange_column(rng: random.Random, count: int) -> pa.Array:
    kind = rng.choice(STRANGE)
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.array([rng.randint(0, 9) for _ in range(count)], pa.int64()).cast(kind)
    if kind == pa.uuid():
        return pa.array([uuid.UUID(int=row).bytes for row in range(count)], pa.binary(16)).cast(kind)
    if kind == pa.month_day_nano_interval():
        return pa.array([(1, 2, row) for row in range(count)], kind)
    return pa.array([b"1234"] * count, kind)


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_random_tables(index: str) -> None:
    rng = random.Random(9)
    decided = 0
    for _ in range(25):
        kinds = {name: arrow_type(rng, 0) for name in rng.sample(["a", "a.b", "d", "e"], rng.randint(2, 4))}
        texts = questions(rng, 20)
        expressions = [tamis.parse(text) for text in texts]
        matcher = tamis.Matcher(index)
        matcher.add_many(range(len(texts)), texts)
        events = [{name: arrow_value(rng, kind) for name, kind in kinds.items()} for _ in range(12)]
        columns = {
            name: pa.array([as_arrow(each[name], kind) for each in events], kind) for name, kind in kinds.items()
        }
        table = pa.table({**columns, "strange": strange_column(rng, len(events)), "f": [[[b"x"]]] * len(events)})
        for row, given in enumerate(events):
            wanted = truths(expressions, given)
            one = table.slice(row, 1)
            if wanted is None:
                with pytest.raises(tamis.EventError, match="given twice"):
                    matcher.match_batch(one)
            else:
                decided += 1
                assert sorted(matcher.match_batch(one)["subscription"].to_pylist()) == wanted, (given, kinds)
        right = [row for row, given in enumerate(events) if truths(expressions, given) is not None]
        expected = [(place, each) for place, row in enumerate(right) for each in truths(expressions, events[row]) or ()]
        found = matcher.match_batch(table.take(right))
        assert sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected
    assert decided > 150


UNION = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])])
STRANGE_COLUMNS: list[tuple[pa.Array, str]] = [
    (pa.array([b"x", None]), "binary"),
    (pa.array([b"x", None], pa.binary_view()), "binary_view"),
    (pa.array([b"xy", None], pa.binary(2)), r"fixed_size_binary\[2\]"),
    (pa.array([1, None], pa.time32("s")), r"time32\[s\]"),
    (pa.array([1, None], pa.time64("ns")), r"time64\[ns\]"),
    (pa.array([1, None], pa.duration("ms")), r"duration\[ms\]"),
    (pa.array([uuid.UUID(int=1).bytes, None], pa.binary(16)).cast(pa.uuid()), "extension<arrow.uuid>"),
    (pa.array([(1, 2, 3), None], pa.month_day_nano_interval()), "month_day_nano_interval"),
    (pa.array([b"x", None]).dictionary_encode(), "binary"),
    (pa.array([[b"x"], None]), "binary"),
    (pa.array([[[b"x"]], None], pa.list_(pa.list_(pa.binary(), 1))), "binary"),
    (UNION, "sparse_union"),
    (pa.array([2**63, None], pa.uint64()), "an integer is beyond 64 bits"),
    (pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([b"x", None])), "binary"),
]


@pytest.mark.parametrize("index", ["auto", "scan"])
@pytest.mark.parametrize(("column", "told"), STRANGE_COLUMNS, ids=lambda each: str(getattr(each, "type", each)))
def test_columns_of_any_type(column: pa.Array, told: str, index: str) -> None:
    matcher = tamis.Matcher(index)
    matcher.add("price", "price > 1")
    table = pa.table({"a": column, "price": [1, 2]})
    matcher.observe(table)
    assert matcher.count_batch(table).tolist() == [0, 1]
    matcher.add("a", "a IS NOT NULL")
    matcher.optimize()  # The sample has the value that a predicate uses now.
    with pytest.raises(tamis.EventError, match=f"event 0, attribute 'a': {told}"):
        matcher.match_batch(table)
    with pytest.raises(tamis.EventError, match=f"event 0, attribute 'a': {told}"):
        matcher.observe(table)
    if told != "sparse_union":  # The nulls are inside the values.
        assert matcher.count_batch(table.slice(1)).tolist() == [1]
    nested = pa.table({"o": pa.StructArray.from_arrays([column, pa.array([1, 2])], names=["a", "n"]), "price": [1, 2]})
    matcher.add("n", "o.n = 2")
    assert matcher.count_batch(nested).tolist() == [0, 2]
    listed = pa.table({"o": pa.ListArray.from_arrays([0, 1, 2], nested["o"].chunk(0)), "price": [1, 2]})
    assert matcher.count_batch(listed).tolist() == [0, 2]


def test_decimals_beyond_64_bits_are_doubles() -> None:
    matcher = tamis.Matcher()
    matcher.add("large", "a > 1e30")
    column = pa.array([Decimal(10) ** 36, Decimal(5), None], pa.decimal128(38, 0))
    assert matcher.count_batch(pa.table({"a": column})).tolist() == [1, 0, 0]


@pytest.mark.compiled
@pytest.mark.parametrize("index", ["auto", "scan"])
def test_events_sampled_before_a_predicate_used_an_attribute(index: str) -> None:
    matcher = tamis.Matcher(index)
    matcher.add(0, "price > 1")
    events = [{"price": row, "key": b"x" if row % 2 else row, "at": [{"t": time(1)}, {"t": row}]} for row in range(300)]
    for each in events:
        matcher.match(each)
    matcher.match_batch(events)
    matcher.match_batch(pa.table({"price": range(300), "key": [b"x"] * 300, "at": [[{"t": b"x", "n": 1}]] * 300}))
    matcher.add_many(
        range(1, 3000), [f"key = {number} AND at.t < {number} AND price >= 0" for number in range(1, 3000)]
    )
    matcher.optimize()
    assert sorted(matcher.match({"key": 7, "at": {"t": 3}, "price": 5})) == [0, 7]


def test_only_declared_attributes_are_checked() -> None:
    matcher = tamis.Matcher(schema={"price": "number", "ports": [{"nr": "number"}], "size": "number"})
    matcher.add("x", "price > 1")
    odd = {"raw": b"x", "at": time(1), "user": {"id": uuid.UUID(int=1)}}
    assert matcher.match({"price": 2, **odd}) == ["x"]
    assert matcher.count_batch([{"price": 2, "ports": [{"nr": 1, "x": b"x"}, {"nr": 2}], **odd}]).tolist() == [1]
    assert matcher.count_batch(pa.table({"price": [2], "raw": [b"x"], "ports": [[{"nr": 1, "x": b"x"}]]})).tolist() == [
        1
    ]
    for event in ({"price": 2, "size": b"x"}, {"price": 2, "ports": [{"nr": b"x"}]}):
        with pytest.raises(tamis.EventError, match=r"attribute '.*': bytes is not a value"):
            matcher.match(event)
        with pytest.raises(tamis.EventError, match=r"event 0, attribute '.*': bytes is not a value"):
            matcher.match_batch([event])
        with pytest.raises(tamis.EventError, match=r"event 0, attribute '.*': binary is not a value"):
            matcher.match_batch(pa.Table.from_pylist([event]))
