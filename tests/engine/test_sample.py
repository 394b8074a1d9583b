"""The sample: it is bounded, prefers recent events, is seldom encoded, and many threads fill it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.event_batch import EventBatch, encode_flat
from tamis.encoding.events.json_lines import JsonLines
from tamis.encoding.events.mappings import Mappings
from tamis.encoding.expressions.compile import Compiler
from tamis.engine.sample import SIZE, SPARSEST, Sample
from tamis.language.event import FlatEvent, flatten
from tamis.language.parser import parse


def asked(*texts: str) -> tuple[Dimensions, Compiler]:
    dimensions = Dimensions()
    compiler = Compiler(dimensions, lambda *_: None)
    compiler.compile_many([parse(text) for text in texts])
    return dimensions, compiler


def events(value: int, count: int) -> list[FlatEvent]:
    return [flatten({"a": value, "s": f"v{value}"}) for _ in range(count)]


def table(value: int, count: int) -> pa.Table:
    return pa.table({"a": [value] * count, "s": [f"v{value}"] * count})


def rows(batch: EventBatch | None) -> list[tuple[tuple[int, int], ...]]:
    """The values of each event, in any order."""
    assert batch is not None
    start, dimension, lo, _ = batch
    bounds = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    return sorted(tuple(sorted(zip(dimension[f:g].tolist(), lo[f:g].tolist(), strict=True))) for f, g in bounds)


def share(sample: Sample, value: int) -> float:
    dimensions, _ = asked("a = 1")
    sample.forget_encoding()
    batch = sample.encoded(dimensions, 0)
    assert batch is not None
    return float(np.mean(batch.lo == dimensions[0].key(value)))


def test_without_events_there_is_no_sample() -> None:
    assert Sample().encoded(asked("a = 1")[0], 0) is None


@pytest.mark.parametrize("make", [events, table])
def test_recent_events_weigh_more(make: object) -> None:
    assert callable(make)
    sample = Sample()
    sample.take_all(make(1, 3 * SIZE))
    assert len(sample) == SIZE
    for turn in range(1, 5):
        sample.take_all(make(2, SIZE))
        assert len(sample) == SIZE
        assert share(sample, 1) == pytest.approx(np.exp(-turn), abs=0.05)


def test_sampling_becomes_sparse() -> None:
    sample = Sample()
    taken: list[int] = []
    for seen in range(1, 20_001):
        if seen >= sample.next:
            taken.append(seen)
            sample.take_one(flatten({"a": seen}), seen)
    assert taken[:4] == [1, 2, 3, 4]
    assert 1 < np.mean(np.diff(taken[-300:])) < 1.2 * SPARSEST
    assert len(taken) < 20_000 / SPARSEST + 400


def test_some_events_of_a_batch_are_taken() -> None:
    sample = Sample()
    sample.take_due(events(1, 10), 10)
    assert len(sample) == 10
    sample.take_due(table(2, 100_000), 100_010)
    assert 10 < len(sample) <= 10 + 256
    before = len(sample)
    sample.next = 100_015
    sample.take_due(events(3, 5), 100_015)
    assert len(sample) == before + 1  # the last of the five is due


def test_all_forms_of_events_give_the_same_keys() -> None:
    dimensions, _ = asked("a < 3", "s = 'v1'", "s LIKE '%2%'")
    sample = Sample()
    sample.take_all(events(1, 3))
    sample.take_all(table(2, 2))
    sample.take_all(pa.table({"s": ["v1"], "other": [5]}))
    sample.take_all(pa.table({"event": pa.array([[("a", 7)]], pa.map_(pa.string(), pa.int64()))}))
    flat = [*events(1, 3), *events(2, 2), flatten({"s": "v1"}), flatten({"a": 7})]
    assert rows(sample.encoded(dimensions, 0)) == rows(encode_flat(flat, dimensions).batch)


def test_events_of_batches_are_taken_as_they_are_now() -> None:
    dimensions, _ = asked("a < 3", "s = 'v1'", "s LIKE '%2%'")
    sample = Sample()
    given: list[dict[str, Any]] = [{"a": 1, "s": "v1"}, {"a": 2, "s": ["v2"]}, {"a": {"b": 5}}]
    wanted = [*map(flatten, given), {}, flatten({"s": "v2"})]
    sample.take_due(Mappings(given), 3)
    given[0]["a"] = 7
    given[1]["s"].append("v1")
    sample.next = 4
    sample.take_due(JsonLines.of([b'{"a": [1', b'{"s": "v2"}']), 5)
    assert rows(sample.encoded(dimensions, 0)) == rows(encode_flat(wanted, dimensions).batch)
    sample.forget_encoding()
    assert rows(sample.encoded(dimensions, 0)) == rows(encode_flat(wanted, dimensions).batch)


TYPES = [pa.string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.large_string()]


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_columns_of_all_types_are_taken(kind: pa.DataType) -> None:
    sample = Sample()
    for text in ("v1", "v2"):
        plain = pa.array([text, text])
        column = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain.cast(kind)
        sample.take_all(pa.table({"s": column}))
    dimensions, _ = asked("s = 'v1'", "s = 'v2'")
    batch = sample.encoded(dimensions, 0)
    assert batch is not None
    assert sorted(batch.lo.tolist()) == sorted(dimensions[0].key(text) for text in ("v1", "v1", "v2", "v2"))


def test_run_end_encoded_columns() -> None:
    sample = Sample()
    sample.take_all(pa.table({"a": pa.RunEndEncodedArray.from_arrays([2, 3], [5, 7])}))
    dimensions, _ = asked("a = 5")
    batch = sample.encoded(dimensions, 0)
    assert batch is None or len(batch.lo) == 3


def test_rows_of_tables_do_not_keep_tables_alive() -> None:
    sample = Sample()
    for turn in range(100):
        sample.take_all(pa.table({"a": [turn] * 300}))
    held = {id(entry[0]): entry[0].num_rows for entry in sample.entries if isinstance(entry, tuple)}
    assert sum(held.values()) <= 4 * SIZE


def test_the_encoding_is_kept_until_words_grow_or_labels_move() -> None:
    dimensions, compiler = asked(*(f"s = 'w{i}'" for i in range(100)))
    sample = Sample()
    sample.take_all(events(1, 500))
    first = sample.encoded(dimensions, 0)
    compiler.compile(parse("s = 'v0'"))
    assert sample.encoded(dimensions, 0) is first
    compiler.compile_many([parse(f"s = 'v{i}'") for i in range(20)])
    second = sample.encoded(dimensions, 0)
    assert second is not first
    assert second is not None
    assert second.lo[0] == dimensions[0].key("v1")
    assert sample.encoded(dimensions, 1) is not second
    third = sample.encoded(dimensions, 1)
    sample.take_all(events(2, 10))
    assert sample.encoded(dimensions, 1) is third
    sample.take_all(events(2, 300))
    assert sample.encoded(dimensions, 1) is not third


def test_the_sample_is_encoded_again_for_other_dimensions() -> None:
    sample = Sample()
    sample.take_all(events(1, 2))
    sample.encoded(asked("a = 1")[0], 0)
    dimensions, _ = asked("s = 'v1'")
    batch = sample.encoded(dimensions, 0)
    assert batch is not None
    assert batch.lo.tolist() == [dimensions[0].key("v1")] * 2


def test_many_threads() -> None:
    sample = Sample()
    dimensions, _ = asked("a = 1")

    def work(number: int) -> None:
        for turn in range(30):
            sample.take_one(flatten({"a": number}), turn)
            sample.take_due(table(number, 50), 1000 * turn)
            sample.take_all(events(number, 50))
            batch = sample.encoded(dimensions, turn % 3)
            assert batch is not None
            assert len(batch.start) - 1 <= SIZE

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert len(sample) == SIZE
