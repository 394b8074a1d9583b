"""`hybrid-index`: a cluster index whose leaves are interval indexes, so that all profiles found do match.

E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 4.1.3.

    keys      of cluster_tree, down to clusters of `min_cluster_size` intervals or clusters that cannot be split
    leaf i    elementary intervals from start[i] to start[i + 1], in the order of the interval index, with bit vectors

Invariants: those of both.

Departures from the paper: an elementary interval has a node in a leaf only if a value there can lead to this leaf; other
leaves have the rest. The paper keeps vectors of inner nodes so that building can stop at any size; we do not keep them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.papers.options import Options, option
from tamis.papers.tatbul.cluster_tree import LEAF, Clusters, build_clusters, search_clusters
from tamis.papers.tatbul.interval_index import IntervalIndex
from tamis.papers.tatbul.matching import PAPER, Found
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Array


@dataclass(frozen=True, slots=True)
class HybridOptions(Options):
    min_cluster_size: int = option(10, least=1)
    """Size, in intervals, up to which clusters are not split."""


class HybridIndex(IntervalIndex):
    """Trees of clusters, then trees of elementary intervals."""

    name = "hybrid-index"
    summary = "a cluster index with interval indexes for leaves"
    paper = PAPER + "4.1.3"
    options_type = HybridOptions

    def _plant(self, intervals: Intervals) -> None:
        self.tree, clusters = build_clusters(intervals, self.options.min_cluster_size)
        self._leaves = len(clusters.lowest)
        super()._plant(_within(intervals, clusters))

    def find(self, attributes: Array, keys: Array) -> Found:
        leaves = np.empty(len(keys), np.int64)
        visited = search_clusters(self.tree, attributes, keys, leaves)
        found = super().find(leaves, keys)
        return found._replace(comparisons=found.comparisons + visited, nodes=found.nodes + visited)

    def _arrays(self) -> list[Array]:
        return [*self.tree, *super()._arrays()]

    def _shape(self) -> dict[str, Any]:
        return {"tree_nodes": len(self.lo) + len(self.tree.key), "clusters": self._leaves}

    def _check_trees(self, profiles: Profiles) -> None:
        super()._check_trees(profiles)
        tree, clusters = build_clusters(profiles.intervals, self.options.min_cluster_size)
        inner = tree.left != LEAF
        assert np.array_equal(self.tree.left, tree.left)
        assert np.array_equal(self.tree.right, tree.right)
        assert np.array_equal(self.tree.key[inner], tree.key[inner])
        assert len(clusters.lowest) == self._leaves == len(self._start) - 1
        for first, last in zip(clusters.start, clusters.start[1:], strict=False):
            those = clusters.interval[first:last]
            if len(those) > self.options.min_cluster_size:
                assert profiles.intervals.lo[those].max() <= profiles.intervals.hi[those].min()


def _within(intervals: Intervals, clusters: Clusters) -> Intervals:
    """The intervals of clusters, limited to the values that lead to each cluster: ends beyond these are open."""
    owner = np.repeat(np.arange(len(clusters.lowest)), np.diff(clusters.start))
    those = clusters.interval
    lo, hi = intervals.lo[those], intervals.hi[those]
    return Intervals(
        clusters.start,
        intervals.profile[those],
        np.where(lo <= clusters.lowest[owner], KEY_MIN, lo),
        np.where(hi >= clusters.highest[owner], KEY_MAX, hi),
    )
