"""Batches in parts: several threads give the same matches and errors as one thread, for any layout of the table."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.matcher.limits import StoreLimits
from tests.matcher.small import matcher_with
from tests.random_cases import RandomCases

EVENTS = 60


@pytest.fixture(params=["encoded by all", "encoded by one"])
def limits(request: pytest.FixtureRequest) -> StoreLimits:
    return StoreLimits(share_bytes=4) if request.param == "encoded by all" else StoreLimits()


def matcher_of(limits: StoreLimits, texts: bool = False, schema: Any = None) -> tamis.Matcher:
    """A matcher with segments and a delta. Some of its subscriptions were removed."""
    rng = random.Random(4)
    matcher = matcher_with(limits, schema=schema)
    expressions = [
        rng.choice(
            [
                f"n > {rng.randint(0, 20)} AND m = {rng.randint(0, 3)}",
                f"m <= {rng.randint(0, 3)} OR n = {rng.randint(0, 20)}",
                f"s = 'v{rng.randint(0, 5)}'",
                f"s LIKE '%{rng.randint(0, 5)}%' AND n < {rng.randint(0, 20)}",
                f"tags = 't{rng.randint(0, 3)}' AND n >= {rng.randint(0, 20)}",
                f"n IS NULL AND m > {rng.randint(0, 3)}",
                f"big >= {2**53 + rng.randint(0, 9)}",
                "s > 3" if schema is None else "s > 'v3'",
            ]
        )
        for _ in range(1500)
    ]
    ids: list[Any] = [f"id{number}" if texts else 7 * number for number in range(len(expressions))]
    weights = [rng.random() for _ in ids]
    matcher.add_many(ids[:1300], expressions[:1300], weights[:1300])
    matcher.add_many(ids[1300:], expressions[1300:], weights[1300:])
    for identifier in ids[::9]:
        matcher.remove(identifier)
    return matcher


def events_of(count: int = EVENTS) -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [
        {
            "n": rng.choice([None, rng.randint(0, 20), rng.randint(0, 20)]),
            "m": rng.randint(0, 3),
            "s": rng.choice([None, f"v{rng.randint(0, 5)}"]),
            "tags": rng.choice([None, [], ["t1"], ["t2", "t0"]]),
            "big": rng.choice([None, 1, 2**53 + rng.randint(0, 9)]),
        }
        for _ in range(count)
    ]


def wide(events: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(events)


def chunked(events: list[dict[str, Any]]) -> pa.Table:
    bounds = [0, 1, 1, 17, 40, len(events)]
    schema = wide(events).schema
    parts = [pa.Table.from_pylist(events[f:g], schema=schema) for f, g in itertools.pairwise(bounds)]
    return pa.concat_tables(parts)


def by_view(events: list[dict[str, Any]]) -> pa.Table:
    table = wide(events)
    return table.set_column(table.column_names.index("s"), "s", table["s"].cast(pa.string_view()))


def by_dictionary(events: list[dict[str, Any]]) -> pa.Table:
    table = wide(events)
    return table.set_column(table.column_names.index("s"), "s", table["s"].dictionary_encode())


def sliced(events: list[dict[str, Any]]) -> pa.Table:
    table = wide(events)
    return pa.concat_tables([table, table]).combine_chunks().slice(len(table) - 3, len(table))


def numbers(events: list[dict[str, Any]]) -> pa.Table:
    return wide(events).select(["n", "m", "big"])


def nested(events: list[dict[str, Any]]) -> pa.Table:
    table = wide(events)
    struct = pa.StructArray.from_arrays([table["m"].combine_chunks()], names=["inner"])
    return table.append_column("o", struct)


def pairs(events: list[dict[str, Any]], names: list[str]) -> list[list[tuple[str, Any]]]:
    return [[(name, event[name]) for name in names if event[name] is not None] for event in events]


def as_map(events: list[dict[str, Any]]) -> pa.Table:
    return pa.table({"e": pa.array(pairs(events, ["n", "m", "big"]), pa.map_(pa.string(), pa.int64()))})


def as_entries(events: list[dict[str, Any]]) -> pa.Table:
    variant = pa.struct({"integer": pa.int64(), "string": pa.string()})
    given = [
        [
            {"attribute": name, "value": {"string" if isinstance(value, str) else "integer": value}}
            for name, value in event
        ]
        for event in pairs(events, ["n", "m", "s", "big"])
    ]
    return pa.table({"e": pa.array(given, pa.list_(pa.struct({"attribute": pa.string(), "value": variant})))})


def as_dicts(events: list[dict[str, Any]]) -> Any:
    return events


LAYOUTS: list[Callable[[list[dict[str, Any]]], Any]] = [
    wide,
    chunked,
    by_dictionary,
    by_view,
    sliced,
    numbers,
    nested,
    as_map,
    as_entries,
    as_dicts,
]


def results(matcher: tamis.Matcher, events: Any, threads: int) -> Any:
    before = matcher.stats()["mismatched"]
    table = matcher.match_batch(events, threads=threads)
    assert threads > 1 or table["event"].num_chunks == table["subscription"].num_chunks == 1
    table.validate(full=True)
    mismatched = matcher.stats()["mismatched"] - before
    iterated = [part.to_pylist() for part in matcher.match_iter([events, events], threads=threads)]
    return (
        table.to_pylist(),
        mismatched,
        matcher.match_batch(events, threads=threads, k=3).to_pylist(),
        matcher.count_batch(events, threads=threads).tolist(),
        matcher.exists_batch(events, threads=threads).tolist(),
        iterated,
    )


@pytest.mark.parametrize("texts", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_several_threads_give_the_same_as_one(
    layout: Callable[[list[dict[str, Any]]], Any], texts: bool, limits: StoreLimits
) -> None:
    matcher = matcher_of(limits, texts)
    events = layout(events_of())
    expected = results(matcher, events, 1)
    assert len(expected[0]) > EVENTS
    for threads in (2, 3, 16):
        assert results(matcher, events, threads) == expected


def test_one_by_one_gives_the_same(limits: StoreLimits) -> None:
    for texts in (False, True):
        matcher = matcher_of(limits, texts)
        events = events_of()
        table = matcher.match_batch(wide(events), threads=3)
        found: list[list[Any]] = [[] for _ in events]
        for row in table.to_pylist():
            found[row["event"]].append(row["subscription"])
        assert [sorted(matcher.match(event)) for event in events] == [sorted(ids) for ids in found]
        assert [matcher.match(event, k=3) for event in events] == [
            matcher.match_batch([event], k=3)["subscription"].to_pylist() for event in events
        ]


@pytest.mark.parametrize("few", [0, 10**9])
def test_names_that_are_not_laid_out(few: int, limits: StoreLimits) -> None:
    """After a change, names are laid out again: all names, or only those of the matches if there are few matches."""
    matcher = matcher_of(limits._replace(ids_per_lookup=few), texts=True)
    for number, threads in enumerate((2, 3, 5)):
        matcher.add(f"new{number}", "m >= 0")
        table = matcher.match_batch(wide(events_of()), threads=threads)
        table.validate(full=True)
        matcher.add(f"other{number}", "m < 0")
        assert table.to_pylist() == matcher.match_batch(wide(events_of()), threads=1).to_pylist()
        assert f"new{number}" in table["subscription"].to_pylist()


def test_few_or_no_events(limits: StoreLimits) -> None:
    matcher = matcher_of(limits)
    for count in (0, 1, 2, 5):
        for layout in LAYOUTS:
            events = layout(events_of())[:count] if layout is as_dicts else layout(events_of()).slice(0, count)
            assert results(matcher, events, 4) == results(matcher, events, 1)


def wrong_value(table: pa.Table, name: str, row: int, kind: pa.DataType, value: Any) -> pa.Table:
    values = [None] * len(table)
    values[row] = value
    return table.append_column(name, pa.array(values, kind))


def error_of(matcher: tamis.Matcher, events: pa.Table, threads: int) -> Any:
    with pytest.raises(tamis.TamisError) as caught:
        matcher.match_batch(events, threads=threads)
    return type(caught.value), str(caught.value), getattr(caught.value, "row", None)


def test_the_error_is_the_same_as_with_one_thread(limits: StoreLimits) -> None:
    matcher = matcher_of(
        limits,
        schema={
            **dict.fromkeys(("n", "m", "big", "x", "y", "z", "w"), "number"),
            "s": "string",
            "tags": "list<string>",
        },
    )
    table = wide(events_of())
    beyond = pa.uint64()
    cases = [
        wrong_value(table, "y", 55, beyond, 2**64 - 1),
        # The error is about the first wrong column, even if another column is wrong in an earlier row.
        wrong_value(wrong_value(table, "y", 55, beyond, 2**64 - 1), "z", 3, beyond, 2**64 - 1),
        wrong_value(table, "x", 41, pa.string(), "text"),
        wrong_value(table, "x", 41, pa.list_(pa.int64()), [1, 2]),
        wrong_value(table, "w", 0, pa.binary(), b"bytes"),
        pa.table(
            {"e": pa.array([[("n", 1)]] * 50 + [[("s", 1)]] + [[("n", 1)]] * 9, pa.map_(pa.string(), pa.int64()))}
        ),
        pa.table({"e": pa.array([[("n", 1)]] * 50 + [[("n", 1), ("n", 2)]], pa.map_(pa.string(), pa.int64()))}),
    ]
    twice = pa.Table.from_arrays(
        [pa.array([1] * 30 + [None] * 30), pa.array([None] * 40 + [2] * 20), pa.array([None] * 50 + [3] * 10)],
        names=["x"] * 3,
    )
    for wrong in [*cases, twice]:
        expected = error_of(matcher, wrong, 1)
        for threads in (2, 5):
            assert error_of(matcher, wrong, threads) == expected
    assert error_of(matcher, cases[0], 2)[2] == 55
    assert error_of(matcher, cases[1], 2)[2] == 55


@pytest.mark.parametrize("seed", range(4))
def test_random_cases(seed: int, limits: StoreLimits) -> None:
    cases = RandomCases(seed)
    expressions = [cases.expression() for _ in range(200)]
    matcher = matcher_with(limits)
    matcher.add_many(range(len(expressions)), expressions)
    events = [cases.event() for _ in range(50)]
    expected = matcher.match_batch(events, threads=1)
    assert matcher.match_batch(events, threads=3).equals(expected)
    counts = np.bincount(expected["event"].to_numpy(), minlength=len(events))
    assert counts.tolist() == [len(matcher.match(event)) for event in events]
