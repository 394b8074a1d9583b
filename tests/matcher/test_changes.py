"""Subscriptions are added and removed between matches. The results are compared with a dictionary and the evaluator."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tamis
from tamis.language.evaluate import matches
from tamis.language.expression import Expression, Predicate, all_of, any_of
from tamis.language.operators import COMPARISONS, RANGES, SETS
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store
from tests.matcher.small import small_matcher
from tests.random_cases import RandomCases

IDS = st.integers(0, 12)
SEEDS = st.integers(0, 10_000)


class Changes(RuleBasedStateMachine):
    """After every step the matcher agrees with the model on a fixed set of events."""

    index = "auto"

    @initialize(seed=SEEDS)
    def start(self, seed: int) -> None:
        self.matcher = small_matcher(self.index)
        self.model: dict[int, Expression] = {}
        cases = RandomCases(seed)
        self.events = [cases.event() for _ in range(6)]

    def expression(self, seed: int) -> Expression:
        return RandomCases(seed).expression()

    @rule(identifier=IDS, seed=SEEDS)
    def add(self, identifier: int, seed: int) -> None:
        expression = self.expression(seed)
        if identifier in self.model:
            with pytest.raises(tamis.DuplicateIdError):
                self.matcher.add(identifier, expression)
        else:
            self.matcher.add(identifier, expression)
            self.model[identifier] = expression

    @rule(identifiers=st.sets(IDS, max_size=5), seed=SEEDS, table=st.booleans())
    def add_many(self, identifiers: set[int], seed: int, table: bool) -> None:
        expressions = {identifier: self.expression(seed + identifier) for identifier in sorted(identifiers)}
        columns: dict[str, Any] = {"id": list(expressions), "expression": [str(each) for each in expressions.values()]}
        try:
            if table:
                self.matcher.add_table(pa.table(columns, pa.schema([("id", pa.int64()), ("expression", pa.string())])))
            else:
                self.matcher.add_many(expressions, expressions.values())
        except tamis.DuplicateIdError:
            assert self.model.keys() & identifiers
        else:
            assert not self.model.keys() & identifiers
            self.model.update(expressions)

    @rule(identifier=IDS, seed=SEEDS)
    def replace(self, identifier: int, seed: int) -> None:
        expression = self.expression(seed)
        if identifier in self.model:
            self.matcher.replace(identifier, expression)
            self.model[identifier] = expression
        else:
            with pytest.raises(tamis.UnknownIdError):
                self.matcher.replace(identifier, expression)

    @rule(identifier=IDS)
    def remove(self, identifier: int) -> None:
        if identifier in self.model:
            self.matcher.remove(identifier)
            del self.model[identifier]
        else:
            with pytest.raises(tamis.UnknownIdError):
                self.matcher.remove(identifier)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "matcher"):
            return
        assert len(self.matcher) == len(self.model)
        expected = {
            (row, identifier)
            for row, event in enumerate(self.events)
            for identifier, expression in self.model.items()
            if matches(expression, event)
        }
        found = self.matcher.match_batch(self.events)
        pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
        assert set(pairs) == expected
        assert len(pairs) == len(expected)
        for row, event in enumerate(self.events):
            assert sorted(self.matcher.match(event)) == sorted(each for at, each in expected if at == row)


class ChangesOfScan(Changes):
    """The same checks with an index of the papers."""

    index = "scan"


@pytest.mark.parametrize("schema", [None, {"n0": "number", "n1": "number", "s": "string", "n2": "list<number>"}])
def test_plain_conjunctions_are_added_and_removed(schema: Any, cases: Callable[[int], int]) -> None:
    """Most conjunctions are encoded without the compiler, some with it. Matches happen in between, while parts are merged."""
    chance = random.Random(3)
    matcher = small_matcher(schema=schema)
    model: dict[int, Expression] = {}
    events = [{name: chance.choice(VALUES[name]) for name in VALUES} for _ in range(8)]
    for number in range(cases(300)):
        predicates = [plain_predicate(chance) for _ in range(chance.randint(1, 4))]
        model[number] = any_of(*predicates) if number % 20 == 0 else all_of(*predicates)
        matcher.add(number, model[number])
        if number % 3:
            gone = chance.choice(list(model))
            matcher.remove(gone)
            del model[gone]
        event = chance.choice(events)
        assert sorted(matcher.match(event)) == [each for each in sorted(model) if matches(model[each], event)]
    assert matcher.stats()["index_stats"]["merges"] > 0


VALUES: dict[str, list[Any]] = {
    "n0": [*range(6), 2**53 + 1, -0.0],
    "n1": [*range(6), 0.5],
    "n2": [[1, 4], 2, 3, [0, 5]],
    "s": ["a", "b", "ab", ""],
}


def plain_predicate(chance: random.Random) -> Predicate:
    name = chance.choice(list(VALUES))
    pool = VALUES[name] if name != "n2" else list(range(6))
    operator = chance.choice(list(COMPARISONS | SETS | RANGES))
    count = 3 if operator in SETS else 2 if operator in RANGES else 1
    return Predicate(name, operator, [chance.choice(pool) for _ in range(count)])


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=settings().max_examples // 3, stateful_step_count=30)
TestChangesOfScan = ChangesOfScan.TestCase
TestChangesOfScan.settings = settings(max_examples=settings().max_examples // 6, stateful_step_count=30)


@pytest.mark.parametrize("index", ["auto", "scan"])
def test_subscriptions_that_are_added_alone_are_compiled_together(index: str) -> None:
    store = new_store(index, limits=StoreLimits(pending_in_engine=3, pending_in_index=3))
    matcher = matcher_over(store)
    known = []
    for number in range(4):
        matcher.add(number, f"a{number} LIKE 'x%'")
        known.append(len(store.dimensions))
    assert known == [0, 0, 3, 3]
    assert [matcher.match({f"a{number}": "xy"}) for number in range(4)] == [[0], [1], [2], [3]]
