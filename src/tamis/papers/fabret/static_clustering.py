"""`static-clustering`: the best set of multi-attribute hash tables for known subscriptions (Fabret et al., section 3).

As in `propagation`, events are matched in two phases. An access predicate may here be a conjunction of equalities on several
attributes, its *schema*. All access predicates of one schema are in one hash table, and an event is looked up there once. A cost
model chooses the schemas that get a table (the hashing configuration H), for all subscriptions at once.

    tables {a} {b} {c} (phase 1 needs them anyway) and {a, b}

    a = 1, b = 2, c > 5     ->   {a, b}   1, 2      nu 1/10,000 instead of 1/100, one predicate to check instead of two
    a = 1, c = 7            ->   {a}      1

    matching cost   Kr * tables + sum of mu(A) * Kh * |A| over tables + sum of nu(p) * check(s, p) over subscriptions
    space cost      init for each table + entry for each access predicate + Ks * (predicates left + 1) for each subscription

where check(s, p) is the number of predicates of s outside its access predicate p, mu(A) how likely an event has the
attributes A, and nu(p) how likely it satisfies p. Single attributes cost neither retrieving, nor hashing, nor space.

The greedy algorithm begins with the single attributes. While space is left, it adds the schema with the largest benefit (matching
cost saved) per byte. It stops when no schema saves anything. Each subscription takes the access predicate of least cost; among
equal ones, subscriptions take turns.

Invariant: the access predicate of a subscription is the one of least cost among the tables; see also the parts.

Departures from the paper
- We consider groups of at most `max_schema` attributes. The paper considers all groups that occur, perhaps all subsets of the
  attributes. For a subscription with many equalities, only groups of its first ones count, at most 8,192 (`considered` in
  `schemas`).
- The benefit of a group per byte is computed again only when the group comes first, not at every step. More tables make the
  benefit smaller, but also the bytes. So the choice may differ from the paper's greedy algorithm. It did in one of eight small
  random cases, by some percent of the cost.
- A group that would need more than `max_bytes` is skipped for good, and the next is tried.
- A subscription with several equalities on one attribute is accessed by the most selective of them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.numbers import F64s, I32s
from tamis.papers.fabret.access import NO_TABLE
from tamis.papers.fabret.assignment import assign
from tamis.papers.fabret.greedy import Candidates
from tamis.papers.fabret.schemas import DEEPEST, Schemas, count_equalities, equalities_of
from tamis.papers.fabret.statistics import EventStatistics
from tamis.papers.fabret.two_phase import PAPER, Schema, TwoPhase
from tamis.papers.interface import Matches
from tamis.papers.options import Options, option
from tamis.papers.parts.static import StaticIndex

_INIT = 64
"""Bytes of an empty table."""


@dataclass(frozen=True, slots=True)
class StaticClusteringOptions(Options):
    """Bounds of the clustering, and the terms of its cost; the unit of cost is the check of one predicate."""

    max_bytes: int = option(1 << 30, least=0, most=1 << 62)
    max_schema: int = option(2, least=1, most=DEEPEST)
    retrieve_cost: float = option(20.0, least=0)
    hash_cost: float = option(50.0, least=0)
    prefetch: bool = option(True)


class StaticClustering(StaticIndex):
    """Clusters behind conjunctions of equalities, chosen once for all subscriptions."""

    name = "static-clustering"
    summary = "propagation with multi-attribute hash tables, chosen by cost for all subscriptions at once"
    paper = PAPER + ", section 3"
    options_type = StaticClusteringOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._statistics = EventStatistics()
        self._start_anew()

    def _start_anew(self) -> None:
        self.core = TwoPhase(self.table)
        self._tables = Schemas()
        self._cost = self._space = self._least_space = 0.0

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        self._statistics.observe(batch, dimensions)

    def _build(self, rows: I32s) -> None:
        self._start_anew()
        core, view = self.core, self.table.view()
        ids = core.enter(rows)
        bits = core.predicates.bits.view()
        totals = np.zeros(len(bits.block), np.int64)
        count_equalities(view, rows, totals, 1)
        equalities = equalities_of(view, rows, ids, bits.references, totals, self._statistics.view())
        sizes = np.diff(view.start)[rows]
        candidates = Candidates(equalities, sizes, self._statistics)
        core.schemas = [candidates.groups.schema(node) for node in self.choose_groups(candidates)]
        for schema in [*candidates.single_attributes(), *core.schemas]:
            self._tables.add(schema)
        table_of, dependence = self._by_node()
        best = assign(self._tables.view(), equalities, sizes, table_of, dependence)
        core.put(rows, ids, best.equalities, best.counts, best.tables)

    def choose_groups(self, candidates: Candidates) -> list[int]:
        """The greedy algorithm: the groups that get a table, in the order of choice."""
        options = self.options
        candidates.find_groups(options.max_schema, self._fixed_cost)
        self._cost = candidates.cost()
        self._space = self._least_space = candidates.space()
        heap = [(-np.inf, -np.inf, node) for node in candidates.nodes()]
        chosen: list[int] = []
        known: dict[int, tuple[int, float, float]] = {}  # group -> number of tables at that time, benefit, space
        while heap and self._space < options.max_bytes:
            node = heapq.heappop(heap)[2]
            step, benefit, space = known.get(node, (-1, 0.0, 0.0))
            if step < len(chosen):
                saved, more = candidates.evaluate(node)
                benefit, space = saved - self._fixed_cost(candidates.groups.schema(node)), more + _INIT
                known[node] = (len(chosen), benefit, space)
                if benefit > 0:
                    heapq.heappush(heap, (-np.inf if space <= 0 else -benefit / space, -benefit, node))
                continue
            if self._space + space > options.max_bytes:
                continue
            candidates.add(node)
            chosen.append(node)
            self._cost -= benefit
            self._space += space
        return chosen

    def _fixed_cost(self, schema: Schema) -> float:
        """The cost of a table for an event, without the subscriptions in it."""
        mu = self._statistics.mu(schema)
        return float(self.options.retrieve_cost + mu * self.options.hash_cost * len(schema))

    def _by_node(self) -> tuple[I32s, F64s]:
        """The table of each schema, NO_TABLE for single attributes, and its dependence, NaN if it has no table."""
        table_of = np.full(len(self._tables), NO_TABLE, np.int32)
        dependence = np.full(len(self._tables), np.nan)
        depth = self._tables.view().depth[: len(self._tables)]
        dependence[depth == 1] = 1.0
        for number, schema in enumerate(self.core.schemas):
            node = self._tables.add(schema)
            table_of[node], dependence[node] = number, self._statistics.dependence(schema)
        return table_of, dependence

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        return self.core.match(batch, dimensions, self.options.prefetch)

    def _figures(self) -> dict[str, Any]:
        return {
            "bytes": self.core.nbytes + self._statistics.nbytes + self._tables.nbytes,
            **self.core.figures(),
            **self.core.tables(),
            "matching_cost": self._cost,
            "space_cost": self._space,
        }

    def _check(self) -> None:
        self.core.check(len(self._rows))
        schemas = self.core.schemas
        assert len(set(schemas)) == len(schemas)
        assert all(2 <= len(schema) <= self.options.max_schema for schema in schemas)
        assert self._space <= max(self.options.max_bytes, self._least_space)
