"""The BE-Tree as an index. It runs the kernels, and makes room or rebuilds nodes when a kernel stops."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.kernels.growing import GrowingArray
from tamis.kernels.numbers import I32s
from tamis.papers.be_tree.domains import Domains, order_predicates
from tamis.papers.be_tree.insertion import fill_root, insert_rows, split_bucket
from tamis.papers.be_tree.inspection import check, draw
from tamis.papers.be_tree.matching import match_events, match_scratch
from tamis.papers.be_tree.nodes import (
    ATTR,
    BELOW,
    CREDIT,
    DUE,
    DUES,
    NEED,
    NODE,
    NODES,
    PARTITIONS,
    PENDING,
    PNODES,
    SPLITS,
    STRANGER,
    TASKS,
    TOP,
    Home,
    Nodes,
    Settings,
    Tree,
)
from tamis.papers.be_tree.partitioning import scratch_of
from tamis.papers.be_tree.removal import AWAY, WAITING, delete_rows, uproot
from tamis.papers.interface import Index, Matches
from tamis.papers.options import WIDEST, Options, option
from tamis.papers.parts.collecting import collect
from tamis.papers.parts.records import RecordArrays, Records, Words

_FEWEST_PENDING = 64
_MERGED = 64
"""Room, in entries, that is made before a deletion so that l-nodes can be merged."""


_MOST_TIMES = 2
"""How often buckets are taken out for the same stranger."""
_LARGEST_NODE = 1 << 20
_CANDIDATES_FOR_ONE = 4096
"""Candidates that pay for inserting one conjunction again: it takes as long as evaluating about a thousand of them."""


@dataclass(frozen=True, slots=True)
class BETreeOptions(Options):
    """The defaults are those of the paper's experiments with matching probabilities below one percent.

    Two defaults are not: the weights of the gain, and the least window. With all weights 1, the gain of a node is above its loss
    whatever events do: each expression has a covered predicate, and a false candidate costs hardly more than one evaluation.

    Attributes
    ----------
    max_cap : int
        Capacity of an l-node. An l-node with more expressions is partitioned or clustered.
    min_size : int
        Least number of expressions for a p-node of their attribute. An l-node with fewer expressions underflows.
    loss : str
        Estimate of an attribute's loss: "optimistic" is none at all, "histogram" the mean size of a histogram's cells.
    batch : bool
        Whether the first insertion into an empty tree partitions all rows together (BE-B), not one by one.
    recycling : bool
        Whether nodes whose rank falls below theta are taken out and inserted again.
    rank_window : float
        Operations before a node is judged, as a fraction of the expressions below it.
    least_window : int
        Least number of operations before a node is judged.
    theta, beta, gamma, alpha_s, alpha_c : float
        The least rank, and the weights of gain, loss, subsumed and covered predicates.
    domain_lo, domain_hi : int, optional
        The lowest and highest value of every attribute with numbers. By default, the values that predicates name.
    """

    max_cap: int = option(5, least=1, most=_LARGEST_NODE)
    min_size: int = option(3, least=1, most=_LARGEST_NODE)
    loss: str = option("optimistic", choices=("optimistic", "histogram"))
    batch: bool = option(True)
    recycling: bool = option(True)
    rank_window: float = option(0.1, least=0)
    least_window: int = option(300, least=1)
    theta: float = option(0.0)
    beta: float = option(1.0, least=0)
    gamma: float = option(1.0, least=0)
    alpha_s: float = option(0.1, least=0)
    alpha_c: float = option(0.1, least=0)
    domain_lo: int | None = option(None, most=WIDEST, nothing=True)
    domain_hi: int | None = option(None, most=WIDEST, nothing=True)

    def problem(self) -> str:
        if self.domain_lo is not None and self.domain_hi is not None and self.domain_lo > self.domain_hi:
            return f"'domain_lo', {self.domain_lo}, is above 'domain_hi', {self.domain_hi}"
        return ""


class BETree(Index):
    """A tree over attributes and intervals of their values.

    Invariant: between operations there are no tasks and nothing is pending. `_home` has the node and the place of every
    conjunction in the tree.
    """

    name = "be-tree"
    summary = "a tree that cuts the space by attributes and halves their domains, where expressions are dense"
    paper = (
        "Sadoghi and Jacobsen: BE-Tree: An Index Structure to Efficiently Match Boolean Expressions over "
        "High-dimensional Discrete Space, SIGMOD 2011, sections 4 to 6"
    )
    options_type = BETreeOptions

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._recycled = 0
        self._clear()

    def _clear(self) -> None:
        chosen: BETreeOptions = self.options
        limits = chosen.max_cap, chosen.min_size, chosen.least_window, chosen.loss == "histogram", chosen.recycling
        rates = chosen.beta, chosen.gamma, chosen.alpha_s, chosen.alpha_c, chosen.theta, chosen.rank_window
        self.nodes = Nodes(Settings(*limits, *map(float, rates)))
        self._domains = Domains(self.kind_of, chosen.domain_lo, chosen.domain_hi)
        self._records = Records()
        self._home = GrowingArray(np.int32)
        self._pending = np.empty(max(_FEWEST_PENDING, 2 * chosen.min_size), np.int32)
        self._scratch = scratch_of(0)
        self._count = 0

    # -- changes

    def insert(self, conjunctions: I32s) -> None:
        if len(conjunctions) == 0:
            return
        rows = np.asarray(conjunctions, np.int32)
        table = self.table.view()
        changed = self._domains.learn(table, rows)
        if len(self._domains) > len(self._scratch.path):
            self._scratch = scratch_of(2 * len(self._domains))
        predicates = int((table.start[rows + 1] - table.start[rows]).sum())
        order, sizes = np.empty(predicates, np.int64), np.empty(len(rows), np.int32)
        order_predicates(table, rows, self._domains.view(), np.empty(predicates), order, sizes)
        self._records.put(table, rows, order, sizes)
        self._home.grow(max(0, 2 * len(self.table) - len(self._home)), fill=AWAY)
        self._count += len(rows)
        if len(changed) and self.nodes.view().state[PNODES] > 0:
            self._take_out_partitions(changed)
            rows = np.concatenate([self._taken(), rows])
        if not self._fills(rows):
            self.nodes.view().state[CREDIT] += len(rows)
        self._insert(rows)
        self._recycle()

    def delete(self, conjunctions: I32s) -> None:
        if len(conjunctions) == 0:
            return
        rows, done = np.asarray(conjunctions, np.int32), 0
        self._count -= len(rows)
        if self._count == 0:
            self._clear()
            return
        while done < len(rows):
            self.nodes.view().state[NEED] = _MERGED
            self.nodes.reserve()
            done = delete_rows(*self._for_removal(), rows, done)
            self._insert(self._taken())
        self._records.remove(rows)
        self.nodes.view().state[CREDIT] += len(rows)
        self._recycle()

    def _for_removal(self) -> tuple[Tree, RecordArrays, Words, Home, I32s]:
        return self.nodes.view(), self._records.view(), self._scratch.path, self._homes(), self._pending

    def _homes(self) -> Home:
        return self._home.view().reshape(-1, 2)

    def _fills(self, rows: I32s) -> bool:
        """Whether rows fill an empty tree, and are partitioned together."""
        return bool(self.options.batch and len(rows) > self.options.max_cap and self.nodes.view().cold[0, BELOW] == 0)

    def _insert(self, rows: I32s) -> None:
        """Insert rows that have records. Kernels stop for room, and for strangers to a bucket that is partitioned.

        Such a bucket is taken out and inserted again after the stranger. Two strangers to buckets of two attributes may
        thus drive each other out without end, so after some times the bucket is split where it is.
        """
        nodes = self.nodes
        times: Counter[int] = Counter()
        if self._fills(rows):
            nodes.view().state[NEED] = 2 * len(rows) + 4
            nodes.reserve()
            fill_root(nodes.view(), self._homes(), rows)
            rows = rows[:0]
        left = [rows]
        while left:
            rows = left.pop()
            done = 0
            while done < len(rows) or nodes.view().state[TASKS] > 0:
                arrays = nodes.view(), self._records.view(), self._domains.view(), self._scratch, self._homes()
                done = insert_rows(*arrays, rows, done)
                stranger = int(nodes.view().state[STRANGER])
                if stranger > 0:
                    times[int(rows[done])] += 1
                if stranger > 0 and times[int(rows[done])] > _MOST_TIMES:
                    self._split(stranger)
                elif stranger > 0:
                    # The stranger goes first. Otherwise the bucket would be partitioned again without it.
                    self._uproot(stranger)
                    left += [rows[done + 1 :], self._taken()]
                    rows, done = rows[done : done + 1], 0
                elif done < len(rows) or nodes.view().state[TASKS] > 0:
                    nodes.reserve()

    def _split(self, node: int) -> None:
        """Split a bucket that is partitioned, so that no conjunction is a stranger to it."""
        while not split_bucket(self.nodes.view(), self._records.view(), self._domains.view(), self._homes(), node):
            self.nodes.reserve()

    def _uproot(self, node: int) -> None:
        """Take out a node and all below it; their conjunctions are then pending."""
        tree = self.nodes.view()
        needed = int(tree.state[PENDING] + tree.cold[node, BELOW]) + _FEWEST_PENDING
        if needed > len(self._pending):
            pending = np.empty(2 * needed, np.int32)
            pending[: tree.state[PENDING]] = self._pending[: tree.state[PENDING]]
            self._pending = pending
        uproot(*self._for_removal(), np.empty(tree.state[NODES], np.int64), node)

    def _taken(self) -> I32s:
        """The pending conjunctions that have not been deleted since."""
        state = self.nodes.view().state
        rows: I32s = self._pending[: state[PENDING]]
        rows = rows[self._homes()[rows, NODE] == WAITING]
        self._homes()[rows, NODE] = AWAY
        state[PENDING] = 0
        return rows

    def _take_out_partitions(self, dimensions: I32s) -> None:
        """Take out the p-nodes of some dimensions, whose domains have changed."""
        pnode = self.nodes.view().pnode
        for p in np.flatnonzero((pnode[:, TOP] > 0) & np.isin(pnode[:, ATTR], dimensions)).tolist():
            if pnode[p, TOP] > 0:  # it may be gone already, below another p-node
                self._uproot(int(pnode[p, TOP]))

    def _recycle(self) -> None:
        """Take out the nodes whose windows ended with too low a rank, and insert their conjunctions again.

        Where no other place is better, nodes would be taken out at the end of every window. So this is paid for: each
        insertion and deletion, and every few thousand candidates, pay for one conjunction.
        """
        tree = self.nodes.view()
        due = tree.due[: tree.state[DUES]].tolist()
        tree.state[DUES] = 0
        for node in due:
            if not tree.cold[node, DUE]:
                continue
            tree.cold[node, DUE] = 0
            if tree.cold[node, BELOW] <= tree.state[CREDIT]:
                tree.state[CREDIT] -= tree.cold[node, BELOW]
                self._uproot(node)
                self._recycled += 1
        if due:
            self._insert(self._taken())

    # -- matching

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        tree = self.nodes.view()
        scratch = match_scratch(max(dimensions, len(self._domains)), int(tree.state[NODES]))
        matches = collect(batch, partial(match_events, tree, self._records.view(), batch, scratch))
        tree.state[CREDIT] += matches.counters.candidates // _CANDIDATES_FOR_ONE
        self._recycle()
        return matches

    # -- about it

    def stats(self) -> dict[str, Any]:
        tree = self.nodes.view()
        own = (self.nodes, self._domains, self._records, self._home, self._pending, *self._scratch)
        return {
            "conjunctions": self._count,
            "bytes": sum(part.nbytes for part in own),
            "nodes": int(tree.state[NODES]),
            "p_nodes": int(tree.state[PNODES]),
            "splits": int(tree.state[SPLITS]),
            "partitions": int(tree.state[PARTITIONS]),
            "recycled": self._recycled,
        }

    def draw(self) -> str:
        """The tree as text: l-nodes as lists of conjunctions, buckets as pairs of keys."""
        return draw(self.nodes)

    def check(self) -> None:
        check(self.nodes, self._records.view(), self._homes(), self._count, self._domains.view())
