"""A matcher is read and changed like a dictionary, and compared with one after every step."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import tamis
from tamis.language.evaluate import matches
from tamis.language.expression import Expression
from tamis.language.schema import Schema
from tamis.matcher.matcher import matcher_over, new_store
from tamis.storage import container
from tests.matcher.small import small_matcher
from tests.random_cases import RandomCases

NUMBERS = st.integers(0, 12)
SOME = st.lists(NUMBERS, max_size=6)
SEEDS = st.integers(0, 10_000)
WEIGHTS = st.none() | st.integers(0, 3).map(float)


class Changes(RuleBasedStateMachine):
    """After every step, the matcher has the same items as a dictionary of expressions and weights, in the same order."""

    index = "auto"

    @initialize(seed=SEEDS, text=st.booleans())
    def start(self, seed: int, text: bool) -> None:
        self.matcher: tamis.Matcher[Any] = small_matcher(self.index)
        self.model: dict[Any, tuple[Expression, float]] = {}
        self.name: Callable[[int], Any] = "s{}".format if text else int
        cases = RandomCases(seed)
        self.events = [cases.event() for _ in range(4)]

    def expressions(self, seed: int, count: int) -> list[Expression]:
        return [RandomCases(seed + number).expression() for number in range(count)]

    @rule(number=NUMBERS, seed=SEEDS, weight=WEIGHTS)
    def add(self, number: int, seed: int, weight: float | None) -> None:
        identifier, (expression,) = self.name(number), self.expressions(seed, 1)
        if identifier in self.model:
            with pytest.raises(tamis.DuplicateIdError):
                self.matcher.add(identifier, expression)
        else:
            self.matcher.add(identifier, expression, weight or 0.0)
            self.model[identifier] = expression, weight or 0.0

    @rule(numbers=SOME, seed=SEEDS, weighted=st.booleans())
    def add_what_is_right(self, numbers: list[int], seed: int, weighted: bool) -> None:
        identifiers, expressions = [self.name(number) for number in numbers], self.expressions(seed, len(numbers))
        weights = [float(number) for number in numbers] if weighted else None
        given: list[Any] = [each if number % 5 else "a =" for number, each in zip(numbers, expressions, strict=True)]
        rejected = self.matcher.add_many(identifiers, given, weights, on_error="collect")
        seen, wrong = set(self.model), []
        for row, (identifier, expression) in enumerate(zip(identifiers, given, strict=True)):
            if identifier in seen or expression == "a =":
                wrong.append(row)
            else:
                self.model[identifier] = expression, weights[row] if weights else 0.0
            seen.add(identifier)
        assert [(each.id, each.row) for each in rejected] == [(identifiers[row], row) for row in wrong]

    @rule(number=NUMBERS, seed=SEEDS, weight=WEIGHTS)
    def upsert(self, number: int, seed: int, weight: float | None) -> None:
        identifier, (expression,) = self.name(number), self.expressions(seed, 1)
        self.matcher.upsert(identifier, expression, weight)
        kept = self.model[identifier][1] if identifier in self.model else 0.0
        self.model[identifier] = expression, kept if weight is None else weight

    @rule(numbers=SOME, seed=SEEDS, weighted=st.booleans())
    def replace_many(self, numbers: list[int], seed: int, weighted: bool) -> None:
        identifiers, expressions = [self.name(number) for number in numbers], self.expressions(seed, len(numbers))
        weights = [float(number) for number in numbers] if weighted else None
        if all(identifier in self.model for identifier in identifiers) and len(set(numbers)) == len(numbers):
            self.matcher.replace_many(identifiers, expressions, weights)
            for row, identifier in enumerate(identifiers):
                weight = weights[row] if weights else self.model[identifier][1]
                self.model[identifier] = expressions[row], weight
        else:
            with pytest.raises((tamis.UnknownIdError, tamis.DuplicateIdError)):
                self.matcher.replace_many(identifiers, expressions, weights)

    @rule(numbers=SOME)
    def remove_many(self, numbers: list[int]) -> None:
        identifiers = [self.name(number) for number in numbers]
        if all(identifier in self.model for identifier in identifiers):
            self.matcher.remove_many(identifiers)
            for identifier in set(identifiers):
                del self.model[identifier]
        else:
            unknown = next(each for each in identifiers if each not in self.model)
            with pytest.raises(tamis.UnknownIdError, match=repr(unknown)):
                self.matcher.remove_many(identifiers)

    @rule(number=NUMBERS)
    def discard(self, number: int) -> None:
        identifier = self.name(number)
        assert self.matcher.discard(identifier) == (self.model.pop(identifier, None) is not None)

    @rule(sometimes=st.integers(0, 4))
    def clear(self, sometimes: int) -> None:
        if not sometimes:
            self.matcher.clear()
            self.model.clear()

    @rule()
    def pickle(self) -> None:
        self.matcher = pickle.loads(pickle.dumps(self.matcher))

    @rule(mmap=st.booleans())
    def save_and_load(self, mmap: bool) -> None:
        if self.index == "auto":
            with tempfile.TemporaryDirectory() as folder:
                self.matcher.save(Path(folder, "matcher"))
                self.matcher = tamis.load(Path(folder, "matcher"), mmap=mmap)

    @invariant()
    def agrees(self) -> None:
        if not hasattr(self, "matcher"):
            return
        assert list(self.matcher) == self.matcher.ids() == list(self.model)
        assert len(self.matcher) == len(self.model)
        for number in range(13):
            identifier = self.name(number)
            found = self.matcher.get(identifier)
            assert (identifier in self.matcher) == (identifier in self.model) == (found is not None)
            if found is not None:
                assert (found.id, found.expression, found.weight) == (identifier, *self.model[identifier])
        for event in self.events:
            expected = {each for each, (expression, _) in self.model.items() if matches(expression, event)}
            found_ids = self.matcher.match(event)
            assert len(found_ids) == len(expected)
            assert set(found_ids) == expected
            weights = sorted((self.model[each][1] for each in expected), reverse=True)
            assert [self.model[each][1] for each in self.matcher.match(event, k=3)] == weights[:3]


class ChangesOfScan(Changes):
    """The same checks with an index of the papers."""

    index = "scan"


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=settings().max_examples // 4, stateful_step_count=25)
TestChangesOfScan = ChangesOfScan.TestCase
TestChangesOfScan.settings = settings(max_examples=settings().max_examples // 8, stateful_step_count=25)


@pytest.mark.usefixtures("each_index")
class TestReading:
    def test_a_subscription_can_be_read_back(self) -> None:
        matcher: tamis.Matcher[str] = tamis.Matcher()
        matcher.add("ann", "price<20 and genre='crime'", weight=2)
        found = matcher["ann"]
        assert isinstance(found, tamis.Subscription)
        assert (found.id, found.text, found.weight) == ("ann", "price < 20 AND genre = 'crime'", 2.0)
        assert found.expression == tamis.parse(found.text)
        assert matcher.get("ann") == found
        assert matcher.get("eva") is None
        assert matcher.get("eva", 5) == 5
        with pytest.raises(tamis.UnknownIdError, match="no subscription 'eva'"):
            matcher["eva"]

    def test_a_subscription_that_was_read_does_not_change(self) -> None:
        matcher = tamis.Matcher()
        matcher.add(1, "a = 1")
        before, ids = matcher[1], iter(matcher)
        matcher.replace(1, "a = 2")
        matcher.add(2, "a = 3")
        assert before.text == "a = 1"
        assert list(ids) == [1]

    def test_subscriptions_may_change_during_iteration(self) -> None:
        matcher = tamis.Matcher()
        matcher.add_many(range(10), [f"a = {number}" for number in range(10)])
        for identifier in matcher:
            if int(identifier) % 2:
                matcher.remove(identifier)
            else:
                matcher.upsert(identifier, "a = 5")
        assert list(matcher) == [0, 2, 4, 6, 8]
        assert sorted(matcher.match({"a": 5})) == [0, 2, 4, 6, 8]

    def test_a_replaced_id_keeps_its_place_and_an_id_added_again_does_not(self) -> None:
        matcher = tamis.Matcher()
        matcher.add_many(["a", "b", "c", "d"], ["a = 1"] * 4)
        matcher.remove("b")
        matcher.replace("a", "a = 2")
        matcher.upsert("c", "a = 2")
        matcher.add("b", "a = 1")
        matcher.replace_many(["d", "b"], ["a = 3"] * 2)
        assert matcher.ids() == ["a", "c", "d", "b"]

    def test_wrong_ids(self) -> None:
        matcher: tamis.Matcher[Any] = tamis.Matcher()
        matcher.add("x", "a = 1")
        for call in (matcher.get, matcher.discard, matcher.__getitem__, lambda each: matcher.remove_many([each])):
            for wrong in (5, None, 1.5):
                with pytest.raises(tamis.IdTypeError):
                    call(wrong)
        with pytest.raises(tamis.IdTypeError, match="ids must be a list"):
            matcher.remove_many("x")
        with pytest.raises(tamis.DuplicateIdError, match="the id 'x' is given twice"):
            matcher.replace_many(["x", "x"], ["a = 1", "a = 2"])
        with pytest.raises(tamis.ExpressionError, match="ids and expressions differ in number: 1 and 2"):
            matcher.replace_many(["x"], ["a = 1", "a = 2"])
        with pytest.raises(tamis.OptionError, match="ids and weights differ in number: 1 and 2"):
            matcher.replace_many(["x"], ["a = 1"], [1, 2])
        with pytest.raises(tamis.ParseError, match="subscription 'x'"):
            matcher.replace_many(["x"], ["a ="])
        assert matcher["x"].text == "a = 1"

    def test_nothing_to_change(self) -> None:
        matcher = tamis.Matcher()
        matcher.remove_many([])
        matcher.replace_many([], [])
        matcher.clear()
        assert matcher.ids() == []
        assert not matcher.discard("x")
        matcher.add_many([], [])

    def test_clearing_keeps_the_schema_and_the_sample(self) -> None:
        store = new_store(schema=Schema.of({"a": "number"}))
        matcher = matcher_over(store)
        matcher.observe([{"a": number} for number in range(10)])
        matcher.add_many(range(5), [f"a = {number}" for number in range(5)])
        matcher.clear()
        assert len(matcher) == 0
        assert matcher.match({"a": 1}) == []
        with pytest.raises(tamis.UnknownAttributeError):
            matcher.add("x", "b = 1")
        matcher.add("now a text", "a = 1")
        assert matcher.match({"a": 1}) == ["now a text"]
        assert len(store.sample) >= 10

    def test_repr(self) -> None:
        store = new_store()
        matcher = matcher_over(store)
        assert repr(matcher).startswith("<tamis.Matcher: 0 subscriptions, ")
        matcher.add("x", "a = 1")
        matcher.match({"a": 1})
        assert repr(matcher).startswith("<tamis.Matcher: 1 subscription, ")
        matcher.add_many(range_of(2_000), [f"a = {number}" for number in range(2_000)])
        text = repr(matcher)
        assert text.startswith("<tamis.Matcher: 2,001 subscriptions, ")
        assert text.endswith(" kB>")
        with store.lock:  # as a debugger may call it during a change
            assert repr(matcher) == text


def range_of(count: int) -> list[str]:
    return [f"s{number}" for number in range(count)]


class Named(tamis.Matcher[str]):
    """A matcher with an attribute of its own."""

    def __init__(self, name: str) -> None:
        super().__init__(schema={"a": "number", "tags": "list<string>"})
        self.name = name


def test_attributes_of_a_matcher_are_pickled_with_it() -> None:
    matcher = Named("alerts")
    matcher.add("x", "a > 1 AND tags = 'new'", weight=3)
    for again in (pickle.loads(pickle.dumps(matcher)), copy.deepcopy(matcher), copy.copy(matcher)):
        assert isinstance(again, Named)
        assert again.name == "alerts"
        assert again.schema == matcher.schema
        assert again["x"] == matcher["x"]
        again.remove("x")
        with pytest.raises(tamis.UnknownAttributeError):
            again.add("y", "b = 1")
    assert matcher.match({"a": 2, "tags": ["old", "new"]}) == ["x"]


def test_a_pickle_of_another_version_says_so() -> None:
    matcher = tamis.Matcher()
    matcher.add("x", "a = 1")
    state = matcher.__getstate__()
    opened = container.of_bytes(state["_store"].snapshot, "x")
    arrays = {name: opened.array(name) for name in opened.names}
    other = container.to_bytes(arrays, {**opened.meta, "content_version": 8}, "x")
    with pytest.raises(tamis.SnapshotError, match="a pickled matcher: is a matcher of version 8"):
        tamis.Matcher().__setstate__({**state, "_store": state["_store"]._replace(snapshot=other)})


def test_errors_can_be_pickled() -> None:
    matcher = tamis.Matcher()
    rejected = matcher.add_many(["x", "x", "y"], ["a =", "b = 1", "c = 1 AND d ="], on_error="collect")
    again = pickle.loads(pickle.dumps(rejected))
    assert [(each.id, each.row, str(each.error)) for each in again] == [
        (each.id, each.row, str(each.error)) for each in rejected
    ]
    assert [type(each.error) for each in again] == [tamis.ParseError, tamis.DuplicateIdError, tamis.ParseError]
    assert vars(again[2].error) == vars(rejected[2].error)
