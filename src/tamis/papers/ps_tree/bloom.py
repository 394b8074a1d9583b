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

Invariants, besides those of `lists`: a conjunction is in the signatures of all leaves that its SIGNED predicates cover, either in
a leaf's own or in that of a block of leaves.

Departures from the paper, besides those of `lists`: a conjunction enters the signature of a block of leaves once, not those of
all its leaves. A predicate that covers more than `most_signed` leaves is not inserted and has no signature. The paper does not
give the size of signatures. Here it is `bits_per_id` for every conjunction that a leaf has when signatures are made. Signatures
are made again when twice as many conjunctions are in, or half of them are stale. When two leaves merge, the signature of the
upper one remains: live conjunctions are in both. An event that is not single-valued reads no signatures. List entries also hold
the first signed dimension, so most of them need no record.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.numbers import I32s, I64s, U8s
from tamis.papers.options import option
from tamis.papers.ps_tree.covering import Gathered, gathered
from tamis.papers.ps_tree.forest import Log
from tamis.papers.ps_tree.forest_index import PAPER
from tamis.papers.ps_tree.lists import ACCESS, SIGNED, ListOptions, PSTreeLists
from tamis.papers.ps_tree.signatures import Signatures

_ABSENT = int(Mode.ABSENT)
_FEWEST = 64


@dataclass(frozen=True, slots=True)
class BloomOptions(ListOptions):
    """The options of `pst-bloom`."""

    bits_per_id: int = option(8, least=1)
    """Bits in a signature for each conjunction."""
    hashes: int = option(2, least=1)
    """Bits that a conjunction sets."""
    most_signed: int = option(4096, least=0)
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

    def _sign(self, gathered: Gathered, inserted: I64s) -> None:
        signed = inserted[self._role.view()[gathered.source[inserted]] == SIGNED]
        if self._count == 0:
            self._make(gathered, signed)
            return
        self._in += self.signatures.enter(self.forest.whole(), gathered, signed)
        if self._in > max(2 * self._made_for, _FEWEST):
            self._sign_anew()

    def _sign_anew(self) -> None:
        """Make all signatures again, in the size that they need now."""
        table = self.table.view()
        chosen = np.flatnonzero(self._role.view() == SIGNED)
        owner = np.searchsorted(table.start, chosen, side="right") - 1
        signed = gathered(table.predicates, chosen, owner.astype(np.int32))
        self._make(signed, signed.every)

    def _make(self, gathered: Gathered, signed: I64s) -> None:
        self.forest.copy_chains()
        self._in = self._made_for = self.signatures.make(self.forest.whole(), gathered, signed)
        self._stale = 0

    def _delete(self, conjunctions: I32s) -> None:
        signed = self._gathered(self.table.view(), conjunctions, SIGNED)
        self._stale += self.signatures.count(self.forest.whole(), signed, signed.every)
        super()._delete(conjunctions)
        if 2 * self._stale > max(self._in, _FEWEST):
            self._sign_anew()

    def stats(self) -> dict[str, Any]:
        return {
            **super().stats(),
            "signed": int((self._role.view() == SIGNED).sum()),
            "signature_entries": self._in,
            "signature_bytes": self.signatures.nbytes,
        }

    def check(self) -> None:
        super().check()
        table = self.table.view()
        for p in np.flatnonzero(self._role.view() == SIGNED).tolist():
            owner = int(np.searchsorted(table.start, p, side="right")) - 1
            one = np.array([p], np.int64)
            for leaf in self.forest.covered(table.predicates, one, self.forest.covering(table.predicates, one))[0]:
                assert self.signatures.contains(int(leaf), owner)
