"""Lists for operators on strings, and an OpIndex that takes any."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable, Iterable
from typing import Any

import pytest

from tamis.index.op_index.operator_lists import (
    OPERATOR_LISTS,
    CountingList,
    NamedOpIndex,
    NewItem,
    OperatorList,
    Predicate,
    PrefixList,
)
from tamis.index.op_index.trie import DELIMITER, NOWHERE, Trie


def test_a_trie_finds_all_prefixes() -> None:
    trie = Trie()
    texts = [b"make#ap", b"make#a", b"make#", b"make#b", b"mark#ap", b"", b"make#ap"]
    for number, text in enumerate(texts):
        trie.insert(text, number)
    trie.check()
    assert len(trie) == 1 + len({text[:end] for text in texts for end in range(1, len(text) + 1)})
    assert sorted(trie.prefixes(b"make#apple")) == [0, 1, 2, 5, 6]
    assert sorted(trie.prefixes(b"mark#a")) == [5]
    node = trie.find(b"make#")
    assert sorted(trie.prefixes(b"b", node)) == [2, 3]
    assert trie.find(b"makes") == NOWHERE


@pytest.mark.parametrize("seed", range(3))
def test_random_prefixes(seed: int) -> None:
    chance, trie = random.Random(seed), Trie()
    texts = [bytes(chance.choices(b"ab\xff", k=chance.randrange(6))) for _ in range(60)]
    for number, text in enumerate(texts):
        trie.insert(text, number)
    trie.check()
    for _ in range(30):
        value = bytes(chance.choices(b"ab\xff", k=chance.randrange(8)))
        assert sorted(trie.prefixes(value)) == [n for n, text in enumerate(texts) if value.startswith(text)]


def test_attributes_are_kept_apart_by_the_delimiter() -> None:
    prefixes = PrefixList()
    prefixes.insert(NewItem(0, "S", "ab", "c"))
    prefixes.insert(NewItem(1, "T", "a", "bc"))
    assert [item.sid for item in prefixes.match("a", "bcd")] == ["T"]
    assert [item.sid for item in prefixes.match("ab", "cd")] == ["S"]
    assert list(prefixes.match("abc", "d")) == []
    assert prefixes.trie.find(b"a" + DELIMITER + b"bc") != NOWHERE


def test_matching_lowers_counters() -> None:
    prefixes = PrefixList()
    for eid, (sid, operand) in enumerate([("S", "a"), ("T", "ap"), ("U", "b")]):
        prefixes.insert(NewItem(eid, sid, "make", operand))
    counter, result = [1, 2, 1], list[Hashable]()
    assert prefixes.match_sub("make", "apple", counter, result) == 2
    assert counter == [0, 1, 1]
    assert result == ["S"]


TRUTHS: dict[str, Any] = {
    "=": lambda value, operand: value == operand,
    "<=": lambda value, operand: value <= operand,
    ">=": lambda value, operand: value >= operand,
    "!=": lambda value, operand: value != operand,
    "prefix": str.startswith,
    "suffix": str.endswith,
    "contains": str.__contains__,
    "regex": lambda value, operand: re.search(operand, value) is not None,
}


def test_every_operator_that_is_registered_is_tested() -> None:
    assert set(TRUTHS) == set(OPERATOR_LISTS)


@pytest.mark.parametrize("seed", range(3))
def test_an_index_of_all_operators(seed: int) -> None:
    chance = random.Random(seed)

    def text() -> str:
        return "".join(chance.choices("abé", k=chance.randrange(1, 5)))

    def operand(operator: str) -> str:
        return "^" + text() + "|" + text() + "$" if operator == "regex" else text()

    subscriptions: dict[Hashable, list[Predicate]] = {}
    for number in range(120):
        operators = chance.choices(sorted(OPERATOR_LISTS), k=chance.choice([0, 1, 2, 2, 3]))
        subscriptions[number] = [Predicate(chance.choice("uvwxyz"), each, operand(each)) for each in operators]
    index = NamedOpIndex()
    index.insert_many(subscriptions)
    for number in range(0, 120, 7):
        index.delete(number)
        del subscriptions[number]
    assert len(index) == len(subscriptions)
    for _ in range(40):
        event = {name: text() for name in chance.sample("uvwxyz", 4)}
        expected = [
            number
            for number, predicates in subscriptions.items()
            if all(
                each.attribute in event and TRUTHS[each.operator](event[each.attribute], each.operand)
                for each in predicates
            )
        ]
        found = index.match(event)
        assert len(found) == len(expected)
        assert set(found) == set(expected)


def test_values_of_another_kind_satisfy_nothing() -> None:
    index = NamedOpIndex()
    index.insert_many(
        {"S": [Predicate("a", "<=", 5)], "T": [Predicate("a", "prefix", "x")], "U": [Predicate("a", "regex", "x")]}
    )
    assert index.match({"a": 3}) == ["S"]
    assert index.match({"a": "xy"}) == ["T", "U"]


def test_pivots_are_the_rarest_attributes_and_the_first_written() -> None:
    index = NamedOpIndex()
    index.insert_many(
        {
            "S": [Predicate("b", "prefix", "x"), Predicate("a", "=", 1)],
            "T": [Predicate("a", "=", 1), Predicate("c", "suffix", "x")],
            "U": [Predicate("b", "=", 1)],
        }
    )
    assert isinstance(index.list_of("b", "prefix"), PrefixList)
    assert isinstance(index.list_of("c", "="), CountingList)
    with pytest.raises(KeyError):
        index.list_of("a", "=")


class NearList:
    """A plug-in: operands that differ from the value by at most one, found by looking in three places."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, int], list[NewItem]] = {}

    def insert(self, item: NewItem) -> None:
        self.items.setdefault((item.attribute, item.operand), []).append(item)

    def match_sub(self, attribute: str, value: Any, counter: list[int], result: list[Hashable]) -> int:
        satisfied = [item for near in (-1, 0, 1) for item in self.items.get((attribute, value + near), [])]
        for item in satisfied:
            counter[item.eid] -= 1
            if counter[item.eid] == 0:
                result.append(item.sid)
        return len(satisfied)


class LengthList(CountingList):
    """Another, by way of `match` alone: strings of a length."""

    def __init__(self) -> None:
        self.items: list[NewItem] = []

    def insert(self, item: NewItem) -> None:
        self.items.append(item)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        return [item for item in self.items if item.attribute == attribute and len(value) == item.operand]


def test_operators_can_be_plugged_in() -> None:
    near: type[OperatorList] = NearList
    index = NamedOpIndex({**OPERATOR_LISTS, "near": near, "length": LengthList})
    index.insert_many(
        {
            "S": [Predicate("size", "near", 40), Predicate("name", "length", 3)],
            "T": [Predicate("size", "near", 40), Predicate("name", "prefix", "a")],
            "U": [Predicate("size", "near", 42)],
        }
    )
    assert sorted(index.match({"size": 41, "name": "abc"}), key=str) == ["S", "T", "U"]
    assert sorted(index.match({"size": 39, "name": "ab"}), key=str) == ["T"]
