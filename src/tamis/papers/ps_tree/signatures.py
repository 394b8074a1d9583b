"""Bloom signatures of leaves: sets of conjunctions with false positives, but no false negatives (section 5.1).

    leaf    0     1     2
    begin   0     NONE  4         where its words begin; NONE: no conjunction
    bits    256         64        how many there are, a power of two
    words   ....................  64 bits each

A signature for n conjunctions has at least `bits_per_id` times n bits; each conjunction sets `hashes` bits. A conjunction cannot
be removed: its stale bits let others pass in vain, until all signatures are made again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.bits import WORD, has_bit, set_bit
from tamis.kernels.growing import GrowingArray
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP, I32s, I64s, U64s
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.nodes import NONE


class SignatureArrays(NamedTuple):
    """Signatures as kernels take them."""

    begin: I64s
    bits: I64s
    words: U64s
    hashes: int


class Signatures:
    """The signatures of all leaves."""

    def __init__(self, bits_per_id: int, hashes: int) -> None:
        self._bits_per_id, self._hashes = bits_per_id, hashes
        self.clear()

    def clear(self) -> None:
        self._begin = GrowingArray(np.int64)
        self._bits = GrowingArray(np.int64)
        self._words = GrowingArray(np.uint64)

    @property
    def nbytes(self) -> int:
        return self._begin.nbytes + self._bits.nbytes + self._words.nbytes

    def view(self) -> SignatureArrays:
        return SignatureArrays(self._begin.view(), self._bits.view(), self._words.view(), self._hashes)

    def reserve(self, leaves: int) -> None:
        """Make room for `leaves` leaves."""
        missing = leaves - len(self._begin)
        if missing > 0:
            self._begin.grow(missing, fill=NONE)
            self._bits.grow(missing, fill=0)

    def make_room(self, ids: I64s) -> None:
        """Replace all signatures by empty ones, sized for `ids[i]` conjunctions in leaf i."""
        self.clear()
        self.reserve(len(ids))
        used = ids > 0
        needed = np.maximum(ids[used] * self._bits_per_id, WORD)
        bits = np.left_shift(1, np.ceil(np.log2(needed)).astype(np.int64))
        self._bits.view()[used] = bits
        words = np.append(0, np.cumsum(bits // WORD))
        self._begin.view()[used] = words[:-1]
        self._words = GrowingArray(np.uint64, room=max(int(words[-1]), 1))
        self._words.grow(int(words[-1]), fill=0)

    def enter(self, leaves: I64s, conjunctions: I32s) -> None:
        """Enter a conjunction in the signature of each leaf; a leaf without a signature gets the smallest one."""
        bare = np.unique(leaves[self._begin.view()[leaves] == NONE])
        self._begin.view()[bare] = len(self._words) + np.arange(len(bare))
        self._bits.view()[bare] = WORD
        self._words.grow(len(bare), fill=0)
        _enter(self.view(), leaves, conjunctions)

    def split(self, log: Log) -> None:
        """Copy the signatures of split leaves to the new leaves."""
        if not len(self._words):
            return
        begin, bits = self._begin.view(), self._bits.view()
        for old, new in zip(log.first.tolist(), log.second.tolist(), strict=True):
            bits[new], begin[new] = bits[old], NONE
            if begin[old] != NONE:
                begin[new] = len(self._words)
                count = int(bits[old]) // WORD
                copied = self._words.grow(count)
                copied[:] = self._words.view()[begin[old] : begin[old] + count]

    def merge(self, log: Log) -> None:
        """Drop the signatures of leaves that are gone. The remaining signature keeps the bits that both leaves had."""
        begin, bits, words = self._begin.view(), self._bits.view(), self._words.view()
        for gone, kept in zip(log.first.tolist(), log.second.tolist(), strict=True):
            if begin[gone] == NONE:
                begin[kept] = NONE
            elif begin[kept] != NONE and bits[gone] == bits[kept]:
                count = int(bits[kept]) // WORD
                words[begin[kept] : begin[kept] + count] &= words[begin[gone] : begin[gone] + count]
            begin[gone] = NONE

    def contains(self, leaf: int, conjunction: int) -> bool:
        """Whether a conjunction may be in the signature of a leaf."""
        return bool(_contains(self.view(), leaf, conjunction))


@inlined
def hash_of(conjunction: int) -> np.uint64:
    """64 well-mixed bits."""
    return fold(SEED, U64(I64(conjunction)))


@inlined
def _step(mixed: np.uint64) -> np.uint64:
    """The distance between the bits of a conjunction. It is odd, so these bits differ."""
    return (mixed >> U64(32)) | U64(1)


@inlined
def is_in(signatures: SignatureArrays, leaf: int, mixed: np.uint64) -> bool:
    """Whether a conjunction of this hash may be in the signature of a leaf that has one."""
    begin, words = signatures.begin[UP(leaf)], signatures.words
    step, mask = _step(mixed), U64(signatures.bits[UP(leaf)] - 1)
    for _ in range(signatures.hashes):
        bit = mixed & mask
        if not has_bit(words, U64(WORD * begin) + bit):
            return False
        mixed += step
    return True


@lean_kernel
def _enter(signatures: SignatureArrays, leaves: I64s, conjunctions: I32s) -> None:
    begin, bits, words = signatures.begin, signatures.bits, signatures.words
    for i in range(len(leaves)):
        leaf = leaves[i]
        mixed = hash_of(conjunctions[i])
        step, mask = _step(mixed), U64(bits[leaf] - 1)
        for _ in range(signatures.hashes):
            bit = mixed & mask
            set_bit(words, U64(WORD * begin[leaf]) + bit)
            mixed += step


@lean_kernel
def _contains(signatures: SignatureArrays, leaf: int, conjunction: int) -> bool:
    return signatures.begin[leaf] != NONE and is_in(signatures, leaf, hash_of(conjunction))
