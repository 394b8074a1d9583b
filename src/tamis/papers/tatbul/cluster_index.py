"""`cluster-index`: for each attribute, a tree of keys that leads to a cluster of profiles that may match.

E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 4.1.1.

The trees are those of `cluster_tree`; a leaf has the bit vector of the profiles of its intervals. A search goes down to a
leaf, one comparison at each node. The vectors of an event's attributes are ANDed. The profiles that are left may match and are
evaluated.

Invariant: if a value leads to a leaf, the leaf has all profiles with an interval around this value. The intervals of a leaf all
have a point in common.

Departures from the paper: inner nodes have no vectors; the paper says that they are not needed. A profile with several intervals
for an attribute is in a cluster with each of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.papers.tatbul.cluster_tree import LEAF, build_clusters, search_clusters
from tamis.papers.tatbul.matching import PAPER, Found, ProfileIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles
from tamis.papers.tatbul.vectors import Array, Lists, distinct, members, vectors


class ClusterIndex(ProfileIndex):
    """Trees of clusters."""

    name = "cluster-index"
    summary = "for each attribute a tree of keys that splits profiles into clusters; those of a leaf may match"
    paper = PAPER + "4.1.1"
    exact = False

    def _plant(self, intervals: Intervals) -> None:
        self.tree, clusters = build_clusters(intervals, 1)
        profiles = len(self._built)
        leaves = distinct(Lists(clusters.start, intervals.profile[clusters.interval]), profiles)
        self.vectors = vectors(leaves, profiles)

    def find(self, attributes: Array, keys: Array) -> Found:
        leaves = np.empty(len(keys), np.int64)
        visited = search_clusters(self.tree, attributes, keys, leaves)
        return Found(np.arange(len(keys) + 1), leaves, visited, visited + len(keys))

    def _arrays(self) -> list[Array]:
        return list(self.tree)

    def _shape(self) -> dict[str, Any]:
        return {
            "tree_nodes": len(self.tree.key),
            "leaves": len(self.vectors.counts),
            "largest_cluster": int(self.vectors.counts.max(initial=0)),
        }

    def _check_trees(self, profiles: Profiles) -> None:
        leaves = self.tree.right[self.tree.left == LEAF]
        assert sorted(leaves.tolist()) == list(range(len(self.vectors.counts)))
        _, clusters = build_clusters(profiles.intervals, 1)
        for leaf, (first, last) in enumerate(zip(clusters.start[:-1], clusters.start[1:], strict=True)):
            those = clusters.interval[first:last]
            assert members(self.vectors, leaf).tolist() == np.unique(profiles.intervals.profile[those]).tolist()
            if last > first:
                assert profiles.intervals.lo[those].max() <= profiles.intervals.hi[those].min()
