"""Bloom signatures of leaves: sets of conjunctions with false positives, but no false negatives (section 5.1).

    leaf      0     1     2
    begin     1     0     5         where its words begin; 0: the word that is always empty
    bits      256   64    64        how many there are, a power of two
    words     0 ....................  64 bits each

A predicate that covers many leaves covers whole blocks of leaves (see `blocks`). These have signatures too. A conjunction enters
the signatures of the largest blocks that its predicate covers, and of single leaves only at the ends of the predicate: a few
signatures, not one for each leaf. A leaf has the conjunctions of its own signature, and of those of its blocks.

A signature for n conjunctions has at least `bits_per_id` times n bits; each conjunction sets `hashes` bits. A conjunction cannot
be removed: its stale bits let others pass in vain, until all signatures are made again. Blocks are made with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import WORD, has_bit, set_bit
from tamis.kernels.growing import GrowingArray
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel, merged
from tamis.kernels.numbers import I64, U64, UP, I32s, I64s, U64s
from tamis.papers.ps_tree.blocks import BlockArrays, Blocks, unit_at
from tamis.papers.ps_tree.covering import ForestArrays, Gathered, first_leaf, range_of, ranges_of
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.nodes import NONE

_EMPTY = 0
"""Where the words of an empty signature begin."""


class Filters(NamedTuple):
    """Where the words of signatures are."""

    begin: I64s
    bits: I32s


class SignatureArrays(NamedTuple):
    """Signatures as kernels take them."""

    leaf: Filters
    block: Filters
    blocks: BlockArrays
    words: U64s
    hashes: int


class Signatures:
    """The signatures of all leaves, and of blocks of leaves."""

    def __init__(self, bits_per_id: int, hashes: int) -> None:
        self._bits_per_id, self._hashes = bits_per_id, hashes
        self._begin, self._bits = GrowingArray(np.int64), GrowingArray(np.int32)
        self._blocks = Blocks()
        self._of_block = Filters(np.zeros(0, np.int64), np.zeros(0, np.int32))
        self._words = GrowingArray(np.uint64, room=1)
        self._words.grow(1, fill=0)
        self._used = 1

    @property
    def nbytes(self) -> int:
        arrays = (self._begin, self._bits, self._words, *self._of_block)
        return sum(array.nbytes for array in arrays) + self._blocks.nbytes

    def view(self) -> SignatureArrays:
        leaf = Filters(self._begin.view(), self._bits.view())
        return SignatureArrays(leaf, self._of_block, self._blocks.view(), self._words.view(), self._hashes)

    def reserve(self, leaves: int) -> None:
        """Make room for `leaves` leaves."""
        missing = max(0, leaves - len(self._begin))
        self._begin.grow(missing, fill=_EMPTY)
        self._bits.grow(missing, fill=WORD)
        self._blocks.reserve(leaves)

    def make(self, forest: ForestArrays, gathered: Gathered, signed: I64s) -> int:
        """Replace all signatures by those of some gathered predicates; returns how many signatures these enter."""
        self._blocks.make(forest.flat)
        of_leaf, of_block = np.zeros(len(self._begin), np.int64), np.zeros(len(self._blocks), np.int64)
        total = _count(forest, self._blocks.view(), gathered, signed, of_leaf, of_block)
        leaf, words = _sized(of_leaf, 1, self._bits_per_id)
        self._of_block, words = _sized(of_block, words, self._bits_per_id)
        self._begin, self._bits = GrowingArray.of(leaf.begin), GrowingArray.of(leaf.bits)
        self._words = GrowingArray(np.uint64, room=words)
        self._words.grow(words, fill=0)
        self._used = words
        self.enter(forest, gathered, signed)
        return int(total)

    def enter(self, forest: ForestArrays, gathered: Gathered, signed: I64s) -> int:
        """Enter the conjunctions of some gathered predicates; returns how many signatures they entered."""
        done, total = 0, 0
        while True:
            done, entered, self._used = _enter(forest, self.view(), gathered, signed, done, self._used)
            total += entered
            if done == len(signed):
                return total
            # Signatures without words get one each. To enter a predicate again, from its beginning, changes nothing.
            self._words.grow(len(self._words), fill=0)

    def count(self, forest: ForestArrays, gathered: Gathered, signed: I64s) -> int:
        """How many signatures some gathered predicates are in."""
        nowhere = np.zeros(0, np.int64)
        return int(_count(forest, self._blocks.view(), gathered, signed, nowhere, nowhere))

    def split(self, log: Log) -> None:
        """Copy the signatures of split leaves to the new leaves."""
        self._blocks.split(log)
        if self._used == 1:
            return
        begin, bits = self._begin.view(), self._bits.view()
        for old, new in zip(log.first.tolist(), log.second.tolist(), strict=True):
            begin[new], bits[new] = begin[old], bits[old]
            if begin[old] != _EMPTY:
                count = int(bits[old]) // WORD
                self._words.grow(max(0, self._used + count - len(self._words)), fill=0)
                words = self._words.view()
                words[self._used : self._used + count] = words[begin[old] : begin[old] + count]
                begin[new] = self._used
                self._used += count

    def merge(self, log: Log) -> None:
        """Drop the signatures of leaves that are gone: live conjunctions are in those of the remaining leaves, too."""
        self._blocks.merge(log)
        self._begin.view()[log.first] = _EMPTY
        self._bits.view()[log.first] = WORD

    def contains(self, leaf: int, conjunction: int) -> bool:
        """Whether a conjunction may be in the signature of a leaf, or of its blocks."""
        return bool(_contains(self.view(), leaf, conjunction))


def _sized(ids: I64s, begin: int, bits_per_id: int) -> tuple[Filters, int]:
    """Signatures for as many conjunctions, with words from `begin` on; and where their words end."""
    bits = np.full(len(ids), WORD, np.int64)
    used = np.flatnonzero(ids)
    needed = np.maximum(ids[used] * bits_per_id, WORD)
    bits[used] = np.left_shift(1, np.ceil(np.log2(needed)).astype(np.int64))
    ends = begin + np.cumsum(bits[used] // WORD)
    begins = np.full(len(ids), _EMPTY, np.int64)
    begins[used] = ends - bits[used] // WORD
    return Filters(begins, bits.astype(np.int32)), int(ends[-1]) if len(used) else begin


@inlined
def hash_of(conjunction: int) -> np.uint64:
    """64 well-mixed bits."""
    return fold(SEED, U64(I64(conjunction)))


@inlined
def _step(mixed: np.uint64) -> np.uint64:
    """The distance between the bits of a conjunction. It is odd, so these bits differ."""
    return (mixed >> U64(32)) | U64(1)


@inlined
def _is_in(filters: Filters, number: int, words: U64s, hashes: int, mixed: np.uint64) -> bool:
    """Whether a signature may have the conjunction with this hash."""
    first, mask, step = U64(WORD * filters.begin[UP(number)]), U64(filters.bits[UP(number)] - 1), _step(mixed)
    for _ in range(hashes):
        if not has_bit(words, first + (mixed & mask)):
            return False
        mixed += step
    return True


@inlined
def is_signed(signatures: SignatureArrays, leaf: int, mixed: np.uint64) -> bool:
    """Whether the signature of a leaf, or of its blocks, may have the conjunction with this hash."""
    if _is_in(signatures.leaf, leaf, signatures.words, signatures.hashes, mixed):
        return True
    b = signatures.blocks.of_leaf[UP(leaf)]
    while b != NONE:
        if _is_in(signatures.block, b, signatures.words, signatures.hashes, mixed):
            return True
        b = signatures.blocks.up[UP(b)]
    return False


@lean_kernel
def _contains(signatures: SignatureArrays, leaf: int, conjunction: int) -> bool:
    return is_signed(signatures, leaf, hash_of(conjunction))


@lean_kernel
def _count(
    forest: ForestArrays, blocks: BlockArrays, gathered: Gathered, signed: I64s, of_leaf: I64s, of_block: I64s
) -> int:
    """Count the signatures of predicates, and the predicates in each signature if there is room for these counts."""
    leaves, predicates, total = forest.trees.leaves, gathered.predicates, 0
    for p in signed:
        for number in range(ranges_of(predicates, p)):
            lo, hi = range_of(predicates, p, number)
            if lo > hi:
                continue
            leaf = first_leaf(forest, predicates.dimension[p], lo)
            while leaf != NONE and leaves.lo[leaf] <= hi:
                block, behind = unit_at(blocks, leaves, leaf, hi)
                total += 1
                if block != NONE and len(of_block):
                    of_block[block] += 1
                elif block == NONE and len(of_leaf):
                    of_leaf[leaf] += 1
                leaf = behind
    return total


@lean_kernel
def _enter(
    forest: ForestArrays, signatures: SignatureArrays, gathered: Gathered, signed: I64s, done: int, used: int
) -> tuple[int, int, int]:
    """Enter predicates from `done` on, until one of them finds no room for a new signature.

    Returns the first that is not entered, how many signatures the others entered, and how many words are in use.
    """
    leaves, predicates, total = forest.trees.leaves, gathered.predicates, 0
    for i in range(done, len(signed)):
        p, entered = signed[i], 0
        mixed = hash_of(gathered.owner[p])
        for number in range(ranges_of(predicates, p)):
            lo, hi = range_of(predicates, p, number)
            if lo > hi:
                continue
            leaf = first_leaf(forest, predicates.dimension[p], lo)
            while leaf != NONE and leaves.lo[leaf] <= hi:
                block, behind = unit_at(signatures.blocks, leaves, leaf, hi)
                filters, unit = (signatures.leaf, leaf) if block == NONE else (signatures.block, block)
                if filters.begin[unit] == _EMPTY:
                    if used == len(signatures.words):
                        return i, total, used
                    filters.begin[unit], filters.bits[unit] = used, WORD
                    used += 1
                _set_bits(filters, unit, signatures, mixed)
                entered += 1
                leaf = behind
        total += entered
    return len(signed), total, used


@merged
def _set_bits(filters: Filters, number: int, signatures: SignatureArrays, mixed: np.uint64) -> None:
    first, mask, step = U64(WORD * filters.begin[number]), U64(filters.bits[number] - 1), _step(mixed)
    for _ in range(signatures.hashes):
        set_bit(signatures.words, first + (mixed & mask))
        mixed += step
