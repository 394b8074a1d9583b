"""The structures of the two-phase algorithms together: predicate index, access predicates, clusters.

    PredicateIndex          AccessPredicates             Clusters
    bits, points, ranges -> a = 3, (a = 3 and b = 5) ->  columns of ids, subscription lines

The algorithms of the paper differ in how they choose the access predicate of a subscription.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.kernels.numbers import I32s, I64s
from tamis.papers.fabret import matching
from tamis.papers.fabret.access import NO_CLUSTER, NO_TABLE, AccessPredicates
from tamis.papers.fabret.bit_vector import FREE, Ids
from tamis.papers.fabret.clusters import Clusters
from tamis.papers.fabret.predicate_index import PredicateIndex, numbers_of
from tamis.papers.interface import Matches
from tamis.papers.parts.collecting import collect

PAPER = (
    "Fabret, Jacobsen, Llirbat, Pereira, Ross, Shasha: Filtering Algorithms and Implementation for Very Fast "
    "Publish/Subscribe Systems, SIGMOD 2001"
)
Schema = tuple[int, ...]
_MOST_SHOWN = 100


class TwoPhase:
    """Subscriptions in clusters."""

    def __init__(self, table: ConjunctionTable) -> None:
        self.table = table
        self.predicates = PredicateIndex()
        self.accesses = AccessPredicates()
        self.clusters = Clusters()
        self.schemas: list[Schema] = []
        """The schemas of the multi-attribute hash tables; empty for a dropped table."""
        self.phases: I64s = np.zeros(matching.PHASES, np.int64)
        self.events = 0

    @property
    def nbytes(self) -> int:
        return self.predicates.nbytes + self.accesses.nbytes + self.clusters.nbytes

    def rows(self) -> I32s:
        """The conjunctions that are in clusters."""
        return np.flatnonzero(self.clusters.view().cluster_of != NO_CLUSTER).astype(np.int32)

    def enter(self, conjunctions: I32s) -> Ids:
        """Take in the predicates of conjunctions that will go to clusters; returns the ids, one after another."""
        ids = self.predicates.insert(self.table.view(), conjunctions)
        self.accesses.cover(self.predicates.bits.capacity)
        return ids

    def put(self, conjunctions: I32s, ids: Ids, equalities: Ids, sizes: I32s, tables: Ids | None = None) -> None:
        """Put conjunctions into the clusters of their access predicates, whose equalities are given one after another."""
        tables = np.full(len(sizes), NO_TABLE, np.int32) if tables is None else tables
        accesses = self.accesses.find_or_make(equalities, sizes, tables)
        self.clusters.put(self.accesses.view(), self.table.view(), conjunctions, accesses, ids)

    def remove(self, conjunctions: I32s) -> None:
        """Drop conjunctions and their predicates."""
        self.clusters.take_out(self.accesses.view(), conjunctions)
        self.release(conjunctions)

    def release(self, conjunctions: I32s) -> None:
        """Drop the predicates of conjunctions that were taken out of their clusters."""
        table = self.table.view()
        self.predicates.release(table, self.predicates.find(table, conjunctions))

    def match(self, batch: EventBatch, dimensions: int, ahead: bool) -> Matches:
        """The event matching algorithm."""
        accesses, bits = self.accesses.view(), self.predicates.bits.view()
        index = matching.IndexArrays(
            bits,
            self.predicates.points.view(),
            self.predicates.ranges.view(),
            accesses,
            self.clusters.view(),
            np.append(0, np.cumsum([len(schema) for schema in self.schemas])).astype(np.int64),
            np.array([attribute for schema in self.schemas for attribute in schema], np.int32),
            self.table.view().predicates,
        )
        longest = int(np.diff(batch.start).max(initial=0))
        dimensions = max(dimensions, len(bits.block))
        scratch = matching.scratch_of(dimensions, len(bits.bits), longest, len(accesses.head), len(self.schemas))
        self.phases, self.events = np.zeros(matching.PHASES, np.int64), len(batch.start) - 1
        return collect(batch, partial(matching.match, index, batch, scratch, ahead, self.phases))

    def figures(self) -> dict[str, Any]:
        """Sizes, and the work of both phases in the last match."""
        accesses = self.accesses.view()
        satisfied, lookups, lists, clusters = self.phases.tolist()
        return {
            "predicates": len(self.predicates.bits),
            "access_predicates": int(np.count_nonzero(accesses.head[1:] != NO_CLUSTER)),
            "clusters": len(self.clusters),
            "without_equality": int(accesses.population[0]),
            "last_match": {
                "events": self.events,
                "phase_1": {"satisfied": satisfied, "lookups": lookups},
                "phase_2": {"lists": lists, "clusters": clusters},
            },
        }

    def populations(self) -> dict[Schema, int]:
        """How many subscriptions are in the table of each schema, single attributes too."""
        accesses, bits = self.accesses.view(), self.predicates.bits.view()
        used = np.flatnonzero(accesses.population)
        used = used[used > 0]
        dimension = self.table.view().predicates.dimension
        found: dict[Schema, int] = {}
        alone = used[accesses.parent[used] == 0]
        own = dimension[bits.exemplar[accesses.predicate[alone]]]
        counts = np.bincount(own, weights=accesses.population[alone])
        found.update({(int(d),): int(counts[d]) for d in np.unique(own)})
        several = used[accesses.table[used] != NO_TABLE]
        counts = np.bincount(accesses.table[several], weights=accesses.population[several], minlength=len(self.schemas))
        found.update({schema: int(count) for schema, count in zip(self.schemas, counts, strict=True) if schema})
        return found

    def tables(self) -> dict[str, Any]:
        """The tables with the most subscriptions, as figures; attributes are given as dimensions."""
        populations = self.populations()
        largest = sorted(populations, key=lambda schema: (-populations[schema], schema))[:_MOST_SHOWN]
        return {
            "table_count": len(populations),
            "tables": [{"schema": list(schema), "subscriptions": populations[schema]} for schema in largest],
        }

    def check(self, count: int) -> None:
        """Raise an AssertionError if an invariant does not hold, or if there are not `count` conjunctions."""
        rows, view = self.rows(), self.table.view()
        assert len(rows) == count
        self.predicates.check(view, rows)
        ids_of = {
            c: set(self.predicates.bits.find(view, numbers_of(view, np.array([c]))).tolist()) for c in rows.tolist()
        }
        self.clusters.check(self.accesses.view(), rows, ids_of.__getitem__, self.accesses.equalities)
        accesses, bits = self.accesses.view(), self.predicates.bits.view()
        for number, access in enumerate(accesses.single.tolist()):
            assert access < 0 or (accesses.parent[access], accesses.predicate[access]) == (0, number)
        for access in np.flatnonzero(accesses.population)[1:].tolist():
            if access == 0:
                continue
            ids = list(self.accesses.equalities(access))
            assert (bits.exemplar[ids] != FREE).all()
            schema = tuple(view.predicates.dimension[bits.exemplar[ids]].tolist())
            assert list(schema) == sorted(set(schema))
            assert (len(schema) == 1) == (accesses.table[access] == NO_TABLE)
            assert len(schema) == 1 or self.schemas[accesses.table[access]] == schema
