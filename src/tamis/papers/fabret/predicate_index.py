"""The predicate index: every distinct predicate has a bit, and is found by the keys or the intervals that it names.

    bits      the predicate bit vector                                   `bit_vector`
    points    predicates by the keys that they name: = IN <> NOT IN      `points`
    ranges    predicates by their intervals: < <= > >= BETWEEN LIKE      `ranges`

Phase 1 of the event matching algorithm, in `matching`, reads all three.
"""

from __future__ import annotations

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.bits import WORD
from tamis.kernels.numbers import I32s
from tamis.kernels.ranges import span_indices
from tamis.papers.fabret.bit_vector import FREE, LIVE, BitVector, Ids, TableNumbers
from tamis.papers.fabret.points import NOBODY, Points
from tamis.papers.fabret.ranges import Ranges, with_ranges


class PredicateIndex:
    """The distinct predicates of the conjunctions in an index."""

    def __init__(self) -> None:
        self.bits = BitVector()
        self.points = Points()
        self.ranges = Ranges()

    @property
    def nbytes(self) -> int:
        return self.bits.nbytes + self.points.nbytes + self.ranges.nbytes

    def insert(self, table: Conjunctions, conjunctions: I32s) -> Ids:
        """Take in the predicates of some conjunctions; returns their ids, conjunction after conjunction."""
        numbers = numbers_of(table, conjunctions)
        if len(numbers):
            dimensions = int(table.predicates.dimension[numbers].max()) + 1
            self.bits.cover(dimensions)
            self.ranges.cover(dimensions)
        ids, fresh = self.bits.intern(table, numbers)
        self.points.enter(table, self.bits.view().exemplar, fresh)
        self.bits.set_free(table, self.ranges.enter(table, self.bits.view(), fresh))
        return ids

    def find(self, table: Conjunctions, conjunctions: I32s) -> Ids:
        """The ids of the predicates of conjunctions in the index."""
        return self.bits.find(table, numbers_of(table, conjunctions))

    def release(self, table: Conjunctions, ids: Ids) -> None:
        """Release the predicates of conjunctions that are gone."""
        died = self.bits.release(ids)
        self.points.leave(table, self.bits.view().exemplar, died)
        self.bits.set_free(table, self.ranges.leave(table, self.bits.view(), died))

    def check(self, table: Conjunctions, conjunctions: I32s) -> None:
        """Raise an AssertionError unless this is the index of the predicates of these conjunctions."""
        bits, predicates = self.bits.view(), table.predicates
        numbers = numbers_of(table, conjunctions)
        ids = self.bits.find(table, numbers)
        assert (np.bincount(ids, minlength=len(bits.references)) == bits.references).all(), "references are counted"
        live = np.flatnonzero(bits.references)
        assert len(live) == bits.totals[LIVE] == np.count_nonzero(bits.by_hash != FREE)
        assert (bits.bits == bits.rest).all(), "between events the bits are at rest"
        retired = np.flatnonzero((bits.references == 0) & (bits.exemplar != FREE)).astype(np.int32)
        assert with_ranges(table, bits.exemplar, retired).all(), "only ranges outlive their predicates"
        points: dict[tuple[int, int], tuple[set[int], set[int]]] = {}
        absent, usual, members = set(), set(), set()
        for number in live.tolist():
            p = bits.exemplar[number]
            d, mode = int(predicates.dimension[p]), predicates.mode[p]
            of_p = slice(predicates.start[p], predicates.start[p + 1])
            ends = list(zip(predicates.lo[of_p].tolist(), predicates.hi[of_p].tolist(), strict=True))
            for lo, hi in ends:
                if lo == hi:
                    alone = len(ends) == 1 and mode == Mode.SOME
                    named = points.setdefault((d, lo), (set(), set()))
                    named[not alone].add(number if alone else 2 * number + (mode == Mode.NONE))
            if mode == Mode.ABSENT:
                absent.add((d, number))
            everything = ends == [(-(2**63), 2**63 - 1)]
            if mode == Mode.NONE or (mode == Mode.SOME and everything):
                usual.add(number)
            if not everything and any(lo != hi for lo, hi in ends):
                members.add(number)
        assert {(d, number) for d, number in enumerate(bits.absent.tolist()) if number >= 0} == absent
        resting = np.flatnonzero(np.unpackbits(bits.rest.view(np.uint8), bitorder="little"))
        assert set(resting.tolist()) == {number for _, number in absent}
        filled = set(np.flatnonzero(np.unpackbits(bits.fill.view(np.uint8), bitorder="little")).tolist())
        assert usual <= filled <= usual | set(retired.tolist())
        for d, word in enumerate(bits.block.tolist()):
            while word >= 0:
                filled -= set(range(word * WORD, word * WORD + WORD))
                of_word = bits.exemplar[word * WORD : word * WORD + WORD]
                assert (predicates.dimension[of_word[of_word != FREE]] == d).all(), "a block is of one dimension"
                word = bits.following[word]
        assert not filled, "every block is in the list of its dimension"
        assert len(self.points) == len(points)
        for (d, key), (alone, others) in points.items():
            assert self.points.named(d, key) == (next(iter(alone), NOBODY), others)
        self.ranges.check(table, bits, members, set(retired.tolist()))


def numbers_of(table: Conjunctions, conjunctions: I32s) -> TableNumbers:
    """The predicates of conjunctions, one after another."""
    return span_indices(table.start[conjunctions], table.start[conjunctions + 1] - table.start[conjunctions])
