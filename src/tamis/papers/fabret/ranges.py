"""The part of the predicate index for ranges: for each dimension, a search tree over intervals.

    members       for each dimension, the ids of the predicates that have ranges; the first `built` of them are in its tree
    root          the node where the tree of a dimension begins
    node          center | begin, end | left, right
    low, high     ends of the intervals of node after node: the lower ascending, the upper ascending
    of_low ...    their predicates, as literals (see `points`)

A node has the intervals that contain its center. Lower intervals are in its left child, higher ones in its right child. A key
below the center hits the first intervals of `low`, up to the last that begins at or below the key, so they are read in sequence.
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
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import kernel, lean_kernel
from tamis.papers.fabret.bit_vector import BitArrays, is_everything
from tamis.papers.parts.slabs import SlabArrays, Slabs

NO_NODE = -1
_NONE = int(Mode.NONE)
_FEWEST = 32
Ids = npt.NDArray[np.int32]


class TreeArrays(NamedTuple):
    """The trees as kernels take them."""

    members: SlabArrays
    built: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    center: npt.NDArray[np.int64]
    begin: npt.NDArray[np.int32]
    end: npt.NDArray[np.int32]
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    of_low: npt.NDArray[np.int32]
    of_high: npt.NDArray[np.int32]


class Ranges:
    """The ranges of all predicates."""

    def __init__(self) -> None:
        self._members = Slabs()
        self._built, self._dead, self._root, self._entries = (np.zeros(0, np.int32) for _ in range(4))
        self._clear()

    def _clear(self) -> None:
        self._center, self._low, self._high = (GrowingArray(np.int64) for _ in range(3))
        self._begin, self._end, self._left, self._right = (GrowingArray(np.int32) for _ in range(4))
        self._of_low, self._of_high = (GrowingArray(np.int32) for _ in range(2))
        self._root[:], self._entries[:] = NO_NODE, 0

    @property
    def _trees(self) -> tuple[GrowingArray, ...]:
        nodes = (self._center, self._begin, self._end, self._left, self._right)
        return (*nodes, self._low, self._high, self._of_low, self._of_high)

    @property
    def nbytes(self) -> int:
        fixed = self._built.nbytes + self._dead.nbytes + self._root.nbytes + self._entries.nbytes
        return fixed + self._members.nbytes + sum(array.nbytes for array in self._trees)

    def view(self) -> TreeArrays:
        return TreeArrays(self._members.view(), self._built, self._root, *(array.view() for array in self._trees))

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
        left_behind = len(self._low) - int(self._entries.sum()) + int(self._entries[due].sum())
        if len(due) and 2 * left_behind > len(self._low):  # more than half of the arrays would be unused
            due = np.flatnonzero(self._members.view().size).astype(np.int32)
            self._clear()
        return self._plant(table, bits, due) if len(due) else np.zeros(0, np.int32)

    def _plant(self, table: Conjunctions, bits: BitArrays, dimensions: Ids) -> Ids:
        members, predicates = self._members.view(), table.predicates
        retired = np.empty(int(self._dead[dimensions].sum()), np.int32)
        counts = np.zeros(len(dimensions) + 1, np.int64)
        gone = _sift(predicates, bits.exemplar, bits.references, members, dimensions, retired, counts)
        assert gone == len(retired)
        starts = np.cumsum(counts)
        lows, highs = np.empty((2, starts[-1]), np.int64)
        literals, number = np.empty((2, starts[-1]), np.int32)
        _unfold(predicates, bits.exemplar, members, dimensions, (number, lows, highs, literals))
        by_low, by_high = np.lexsort((lows, number)), np.lexsort((highs, number))
        centers, nodes = np.empty(starts[-1], np.int64), np.empty((4, starts[-1]), np.int32)
        roots = np.empty(len(dimensions), np.int32)
        base = (len(self._low), len(self._center))
        count = _grow_trees(starts, lows, highs, by_low, by_high, centers, nodes, roots, base)
        self._center.extend(centers[:count])
        for column, values in zip((self._begin, self._end, self._left, self._right), nodes, strict=True):
            column.extend(values[:count])
        self._low.extend(lows[by_low])
        self._high.extend(highs[by_high])
        self._of_low.extend(literals[by_low])
        self._of_high.extend(literals[by_high])
        self._root[dimensions], self._entries[dimensions] = roots, np.diff(starts)
        self._built[dimensions], self._dead[dimensions] = members.size[dimensions], 0
        return retired

    def check(self, table: Conjunctions, bits: BitArrays, live: set[int], retired: set[int]) -> None:
        """Raise an AssertionError unless the trees and lists hold the ranges of these predicates, and no others."""
        view = self.view()
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
                center, begin, end = int(view.center[node]), int(view.begin[node]), int(view.end[node])
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
                nodes += [(int(view.left[node]), least, center - 1), (int(view.right[node]), center + 1, most)]
            assert sorted(lows) == sorted((lo, literal) for lo, _, literal in expected)
            assert sorted(highs) == sorted((hi, literal) for _, hi, literal in expected)


def with_ranges(table: Conjunctions, exemplar: npt.NDArray[np.int64], ids: Ids) -> npt.NDArray[np.bool_]:
    """Which of some predicates have ranges: intervals of more than one key, but not all keys."""
    found = np.zeros(len(ids), np.bool_)
    _with_ranges(table.predicates, exemplar, ids, found)
    return found


@lean_kernel
def _with_ranges(predicates: Any, exemplar: Any, ids: Any, found: Any) -> None:
    _, _, start, lo, hi = predicates
    for i in range(len(ids)):
        p = exemplar[ids[i]]
        if not is_everything(start, lo, hi, p):
            for k in range(start[p], start[p + 1]):
                found[i] |= lo[k] != hi[k]


@lean_kernel
def _sift(
    predicates: Any, exemplar: Any, references: Any, members: Any, dimensions: Any, retired: Any, counts: Any
) -> int:
    """Drop members without references; returns how many. `counts` receives the number of ranges of the others."""
    begin, size, _, data, _ = members
    gone = 0
    for i in range(len(dimensions)):
        d = dimensions[i]
        kept = begin[d]
        for m in range(begin[d], begin[d] + size[d]):
            if references[data[m]] == 0:
                retired[gone] = data[m]
                gone += 1
                continue
            data[kept] = data[m]
            kept += 1
            p = exemplar[data[m]]
            for k in range(predicates.start[p], predicates.start[p + 1]):
                counts[i + 1] += predicates.lo[k] != predicates.hi[k]
        size[d] = kept - begin[d]
    return gone


@lean_kernel
def _unfold(predicates: Any, exemplar: Any, members: Any, dimensions: Any, out: Any) -> None:
    """Write all ranges of some dimensions."""
    _, mode, start, lo, hi = predicates
    number, lows, highs, literals = out
    at = 0
    for i in range(len(dimensions)):
        d = dimensions[i]
        for m in range(members.begin[d], members.begin[d] + members.size[d]):
            p = exemplar[members.data[m]]
            for k in range(start[p], start[p + 1]):
                if lo[k] != hi[k]:
                    number[at], lows[at], highs[at] = i, lo[k], hi[k]
                    literals[at] = 2 * members.data[m] + (mode[p] == _NONE)
                    at += 1


@kernel
def _grow_trees(
    starts: Any, lows: Any, highs: Any, by_low: Any, by_high: Any, center: Any, nodes: Any, roots: Any, base: Any
) -> int:
    """Build a tree over each run of intervals, and sort its intervals node by node. Returns how many nodes there are."""
    first, first_node = base
    spare = np.empty(len(by_low), np.int64)
    waiting = np.empty(
        (130, 3), np.int64
    )  # the children still to build along a path: begin, end, and where the child's number goes
    count = 0
    for tree in range(len(roots)):
        roots[tree] = NO_NODE
        depth = 0
        if starts[tree + 1] > starts[tree]:
            waiting[0, 0], waiting[0, 1], waiting[0, 2] = starts[tree], starts[tree + 1], -1
            depth = 1
        while depth > 0:
            depth -= 1
            begin, end, above = waiting[depth]
            c = lows[by_low[(begin + end) // 2]]
            here, below = 0, 0
            for i in range(begin, end):
                here += lows[by_low[i]] <= c <= highs[by_low[i]]
                below += highs[by_low[i]] < c
            for order in (by_low, by_high):
                at, left, right = begin, begin + here, begin + here + below
                for i in range(begin, end):
                    spare[i] = order[i]
                for i in range(begin, end):
                    if highs[spare[i]] < c:
                        order[left] = spare[i]
                        left += 1
                    elif lows[spare[i]] > c:
                        order[right] = spare[i]
                        right += 1
                    else:
                        order[at] = spare[i]
                        at += 1
            center[count] = c
            nodes[0, count], nodes[1, count] = first + begin, first + begin + here
            nodes[2, count], nodes[3, count] = NO_NODE, NO_NODE
            if above < 0:
                roots[tree] = first_node + count
            else:
                nodes[above & 3, above >> 2] = first_node + count
            if below > 0:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = (
                    begin + here,
                    begin + here + below,
                    count << 2 | 2,
                )
                depth += 1
            if begin + here + below < end:
                waiting[depth, 0], waiting[depth, 1], waiting[depth, 2] = begin + here + below, end, count << 2 | 3
                depth += 1
            count += 1
    return count
