"""Lists for operators on strings, and an OpIndex that accepts any operator."""

from __future__ import annotations

import math
import pickle
import random
import re
from collections.abc import Hashable, Iterable
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest

import tamis
from tamis.language import expression
from tamis.language.evaluate import matches as is_true
from tamis.language.operators import Operator
from tamis.papers.op_index.named_index import NamedOpIndex, Predicate
from tamis.papers.op_index.operator_lists import (
    OPERATOR_LISTS,
    CountingList,
    NewItem,
    OperatorList,
    PrefixList,
)
from tamis.papers.op_index.trie import DELIMITER, NOWHERE, Trie


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


def test_every_registered_operator_is_tested() -> None:
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
    index.check()
    index = pickle.loads(pickle.dumps(index))
    index.check()
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
    """A plug-in for operands that differ from the value by at most one. It looks in three places."""

    def __init__(self) -> None:
        self.items: dict[tuple[str, int], list[NewItem]] = {}

    def read(self, operand: Any) -> Any:
        return int(operand)

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
    """A plug-in for strings of a given length. It has only the method `match`."""

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


# -- deleting


def many(count: int) -> dict[Hashable, list[Predicate]]:
    operators = sorted(OPERATOR_LISTS)
    return {
        number: [Predicate(f"a{number % 7}", operators[number % 8], f"v{number}"), Predicate("b", "!=", number)]
        for number in range(count)
    }


def test_deleting_returns_the_memory() -> None:
    index = NamedOpIndex()
    empty = index.stats()
    for _ in range(2):
        index.insert_many({**many(300), "all": []})
        full = index.stats()
        assert {name: full[name] for name in ("subscriptions", "entries", "always", "dead")} == {
            "subscriptions": 301,
            "entries": 600,
            "always": 1,
            "dead": 0,
        }
        index.match({"a1": "v1", "b": 1})
        for number in range(290):
            index.delete(number)
            if number % 50 == 0:
                index.check()
        index.check()
        few = index.stats()
        assert few["dead"] <= 64
        assert few["entries"] <= 2 * (10 + 64)
        assert few["bytes"] < full["bytes"] / 2
        assert set(index.match({"a4": "v298", "a5": "v299", "b": 7})) >= {"all"}
        for sid in [*range(290, 300), "all"]:
            index.delete(sid)
        index.check()
        assert index.stats() == empty
        assert index.match({"a1": "v1", "b": 1}) == []


def test_frequencies_follow_deletions() -> None:
    index = NamedOpIndex()
    index.insert_many({number: [Predicate("a", "=", 1), Predicate("b", "=", 1)] for number in range(3)})
    index.insert_many({"S": [Predicate("a", "=", 1)]})
    assert index.frequency == {"a": 4, "b": 3}
    for number in range(3):
        index.delete(number)
    assert index.frequency == {"a": 1}


def test_replacing() -> None:
    index = NamedOpIndex()
    index.replace("S", [Predicate("a", "=", 1)])
    index.replace("S", [Predicate("a", "prefix", "x")])
    index.check()
    assert index.match({"a": 1}) == []
    assert index.match({"a": "xy"}) == ["S"]
    with pytest.raises(tamis.ExpressionError):
        index.replace("S", [Predicate("a", "=", None)])
    assert index.match({"a": "xy"}) == ["S"]


# -- refused predicates


def refused(predicate: Predicate) -> str:
    """The error message for a wrong predicate. The index must not keep subscriptions of the same call."""
    index = NamedOpIndex()
    with pytest.raises(tamis.ExpressionError) as told:
        index.insert_many({"good": [Predicate("a", "=", 1)], "bad": [predicate]})
    assert len(index) == 0
    index.check()
    assert str(told.value).startswith("subscription 'bad': ")
    return str(told.value)


def test_unknown_operators_are_refused() -> None:
    assert "no operator 'prefixes'; did you mean 'prefix'?" in refused(Predicate("a", "prefixes", "x"))
    assert "the operators are: !=, <=, =, >=, contains, prefix, regex, suffix" in refused(Predicate("a", "~", "x"))


@pytest.mark.parametrize("operator", sorted(OPERATOR_LISTS))
@pytest.mark.parametrize("operand", [None, math.nan, math.inf, 2**64, "\ud800", [1], b"x"])
def test_operands_outside_the_language_are_refused(operator: str, operand: Any) -> None:
    refused(Predicate("a", operator, operand))


def test_operands_of_the_wrong_kind_are_refused() -> None:
    assert "takes a string, not 5" in refused(Predicate("a", "suffix", 5))
    assert "booleans have no order" in refused(Predicate("a", "<=", True))
    assert "cannot read the pattern" in refused(Predicate("a", "regex", "("))
    assert "an attribute's name must be a string, not 3" in refused(Predicate(3, "=", 1))  # type: ignore[arg-type]


def test_duplicate_and_unknown_ids() -> None:
    index = NamedOpIndex()
    index.insert_many({"S": [Predicate("a", "=", 1)]})
    with pytest.raises(tamis.DuplicateIdError, match="'S' already exists"):
        index.insert_many({"T": [], "S": [Predicate("a", "=", 2)]})
    assert "T" not in index
    with pytest.raises(tamis.UnknownIdError, match="no subscription 'T'"):
        index.delete("T")
    index.check()
    assert index.match({"a": 1}) == ["S"]


# -- values of events


def test_missing_values_satisfy_nothing() -> None:
    index = NamedOpIndex()
    index.insert_many({operator: [Predicate("a", operator, "5")] for operator in OPERATOR_LISTS})
    index.insert_many({f"{operator} 5": [Predicate("a", operator, 5)] for operator in ("=", "<=", ">=", "!=")})
    for missing in (None, math.nan, np.float64("nan"), np.datetime64("NaT")):
        assert index.match({"a": missing}) == []
    assert index.match({}) == []


LANGUAGE = {"=": Operator.EQ, "<=": Operator.LE, ">=": Operator.GE, "!=": Operator.NE}


def test_values_satisfy_only_operands_of_their_own_kind() -> None:
    operands: list[Any] = [1, 1.5, True, "1", date(2026, 1, 1), datetime(2026, 1, 1, 12)]
    asked = {
        (operator, repr(operand)): Predicate("a", operator, operand)
        for operator in LANGUAGE
        for operand in operands
        if not (isinstance(operand, bool) and operator in ("<=", ">="))
    }
    index = NamedOpIndex()
    index.insert_many({sid: [predicate] for sid, predicate in asked.items()})
    index.check()
    for value in [*operands, 0, False, "", np.int32(1), np.str_("1"), math.inf, date(2026, 1, 2)]:
        expected = {
            sid
            for sid, (name, operator, operand) in asked.items()
            if is_true(expression.Predicate(name, LANGUAGE[operator], [operand]), {"a": value})
        }
        assert set(index.match({"a": value})) == expected, value
    for strange in ([1], {"x": 1}, object(), b"1", 2 + 3j):
        assert index.match({"a": strange}) == []


def test_half_a_character_is_part_of_nothing() -> None:
    index = NamedOpIndex()
    index.insert_many({operator: [Predicate("a", operator, "é")] for operator in ("prefix", "suffix", "contains")})
    assert index.match({"a": "\ud800"}) == []
    assert index.match({"a": "\ud800é"}) == ["suffix", "contains"]
