"""What every index must find, computed in the simplest way, for random conjunctions and events in keys."""

from __future__ import annotations

import random

import numpy as np

from tamis.encoding.dimensions.intervals import EVERYTHING, Intervals, union
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import predicates_of

Event = dict[int, list[tuple[int, int]]]
"""Dimension -> the key intervals of its values."""


def holds(leaf: Leaf, event: Event) -> bool:
    values = event.get(leaf.dimension, [])
    if leaf.mode is Mode.ABSENT:
        return not values
    some = any(lo <= high and low <= hi for low, high in values for lo, hi in leaf.intervals)
    return bool(values) and some is (leaf.mode is Mode.SOME)


def matching(clauses: dict[int, list[Leaf]], events: list[Event]) -> set[tuple[int, int]]:
    """Pairs of event row and conjunction."""
    return {
        (row, number)
        for row, event in enumerate(events)
        for number, clause in clauses.items()
        if all(holds(leaf, event) for leaf in clause)
    }


def rows_of(clauses: list[list[Leaf]]) -> Conjunctions:
    start = np.append(0, np.cumsum([len(clause) for clause in clauses])).astype(np.int64)
    return Conjunctions(start, predicates_of(leaf for clause in clauses for leaf in clause))


def batch_of(events: list[Event]) -> EventBatch:
    start, dimension, lo, hi = [0], [], [], []
    for event in events:
        for number, values in event.items():
            for low, high in values:
                dimension.append(number)
                lo.append(low)
                hi.append(high)
        start.append(len(lo))
    return EventBatch(
        np.array(start, np.int64), np.array(dimension, np.int32), np.array(lo, np.int64), np.array(hi, np.int64)
    )


class RandomKeys:
    """Random conjunctions and events over a few dimensions and keys."""

    def __init__(self, seed: int, dimensions: int = 6, keys: int = 12) -> None:
        self._random = random.Random(seed)
        self.dimensions = dimensions
        self._keys = keys

    def intervals(self) -> Intervals:
        parts = []
        for _ in range(self._random.choice([1, 1, 1, 2, 5])):
            lo = self._random.randrange(self._keys)
            hi = lo if self._random.random() < 0.5 else self._random.randint(lo, self._keys)
            lo = -(2**63) if self._random.random() < 0.1 else lo
            hi = 2**63 - 1 if self._random.random() < 0.1 else hi
            parts.append(((lo, hi),))
        return union(parts)

    def clause(self) -> list[Leaf]:
        leaves = []
        for _ in range(self._random.choice([0, 1, 1, 2, 2, 3, 5])):
            mode = self._random.choices([Mode.SOME, Mode.NONE, Mode.ABSENT], [7, 2, 1])[0]
            dimension = self._random.randrange(self.dimensions)
            intervals = () if mode is Mode.ABSENT else self.intervals()
            # NONE of everything is FALSE, and conjunctions never contain FALSE.
            leaves.append(Leaf(dimension, Mode.SOME if intervals == EVERYTHING else mode, intervals))
        return leaves

    def clauses(self, count: int) -> list[list[Leaf]]:
        """Distinct conjunctions."""
        found: dict[frozenset[Leaf], list[Leaf]] = {}
        while len(found) < count:
            clause = self.clause()
            found[frozenset(clause)] = clause
        return list(found.values())

    def event(self, *, several: bool = True, intervals: bool = True) -> Event:
        event: Event = {}
        for dimension in range(self.dimensions):
            if self._random.random() < 0.7:
                count = self._random.choice([1, 1, 1, 2, 4]) if several else 1
                event[dimension] = [self._value(intervals) for _ in range(count)]
        return event

    def _value(self, intervals: bool) -> tuple[int, int]:
        lo = self._random.randrange(self._keys)
        return (lo, self._random.randint(lo, self._keys)) if intervals and self._random.random() < 0.2 else (lo, lo)
