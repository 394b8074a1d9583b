"""Predicates in keys: a dimension, a mode and a set of key intervals."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from tamis.encoding.dimensions.intervals import EVERYTHING, NOTHING, Intervals
from tamis.language.expression import FALSE, Expression


class Mode(IntEnum):
    """What a leaf says of the event's keys in its dimension.

    On one scalar value, NONE of a set is SOME of its complement; on several values it is not.
    """

    SOME = 0
    """Some key lies in the intervals."""
    NONE = 1
    """There are keys, and none lies in the intervals."""
    ABSENT = 2
    """There is no key."""


class Leaf(Expression):
    """A predicate in keys. It is an expression, so the trees that hold it are built of And and Or like any other."""

    __slots__ = ("dimension", "intervals", "mode")

    def __init__(self, dimension: int, mode: Mode, intervals: Intervals) -> None:
        self.dimension = dimension
        self.mode = mode
        self.intervals = intervals
        self.depth = 1
        self.operands = ()

    def _identity(self) -> Any:
        return (self.dimension, self.mode, self.intervals)

    def __str__(self) -> str:
        return f"#{self.dimension} {self.mode.name} {self.intervals}"


def leaf(dimension: int, mode: Mode, intervals: Intervals) -> Expression:
    """The leaf in its one canonical form; FALSE when nothing can satisfy it."""
    if mode is Mode.SOME and intervals == NOTHING:
        return FALSE
    if mode is Mode.NONE:
        if intervals == EVERYTHING:
            return FALSE
        if intervals == NOTHING:
            return Leaf(dimension, Mode.SOME, EVERYTHING)
    return Leaf(dimension, mode, intervals)
