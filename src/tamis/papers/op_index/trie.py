"""A trie over bytes whose nodes hold numbers: the operator list of prefixes (section 6.2).

    "make#ap"  1            (0, m) -> 1  (1, a) -> 2 ... (5, a) -> 6  (6, p) -> 7      edges
    "make#a"   2            6: [2], 7: [1]                                             items of nodes

A walk along "make#apple" passes nodes 6 and 7 and finds 2 and 1: both are prefixes of it.

It is not a kernel: a walk of some ten steps through a dictionary takes a microsecond, and calling a kernel takes more.
"""

from __future__ import annotations

ROOT = 0
NOWHERE = -1
DELIMITER = b"\xff"
"""Stands between attribute and operand, where the paper writes '#'. UTF-8 never contains this byte."""


class Trie:
    """Byte strings with numbers. Invariant: node n > 0 is the target of exactly one edge, from a node below n."""

    def __init__(self) -> None:
        # The key is node << 8 | byte: it is found faster than a pair.
        self._edges: dict[int, int] = {}
        self._items: dict[int, list[int]] = {}

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._edges) + 1

    def insert(self, text: bytes, item: int) -> None:
        """Enter a number under a text."""
        node = ROOT
        for byte in text:
            node = self._edges.setdefault(node << 8 | byte, len(self._edges) + 1)
        self._items.setdefault(node, []).append(item)

    def find(self, text: bytes, node: int = ROOT) -> int:
        """The node at the end of a text, starting at a node; NOWHERE if there is none."""
        for byte in text:
            node = self._edges.get(node << 8 | byte, NOWHERE)
            if node == NOWHERE:
                break
        return node

    def prefixes(self, text: bytes, node: int = ROOT) -> list[int]:
        """The numbers of all texts that are prefixes of `text`, starting at a node."""
        found = list(self._items.get(node, ()))
        for byte in text:
            node = self._edges.get(node << 8 | byte, NOWHERE)
            if node == NOWHERE:
                break
            if node in self._items:
                found += self._items[node]
        return found

    def check(self) -> None:
        """Raise an AssertionError if the invariant does not hold."""
        assert sorted(self._edges.values()) == list(range(1, len(self)))
        assert all(key >> 8 < node for key, node in self._edges.items())
        assert all(items and ROOT <= node < len(self) for node, items in self._items.items())
