"""Events from dataclasses, pandas and polars, and batches with only some attributes read."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tamis

pytestmark = pytest.mark.kernels


@dataclass
class User:
    age: int


@dataclass
class Visit:
    price: float
    user: User
    tags: list[str] = field(default_factory=list)
    key: Any = b"x"


@pytest.fixture
def matcher() -> tamis.Matcher:
    matcher = tamis.Matcher()
    matcher.add_many(["cheap", "old", "map", "none"], ["price < 10", "user.age > 60", "tags = 'map'", "price IS NULL"])
    return matcher


def found(matcher: tamis.Matcher, events: Any, **options: Any) -> list[tuple[int, str]]:
    matches = matcher.match_batch(events, **options)
    return sorted(zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True))


def test_dataclasses(matcher: tamis.Matcher) -> None:
    visit = Visit(5, User(70), ["map", "x"])
    assert sorted(matcher.match(visit)) == ["cheap", "map", "old"]
    assert found(matcher, [Visit(50, User(5)), visit, {"user": User(61), "price": 20}]) == [
        (1, "cheap"), (1, "map"), (1, "old"), (2, "old"),
    ]  # fmt: skip
    assert matcher.explain("old", visit).matched
    with pytest.raises(tamis.EventError, match=r"match\(\) takes a single event"):
        matcher.match_batch(visit)


def test_pandas(matcher: tamis.Matcher) -> None:
    frame = pd.DataFrame({"price": [5.0, None, 20.0], "tags": ["map", "x", "map"], "key": [uuid.UUID(int=1), 5, "x"]})
    expected = [(0, "cheap"), (0, "map"), (1, "none"), (2, "map")]
    assert [sorted(matcher.match(row)) for _, row in frame.iterrows()] == [["cheap", "map"], ["none"], ["map"]]
    assert found(matcher, [row for _, row in frame.iterrows()]) == expected
    # Arrow cannot hold the column `key`, but no predicate uses it.
    assert found(matcher, frame) == expected
    assert found(matcher, frame, attributes=["tags"]) == [(0, "map"), (0, "none"), (1, "none"), (2, "map"), (2, "none")]
    assert found(matcher, frame.set_index("price"), attributes=["price"]) == [(0, "cheap"), (1, "none")]
    assert found(matcher, frame.set_index("price")) == expected
    with pytest.raises(tamis.EventError, match=r"match\(\) takes a single event"):
        matcher.match_batch(frame["price"])
    matcher.add("key", "key = 5")
    with pytest.raises(tamis.EventError, match="event 0, attribute 'key': UUID is not a value"):
        matcher.match_batch(frame)
    assert found(matcher, frame.iloc[1:])[0] == (0, "key")
    with pytest.raises(tamis.TableError, match="no column 'prise'; did you mean 'price'"):
        matcher.match_batch(frame, attributes=["prise"])


def test_polars(matcher: tamis.Matcher) -> None:
    frame = pl.DataFrame(
        {"price": [5.0, None], "tags": [["map"], []], "user": [{"age": 70}, None], "raw": [b"x", b"y"]}
    )
    expected = [(0, "cheap"), (0, "map"), (0, "old"), (1, "none")]
    assert found(matcher, frame) == expected
    assert found(matcher, frame.lazy()) == expected
    assert found(matcher, frame.lazy().filter(pl.col("price") > 1)) == expected[:3]
    assert found(matcher, frame.lazy(), attributes=["user"]) == [(0, "none"), (0, "old"), (1, "none")]
    for events in (frame, frame.lazy()):
        with pytest.raises(tamis.TableError, match="no column 'prise'; did you mean 'price'"):
            matcher.match_batch(events, attributes=["prise"])
    assert [len(table) for table in matcher.match_iter([frame.lazy(), frame])] == [4, 4]
    objects = frame.with_columns(pl.Series("key", [uuid.UUID(int=1), object()], dtype=pl.Object))
    assert found(matcher, objects) == expected


EVENTS = [{"price": 5, "user": {"age": 70}}, {"price": 7, "tags": ["map"]}, {"user.age": 61}]


def test_only_some_attributes(matcher: tamis.Matcher) -> None:
    table = pa.table({"price": [5, 7, None], "user": [{"age": 70}, None, {"age": 61}], "tags": [None, ["map"], None]})
    for events in (EVENTS, table):
        assert found(matcher, events, attributes=["price", "tags"]) == [
            (0, "cheap"), (1, "cheap"), (1, "map"), (2, "none"),
        ]  # fmt: skip
        assert matcher.count_batch(events, attributes=["user"]).tolist() == [2, 1, 2]
        assert matcher.exists_batch(events, attributes=["tags", "price"]).tolist() == [True, True, True]
        assert matcher.count_batch(events, attributes=[]).tolist() == [1, 1, 1]
        tables = matcher.match_iter([events, events], attributes=["tags"])
        assert [(row, name) for part in tables for row, name in zip(*part.to_pydict().values(), strict=True)
                if name == "map"] == [(1, "map"), (4, "map")]  # fmt: skip
    assert found(matcher, EVENTS, attributes=["user.age", "price"]) == found(
        matcher, EVENTS, attributes=["user", "price"]
    )
    # Wrong values in other columns are not read.
    wrong = [{"price": b"x", "tags": "map"}]
    assert found(matcher, wrong, attributes=["tags"]) == [(0, "map"), (0, "none")]
    assert found(matcher, pa.Table.from_pylist(wrong), attributes=["tags"]) == [(0, "map"), (0, "none")]
    # If a map is the only column read, its entries are the attributes.
    maps = pa.table({"m": pa.array([[("price", 5)]], pa.map_(pa.string(), pa.int64())), "x": [1]})
    assert found(matcher, maps) == [(0, "none")]
    assert found(matcher, maps, attributes=["m"]) == [(0, "cheap")]


def test_wrong_attributes(matcher: tamis.Matcher) -> None:
    table = pa.table({"price": [5], "user": [{"age": 70}]})
    wrong: list[tuple[Any, str]] = [
        ("price", r"list of names, not 'price'. Hint: attributes=\['price'\]"),
        (5, "list of names, not 5"),
        (["price", 5], "5 is not a string"),
    ]
    for names, message in wrong:
        for call in (matcher.match_batch, matcher.count_batch, matcher.exists_batch, matcher.match_iter):
            with pytest.raises(tamis.OptionError, match=message):
                call([table], attributes=names)
    with pytest.raises(tamis.TableError, match=r"no column 'size'; the columns are: price, user"):
        matcher.match_batch(table, attributes=["size"])
