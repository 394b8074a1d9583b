"""Events as values of Python, and where one event ends in a list of pairs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.broker.table_rows import ColumnReader
from tamis.spark.broker_sink import EventTexts, together
from tamis.spark.event_values import run_starts

FAR = 571_000_000_000_000_000
MOMENT = pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize(
    ("columns", "starts"),
    [
        ([pa.array([1, 1, None, None, 2]), pa.array(["x", "x", "x", "y", "y"])], [0, 2, 3, 4]),
        ([pa.array([{"a": 1}, {"a": 1}, None]), pa.array([[1], [1], [1]])], [0, 2]),
        ([pa.array([float("nan"), float("nan")])], [0, 1]),
        ([pa.array([[FAR], [FAR]], pa.list_(MOMENT))], [0, 1]),
        ([pa.nulls(3)], [0]),
        ([pa.array([], pa.int64())], []),
    ],
)
def test_runs_of_equal_rows(columns: list[pa.Array], starts: list[int]) -> None:
    assert run_starts(columns).tolist() == starts


def test_values() -> None:
    at = datetime(2026, 11, 18, tzinfo=UTC)
    kind = pa.struct({"at": MOMENT, "all": pa.list_(MOMENT), "by": pa.map_(pa.string(), MOMENT), "none": pa.int32()})
    given: dict[str, Any] = {"at": at, "all": [at, None], "by": [("x", at), ("y", None)], "none": None}
    (found, missing) = ColumnReader(kind, "a").values(pa.array([given, None], kind))
    assert found == {"at": at, "all": [at, None], "by": {"x": at}}
    assert missing is None
    assert {value.tzinfo for value in (found["at"], found["all"][0], found["by"]["x"])} == {UTC}
    with pytest.raises(tamis.EventError, match="attribute 'a': a value cannot be stored"):
        ColumnReader(MOMENT, "a").values(pa.array([FAR], MOMENT))


def test_events_with_their_subscriptions() -> None:
    rows = [(1, 7, "x"), (2, 7, "x"), (5, 8, None), (3, 7, "x"), (1, 7, "x")]
    batch = pa.RecordBatch.from_pylist([dict(zip(("subscription", "id", "b"), row, strict=True)) for row in rows])
    task = EventTexts(("id", "b"), None)
    found = pa.Table.from_batches([*task(iter([batch[:1], batch[1:]]))])
    assert found["event"].to_pylist() == ['{"id":7,"b":"x"}'] * 2 + ['{"id":8}', '{"id":7,"b":"x"}']
    # Subscription 1 was found twice, so there are two equal events.
    matched = [(str(text), numbers.tolist()) for text, numbers in together(found)]
    assert matched == [('{"id":7,"b":"x"}', [1, 2, 3]), ('{"id":7,"b":"x"}', [1]), ('{"id":8}', [5])]
    assert together(found[:0]) == []
