"""Expressions that keep their tree, as jump code.

Every leaf says where to go next, if it holds and if it does not; ACCEPT and REJECT end the walk:

    a = 1 AND (b = 2 OR c = 3)        step   leaf    then     else
                                       2     a = 1   1        REJECT
                                       1     b = 2   ACCEPT   0
                                       0     c = 3   ACCEPT   REJECT

AND and OR need no stack, and what is already decided is not evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.leaf import Leaf
from tamis.encoding.expressions.predicates import GrowingPredicates, Predicates, predicates_of, taken
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I64s
from tamis.language.expression import Constant, Expression, Or

ACCEPT = -1
REJECT = -2


class Programs(NamedTuple):
    """Programs as kernels read them: a program is the number of its first step."""

    predicates: Predicates
    then: I64s
    otherwise: I64s


NO_PROGRAMS = Programs(predicates_of(()), np.zeros(0, np.int64), np.zeros(0, np.int64))


class ProgramTable:
    """All programs, one after another."""

    def __init__(self) -> None:
        self._predicates = GrowingPredicates()
        self._then = GrowingArray(np.int64)
        self._otherwise = GrowingArray(np.int64)
        self._lowest: dict[int, int] = {}
        """Program -> its lowest step; its steps are all from there to its first."""

    def __len__(self) -> int:
        return len(self._lowest)

    @property
    def nbytes(self) -> int:
        return self._predicates.nbytes + self._then.nbytes + self._otherwise.nbytes

    def view(self) -> Programs:
        return Programs(self._predicates.view(), self._then.view(), self._otherwise.view())

    def add(self, tree: Expression) -> int:
        """Add the program of a tree of leaves; returns its number."""
        steps: list[tuple[Leaf, int, int]] = []
        lowest = len(self._then)
        first = _emit(tree, ACCEPT, REJECT, lowest, steps)
        self._lowest[first] = lowest
        self._predicates.extend(predicates_of(leaf for leaf, _, _ in steps))
        self._then.extend([then for _, then, _ in steps])
        self._otherwise.extend([otherwise for _, _, otherwise in steps])
        return first

    def taken(self, programs: Iterable[int]) -> tuple[ProgramTable, dict[int, int]]:
        """Some of the programs alone, and the new number of each."""
        copied = ProgramTable()
        renumbered = {}
        steps = self.view()
        for program in programs:
            lowest = self._lowest[program]
            shift = len(copied._then) - lowest
            chosen = np.arange(lowest, program + 1)
            copied._predicates.extend(taken(steps.predicates, chosen))
            for column, targets in ((copied._then, steps.then), (copied._otherwise, steps.otherwise)):
                column.extend(np.where(targets[chosen] >= 0, targets[chosen] + shift, targets[chosen]))
            renumbered[program] = program + shift
            copied._lowest[program + shift] = lowest + shift
        return copied, renumbered

    def relabel(self, dimension: int, relabelling: Relabelling) -> None:
        self._predicates.relabel(dimension, relabelling)


def _emit(tree: Expression, then: int, otherwise: int, base: int, steps: list[tuple[Leaf, int, int]]) -> int:
    """Append the steps of a tree, last first, since a step must know where the next one is; returns its first step."""
    if isinstance(tree, Leaf):
        steps.append((tree, then, otherwise))
        return base + len(steps) - 1
    if isinstance(tree, Constant):
        return then if tree.value else otherwise
    entry = otherwise if isinstance(tree, Or) else then
    for operand in reversed(tree.operands):
        if isinstance(tree, Or):
            entry = _emit(operand, then, entry, base, steps)
        else:
            entry = _emit(operand, entry, otherwise, base, steps)
    return entry
