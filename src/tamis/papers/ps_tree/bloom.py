"""`pst-bloom`: lists of leaves by the most selective predicate, Bloom signatures of leaves by the others (PSTBloom).

S. Ji, H.-A. Jacobsen: PS-Tree-based Efficient Boolean Expression Matching for High-Dimensional and Dense Workloads. PVLDB
12(3), 2018: section 5, with the trees of section 4 and the access predicates of section 3.3.

    S1  a1 < -5            a2 between 1 and 5         a1   [-128,-5)   [-5,-1]      (-1,127]
    S2  a1 between -5 -1   a2 < 1                          sig {S1}    list {S2,S3}
    S3  a1 between -5 -1   a2 > 5                     a2   [-128,1)    [1,5]        (5,127]
                                                           sig {S2}    list {S1}    sig {S3}

Its arrays are those of `lists`, and `signatures`. All predicates are inserted into trees (Alg. 4). An event meets a leaf in each
of its dimensions. A conjunction in the list of such a leaf is a candidate if, for each of its other predicates, the signature of
a leaf contains it (Alg. 5). Candidates are verified without the access predicate.

Invariants, besides those of `lists`: a conjunction is in the signatures of all leaves that its SIGNED predicates cover.

Departures from the paper, besides those of `lists`: a predicate that covers more than `most_signed` leaves is not inserted and
has no signature. In a tree of 200 leaves an average `<` would be in 100 signatures and save little. The paper does not give the
size of signatures. Here it is `bits_per_id` for every conjunction that a leaf has when signatures are made. Signatures are
made again when twice as many conjunctions are in, or half of them are stale. When two leaves merge, the signature keeps the bits
that both have: live conjunctions are in both. An event that is not single-valued reads no signatures. List entries also hold the
first signed dimension, so most of them need no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.numbers import I32s, I64s, U8s
from tamis.kernels.ranges import grouped
from tamis.papers.options import option
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.forest_index import PAPER
from tamis.papers.ps_tree.lists import ACCESS, SIGNED, ListOptions, PSTreeLists
from tamis.papers.ps_tree.signatures import Signatures

_ABSENT = int(Mode.ABSENT)
_FEWEST = 64
_AT_ONCE = 1 << 18


@dataclass(frozen=True, slots=True)
class BloomOptions(ListOptions):
    """The options of `pst-bloom`."""

    bits_per_id: int = option(8, least=1)
    """Bits in a signature for each conjunction."""
    hashes: int = option(2, least=1)
    """Bits that a conjunction sets."""
    most_signed: int = option(32, least=0)
    """Most leaves that a predicate with a signature may cover."""


class PSTBloom(PSTreeLists):
    """Conjunctions in lists and signatures of leaves."""

    name = "pst-bloom"
    summary = "predicate spaces with lists by the most selective predicate and Bloom signatures by the others"
    paper = PAPER + ", sections 3 to 5"
    options_type = BloomOptions

    def _clear(self) -> None:
        super()._clear()
        self._in, self._made_for, self._stale = 0, 0, 0

    def _new_signatures(self) -> Signatures:
        return Signatures(self.options.bits_per_id, self.options.hashes)

    def _choose(self, table: Conjunctions, order: I64s, start: I64s) -> None:
        self._role.view()[order[table.predicates.mode[order] != _ABSENT]] = SIGNED
        super()._choose(table, order, start)

    def _most(self, role: U8s) -> I64s:
        return np.where(role == ACCESS, self.options.most_leaves, self.options.most_signed)

    def _follow_splits(self, log: Log) -> None:
        super()._follow_splits(log)
        self.signatures.reserve(self.forest.leaf_numbers)
        self.signatures.split(log)

    def _follow_merges(self, log: Log) -> None:
        super()._follow_merges(log)
        self.signatures.merge(log)

    def _insert(self, conjunctions: I32s) -> None:
        super()._insert(conjunctions)
        table = self.table.view()
        chosen, _ = self._predicates_of(table, conjunctions)
        chosen = chosen[self._role.view()[chosen] == SIGNED]
        self._in += int(self.forest.covering(table.predicates, chosen).sum())
        if self._in > max(2 * self._made_for, _FEWEST):
            self._sign_anew()
        else:
            self._sign(table, chosen)

    def _sign(self, table: Conjunctions, chosen: I64s) -> None:
        """Enter the conjunctions of some predicates in the signatures of the leaves that the predicates cover."""
        owner = np.searchsorted(table.start, chosen, side="right") - 1
        for first in range(0, len(chosen), _AT_ONCE):
            part = chosen[first : first + _AT_ONCE]
            counts = self.forest.covering(table.predicates, part)
            leaves, _ = self.forest.covered(table.predicates, part, counts)
            owners = np.repeat(owner[first : first + _AT_ONCE].astype(np.int32), counts)
            self.signatures.enter(leaves, owners)

    def _sign_anew(self) -> None:
        """Make all signatures again, in the size that they need now."""
        table = self.table.view()
        chosen = np.flatnonzero(self._role.view() == SIGNED)
        # Predicates of one dimension together: their signatures are neighbours in memory.
        chosen = chosen[grouped(table.predicates.dimension[chosen])]
        # All predicates of a leaf except the access predicates, which are in its list.
        numbers = self.forest.leaf_numbers
        sizes = self.forest.view().trees.leaves.predicates[:numbers].astype(np.int64)
        sizes -= self._lists.view().size[: 2 * numbers : 2] // 2
        self.signatures.make_room(sizes)
        self._sign(table, chosen)
        self._in = self._made_for = int(sizes.sum())
        self._stale = 0

    def _delete(self, conjunctions: I32s) -> None:
        table = self.table.view()
        chosen, _ = self._predicates_of(table, conjunctions)
        chosen = chosen[self._role.view()[chosen] == SIGNED]
        self._stale += int(self.forest.covering(table.predicates, chosen).sum())
        super()._delete(conjunctions)
        if 2 * self._stale > max(self._in, _FEWEST):
            self._sign_anew()

    def stats(self) -> dict[str, Any]:
        return {**super().stats(), "signed": self._in, "signature_bytes": self.signatures.nbytes}

    def check(self) -> None:
        super().check()
        table = self.table.view()
        for p in np.flatnonzero(self._role.view() == SIGNED).tolist():
            owner = int(np.searchsorted(table.start, p, side="right")) - 1
            one = np.array([p], np.int64)
            for leaf in self.forest.covered(table.predicates, one, self.forest.covering(table.predicates, one))[0]:
                assert self.signatures.contains(int(leaf), owner)
