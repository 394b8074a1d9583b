"""`propagation`: subscriptions in clusters behind their most selective equality (Fabret et al., SIGMOD 2001, section 2).

An event is matched in two phases. The first finds the satisfied predicates, each distinct one once, and sets
their bits. The second looks only at subscriptions whose access predicate is satisfied, and tests the bits of their other
predicates, column by column.

    event {a: 3, b: 7}
      | phase 1: hash tables for =, search trees for ranges
      v
    bits       a = 3: 1   b < 9: 1   c = 2: 0   ...
      |
      v        access predicate a = 3
    cluster of 1 column          cluster of 2 columns
    column     b < 9             c = 2   c = 2
                                 b < 9   d > 1
    line       s1                s4      s9          for these three subscriptions at most four bits are read

The arrays are drawn in `bit_vector`, `points`, `ranges`, `access` and `clusters`.

The access predicate is the equality that is least probable in the observed events. Without observed events, it is the equality
that the fewest subscriptions share. Subscriptions without an equality are behind access predicate 0, which every event
satisfies.

Invariants: a subscription is in one cluster, of one of its own equalities if it has any; see also the parts.

Departures from the paper
- Bits that an event has set are cleared one by one after it, not all of them before the next.
- A search tree over intervals holds both ends of BETWEEN. It is built, not changed in place: new ranges are scanned until there
  are enough of them to build it again.
- Predicates that most events satisfy (<>, NOT IN, IS NOT NULL) are set by words of 64 and then cleared where they do not hold.
- `prefetch` off is the paper's `propagation`, on it is `propagation-wp`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import I32s
from tamis.papers.fabret.bit_vector import Ids, is_equality
from tamis.papers.fabret.statistics import EventStatistics, StatisticsArrays, nu_of
from tamis.papers.fabret.two_phase import PAPER, TwoPhase
from tamis.papers.interface import Index, Matches
from tamis.papers.options import Options, option

_NOBODY = -1


@dataclass(frozen=True, slots=True)
class PropagationOptions(Options):
    """Whether columns are prefetched while they are tested."""

    prefetch: bool = option(True)


class Propagation(Index):
    """Clusters behind single equalities."""

    name = "propagation"
    summary = "two phases: a bit for each predicate, then clusters behind their most selective equality"
    paper = PAPER + ", section 2"
    options_type = PropagationOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._statistics = EventStatistics()
        self.core = TwoPhase(self.table)
        self._count = 0

    def insert(self, conjunctions: I32s) -> None:
        ids = self.core.enter(conjunctions)
        chosen = np.empty(len(conjunctions), np.int32)
        bits = self.core.predicates.bits.view()
        choose_equality(self.table.view(), conjunctions, ids, bits.references, self._statistics.view(), chosen)
        self.core.put(conjunctions, ids, chosen[chosen != _NOBODY], (chosen != _NOBODY).astype(np.int32))
        self._count += len(conjunctions)

    def delete(self, conjunctions: I32s) -> None:
        self.core.remove(conjunctions)
        self._count -= len(conjunctions)
        if self._count == 0:
            self.core = TwoPhase(self.table)

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        return self.core.match(batch, dimensions, self.options.prefetch)

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self._statistics.observe(batch, dimensions)

    def stats(self) -> dict[str, Any]:
        size = self.core.nbytes + self._statistics.nbytes
        return {"conjunctions": self._count, "bytes": size, **self.core.figures()}

    def check(self) -> None:
        self.core.check(self._count)


@lean_kernel
def choose_equality(
    table: Conjunctions, conjunctions: I32s, ids: Ids, references: I32s, statistics: StatisticsArrays, chosen: Ids
) -> None:
    """The id of the most selective equality of each conjunction; -1 where there is none."""
    predicates, at = table.predicates, 0
    for i in range(len(conjunctions)):
        c = conjunctions[i]
        chosen[i] = _NOBODY
        least = np.inf
        for p in range(table.start[c], table.start[c + 1]):
            number = ids[at]
            at += 1
            if is_equality(predicates, p):
                key = predicates.lo[predicates.start[p]]
                weight = nu_of(statistics, predicates.dimension[p], key, references[number] * 1.0)
                if weight < least:
                    least, chosen[i] = weight, number
