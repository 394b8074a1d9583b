"""Numbers of tables become the same keys on a card as on the processor."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tamis import Matcher
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.event_table import TableEncoder, encode_table
from tamis.encoding.events.plain_rows import NotPlainError, PlainRows
from tests.encoding.test_plain_columns import dimensions_of

NUMBERS = [
    pa.int64(),
    pa.float64(),
    pa.int32(),
    pa.float32(),
    pa.int16(),
    pa.int8(),
    pa.uint8(),
    pa.uint16(),
    pa.uint32(),
]
ATTRIBUTES = ["a", "price", "size", "a_long_name", "été", "b", "c", "d", "e"]
Event = list[tuple[int, int]]


@pytest.fixture
def dimensions() -> Dimensions:
    return dimensions_of(*(f'"{name}" > 3' for name in ATTRIBUTES), "kind = 'x'")


def events_of(start: Any, end: Any, dimension: Any, keys: Any) -> list[Event]:
    """The values of each event, sorted."""
    return [
        sorted(zip(dimension[first:last].tolist(), keys[first:last].tolist(), strict=True))
        for first, last in zip(start.tolist(), end.tolist(), strict=True)
    ]


def made_on_card(rows: PlainRows) -> list[Event]:
    """What a card makes of rows."""
    from tamis.gpu.buffers import Buffers, check_plain
    from tamis.gpu.card import card_of
    from tamis.gpu.pinned import PinnedPool
    from tamis.gpu.uploads import Uploads

    card = card_of(0)
    with card.here():
        buffers = Buffers(card, PinnedPool(card))
        buffers.begin(rows, Uploads(card))
        there, noted = buffers.batch, buffers.fetch_noted()
        assert there.hi is there.lo
        found = [buffers.fetch(name, getattr(there, name)) for name in ("begin", "end", "dimension", "lo")]
        buffers.wait()
        check_plain(noted)
        return events_of(*found)


def here(batch: EventBatch) -> list[Event]:
    return events_of(batch.start[:-1], batch.start[1:], batch.dimension, batch.lo)


def check(table: pa.Table, dimensions: Dimensions, first: int = 0) -> list[Event]:
    encoder = TableEncoder(table, dimensions, waits=True)
    assert encoder.can_wait()
    rows, _ = encoder.waiting(first, len(table))
    expected = here(encode_table(table.slice(first), dimensions).batch)
    assert made_on_card(rows) == here(rows.encoded) == expected
    return expected


def column(kind: pa.DataType, count: int, chance: random.Random) -> pa.Array:
    values: list[Any] = [chance.randrange(100) for _ in range(count)]
    if pa.types.is_floating(kind):
        values = [chance.choice([value / 4, -value, float("nan")]) for value in values]
    if chance.random() < 0.6:
        values = [None if chance.random() < 0.4 else value for value in values]
    return pa.array([None, *values], kind).slice(1) if chance.random() < 0.5 else pa.array(values, kind)


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(6))
def test_columns_of_numbers(seed: int, dimensions: Dimensions, on_card: bool) -> None:
    chance = random.Random(seed)
    count = 3_000 if on_card else 13
    table = pa.table({name: column(kind, count, chance) for name, kind in zip(ATTRIBUTES, NUMBERS, strict=True)})
    assert any(check(table, dimensions))
    check(table, dimensions, first=5)
    check(pa.concat_tables([table, table.slice(3)]), dimensions)


@pytest.mark.compiled
def test_more_columns_than_threads_of_a_warp() -> None:
    names = [f"x{number}" for number in range(70)]
    made = dimensions_of(*(f"{name} > 3" for name in names))
    chance = random.Random(1)
    check(pa.table({name: column(chance.choice(NUMBERS), 9, chance) for name in names}), made)


@pytest.mark.compiled
def test_other_columns_beside_numbers(dimensions: Dimensions) -> None:
    table = pa.table({"price": [1.5, None, 3.0], "kind": ["x", "y", None], "size": [1, 2, 3], "nobody": [1, 2, 3]})
    assert [len(event) for event in check(table, dimensions)] == [3, 2, 2]
    check(pa.table({"price": pa.array([None, None], pa.int64()), "kind": ["x", None]}), dimensions)


def entries(chance: random.Random, count: int, least: int = 0) -> list[list[dict[str, Any]]]:
    names = [*ATTRIBUTES, "nobody", "", "pric", "prices"]
    return [
        [
            {"attribute": name, "value": None if chance.random() < 0.1 else chance.randrange(100)}
            for name in chance.sample(names, chance.randrange(least, len(names)))
        ]
        for _ in range(count)
    ]


@pytest.mark.compiled
@pytest.mark.parametrize("text", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float32()])
def test_entries(text: pa.DataType, kind: pa.DataType, dimensions: Dimensions, on_card: bool) -> None:
    chance = random.Random(3)
    drawn = entries(chance, 2_000 if on_card else 15, least=1)
    entry = pa.struct([("attribute", text), ("value", kind)])
    for form in (pa.list_(entry), pa.large_list(entry)):
        table = pa.table({"event": pa.array([[], *drawn], form)})
        assert any(check(table, dimensions))
        check(table.slice(4), dimensions)
        check(pa.concat_tables([table.slice(2, 5), table]), dimensions)
    pairs = [[(each["attribute"], each["value"]) for each in event] for event in drawn]
    check(pa.table({"event": pa.array(pairs, pa.map_(text, kind))}).slice(2), dimensions)


def wrong_tables() -> dict[str, pa.Table]:
    entry = pa.struct([("attribute", pa.string()), ("value", pa.int64())])

    def long(*events: Any) -> pa.Table:
        return pa.table({"event": pa.array(events, pa.list_(entry))})

    def of(name: str | None, value: int) -> dict[str, Any]:
        return {"attribute": name, "value": value}

    return {
        "large": pa.table({"price": [1, 2**53]}),
        "infinite": pa.table({"price": [1.0, float("-inf")]}),
        "large entry": long([of("price", 2**60)]),
        "twice": long([of("price", 1), of("size", 2), of("price", 3)]),
        "another kind": long([of("kind", 1)]),
        "no name": long([of(None, 1), of("price", 1)]),
        "no event": long([of("price", 1)], None),
        "no entry": long([of("price", 1), None]),
    }


@pytest.mark.compiled
@pytest.mark.parametrize("which", list(wrong_tables()))
def test_what_is_not_plain_is_noted(which: str, dimensions: Dimensions) -> None:
    rows, _ = TableEncoder(wrong_tables()[which], dimensions, waits=True).waiting(0, len(wrong_tables()[which]))
    with pytest.raises(NotPlainError):
        made_on_card(rows)


@pytest.mark.compiled
@pytest.mark.parametrize("which", [name for name in wrong_tables() if name not in ("no name", "no entry")])
def test_what_is_not_plain_is_matched_all_the_same(which: str) -> None:
    matcher: Matcher[int] = Matcher()
    matcher.add_many(range(4), ["price >= 1", "price > 9007199254740992 OR price < -5", "size = 2", "kind = 'x'"])
    matcher.optimize()
    events = wrong_tables()[which]
    assert matcher.match_batch(events, device="gpu").sort_by(
        [("event", "ascending"), ("subscription", "ascending")]
    ) == (matcher.match_batch(events).sort_by([("event", "ascending"), ("subscription", "ascending")]))


def test_names_that_share_a_hash_place_are_found() -> None:
    from tamis.encoding.events.plain_rows import KnownNames
    from tamis.gpu.names_table import names_table

    names = [f"name{number}" for number in range(500)]
    table = names_table(KnownNames(pa.array(names), np.arange(501, dtype=np.int32)))
    assert sorted(table.table[table.table >= 0].tolist()) == list(range(500))
    assert len(names_table(KnownNames(pa.array([], pa.string()), np.array([-1], np.int32))).dimension) == 0
