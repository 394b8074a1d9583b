"""A trie over bytes whose nodes hold numbers: the operator list of prefixes (section 6.2).

    "make#ap"  1            (0, m) -> 1  (1, a) -> 2 ... (5, a) -> 6  (6, p) -> 7      edges, a hash table
    "make#a"   2            node 6: 2, node 7: 1                                       items, a list per node

A walk along "make#apple" passes nodes 6 and 7 and finds 2 and 1: both are prefixes of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.encoding.kernel import lean_kernel
from tamis.index.pair_map import FREE, PairMap, enter, slot_of
from tamis.index.slabs import Slabs

ROOT = 0
DELIMITER = b"\xff"
"""Stands between attribute and operand, where the paper writes '#': no UTF-8 has this byte."""


class Trie:
    """Byte strings with numbers. Invariant: node n > 0 is the target of exactly one edge, from a node below n."""

    def __init__(self) -> None:
        self._edges = PairMap()
        self._items = Slabs()
        self._items.add()

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._items)

    @property
    def nbytes(self) -> int:
        return self._edges.nbytes + self._items.nbytes

    def insert(self, text: bytes, item: int) -> None:
        """Enter a number under a text."""
        self._edges.reserve(len(text))
        node = _descend(self._edges.view(), np.frombuffer(text, np.uint8), len(self))
        missing = len(self._edges) + 1 - len(self)
        if missing:
            self._items.add(missing)
        self._items.extend(np.array([node], np.int64), np.array([item], np.int32))

    def find(self, text: bytes, node: int = ROOT) -> int:
        """The node at the end of a text from a node on; FREE if there is none."""
        passed = self._walk(text, node)
        return int(passed[-1]) if len(passed) == len(text) + 1 else FREE

    def prefixes(self, text: bytes, node: int = ROOT) -> npt.NDArray[np.int32]:
        """The numbers of all texts that begin `text`, from a node on."""
        held = self._items.view()
        passed = self._walk(text, node)
        full = passed[held.size[passed] > 0]
        return np.concatenate([np.zeros(0, np.int32), *(self._items.values(each) for each in full.tolist())])

    def _walk(self, text: bytes, node: int) -> npt.NDArray[np.int64]:
        """The nodes on the way, as far as it goes."""
        passed = np.empty(len(text) + 1, np.int64)
        return passed[: _walk(self._edges.view(), np.frombuffer(text, np.uint8), node, passed)]

    def check(self) -> None:
        """Raise an AssertionError if the invariant does not hold."""
        arrays = self._edges.view()
        used = arrays.value != FREE
        assert np.sort(arrays.value[used]).tolist() == list(range(1, len(self)))
        assert (arrays.first[used] < arrays.value[used]).all()


@lean_kernel
def _descend(edges: Any, text: Any, nodes: int) -> int:
    """The node of a text; what is missing on the way is made, numbered from `nodes` on."""
    firsts, seconds, values, count = edges
    node = 0
    for byte in text:
        at = slot_of(firsts, seconds, values, node, byte)
        if values[at] == FREE:
            enter(firsts, seconds, values, count, at, node, byte, nodes)
            nodes += 1
        node = values[at]
    return node


@lean_kernel
def _walk(edges: Any, text: Any, node: int, passed: Any) -> int:
    """Write the nodes that a text passes; returns how many."""
    firsts, seconds, values, _ = edges
    passed[0] = node
    count = 1
    for byte in text:
        node = values[slot_of(firsts, seconds, values, node, byte)]
        if node == FREE:
            break
        passed[count] = node
        count += 1
    return count
