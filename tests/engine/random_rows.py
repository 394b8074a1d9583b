"""Random conjunctions and events in keys. Their shapes cover the special cases of segments."""

from __future__ import annotations

import random
from typing import NamedTuple

from tamis.encoding.dimensions.intervals import Intervals, union
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, double_code
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tests.papers.naive import Event


class Shape(NamedTuple):
    """The parameters of random rows."""

    rows: int
    dimensions: int
    values: int
    """The number of values from which constants and events are drawn."""
    longest: int
    """The most predicates of a conjunction. One in twenty has 30."""
    several: float
    """The probability that an attribute has several values. A value is an interval with half of this probability."""
    step: float
    """The distance of the doubles whose codes are the keys. 0: keys are small integers."""


def random_shape(chance: random.Random) -> Shape:
    return Shape(
        rows=chance.choice([1, 30, 300, 1500]),
        dimensions=chance.choice([1, 3, 10, 40]),
        values=chance.choice([3, 20, 60, 400, 3000]),
        longest=chance.choice([2, 4, 8]),
        several=chance.choice([0.0, 0.0, 0.3]),
        step=chance.choice([0.0, 1.0, 0.37]),
    )


class RandomRows:
    """Random conjunctions and events of a shape."""

    def __init__(self, seed: int, shape: Shape) -> None:
        self._random = random.Random(seed)
        self.shape = shape

    def key(self, value: float) -> int:
        return double_code(value * self.shape.step) if self.shape.step else int(2 * value) - 3

    def leaf(self, dimension: int) -> Leaf:
        mode = self._random.choices([Mode.SOME, Mode.NONE, Mode.ABSENT], [5, 2, 1])[0]
        intervals = () if mode is Mode.ABSENT else self._intervals()
        if mode is Mode.NONE and intervals == ((KEY_MIN, KEY_MAX),):
            mode = Mode.SOME
        return Leaf(dimension, mode, intervals)

    def _intervals(self) -> Intervals:
        chance, values = self._random, self.shape.values
        value = chance.randrange(values)
        key, nudge = self.key(value), chance.randrange(2)
        kind = chance.choices(["point", "below", "above", "band", "set", "all"], [35, 15, 15, 15, 17, 3])[0]
        if kind == "point":
            return ((key, key),)
        if kind == "below":
            return ((KEY_MIN, key - nudge),)
        if kind == "above":
            return ((key + nudge, KEY_MAX),)
        if kind == "band":
            return ((key, self.key(value + chance.randrange(max(2, values // 4)))),)
        if kind == "set":
            keys = {self.key(chance.randrange(values)) for _ in range(chance.choice([2, 3, 5, 8, 20]))}
            return union([((each, each),) for each in keys])
        return ((KEY_MIN, KEY_MAX),)

    def clause(self) -> list[Leaf]:
        size = self._random.randint(0, self.shape.longest) if self._random.random() < 0.95 else 30
        return [self.leaf(self._random.randrange(self.shape.dimensions)) for _ in range(size)]

    def clauses(self) -> list[list[Leaf]]:
        return [self.clause() for _ in range(self.shape.rows)]

    def event(self) -> Event:
        """An event. Some of its attributes are in no conjunction."""
        known = self.shape.dimensions + 2
        return {
            dimension: self._values() for dimension in self._random.sample(range(known), self._random.randint(0, known))
        }

    def _values(self) -> list[tuple[int, int]]:
        count = self._random.randint(1, 3) if self._random.random() < self.shape.several else 1
        return [self._value() for _ in range(count)]

    def _value(self) -> tuple[int, int]:
        value = float(self._random.randint(-1, self.shape.values + 1))
        value += 0.5 if self._random.random() < 0.1 else 0.0
        wide = self._random.randrange(5) if self._random.random() < self.shape.several / 2 else 0
        return self.key(value), self.key(value + wide)
