"""Blocks of leaves: what covers many leaves covers whole blocks, and only few leaves at its ends.

    leaf        0  1  2  3  4  5  6  7  8         in the order of a tree; here with a FAN_OUT of 2
    of_leaf     0  0  1  1  2  2  3  3  4         leaf -> its block
    up          5  5  6  6  7 | 8  8  9 | ..      block -> the block of blocks that it is in, NONE at the top
    first       0  2  4  6  8 | 0  4  8 | ..      block -> its first leaf; NONE if it has no leaves any more
    after       1  2  3  4  - | 6  7  - | ..      block -> the block behind it, of as many leaves

    range over leaves 1 to 7:  leaf 1, block 1, block 6

Blocks are made for all trees at once. A leaf that is cut later is in the block of the leaf that it is cut from. Leaves of trees
with few leaves, and of later trees, are in no block.

Invariant: the leaves of a block are in a row, from its first to the leaf below the first of the next block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import UP, I32s
from tamis.papers.ps_tree.covering import Flat
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.nodes import NONE, LeafArrays

FAN_OUT = 16
"""Leaves, or blocks, in a block when it is made."""
_MOST_ALONE = 2 * FAN_OUT
"""Leaves, or blocks, up to which there are no blocks of them."""


class BlockArrays(NamedTuple):
    """Blocks as kernels take them."""

    of_leaf: I32s
    up: I32s
    first: I32s
    after: I32s


class Blocks:
    """The blocks of all leaves."""

    def __init__(self) -> None:
        self._of_leaf = GrowingArray(np.int32)
        self._up, self._first, self._after = (np.zeros(0, np.int32) for _ in range(3))

    def __len__(self) -> int:
        return len(self._up)

    @property
    def nbytes(self) -> int:
        return self._of_leaf.nbytes + self._up.nbytes + self._first.nbytes + self._after.nbytes

    def view(self) -> BlockArrays:
        return BlockArrays(self._of_leaf.view(), self._up, self._first, self._after)

    def reserve(self, leaves: int) -> None:
        """Make room for `leaves` leaves. New ones are in no block."""
        self._of_leaf.grow(max(0, leaves - len(self._of_leaf)), fill=NONE)

    def make(self, flat: Flat) -> None:
        """Replace all blocks by blocks of the present leaves."""
        self._of_leaf.view()[:] = NONE
        units, count = np.diff(flat.start), 0
        while len(units := units[units > _MOST_ALONE]):
            units = -(-units // FAN_OUT)
            count += int(units.sum())
        self._up, self._first, self._after = (np.full(count, NONE, np.int32) for _ in range(3))
        _make(flat, self.view())

    def split(self, log: Log) -> None:
        """Put leaves that were cut into the blocks of the leaves that they were cut from."""
        if len(self):
            _split(self.view(), log)

    def merge(self, log: Log) -> None:
        """Take leaves that are gone out of their blocks."""
        if len(self):
            _merge(self.view(), log)


@lean_kernel
def _make(flat: Flat, blocks: BlockArrays) -> None:
    count = 0
    for d in range(len(flat.start) - 1):
        begin, units, below = flat.start[d], flat.start[d + 1] - flat.start[d], NONE
        while units > _MOST_ALONE:
            for i in range(units):
                b = count + i // FAN_OUT
                if below == NONE:
                    leaf = flat.leaf[begin + i]
                    blocks.of_leaf[leaf] = b
                else:
                    leaf = blocks.first[below + i]
                    blocks.up[below + i] = b
                if i % FAN_OUT == 0:
                    blocks.first[b] = leaf
                    blocks.after[b] = b + 1 if i + FAN_OUT < units else NONE
            below, units = count, (units + FAN_OUT - 1) // FAN_OUT
            count += units


@lean_kernel
def _split(blocks: BlockArrays, log: Log) -> None:
    for i in range(len(log.first)):
        old, new = log.first[i], log.second[i]
        b = blocks.of_leaf[old]
        blocks.of_leaf[new] = b
        while b != NONE and blocks.first[b] == old:  # the new leaf is below the old one
            blocks.first[b] = new
            b = blocks.up[b]


@lean_kernel
def _merge(blocks: BlockArrays, log: Log) -> None:
    for i in range(len(log.first)):
        gone, kept = log.first[i], log.second[i]
        b, other = blocks.of_leaf[gone], blocks.of_leaf[kept]
        while b != NONE and blocks.first[b] == gone:  # the leaf that remains is above the other one
            blocks.first[b] = kept if b == other else NONE
            b, other = blocks.up[b], blocks.up[other]
        blocks.of_leaf[gone] = NONE


@inlined
def unit_at(blocks: BlockArrays, leaves: LeafArrays, leaf: int, hi: int) -> tuple[int, int]:
    """The largest block that begins with a leaf and lies within a range up to `hi`, NONE if none does; and the leaf behind.

    Without a block, it is the leaf behind the given one.
    """
    largest, behind, b = NONE, leaves.next[leaf], blocks.of_leaf[leaf]
    while b != NONE and blocks.first[UP(b)] == leaf:
        a = blocks.after[UP(b)]
        while a != NONE and blocks.first[UP(a)] == NONE:
            a = blocks.after[UP(a)]
        beyond = NONE if a == NONE else blocks.first[UP(a)]
        if hi != KEY_MAX and (beyond == NONE or leaves.lo[beyond] > hi + 1):
            break
        largest, behind, b = b, beyond, blocks.up[UP(b)]
    return largest, behind
