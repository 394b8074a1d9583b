"""Operator lists for anything (section 6.2), and an OpIndex over attributes with names that is made of them.

In OpIndex a list L(A, op) may be any structure that can do two things: take in an item, and lower the counters of the items that
an event's value satisfies. That is the protocol `OperatorList`, the modified interface of figure 6(b). `CountingList`
makes one of anything with `insert` and `match`, the interface of figure 6(a). Lists are registered by operator:

    =  <=  >=  !=        `SortedList`, a sorted list of operands per attribute
    prefix, suffix       `PrefixList`, `SuffixList`, a trie over "attribute#operand", of suffixes backwards
    contains             `ContainsList`, the same trie, walked from every place of the value
    regex                `RegexList`, tried one by one

`index.OpIndex` sees numbers for strings and needs none of this: a prefix is an interval of labels there, and what a string
contains or which expressions it matches is found once for all subscriptions when an event is encoded. Here strings are
strings, so that the paper's experiment with prefixes can be repeated, and operators that Tamis does not know can be added.

Departures from the paper: for regular expressions it names the RE-Tree, which it does not describe; `RegexList` has no index.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

from tamis.index.op_index.trie import DELIMITER, NOWHERE, Trie


class NewItem(NamedTuple):
    """A predicate in a list: the place of its counter, its subscription, and what it says."""

    eid: int
    sid: Hashable
    attribute: str
    operand: Any


class OperatorList(Protocol):
    """What a list of OpIndex must be able to do."""

    def insert(self, item: NewItem) -> None:
        """Take in a predicate."""

    def match_sub(self, attribute: str, value: Any, counter: list[int], result: list[Hashable]) -> int:
        """Lower ``counter[item.eid]`` of every item that a value satisfies, and add those that become zero to the result.

        Returns how many were satisfied.
        """


class CountingList(ABC):
    """An operator list that says which items match, each once."""

    @abstractmethod
    def insert(self, item: NewItem) -> None:
        """Take in a predicate."""

    @abstractmethod
    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        """The items that a value satisfies."""

    def match_sub(self, attribute: str, value: Any, counter: list[int], result: list[Hashable]) -> int:
        satisfied = 0
        for item in self.match(attribute, value):
            satisfied += 1
            counter[item.eid] -= 1
            if counter[item.eid] == 0:
                result.append(item.sid)
        return satisfied


class SortedList(CountingList):
    """A standard operator: the operands of each attribute sorted, scanned as section 4.2 says."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        # Strings and numbers have no order between them.
        self._items: dict[tuple[str, bool], list[NewItem]] = {}

    def insert(self, item: NewItem) -> None:
        insort(self._items.setdefault((item.attribute, isinstance(item.operand, str)), []), item, key=_operand)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        items = self._items.get((attribute, isinstance(value, str)), [])
        first, last = bisect_left(items, value, key=_operand), bisect_right(items, value, key=_operand)
        if self._operator == "=":
            return items[first:last]
        if self._operator == "<=":
            return items[first:]
        if self._operator == ">=":
            return items[:last]
        return items[:first] + items[last:]


def _operand(item: NewItem) -> Any:
    return item.operand


class PrefixList(CountingList):
    """A trie over "attribute#prefix"."""

    def __init__(self) -> None:
        self.trie = Trie()
        self._items: list[NewItem] = []

    def insert(self, item: NewItem) -> None:
        self.trie.insert(item.attribute.encode() + DELIMITER + self._text(item.operand), len(self._items))
        self._items.append(item)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        if not isinstance(value, str):
            return []
        node = self.trie.find(attribute.encode() + DELIMITER)
        return [] if node == NOWHERE else map(self._items.__getitem__, self._found(self._text(value), node))

    def _text(self, text: str) -> bytes:
        return text.encode()

    def _found(self, text: bytes, node: int) -> Iterable[int]:
        """The numbers of the items of an attribute, whose node is given, that are true of a value."""
        return self.trie.prefixes(text, node)


class SuffixList(PrefixList):
    """A trie over "attribute#suffix", the suffix backwards."""

    def _text(self, text: str) -> bytes:
        return text[::-1].encode()


class ContainsList(PrefixList):
    """A trie over "attribute#part": a part of a value is a prefix of what is left of it from some place on."""

    def _found(self, text: bytes, node: int) -> Iterable[int]:
        places = range(len(text) + 1)
        return dict.fromkeys(number for place in places for number in self.trie.prefixes(text[place:], node))


class RegexList(CountingList):
    """Regular expressions, each searched for in the value."""

    def __init__(self) -> None:
        self._items: dict[str, list[tuple[re.Pattern[str], NewItem]]] = {}

    def insert(self, item: NewItem) -> None:
        self._items.setdefault(item.attribute, []).append((re.compile(item.operand), item))

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        if not isinstance(value, str):
            return []
        return [item for pattern, item in self._items.get(attribute, []) if pattern.search(value)]


Maker = Callable[[], OperatorList]

OPERATOR_LISTS: dict[str, Maker] = {
    **{operator: partial(SortedList, operator) for operator in ("=", "<=", ">=", "!=")},
    "prefix": PrefixList,
    "suffix": SuffixList,
    "contains": ContainsList,
    "regex": RegexList,
}
"""Operator -> what makes an empty list for it."""


class Predicate(NamedTuple):
    """An attribute, an operator that has a list, an operand."""

    attribute: str
    operator: str
    operand: Any


class NamedOpIndex:
    """OpIndex over conjunctions of predicates with any operators, and events that are dictionaries.

    >>> index = NamedOpIndex()
    >>> index.insert_many({"S": [Predicate("make", "prefix", "ap"), Predicate("price", "<=", 580)]})
    >>> index.match({"make": "apple", "price": 550, "colour": "silver"})
    ['S']
    """

    def __init__(self, operators: Mapping[str, Maker] = OPERATOR_LISTS) -> None:
        self._operators = operators
        self.frequency: Counter[str] = Counter()
        self._sizes: dict[str, list[int]] = {}
        self._lists: dict[str, dict[str, OperatorList]] = {}
        # Of each pivot, the operators that predicates on an attribute have: an event asks no list in vain.
        self._asked: dict[str, dict[str, dict[str, OperatorList]]] = {}
        self._always: list[Hashable] = []
        self._counter_of: dict[Hashable, tuple[str, int] | None] = {}

    def __len__(self) -> int:
        return len(self._counter_of)

    def insert_many(self, subscriptions: Mapping[Hashable, Sequence[Predicate]]) -> None:
        """Algorithm 1 for new subscriptions, once all their attributes are counted."""
        for predicates in subscriptions.values():
            self.frequency.update({predicate.attribute for predicate in predicates})
        for sid, predicates in subscriptions.items():
            self._insert(sid, predicates)

    def _insert(self, sid: Hashable, predicates: Sequence[Predicate]) -> None:
        if not predicates:
            self._counter_of[sid] = None
            self._always.append(sid)
            return
        pivot = self.pivot_of(predicates)
        sizes = self._sizes.setdefault(pivot, [])
        for attribute, operator, operand in predicates:
            lists = self._lists.setdefault(pivot, {})
            if operator not in lists:
                lists[operator] = self._operators[operator]()
            lists[operator].insert(NewItem(len(sizes), sid, attribute, operand))
            self._asked.setdefault(pivot, {}).setdefault(attribute, {})[operator] = lists[operator]
        self._counter_of[sid] = pivot, len(sizes)
        sizes.append(len(predicates))

    def pivot_of(self, predicates: Sequence[Predicate]) -> str:
        """The attribute that is least frequent; of several the first that is written."""
        return min((predicate.attribute for predicate in predicates), key=self.frequency.__getitem__)

    def delete(self, sid: Hashable) -> None:
        """Make the counter of a subscription one that never ends at zero."""
        counter = self._counter_of.pop(sid)
        if counter is None:
            self._always.remove(sid)
        else:
            self._sizes[counter[0]][counter[1]] = -1

    def list_of(self, pivot: str, operator: str) -> OperatorList:
        """L(pivot, operator)."""
        return self._lists[pivot][operator]

    def match(self, event: Mapping[str, Any]) -> list[Hashable]:
        """Algorithm 2: the subscriptions that are true of an event."""
        result = list(self._always)
        for pivot in event:
            asked = self._asked.get(pivot)
            if asked is None:
                continue
            counter = self._sizes[pivot].copy()
            for attribute, value in event.items():
                for held in asked.get(attribute, {}).values():
                    held.match_sub(attribute, value, counter, result)
        return result
