"""The part of the predicate index for ranges: for each dimension, a search tree over intervals.

    members       for each dimension, the ids of the predicates that have ranges; the first `built` of them are in its tree
    root          the node where the tree of a dimension begins
    node          center | begin, end | left, right
    low, high     ends of the intervals of node after node: the lower ascending, the upper ascending
    of_low ...    their predicates, as literals (see `points`)

A node has the intervals that contain its center. Lower intervals are in its left child, higher ones in its right child. A key
below the center hits the first intervals of `low`, up to the last that begins at or below the key. So they are read in sequence.
The search trees for < and for > are the same structure with one end open.

New predicates are tested one by one until there are about twice the square root of the others; then the tree of the dimension is
built again. Predicates that have gone stay in the tree, retired, until they make up half of it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import with_flag
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.papers.fabret.bit_vector import BitArrays, Ids, TableNumbers, is_everything
from tamis.papers.parts.parting import Keys, Waiting, hang, part_at, room_for, wait
from tamis.papers.parts.slabs import SlabArrays, Slabs

NO_NODE = -1
_NONE = int(Mode.NONE)
_FEWEST = 32


class NodeArrays(NamedTuple):
    """The nodes of all trees."""

    center: Keys
    begin: I32s
    end: I32s
    left: I32s
    right: I32s


class TreeArrays(NamedTuple):
    """The trees as kernels take them."""

    members: SlabArrays
    built: I32s
    root: I32s
    nodes: NodeArrays
    low: Keys
    high: Keys
    of_low: I32s
    of_high: I32s


class _Unfolded(NamedTuple):
    """The ranges of some dimensions."""

    tree: I32s
    literal: I32s
    by_low: I32s
    """Numbers of the ranges, by tree and lower end, and by tree and upper end."""
    by_high: I32s
    low: Keys
    high: Keys


class Ranges:
    """The ranges of all predicates."""

    def __init__(self) -> None:
        self._members = Slabs()
        self._built, self._dead, self._root, self._entries = (np.zeros(0, np.int32) for _ in range(4))
        self._clear()

    def _clear(self) -> None:
        self._nodes = [GrowingArray(dtype) for dtype in (np.int64, *4 * [np.int32])]
        self._ends = [GrowingArray(dtype) for dtype in (np.int64, np.int64, np.int32, np.int32)]
        self._root[:], self._entries[:] = NO_NODE, 0

    @property
    def nbytes(self) -> int:
        fixed = self._built.nbytes + self._dead.nbytes + self._root.nbytes + self._entries.nbytes
        return fixed + self._members.nbytes + sum(array.nbytes for array in (*self._nodes, *self._ends))

    def view(self) -> TreeArrays:
        nodes = NodeArrays(*(array.view() for array in self._nodes))
        return TreeArrays(self._members.view(), self._built, self._root, nodes, *(array.view() for array in self._ends))

    def cover(self, dimensions: int) -> None:
        """Make room for `dimensions` dimensions."""
        missing = dimensions - len(self._built)
        if missing > 0:
            missing = max(missing, len(self._built))
            self._members.add(missing)
            zeros = np.zeros(missing, np.int32)
            self._built, self._dead = np.append(self._built, zeros), np.append(self._dead, zeros)
            self._entries, self._root = np.append(self._entries, zeros), np.append(self._root, zeros + NO_NODE)

    def enter(self, table: Conjunctions, bits: BitArrays, ids: Ids) -> Ids:
        """Take in the ranges of new predicates; returns ids of retired predicates that may be used again."""
        ranged = ids[with_ranges(table, bits.exemplar, ids)]
        dimensions = table.predicates.dimension[bits.exemplar[ranged]]
        self._members.extend(dimensions.astype(np.int64), ranged)
        return self._plant_where_due(table, bits, np.unique(dimensions))

    def leave(self, table: Conjunctions, bits: BitArrays, ids: Ids) -> Ids:
        """Drop the ranges of predicates that are gone; returns the ids that may be used again."""
        ranged = with_ranges(table, bits.exemplar, ids)
        dimensions = table.predicates.dimension[bits.exemplar[ids[ranged]]]
        np.add.at(self._dead, dimensions, 1)
        freed = self._plant_where_due(table, bits, np.unique(dimensions))
        return np.concatenate([ids[~ranged], freed])

    def _plant_where_due(self, table: Conjunctions, bits: BitArrays, dimensions: Ids) -> Ids:
        """Build outdated trees again; returns the ids of retired predicates that no tree has any more."""
        if len(dimensions) == 0:
            return np.zeros(0, np.int32)
        sizes = self._members.view().size[dimensions]
        fresh = sizes - self._built[dimensions]
        late = (fresh > _FEWEST + 2 * np.sqrt(sizes)) | (self._dead[dimensions] > _FEWEST + sizes // 2)
        due = dimensions[late]
        size = len(self._ends[0])
        left_behind = size - int(self._entries.sum()) + int(self._entries[due].sum())
        if len(due) and 2 * left_behind > size:  # more than half of the arrays would be unused
            due = np.flatnonzero(self._members.view().size).astype(np.int32)
            self._clear()
        return self._plant(table, bits, due) if len(due) else np.zeros(0, np.int32)

    def _plant(self, table: Conjunctions, bits: BitArrays, dimensions: Ids) -> Ids:
        members, predicates = self._members.view(), table.predicates
        retired = np.empty(int(self._dead[dimensions].sum()), np.int32)
        counts = np.zeros(len(dimensions) + 1, np.int64)
        gone = _sift(predicates, bits, members, dimensions, retired, counts)
        assert gone == len(retired)
        starts = np.cumsum(counts)
        tree, literal, by_low, by_high = np.empty((4, starts[-1]), np.int32)
        ranges = _Unfolded(tree, literal, by_low, by_high, *np.empty((2, starts[-1]), np.int64))
        _unfold(predicates, bits.exemplar, members, dimensions, ranges)
        by_low[:], by_high[:] = np.lexsort((ranges.low, tree)), np.lexsort((ranges.high, tree))
        nodes = NodeArrays(np.empty(starts[-1], np.int64), *np.empty((4, starts[-1]), np.int32))
        roots, waiting = np.empty(len(dimensions), np.int32), room_for(starts[-1])
        count = _grow_trees(starts, ranges, nodes, roots, waiting, len(self._ends[0]), len(self._nodes[0]))
        grown: tuple[npt.NDArray[Any], ...] = nodes
        for column, values in zip(self._nodes, grown, strict=True):
            column.extend(values[:count])
        ends = (ranges.low[by_low], ranges.high[by_high], literal[by_low], literal[by_high])
        for column, of_range in zip(self._ends, ends, strict=True):
            column.extend(of_range)
        self._root[dimensions], self._entries[dimensions] = roots, np.diff(starts)
        self._built[dimensions], self._dead[dimensions] = members.size[dimensions], 0
        return retired

    def check(self, table: Conjunctions, bits: BitArrays, live: set[int], retired: set[int]) -> None:
        """Raise an AssertionError unless the trees and lists hold the ranges of these predicates, and no others."""
        view, of_node = self.view(), self.view().nodes
        listed = [self._members.values(d).tolist() for d in range(len(self._built))]
        ids = [number for each in listed for number in each]
        assert len(ids) == len(set(ids))
        assert set(ids) == live | retired
        for d, of_dimension in enumerate(listed):
            assert sum(number in retired for number in of_dimension) == self._dead[d]
            expected = []
            for number in of_dimension[: self._built[d]]:
                p = bits.exemplar[number]
                literal = 2 * number + (table.predicates.mode[p] == _NONE)
                of_p = slice(table.predicates.start[p], table.predicates.start[p + 1])
                ends = zip(table.predicates.lo[of_p].tolist(), table.predicates.hi[of_p].tolist(), strict=True)
                expected += [(lo, hi, literal) for lo, hi in ends if lo != hi]
            lows: list[tuple[int, int]] = []
            highs: list[tuple[int, int]] = []
            nodes = [(int(view.root[d]), -(2**63), 2**63 - 1)]
            while nodes:
                node, least, most = nodes.pop()
                if node == NO_NODE:
                    continue
                center, begin, end = int(of_node.center[node]), int(of_node.begin[node]), int(of_node.end[node])
                assert begin < end, "no node is empty"
                low, high = view.low[begin:end], view.high[begin:end]
                assert (low <= center).all(), "what a node has contains its center"
                assert (high >= center).all()
                assert (low[1:] >= low[:-1]).all()
                assert (high[1:] >= high[:-1]).all()
                assert low[0] >= least, "and lies where its parents say"
                assert high[-1] <= most
                lows += zip(low.tolist(), view.of_low[begin:end].tolist(), strict=True)
                highs += zip(high.tolist(), view.of_high[begin:end].tolist(), strict=True)
                left, right = int(of_node.left[node]), int(of_node.right[node])
                nodes += [(left, least, center - 1), (right, center + 1, most)]
            assert sorted(lows) == sorted((lo, literal) for lo, _, literal in expected)
            assert sorted(highs) == sorted((hi, literal) for _, hi, literal in expected)


def with_ranges(table: Conjunctions, exemplar: TableNumbers, ids: Ids) -> Bools:
    """Which of some predicates have ranges: intervals of more than one key, but not all keys."""
    found = np.zeros(len(ids), np.bool_)
    _with_ranges(table.predicates, exemplar, ids, found)
    return found


@lean_kernel
def _with_ranges(predicates: Predicates, exemplar: TableNumbers, ids: Ids, found: Bools) -> None:
    for i in range(len(ids)):
        p = exemplar[ids[i]]
        if not is_everything(predicates, p):
            for k in range(predicates.start[p], predicates.start[p + 1]):
                found[i] |= predicates.lo[k] != predicates.hi[k]


@lean_kernel
def _sift(
    predicates: Predicates, bits: BitArrays, members: SlabArrays, dimensions: I32s, retired: Ids, counts: I64s
) -> int:
    """Drop members without references; returns how many. `counts` receives the number of ranges of the others."""
    data, gone = members.data, 0
    for i in range(len(dimensions)):
        d = dimensions[i]
        begin = kept = members.begin[d]
        for m in range(begin, begin + members.size[d]):
            if bits.references[data[m]] == 0:
                retired[gone] = data[m]
                gone += 1
                continue
            data[kept] = data[m]
            kept += 1
            p = bits.exemplar[data[m]]
            for k in range(predicates.start[p], predicates.start[p + 1]):
                counts[i + 1] += predicates.lo[k] != predicates.hi[k]
        members.size[d] = kept - begin
    return gone


@lean_kernel
def _unfold(
    predicates: Predicates, exemplar: TableNumbers, members: SlabArrays, dimensions: I32s, out: _Unfolded
) -> None:
    """Write all ranges of some dimensions."""
    at = 0
    for i in range(len(dimensions)):
        d = dimensions[i]
        for m in range(members.begin[d], members.begin[d] + members.size[d]):
            p = exemplar[members.data[m]]
            for k in range(predicates.start[p], predicates.start[p + 1]):
                if predicates.lo[k] != predicates.hi[k]:
                    out.tree[at], out.low[at], out.high[at] = i, predicates.lo[k], predicates.hi[k]
                    out.literal[at] = 2 * members.data[m] + (predicates.mode[p] == _NONE)
                    at += 1


@lean_kernel
def _grow_trees(
    starts: I64s, ranges: _Unfolded, nodes: NodeArrays, roots: I32s, waiting: Waiting, first: int, first_node: int
) -> int:
    """Build a tree over each run of ranges, and sort its ranges node by node. Returns how many nodes there are.

    `first` and `first_node` are how many ranges and nodes there were before.
    """
    low, high, spare = ranges.low, ranges.high, waiting.spare
    count = 0
    for tree in range(len(roots)):
        roots[tree] = NO_NODE
        depth = 1 if starts[tree + 1] > starts[tree] else 0
        wait(waiting, 0, starts[tree], starts[tree + 1], -1)
        while depth > 0:
            depth -= 1
            begin, end, parent = waiting.begin[depth], waiting.end[depth], waiting.parent[depth]
            if parent < 0:
                roots[tree] = first_node + count
            else:
                hang(nodes.left, nodes.right, parent, first_node + count)
            center = low[ranges.by_low[(begin + end) // 2]]
            part_at(center, ranges.by_high, begin, end, low, high, spare)
            here, above = part_at(center, ranges.by_low, begin, end, low, high, spare)
            nodes.center[count], nodes.begin[count], nodes.end[count] = center, first + here, first + above
            nodes.left[count], nodes.right[count] = NO_NODE, NO_NODE
            if begin < here:
                wait(waiting, depth, begin, here, with_flag(count, 0))
                depth += 1
            if above < end:
                wait(waiting, depth, above, end, with_flag(count, 1))
                depth += 1
            count += 1
    return count
