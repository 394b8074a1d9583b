"""Random subscriptions with joins against random histories, and each decision against the reference evaluator."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import tamis
from tamis.earlier.prefilter import NEVER
from tamis.engine.limits import Limits
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent, flatten
from tamis.language.expression import Expression, Predicate
from tamis.language.joins import Exists, Join, Quantified
from tamis.language.operators import COMPARISONS, Quantifier
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tests.earlier.reference import ReferenceHistory

NAMES = ["a", "b", "s"]
COMPARED = sorted(COMPARISONS)
CONDITIONS = [
    "a < 3",
    "a >= 3",
    "a = 1",
    "a <> 1",
    "a IN (0, 4)",
    "a NOT IN (0, 4)",
    "b BETWEEN 1 AND 4",
    "b NOT BETWEEN 1 AND 4",
    "s = 'x1'",
    "s > 'x2'",
    "s LIKE 'x%'",
    "s IS NULL",
    "b IS NOT NULL",
    "b IN (1, 'x1')",
    "b NOT IN (1, 'x1')",
]
READ = [each for each in map(tamis.parse, CONDITIONS) if isinstance(each, Predicate)]
LARGE = [2**53, 2**53 + 1, float(2**53), 2**60, -(2**63), 2**63 - 1, 1e300, float("inf")]
ODD: list[Any] = [
    [0, 3],
    [1, "x1"],
    tamis.Interval(1, 2),
    [],
    None,
    True,
    datetime(2026, 1, 1),
    "x3",
    "\u00e4",
    float("nan"),
    *LARGE,
]


class Draw:
    """Random histories, events and expressions."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.few = self.random.choice([3, 6, 40])
        """Distinct values."""
        self.oddness = self.random.choice([0.0, 0.0, 0.02, 0.3])
        self.order = self.random.choice([0.0, 0.0, 0.3])
        """The share of events that come late."""
        self.form = self.random.choice(["", "", "alike", "numbers"])
        """Whether all events have the same attributes with values of the same classes, or numbers alone."""
        if self.form:
            self.oddness = 0.0
        self.clock = 0

    def history(self) -> tamis.History:
        rows = self.random.choice([1, 3, 20, 60])
        kind = self.random.randrange(5)
        if kind < 2:
            return tamis.History(rows=rows)
        if kind == 2:
            return tamis.History(rows=rows, key="k", order=self.random.choice([None, "t"]))
        age: Any = self.random.choice([4, 9.5, 30]) if kind == 3 else timedelta(seconds=20)
        return tamis.History(
            rows=self.random.choice([None, rows]), age=age, order="t", key=self.random.choice([None, None, "k"])
        )

    def value(self, name: str) -> Any:
        if self.random.random() < self.oddness:
            return self.random.choice(ODD)
        if name == "s" and self.form != "numbers":
            return f"x{self.random.randrange(self.few)}"
        value = self.random.randrange(self.few)
        return value if name == "a" else value + 0.5 * (value % 2)

    def event(self, history: tamis.History) -> dict[str, Any]:
        self.clock += self.random.randrange(3)
        late = self.random.randrange(12) if self.random.random() < self.order else 0
        time: Any = self.clock - late
        if isinstance(history.age, timedelta):
            time = datetime(2026, 1, 1) + timedelta(seconds=time)
        if self.random.random() < self.oddness:
            time = self.random.choice([None, "noon", [1, 2]])
        names = NAMES if self.form == "alike" or self.random.random() < 0.8 else self.random.sample(NAMES, 2)
        keys = [0, 1, "one", True] if self.oddness else [0, 1]
        return {name: self.value(name) for name in names} | {"t": time, "k": self.random.choice(keys)}

    def join(self) -> Expression:
        pick = self.random.choice
        if self.random.random() < 0.5:
            new = pick(NAMES)
            return Quantified(
                new, pick(COMPARED), pick(list(Quantifier)), new if self.random.random() < 0.7 else pick(NAMES)
            )
        joins = []
        for _ in range(self.random.randrange(1, 3)):
            earlier = pick(NAMES)
            new = earlier if self.random.random() < 0.7 else pick(NAMES)
            joins.append(Join(earlier, pick(["=", "=", *COMPARED]), new))
        return Exists(joins, self.random.sample(READ, self.random.choice([0, 0, 1, 2])))

    def expression(self) -> Expression:
        pick, form = self.random.choice, self.random.randrange(8)
        join = self.join()
        if form < 3:
            return pick(READ) & join
        if form == 3:
            return join
        if form == 4:
            return pick(READ) | join
        if form == 5:
            return pick(READ) & (~join | self.join())
        if form == 6:
            return (pick(READ) | join) & (~self.join())
        return tamis.parse(f"({join}) IS {pick(['TRUE', 'FALSE', 'UNKNOWN'])}") & pick([pick(READ), ~self.join()])


def matcher_of(history: tamis.History, draw: Draw) -> tamis.Matcher[Any]:
    pick = draw.random.choice
    limits = StoreLimits(
        Limits(delta_rows=16),
        scanned_history=pick([0, 8]),
        history_block=pick([1, 4, 16]),
        history_stretch=pick([1, 2, 32]),
        prefilter_from=pick([0, 0, 5, NEVER]),
        few_mappings=pick([1, 128]),
    )
    return matcher_over(new_store(history=history, limits=limits))


def as_table(events: list[dict[str, Any]]) -> pa.Table | None:
    """The events as a table of Arrow, if they are regular."""
    names = sorted({name for event in events for name in event})
    try:
        table = pa.table({name: pa.array([event.get(name) for event in events]) for name in names})
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None
    # Arrow makes doubles of integers beside doubles, which may be other numbers.
    return table if [flatten(each) for each in table.to_pylist()] == [flatten(each) for each in events] else None


def run(seed: int, events: int, subscriptions: int) -> int:
    """Compare the decisions of single events and of batches; returns how many."""
    draw = Draw(seed)
    history = draw.history()
    single, batch, reference = matcher_of(history, draw), matcher_of(history, draw), ReferenceHistory(history)
    expressions = [draw.expression() for _ in range(subscriptions)]
    batch.add_many(range(subscriptions), expressions)
    for number, expression in enumerate(expressions):
        single.add(number, expression)
    given = [draw.event(history) for _ in range(events)]
    expected: list[list[int]] = []
    for event in given:
        before, flat = reference.before(event), flatten(event)
        expected.append(holding(expressions, flat, before))
        assert sorted(single.match(event)) == expected[-1], (seed, event, history)
        reference.add(event)
    start = 0
    while start < events:
        size = draw.random.choice([1, 5, 30, 90])
        part = given[start : start + size]
        table = as_table(part) if draw.random.random() < 0.6 else None
        found = batch.match_batch(part if table is None else table, threads=1)
        pairs = sorted(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
        wanted = [(row, number) for row, numbers in enumerate(expected[start : start + size]) for number in numbers]
        assert pairs == wanted, (seed, start, size, history, table is None, sorted(set(pairs) ^ set(wanted))[:5])
        start += size
    sizes = [matcher.stats()["history"]["events"] for matcher in (single, batch)]
    assert sizes == [len(reference)] * 2
    return 2 * events * subscriptions


def holding(expressions: list[Expression], event: FlatEvent, before: list[FlatEvent]) -> list[int]:
    return [number for number, each in enumerate(expressions) if evaluate_flat(each, event, before) is True]


def test_decisions(cases: Callable[[int], int], record_property: Callable[[str, object], None]) -> None:
    decisions = sum(run(seed, 90, 12) for seed in range(cases(8)))
    record_property("decisions", decisions)


@pytest.mark.long
def test_a_million_decisions(record_property: Callable[[str, object], None]) -> None:
    decisions = 0
    for seed in range(1000, 1000 + 320):
        decisions += run(seed, 130, 14)
    record_property("decisions", decisions)
    assert decisions > 1_000_000
