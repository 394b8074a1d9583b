"""`dynamic-clustering`: multi-attribute hash tables that come and go with the subscriptions (Fabret et al., section 4).

Events are matched as in `static-clustering`. But no clustering is computed for all subscriptions together. Each new subscription
goes to the existing table with the best benefit, and three metrics decide when tables change.

    BM(c)     = |c| * nu(p)          benefit margin of a cluster: the checks that a better access predicate could save
    B(H)      = subscriptions in H   absolute benefit of a table
    P(H, C)   = sum of nu(p) * |{s in c: s has the attributes of H}| over the clusters c of C: power of a potential table

    insert: a cluster with BM(c) > max_margin       delete: a table with B(H) < min_benefit
                     |                                               |
                     v                                               v
    phase 1   redistribute: each subscription moves     drop the table, move its subscriptions
              to the existing table of best benefit;    to the others
              so do clusters that become too large
                     |
                     v   clusters that are still too large
    phase 2   their subscriptions add to the power of all potential tables;
              while one has at least min_power: create the strongest, move subscriptions that gain

Powers add up over insertions: a cluster that cannot be repaired now helps a table to be created later.

Invariants: powers are sums over the waiting subscriptions (see `power`); `in_table` counts the subscriptions of each table; a
table has a schema of its own, of two attributes at least.

Departures from the paper
- The approximations of the metrics are the paper's; the values of its thresholds are lost, the defaults are ours.
- A redistributed cluster is not redistributed again while it grows: subscriptions that came later are in the best place.
- A potential table to which fewer than `min_benefit` subscriptions would move is not created. It is tried again when its power
  has doubled: the power leaves out the nu of the new access predicates, so it promised too much.
- Groups have at most `max_schema` attributes, and a subscription has at most 8,192 groups (`considered` in `schemas`).
- Events change the clustering at the next insertion or deletion: all clusters are visited, and powers are summed up again.
  While no events are known, a power uses the nu estimated from subscriptions at the time when each began to wait.
- The repair list of a potential table has all waiting subscriptions with its attributes, not only those of the last clusters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, F64s, I32s, I64s
from tamis.papers.fabret.access import ALWAYS, MADE, NO_TABLE, AccessArrays
from tamis.papers.fabret.assignment import Assignment, assign
from tamis.papers.fabret.bit_vector import BitArrays, Ids
from tamis.papers.fabret.power import BETTER, PotentialTables, RepairLists, gaining, repair_lists
from tamis.papers.fabret.schemas import DEEPEST, Equalities, Schemas, count_equalities, equalities_of
from tamis.papers.fabret.statistics import EventStatistics, StatisticsArrays, nu_of
from tamis.papers.fabret.two_phase import PAPER, Schema, TwoPhase
from tamis.papers.interface import Index, Matches
from tamis.papers.options import Options, option

Clusters = I64s

_FEWEST_TOGETHER = 256
"""Subscriptions that are put into their clusters together, at least."""
_PORTIONS = 8
"""The share of the subscriptions already there that are put together: one in 8."""


@dataclass(frozen=True, slots=True)
class DynamicClusteringOptions(Options):
    """The thresholds: BMmax, Bmin and Pmin of the paper."""

    max_margin: float = option(1.0, least=0)
    min_benefit: int = option(8, least=1)
    min_power: float = option(16.0, least=0)
    max_schema: int = option(3, least=1, most=DEEPEST)
    prefetch: bool = option(True)


class DynamicClustering(Index):
    """Clusters behind conjunctions of equalities, changed as subscriptions come and go."""

    name = "dynamic-clustering"
    summary = "propagation with multi-attribute hash tables that are created and dropped as subscriptions come and go"
    paper = PAPER + ", section 4"
    options_type = DynamicClusteringOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._statistics = EventStatistics()
        self._most = self.options.max_schema
        self._created = self._dropped = self._moves = self._tries = self._looked = 0
        self._clear()

    def _clear(self) -> None:
        self.core = TwoPhase(self.table)
        self._count = 0
        self._totals: I64s = np.zeros(0, np.int64)
        self._tables = Schemas()
        # For each schema of `_tables`: its table and its dependence, NaN if it has no table.
        self._table_of: I32s = np.full(1, NO_TABLE, np.int32)
        self._dependence: F64s = np.full(1, np.nan)
        self._in_table: I64s = np.zeros(0, np.int64)
        self._of_table: F64s = np.zeros(0)
        """The dependence of each table."""
        self.potential = PotentialTables()
        self._tried: Bools = np.zeros(0, np.bool_)
        self._learnt = False

    # -- insertion and deletion

    def insert(self, conjunctions: I32s) -> None:
        # A table made for the first of many subscriptions attracts all later ones. So a portion must not be large beside what is
        # there already: subscriptions that are put together do not see the tables that they cause.
        done = 0
        while done < len(conjunctions):
            portion = conjunctions[done : done + max(_FEWEST_TOGETHER, self._count // _PORTIONS)]
            self._insert(portion)
            done += len(portion)

    def _insert(self, conjunctions: I32s) -> None:
        core, view = self.core, self.table.view()
        ids = core.enter(conjunctions)
        missing = len(core.predicates.bits.view().block) - len(self._totals)
        self._totals = np.append(self._totals, np.zeros(missing, np.int64))
        count_equalities(view, conjunctions, self._totals, 1)
        equalities = self._equalities(conjunctions, ids)
        for d in np.unique(equalities.dimension).tolist():
            self._set_table((d,), NO_TABLE, 1.0)
        self.potential.cover(len(self.table))
        self._put(conjunctions, ids, self._best(equalities))
        self._count += len(conjunctions)
        self._maintain(conjunctions)

    def delete(self, conjunctions: I32s) -> None:
        if len(conjunctions) == 0:
            return
        self._take_out(conjunctions)
        count_equalities(self.table.view(), conjunctions, self._totals, -1)
        self.core.release(conjunctions)
        self._count -= len(conjunctions)
        if self._count == 0:
            self._clear()
        else:
            self._maintain(conjunctions[:0])

    def _equalities(self, conjunctions: I32s, ids: Ids) -> Equalities:
        references = self.core.predicates.bits.view().references
        return equalities_of(self.table.view(), conjunctions, ids, references, self._totals, self._statistics.view())

    def _best(self, equalities: Equalities) -> Assignment:
        """The access predicate of best benefit 1 - nu(p) among the tables, for each subscription."""
        just_nu = np.zeros(len(equalities.start) - 1, np.int64)
        return assign(self._tables.view(), equalities, just_nu, self._table_of, self._dependence)

    def _put(self, conjunctions: I32s, ids: Ids, best: Assignment) -> None:
        self.core.put(conjunctions, ids, best.equalities, best.counts, best.tables)
        np.add.at(self._in_table, best.tables[best.tables != NO_TABLE], 1)

    def _take_out(self, conjunctions: I32s) -> None:
        """Take conjunctions out of their clusters."""
        core = self.core
        self._stop_waiting(conjunctions)
        clusters, accesses = core.clusters.view(), core.accesses.view()
        tables = accesses.table[clusters.access[clusters.cluster_of[conjunctions]]]
        np.subtract.at(self._in_table, tables[tables != NO_TABLE], 1)
        core.clusters.take_out(accesses, conjunctions)

    # -- maintenance

    def _maintain(self, inserted: I32s) -> None:
        """The maintenance algorithm, after insertions or deletions."""
        learnt = self._learnt
        if learnt:
            self._learn()
            clusters = self.core.clusters.view()
            touched = np.flatnonzero(clusters.size[: clusters.counts[MADE]])
        else:
            touched = self._clusters_of(inserted)
        touched = np.union1d(touched, self._drop_tables())
        while len(touched):
            returned, known = self._redistribute_where_due(touched)
            late = inserted[np.isin(self.core.clusters.view().cluster_of[inserted], known)]
            waited = self._wait(np.unique(np.concatenate([self.core.clusters.members(returned), late])))
            # New tables may have clusters that are excessive themselves.
            touched = self._create_tables() if waited or learnt else touched[:0]
            learnt = False

    def _redistribute_where_due(self, clusters: Clusters) -> tuple[Clusters, Clusters]:
        """Phase 1; returns the clusters that stay excessive, and the clusters that were known to be excessive."""
        self._cover_clusters()
        excessive = self._excessive(clusters)
        known = excessive[self._tried[excessive]]
        returned = self._redistribute(excessive[~self._tried[excessive]])
        self._cover_clusters()
        self._tried[returned] = True
        return returned, known

    def _cover_clusters(self) -> None:
        missing = len(self.core.clusters.view().size) - len(self._tried)
        if missing > 0:
            self._tried = np.append(self._tried, np.zeros(missing, np.bool_))

    def _wait(self, conjunctions: I32s) -> bool:
        """Let conjunctions add to the power of potential tables; returns whether any of them is new there."""
        waiting = conjunctions[self.potential.waiting.view()[conjunctions] == 0]
        if len(waiting):
            equalities = self._equalities(waiting, self.core.predicates.find(self.table.view(), waiting))
            self.potential.enter(self.core, waiting, equalities, self.nus(waiting), self._most)
        return len(waiting) > 0

    def _stop_waiting(self, conjunctions: I32s) -> None:
        """Subtract from powers what the waiting ones among these conjunctions added."""
        waiting = conjunctions[self.potential.waiting.view()[conjunctions] > 0]
        if len(waiting):
            equalities = self._equalities(waiting, self.core.predicates.find(self.table.view(), waiting))
            self.potential.leave(self.core, waiting, equalities, self._most)

    def _clusters_of(self, conjunctions: I32s) -> Clusters:
        clusters: Clusters = np.unique(self.core.clusters.view().cluster_of[conjunctions]).astype(np.int64)
        return clusters

    def _excessive(self, clusters: Clusters) -> Clusters:
        """The clusters whose benefit margin |c| * nu(p) is excessive."""
        view = self.core.clusters.view()
        margins = view.size[clusters] * self._nus_of_accesses(view.access[clusters])
        # Subscriptions without an equality have no better place.
        excessive: Clusters = clusters[(margins > self.options.max_margin) & (view.access[clusters] != ALWAYS)]
        return excessive

    def _drop_tables(self) -> Clusters:
        """Drop tables of insufficient benefit; returns the clusters that received their subscriptions."""
        received = [np.zeros(0, np.int64)]
        for table in np.flatnonzero(self._in_table < self.options.min_benefit).tolist():
            schema = self.core.schemas[table]
            if schema:
                self._set_table(schema, NO_TABLE, np.nan)
                self.core.schemas[table] = ()
                self.potential.allow(schema)
                self._dropped += 1
                accesses, clusters = self.core.accesses.view(), self.core.clusters.view()
                used = (clusters.size > 0) & (accesses.table[clusters.access] == table)
                rows = self.core.clusters.members(np.flatnonzero(used[: clusters.counts[MADE]]))
                self._move(rows)
                received.append(self._clusters_of(rows))
        return np.unique(np.concatenate(received))

    def _redistribute(self, clusters: Clusters) -> Clusters:
        """Move subscriptions of clusters, and of receivers that become excessive, to better tables; returns excessive ones."""
        seen = clusters
        while len(clusters):
            rows = self.core.clusters.members(clusters)
            equalities = self._equalities(rows, self.core.predicates.find(self.table.view(), rows))
            rows = rows[self._best(equalities).costs < self.nus(rows) * BETTER]
            self._move(rows)
            clusters = np.setdiff1d(self._excessive(self._clusters_of(rows)), seen)
            seen = np.union1d(seen, clusters)
        return self._excessive(seen[self.core.clusters.view().size[seen] > 0])

    def _create_tables(self) -> Clusters:
        """Phase 2: create the strongest potential table while one has sufficient power; returns the clusters of new tables."""
        received = [np.zeros(0, np.int64)]
        potential, least = self.potential, self.options.min_power
        if heap := potential.strong(least):
            lists = self._repair_lists()
            while (group := potential.strongest(heap, least)) >= 0:
                schema = potential.groups.schema(group)
                dependence = self._statistics.dependence(schema)
                rows, looked = gaining(lists, schema, dependence, potential.waiting.view())
                self._tries += 1
                self._looked += looked
                if len(rows) < self.options.min_benefit:
                    potential.refused[group] = potential.power[group]
                    continue
                potential.refused[group] = np.inf
                self._new_table(schema)
                self._move(rows)
                received.append(self._clusters_of(rows))
                self._created += 1
        return np.unique(np.concatenate(received))

    def _repair_lists(self) -> RepairLists:
        rows = np.flatnonzero(self.potential.waiting.view()).astype(np.int32)
        equalities = self._equalities(rows, self.core.predicates.find(self.table.view(), rows))
        return repair_lists(rows, self.nus(rows), equalities)

    def _move(self, rows: I32s) -> None:
        """Move conjunctions to the table of best benefit."""
        if len(rows):
            ids = self.core.predicates.find(self.table.view(), rows)
            best = self._best(self._equalities(rows, ids))
            self._take_out(rows)
            self._put(rows, ids, best)
            self._moves += len(rows)

    def _new_table(self, schema: Schema) -> None:
        """Make an empty table."""
        schemas = self.core.schemas
        if () not in schemas:
            schemas.append(())
            self._in_table, self._of_table = np.append(self._in_table, 0), np.append(self._of_table, 1.0)
        table = schemas.index(())
        schemas[table] = schema
        self._set_table(schema, table, self._statistics.dependence(schema))

    def _set_table(self, schema: Schema, table: int, dependence: float) -> None:
        """Note the table of a schema."""
        node = self._tables.add(schema)
        missing = len(self._tables.view().parent) - len(self._dependence)
        self._table_of = np.append(self._table_of, np.full(missing, NO_TABLE, np.int32))
        self._dependence = np.append(self._dependence, np.full(missing, np.nan))
        self._table_of[node], self._dependence[node] = table, dependence
        if table != NO_TABLE:
            self._of_table[table] = dependence

    def _learn(self) -> None:
        """Use the statistics of the latest events from now on."""
        for table, schema in enumerate(self.core.schemas):
            if schema:
                self._set_table(schema, table, self._statistics.dependence(schema))
        # Subscriptions whose cluster is still excessive enter again, with the current nu.
        self._stop_waiting(np.flatnonzero(self.potential.waiting.view()).astype(np.int32))
        self._tried[:] = False
        self.potential.forget_refusals()
        self._learnt = False

    def nus(self, conjunctions: I32s) -> F64s:
        """How likely events satisfy the access predicates of conjunctions."""
        clusters = self.core.clusters.view()
        return self._nus_of_accesses(clusters.access[clusters.cluster_of[conjunctions]])

    def _nus_of_accesses(self, accesses: I32s) -> F64s:
        nus = np.ones(len(accesses))
        core, predicates = self.core, self.table.view().predicates
        of_accesses, bits, statistics = core.accesses.view(), core.predicates.bits.view(), self._statistics.view()
        _nus_of(accesses, of_accesses, bits, predicates, self._totals, statistics, self._of_table, nus)
        return nus

    # -- the rest

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self._statistics.observe(batch, dimensions)
        self._learnt = True

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        return self.core.match(batch, dimensions, self.options.prefetch)

    def stats(self) -> dict[str, Any]:
        own = (self._totals, self._table_of, self._dependence, self._in_table, self._of_table, self._tried)
        parts = (self.core, self._statistics, self._tables, self.potential)
        return {
            "conjunctions": self._count,
            "bytes": sum(part.nbytes for part in parts) + sum(array.nbytes for array in own),
            **self.core.figures(),
            **self.core.tables(),
            "tables_created": self._created,
            "tables_dropped": self._dropped,
            "moves": self._moves,
            "tables_tried": self._tries,
            "subscriptions_tried": self._looked,
            "waiting": int(np.count_nonzero(self.potential.waiting.view())),
        }

    def check(self) -> None:
        core = self.core
        core.check(self._count)
        schemas = [schema for schema in core.schemas if schema]
        assert len(set(schemas)) == len(schemas)
        assert all(2 <= len(schema) <= self._most for schema in schemas)
        assert [self._table_of[self._tables.add(schema)] for schema in schemas] == [
            table for table, schema in enumerate(core.schemas) if schema
        ]
        populations = core.populations()
        assert [populations[schema] if schema else 0 for schema in core.schemas] == self._in_table.tolist()
        rows = core.rows()
        equalities = self._equalities(rows, core.predicates.find(self.table.view(), rows))
        assert self._totals.sum() >= len(equalities.id)
        self.potential.check(core, rows, equalities, self._most)


@lean_kernel
def _nus_of(
    numbers: I32s,
    accesses: AccessArrays,
    bits: BitArrays,
    predicates: Predicates,
    totals: I64s,
    statistics: StatisticsArrays,
    dependence: F64s,
    nus: F64s,
) -> None:
    """How likely events satisfy some access predicates."""
    for i in range(len(numbers)):
        access = numbers[i]
        if accesses.table[access] != NO_TABLE:
            nus[i] = dependence[accesses.table[access]]
        while access != ALWAYS:
            number = accesses.predicate[access]
            p = bits.exemplar[number]
            d = predicates.dimension[p]
            share = bits.references[number] / max(totals[d], 1)
            nus[i] *= nu_of(statistics, d, predicates.lo[predicates.start[p]], share)
            access = accesses.parent[access]
