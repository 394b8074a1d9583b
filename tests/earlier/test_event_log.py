"""The log: what is read from it is what came, also when it was packed, copied and written again."""

from __future__ import annotations

import random
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.earlier.alike import AlikeEvents
from tamis.earlier.chunks import GROUP, ListedEvents, PackedEvents, TableEvents, packed
from tamis.earlier.column import Column
from tamis.earlier.event_log import EventLog
from tamis.earlier.join_table import EventJoins
from tamis.earlier.key_chains import KeyChains
from tamis.earlier.retained import Retained
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, Refused, flatten
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import COMPARISONS, Quantifier

VALUES: list[Any] = [1, 2**62, 2.5, float("inf"), "", "é", True, date(2026, 1, 1), datetime(2026, 1, 1, 1)]
EVENTS: list[FlatEvent] = [
    flatten({"a": VALUES[row % 9], "b": [1, "x"] if row % 7 == 0 else None, "c": row}) for row in range(5 * GROUP)
]
EVENTS[3]["d"] = (tamis.Interval(1, 2),)
EVENTS[20]["d"] = Refused("bytes is not a value of the language")


def test_packed_events_are_read_as_they_were() -> None:
    packed = PackedEvents.of(EVENTS)
    rows = [0, 3, 15, 16, 20, 79]
    assert packed.events(rows) == [EVENTS[row] for row in rows]
    assert [type(value) for each in packed.events(range(80)) for value in each["a"]] == [
        type(value) for each in EVENTS for value in each["a"]
    ]
    assert packed.keep(np.array(rows)).events(range(6)) == [EVENTS[row] for row in rows]
    # An event with plain values alone stands for one whose values have tuples.
    assert PackedEvents.of([{"a": 1, "b": "x"}]).events([0]) == [{"a": (1,), "b": ("x",)}]


def test_events_that_are_alike_are_kept_by_attribute() -> None:
    rows = [{"n": float(row), "i": 2**53 + row, "s": "é" * row, "b": row % 2 == 0} for row in range(100)]
    flats = [flatten(row) for row in rows]
    for given in (flats, rows):
        chunk = packed(given)
        assert isinstance(chunk, AlikeEvents)
        assert chunk.events(range(100)) == flats
        assert chunk.events([3, 50]) == [flats[3], flats[50]]
        assert [type(value) for (value,) in chunk.events([7])[0].values()] == [float, int, str, bool]
        kept = chunk.keep(np.array([1, 98]))
        assert kept.events([0, 1]) == [flats[1], flats[98]]
        for name in ("n", "i", "s", "b", "other"):
            of_packed, of_listed = Column(name), Column(name)
            chunk.fill(of_packed, np.arange(100))
            ListedEvents(given).fill(of_listed, np.arange(100))
            assert of_packed.domains.tolist() == of_listed.domains.tolist()
            assert of_packed.keys.tolist() == of_listed.keys.tolist()


def test_other_events_are_kept_in_groups() -> None:
    alike = {"a": (1,), "b": ("x",)}
    for other in ({"a": (1,), "c": ("y",)}, {"a": (1,)}, {"a": (1, 2), "b": ("x",)}, {"a": (1.5,), "b": ("x",)}, {}):
        given = [*[alike] * 20, other]
        chunk = packed(given)
        assert isinstance(chunk, PackedEvents)
        assert chunk.events(range(21)) == given


@pytest.mark.parametrize(
    "last",
    [None, float("nan"), -0.0, float("inf"), -float("inf"), 2**53, 2**63 - 1, 2**63, -(2**63), 10**400, (5,), "x"],
)
def test_values_that_come_together_have_the_keys_of_those_that_come_alone(last: Any) -> None:
    values = [1, 2.5, None, -3, 0, last, 7]
    together, alone = Column("a"), Column("a")
    together.append(values, np.arange(7))
    for place, value in enumerate(values):
        alone.append([value], np.array([place]))
    assert together.domains.tolist() == alone.domains.tolist()
    assert together.keys.tolist() == alone.keys.tolist()
    assert together.seen.tolist() == alone.seen.tolist()


def test_an_integer_that_no_double_can_hold_is_missing_for_later_joins() -> None:
    matcher: tamis.Matcher[str] = tamis.Matcher(history=tamis.History(rows=100))
    for price in (*range(6), 10**400):
        matcher.match({"price": price})
    matcher.add("most", "NOT EXISTS (SELECT 1 FROM history h WHERE h.price > price)")
    assert matcher.match({"price": 5}) == ["most"]
    assert matcher.match({"price": 4}) == []


def test_a_table_is_copied() -> None:
    prices = np.array([5.0, 6.0, 7.0])
    chunk = TableEvents(pa.table({"price": prices}))
    kept, part = chunk.keep(np.arange(3)), chunk.keep(np.array([0, 2]))
    prices[:] = 0
    assert kept.events([0, 1, 2]) == [{"price": (5.0,)}, {"price": (6.0,)}, {"price": (7.0,)}]
    assert part.events([0, 1]) == [{"price": (5.0,)}, {"price": (7.0,)}]


def test_columns_of_a_table_are_those_that_were_asked_for() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1, "m": [("x", 5)], "s": {"x": 7, "y": "b"}},
        {"a": None, "m": None, "s": {"x": None, "y": "c"}},
    ]
    table = pa.table(
        {
            "a": pa.array([row["a"] for row in rows], pa.int64()),
            "m": pa.array([row["m"] for row in rows], pa.map_(pa.string(), pa.int64())),
            "s": pa.array([row["s"] for row in rows]),
        }
    )
    chunk = TableEvents(table)
    assert chunk.events([0, 1], ["m.x"]) == [{"m.x": (5,)}, {}]
    assert chunk.events([1], ["s.y", "a"]) == [{"s.y": ("c",)}]
    assert chunk.events([0, 1], ["x", "other"]) == [{}, {}]
    assert [each.values.tolist() for each in chunk.columns("m.x")] == [[5]]
    assert [each.values.tolist() for each in chunk.columns("x")] == []


def test_events_leave_and_the_log_is_written_again() -> None:
    draw, log = random.Random(1), EventLog()
    log.column("c")
    living: dict[int, FlatEvent] = {}
    for _ in range(60):
        part: list[FlatEvent] = [
            {"c": (draw.randrange(9),), "s": (f"x{draw.randrange(5)}",)} for _ in range(draw.randrange(1, 90))
        ]
        if draw.random() < 0.5:
            first = log.extend(ListedEvents(part))
            living.update(enumerate(part, first))
            log.settle()
        else:
            for each in part:
                living[log.append(each)] = each
        for number in draw.sample(sorted(living), len(living) // 3):
            log.leave(number)
            del living[number]
        if draw.random() < 0.3:
            log.rewrite()
        numbers = np.array(sorted(living), np.int64)
        positions = log.positions(numbers)
        assert log.numbers(positions).tolist() == numbers.tolist()
        assert log.events(positions) == [living[number] for number in sorted(living)]
        for name in ("c", "s"):
            column = log.column(name)
            wanted = Column(name)
            wanted.append([living[number][name] for number in sorted(living)], numbers)
            if name == "c":
                assert column.keys[positions].tolist() == wanted.keys.tolist()
            assert column.domains[positions].tolist() == wanted.domains.tolist()
    assert len(log) < 2 * len(living) + 3000


def test_chains_lead_from_an_event_to_those_with_its_key() -> None:
    draw, column = random.Random(2), Column("a")
    chains = KeyChains(column)
    values: list[Any] = []
    for step in range(300):
        part = [draw.choice([0, 1, 2.5, "a", None, True, draw.randrange(10**6)]) for _ in range(draw.randrange(1, 8))]
        column.append(part, np.arange(len(values), len(values) + len(part)))
        values += part
        end, first = draw.randrange(len(values) // 2, len(values) + 1), max(0, len(values) // 2 - 20)
        chains.floor = first
        chains.follow(len(values))
        place = draw.randrange(len(values))
        domain, key = int(column.domains[place]), int(column.keys[place])
        if values[place] is None:
            continue
        same = [
            at for at in range(first, end) if type(values[at]) is type(values[place]) and values[at] == values[place]
        ]
        assert chains.positions(domain, key, first, end).tolist() == same[::-1], step
        assert chains.length(domain, key, first, end, 3) == min(len(same), 3)
        few = chains.few(domain, key, first, end, 5)
        assert (None if few is None else few.tolist()) == (same[::-1] if len(same) <= 5 else None)


def test_positions_of_events_that_left_are_dropped() -> None:
    draw, retained = random.Random(3), Retained(tamis.History(rows=99), block=16)
    history: list[FlatEvent] = []
    for _ in range(60):
        part = [flatten({name: draw.choice(VALUES[:6]) for name in "ab"}) for _ in range(draw.randrange(1, 600))]
        if draw.random() < 0.3:
            part[0]["a"] = (1, 2)
        if draw.random() < 0.5:
            with retained.taking(ListedEvents(part)) as intake:
                intake.retain_all()
        else:
            list(map(retained.keep, part))
        history = [*history, *part][-99:]
        event = flatten({name: draw.choice(VALUES[:6]) for name in "ab"})
        joins = EventJoins(event, retained.begin(event))
        quantified = Quantified("a", draw.choice(sorted(COMPARISONS)), draw.choice(list(Quantifier)), "a")
        exists = Exists([Join("a", "=", "a"), Join("b", draw.choice(sorted(COMPARISONS)), "b")])
        for join in draw.sample([quantified, exists], draw.randrange(3)):
            assert joins.truth(join) is evaluate_flat(join, event, history), (str(join), event, history)
        assert retained.contents().events == history
    assert retained.log.dropped > 9_000
    assert retained.log.rewrites == 0


@pytest.mark.kernels
def test_plain_columns_of_a_table_have_the_keys_of_their_values() -> None:
    values = [1, None, 3, 0, None, 7, 100, 5]
    kinds = [*(pa.int8(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.float32(), pa.float64()), pa.uint64()]
    columns = {str(kind): pa.array(values, kind) for kind in kinds}
    columns["nan"] = pa.array([1.5, float("nan"), -0.0, None, 2.0, float("inf"), 1e300, 3.0])
    columns["large"] = pa.array([1, 2**53, -(2**63), None, 3, 4, 5, 6])
    columns["nothing"] = pa.array([None] * 8, pa.int64())
    for table in (pa.table(columns), pa.table(columns).slice(3, 4), pa.table(columns).slice(8)):
        flats = [flatten(row) for row in table.to_pylist()]
        for name in (*columns, "other"):
            of_table, of_listed = Column(name), Column(name)
            numbers = np.arange(len(table))
            TableEvents(table).fill(of_table, numbers)
            ListedEvents(flats).fill(of_listed, numbers)
            assert of_table.domains.tolist() == of_listed.domains.tolist(), name
            assert of_table.keys.tolist() == of_listed.keys.tolist(), name
            assert of_table.count == len(table)
            assert (of_table.seen | ~of_listed.seen).all(), name
