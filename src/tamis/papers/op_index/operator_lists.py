"""Operator lists for any operator (section 6.2).

In OpIndex a list L(A, op) may be any structure that can do two things: take in an item, and lower the counters of the items that
an event's value satisfies. That is the protocol `OperatorList`, the modified interface of figure 6(b). `CountingList`
adapts any structure with `insert` and `match`, the interface of figure 6(a). Lists are registered by operator:

    =  <=  >=  !=        `SortedList`, a sorted list of operands per attribute and kind
    prefix, suffix       `PrefixList`, `SuffixList`, a trie over "attribute#operand", of suffixes backwards
    contains             `ContainsList`, the same trie, walked from every place of the value
    regex                `RegexList`, tried one by one

These lists work on the values of events, and `named_index.NamedOpIndex` uses them. `index.OpIndex`, which a matcher uses, cannot
hold them: it sees keys, not strings. It does not need them either. There, LIKE 'x%' and LIKE '%x' are intervals of labels.
Substrings and regular expressions in a string are found once for all subscriptions, when an event is encoded. So there are two
ways to the same operators. This one repeats the paper's experiment with prefixes, and accepts operators that the language does
not have.

Comparisons follow the language: a value is compared only with operands of its own kind. All other comparisons are not true, even
`!=`.

Departures from the paper: for regular expressions the paper names the RE-Tree without describing it; `RegexList` has no index.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from typing import Any, NamedTuple, Protocol

from tamis.errors import KindError, shortened
from tamis.language.checks import compile_regex
from tamis.language.values import Kind, check_literal, kind_of, plain_scalar, to_microseconds
from tamis.papers.op_index.trie import DELIMITER, NOWHERE, Trie


class NewItem(NamedTuple):
    """A predicate in a list: the place of its counter, its subscription, and what it says."""

    eid: int
    sid: Hashable
    attribute: str
    operand: Any


class OperatorList(Protocol):
    """The interface of a list of OpIndex."""

    def read(self, operand: Any) -> Any:
        """An operand in the form that items use; raises an ExpressionError if it is not valid."""

    def insert(self, item: NewItem) -> None:
        """Take in a predicate."""

    def match_sub(self, attribute: str, value: Any, counter: list[int], result: list[Hashable]) -> int:
        """Lower ``counter[item.eid]`` of every item that a value satisfies; add subscriptions that reach zero to the result.

        Returns how many items were satisfied. The value is not missing, but may be anything else.
        """


class CountingList(ABC):
    """An operator list that says which items match, each once."""

    def read(self, operand: Any) -> Any:
        """An operand in the form that items use: here a literal of the language, but not NULL or NaN."""
        return check_literal(operand)

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

    def check(self) -> None:  # noqa: B027 - most have nothing to check
        """Raise an AssertionError if an invariant does not hold."""


class SortedList(CountingList):
    """A standard operator: the operands of each attribute and kind sorted, scanned as section 4.2 says."""

    def __init__(self, operator: str) -> None:
        self._operator = operator
        self._items: dict[tuple[str, Kind], list[NewItem]] = {}

    def read(self, operand: Any) -> Any:
        literal = super().read(operand)
        if isinstance(literal, bool) and self._operator in ("<=", ">="):
            raise KindError(f"booleans have no order: {self._operator} {literal}. Hint: use = or !=")
        return literal

    def insert(self, item: NewItem) -> None:
        kind = kind_of(item.operand)
        assert kind is not None
        insort(self._items.setdefault((item.attribute, kind), []), item, key=_place)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        plain = plain_scalar(value)
        kind = kind_of(plain)
        items = None if kind is None else self._items.get((attribute, kind))
        if items is None:
            return []
        place = _ordered(plain)
        first, last = bisect_left(items, place, key=_place), bisect_right(items, place, key=_place)
        if self._operator == "=":
            return items[first:last]
        if self._operator == "<=":
            return items[first:]
        if self._operator == ">=":
            return items[:last]
        return items[:first] + items[last:]

    def check(self) -> None:
        for (attribute, kind), items in self._items.items():
            places = [_place(item) for item in items]
            assert places == sorted(places)
            assert all(item.attribute == attribute and kind_of(item.operand) is kind for item in items)


def _place(item: NewItem) -> Any:
    return _ordered(item.operand)


def _ordered(value: Any) -> Any:
    """A sort key for values of one kind: Python does not compare dates with timestamps."""
    return to_microseconds(value) if kind_of(value) is Kind.TIMESTAMP else value


class PrefixList(CountingList):
    """A trie over "attribute#prefix"."""

    def __init__(self) -> None:
        self.trie = Trie()
        self._items: list[NewItem] = []

    def read(self, operand: Any) -> Any:
        return _string(super().read(operand))

    def insert(self, item: NewItem) -> None:
        self.trie.insert(_bytes(item.attribute) + DELIMITER + self._text(item.operand), len(self._items))
        self._items.append(item)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        if not isinstance(value, str):
            return []
        node = self.trie.find(_bytes(attribute) + DELIMITER)
        return [] if node == NOWHERE else map(self._items.__getitem__, self._found(self._text(value), node))

    def _text(self, text: str) -> bytes:
        return _bytes(text)

    def _found(self, text: bytes, node: int) -> Iterable[int]:
        """The numbers of the items that are true of a value, below the node of their attribute."""
        return self.trie.prefixes(text, node)

    def check(self) -> None:
        self.trie.check()
        for number, item in enumerate(self._items):
            assert number in self.trie.prefixes(_bytes(item.attribute) + DELIMITER + self._text(item.operand))


def _string(literal: Any) -> str:
    if not isinstance(literal, str):
        raise KindError(f"this operator takes a string, not {shortened(literal)}")
    return literal


def _bytes(text: str) -> bytes:
    """A text as bytes for a trie. A value may contain an unpaired surrogate; operands never do."""
    return text.encode(errors="surrogatepass")


class SuffixList(PrefixList):
    """A trie over "attribute#suffix", the suffix backwards."""

    def _text(self, text: str) -> bytes:
        return _bytes(text[::-1])


class ContainsList(PrefixList):
    """A trie over "attribute#part": a part of a value is a prefix of one of its suffixes."""

    def _found(self, text: bytes, node: int) -> Iterable[int]:
        places = range(len(text) + 1)
        return dict.fromkeys(number for place in places for number in self.trie.prefixes(text[place:], node))


class RegexList(CountingList):
    """Regular expressions with the syntax of RLIKE, each searched for in the value."""

    def __init__(self) -> None:
        self._items: dict[str, list[NewItem]] = {}
        self._compiled: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        # Compiled RE2 patterns cannot be pickled.
        return {"_items": self._items, "_compiled": {}}

    def read(self, operand: Any) -> Any:
        pattern = _string(super().read(operand))
        compile_regex(pattern)
        return pattern

    def insert(self, item: NewItem) -> None:
        self._items.setdefault(item.attribute, []).append(item)

    def match(self, attribute: str, value: Any) -> Iterable[NewItem]:
        if not isinstance(value, str):
            return []
        return [item for item in self._items.get(attribute, []) if self._pattern(item.operand).search(value)]

    def _pattern(self, text: str) -> Any:
        pattern = self._compiled.get(text)
        if pattern is None:
            pattern = self._compiled[text] = compile_regex(text)
        return pattern


Maker = Callable[[], OperatorList]

OPERATOR_LISTS: dict[str, Maker] = {
    **{operator: partial(SortedList, operator) for operator in ("=", "<=", ">=", "!=")},
    "prefix": PrefixList,
    "suffix": SuffixList,
    "contains": ContainsList,
    "regex": RegexList,
}
"""Operator -> a function or class that makes an empty list for it."""
