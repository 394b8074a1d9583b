"""Generated detection rules: the matches of each rule are the rows that DuckDB keeps, however events are given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.language.engine_sql import to_sql
from tamis.workload import generate, preset
from tests.differential.engines import DuckDB
from tests.parameters import few_of

Pairs = set[tuple[int, int]]
"""The row of an event, and the number of a rule."""


class Size(NamedTuple):
    """What is generated, and from which seed."""

    seed: int
    rules: int
    events: int

    def __str__(self) -> str:
        return f"{self.seed}-{self.rules}-{self.events}"


_SHORT = Size(0, 200, 250)
_LONG = [Size(seed, 2_000, 1_000) for seed in range(1, 6)]
"""The long form: 10,000,000 decisions."""


@pytest.mark.compiled
@pytest.mark.parametrize("size", few_of([_SHORT, *_LONG], [_SHORT]), ids=str)
def test_generated_rules_match_as_in_duckdb(size: Size) -> None:
    seed, rules, events = size
    workload = generate(preset("detection", subscriptions=rules, seed=seed))
    texts = workload.subscriptions().column("expression").to_pylist()
    # Half of the events are planted: each satisfies a rule.
    halves = workload.events(events // 2, wide=True), workload.other_events(events - events // 2, wide=True)
    given = pa.concat_tables(halves, promote_options="default")
    expected = _kept_by_duckdb(texts, given)
    assert events // 2 <= len(expected) < rules * events // 10
    matcher: tamis.Matcher[int] = tamis.Matcher()
    matcher.add_many(range(rules), texts)
    for who, found in _found(matcher, given):
        wrong = sorted(found ^ expected)
        assert not wrong, (
            f"{who}: {len(wrong)} decisions differ, the first is {_described(wrong[0], texts, given, expected)}"
        )


def _kept_by_duckdb(texts: list[str], events: pa.Table) -> Pairs:
    assert "row" not in events.column_names
    with duckdb.connect() as connection:
        engine = DuckDB(connection)
        engine.load(events.append_column("row", pa.array(np.arange(len(events)))))
        kept = engine.kept([to_sql(tamis.parse(text), "duckdb") for text in texts])
    return {(row, rule) for rule, rows in enumerate(kept) for row in rows}


def _found(matcher: tamis.Matcher[int], events: pa.Table) -> Iterator[tuple[str, Pairs]]:
    """Each way into the matcher, and the pairs that it finds."""
    mappings = [{name: value for name, value in event.items() if value is not None} for event in events.to_pylist()]
    lines = "\n".join(map(json.dumps, mappings)).encode()
    yield "match_batch of columns", _pairs(matcher.match_batch(events))
    yield "match_batch of mappings", _pairs(matcher.match_batch(mappings))
    yield "match_json_batch", _pairs(matcher.match_json_batch(lines))
    yield "match", {(row, rule) for row, event in enumerate(mappings) for rule in matcher.match(event)}


def _pairs(found: pa.Table) -> Pairs:
    return set(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))


def _described(pair: tuple[int, int], texts: list[str], events: pa.Table, expected: Pairs) -> str:
    row, rule = pair
    asked = tamis.parse(texts[rule]).attributes()
    event: dict[str, Any] = {name: events[name][row].as_py() for name in sorted(asked) if name in events.column_names}
    return f"event {row}, rule {rule}, DuckDB: {pair in expected}, for {event!r} and\n{texts[rule]}"
