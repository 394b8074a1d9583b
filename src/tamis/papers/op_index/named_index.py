"""An OpIndex over attributes with names, which takes any operator that has a list (section 6.2).

    L(pivot, op)     lists, see `operator_lists`; an item points to a counter of its pivot
    V(pivot)         sizes: how many predicates each subscription has, DEAD if it was deleted
    always           subscriptions without predicates, which every event matches

It does not have the interface of a matcher's indexes: they see keys, this index sees strings, see `operator_lists`.

Deleting sets a size to a value that never ends at zero. When as many subscriptions are dead as alive, the index is built again
from the live ones.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from tamis.errors import DuplicateIdError, ExpressionError, UnknownIdError, did_you_mean, shortened
from tamis.language.values import is_missing
from tamis.papers.op_index.operator_lists import OPERATOR_LISTS, CountingList, Maker, NewItem, OperatorList

DEAD = -1
_FEWEST_DEAD = 64


class Predicate(NamedTuple):
    """An attribute, an operator that has a list, an operand."""

    attribute: str
    operator: str
    operand: Any


class NamedOpIndex:
    """OpIndex over conjunctions of predicates with any operators, and events that are dictionaries.

    An attribute that is None or NaN in an event is missing there, and no predicate on it is true.

    >>> index = NamedOpIndex()
    >>> index.insert_many({"S": [Predicate("make", "prefix", "ap"), Predicate("price", "<=", 580)]})
    >>> index.match({"make": "apple", "price": 550, "colour": "silver"})
    ['S']
    """

    def __init__(self, operators: Mapping[str, Maker] = OPERATOR_LISTS) -> None:
        self._operators = dict(operators)
        # Empty lists, used to read operands.
        self._readers = {operator: maker() for operator, maker in operators.items()}
        self._clear()

    def _clear(self) -> None:
        self.frequency: Counter[str] = Counter()
        self._predicates: dict[Hashable, tuple[Predicate, ...]] = {}
        self._sizes: dict[str, list[int]] = {}
        self._lists: dict[str, dict[str, OperatorList]] = {}
        # Pivot -> attribute -> operators in use there, so that an event visits no list in vain.
        self._asked: dict[str, dict[str, dict[str, OperatorList]]] = {}
        self._always: dict[Hashable, None] = {}
        self._counter_of: dict[Hashable, tuple[str, int]] = {}
        self._entries = 0
        self._dead = 0

    def __len__(self) -> int:
        return len(self._predicates)

    def __contains__(self, sid: Hashable) -> bool:
        return sid in self._predicates

    # -- inserting and deleting

    def insert_many(self, subscriptions: Mapping[Hashable, Sequence[Predicate]]) -> None:
        """Algorithm 1 for new subscriptions, once all their attributes are counted. All are inserted, or none.

        Raises
        ------
        DuplicateIdError
            If an id exists already.
        ExpressionError
            If an operator does not exist, or an operand does not fit its operator.
        """
        for sid in subscriptions:
            if sid in self:
                raise DuplicateIdError(sid)
        self._insert({sid: self._read(sid, predicates) for sid, predicates in subscriptions.items()})

    def replace(self, sid: Hashable, predicates: Sequence[Predicate]) -> None:
        """Replace the predicates of a subscription, which may be new."""
        read = self._read(sid, predicates)
        if sid in self:
            self.delete(sid)
        self._insert({sid: read})

    def _read(self, sid: Hashable, predicates: Sequence[Predicate]) -> tuple[Predicate, ...]:
        """Predicates with operands in the form that lists use."""
        read = []
        for attribute, operator, operand in predicates:
            reader = self._readers.get(operator)
            if reader is None:
                known = sorted(self._readers)
                close = did_you_mean(operator, known)
                raise ExpressionError(
                    f"no operator {shortened(operator)}{close}; the operators are: {', '.join(known)}", subscription=sid
                )
            if not isinstance(attribute, str):
                raise ExpressionError(
                    f"an attribute's name must be a string, not {shortened(attribute)}", subscription=sid
                )
            try:
                read.append(Predicate(attribute, operator, reader.read(operand)))
            except ExpressionError as error:
                error.subscription = sid
                raise
        return tuple(read)

    def _insert(self, subscriptions: Mapping[Hashable, tuple[Predicate, ...]]) -> None:
        for predicates in subscriptions.values():
            self.frequency.update({predicate.attribute for predicate in predicates})
        for sid, predicates in subscriptions.items():
            self._predicates[sid] = predicates
            if predicates:
                self._enter(sid, predicates)
            else:
                self._always[sid] = None

    def _enter(self, sid: Hashable, predicates: tuple[Predicate, ...]) -> None:
        """Put predicates into the lists of their pivot."""
        pivot = self.pivot_of(predicates)
        sizes, lists = self._sizes.setdefault(pivot, []), self._lists.setdefault(pivot, {})
        for attribute, operator, operand in predicates:
            if operator not in lists:
                lists[operator] = self._operators[operator]()
            lists[operator].insert(NewItem(len(sizes), sid, attribute, operand))
            self._asked.setdefault(pivot, {}).setdefault(attribute, {})[operator] = lists[operator]
        self._counter_of[sid] = pivot, len(sizes)
        sizes.append(len(predicates))
        self._entries += len(predicates)

    def pivot_of(self, predicates: Sequence[Predicate]) -> str:
        """The least frequent attribute; of several, the one that is written first."""
        return min((predicate.attribute for predicate in predicates), key=self.frequency.__getitem__)

    def delete(self, sid: Hashable) -> None:
        """Drop a subscription.

        Raises
        ------
        UnknownIdError
        """
        if sid not in self:
            raise UnknownIdError(sid)
        for attribute in {predicate.attribute for predicate in self._predicates.pop(sid)}:
            self.frequency[attribute] -= 1
            if not self.frequency[attribute]:
                del self.frequency[attribute]
        counter = self._counter_of.pop(sid, None)
        if counter is None:
            del self._always[sid]
        else:
            self._sizes[counter[0]][counter[1]] = DEAD
            self._dead += 1
        if not self._predicates or self._dead > max(len(self), _FEWEST_DEAD):
            alive = self._predicates
            self._clear()
            self._insert(alive)

    # -- matching

    def match(self, event: Mapping[str, Any]) -> list[Hashable]:
        """Algorithm 2: the subscriptions that are true of an event."""
        there = {attribute: value for attribute, value in event.items() if not is_missing(value)}
        result = list(self._always)
        for pivot in there:
            asked = self._asked.get(pivot)
            if asked is None:
                continue
            counter = self._sizes[pivot].copy()
            for attribute, value in there.items():
                for held in asked.get(attribute, {}).values():
                    held.match_sub(attribute, value, counter, result)
        return result

    # -- telling

    def list_of(self, pivot: str, operator: str) -> OperatorList:
        """L(pivot, operator)."""
        return self._lists[pivot][operator]

    def stats(self) -> dict[str, int]:
        """Figures about the index; `bytes` are those of all objects that it holds, operands and ids among them."""
        held = {name: value for name, value in vars(self).items() if name not in ("_operators", "_readers")}
        return {
            "subscriptions": len(self),
            "bytes": _bytes_of(held),
            "pivots": len(self._sizes),
            "lists": sum(map(len, self._lists.values())),
            "entries": self._entries,
            "always": len(self._always),
            "dead": self._dead,
        }

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        counted = Counter(attribute for held in self._predicates.values() for attribute in {each[0] for each in held})
        assert counted == self.frequency
        assert self._counter_of.keys() | self._always.keys() == self._predicates.keys()
        assert len(self._counter_of) + len(self._always) == len(self)
        for sid, (pivot, place) in self._counter_of.items():
            assert self._sizes[pivot][place] == len(self._predicates[sid])
            for attribute, operator, _ in self._predicates[sid]:
                assert self._asked[pivot][attribute][operator] is self._lists[pivot][operator]
        assert len(set(self._counter_of.values())) == len(self._counter_of)
        assert sum(sizes.count(DEAD) for sizes in self._sizes.values()) == self._dead
        assert sum(map(len, self._sizes.values())) == len(self._counter_of) + self._dead
        for held in (held for lists in self._lists.values() for held in lists.values()):
            if isinstance(held, CountingList):
                held.check()


def _bytes_of(held: Any) -> int:
    """The bytes of an object and of all objects that it refers to, except types, each counted once."""
    seen: dict[int, Any] = {}
    found = [held]
    while found:
        each = found.pop()
        if id(each) not in seen and not isinstance(each, type):
            seen[id(each)] = each
            found.extend(gc.get_referents(each))
    return sum(map(sys.getsizeof, seen.values()))
