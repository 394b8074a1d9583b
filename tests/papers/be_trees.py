"""BE-Trees over conjunctions in keys, for the tests of `be-tree`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tamis.encoding.dimensions.keys import KeyKind
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.be_tree import BETree
from tests.papers.naive import Event, batch_of, matching, rows_of

A, B, C, D = range(4)
MIN, MAX = -(2**63), 2**63 - 1


SMALL: dict[str, Any] = {"max_cap": 3, "min_size": 2, "domain_lo": 1, "domain_hi": 8}


def some(dimension: int, lo: int, hi: int | None = None) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((lo, lo if hi is None else hi),))


def tree_of(
    clauses: list[list[Leaf]], one_by_one: bool = True, kind: KeyKind = KeyKind.INTEGER, **options: Any
) -> BETree:
    table = ConjunctionTable()
    numbers = table.intern(rows_of(clauses))
    assert numbers.tolist() == list(range(len(clauses)))
    tree = BETree(table, BETree.options_type.read(options, "be-tree"), lambda dimension: kind)
    for part in np.array_split(numbers, len(numbers)) if one_by_one else [numbers]:
        tree.insert(part)
        tree.check()
    return tree


def drawn(tree: BETree) -> list[str]:
    return tree.draw().splitlines()


def pairs(tree: BETree, events: list[Event], dimensions: int = 6) -> set[tuple[int, int]]:
    matches = tree.match(batch_of(events), dimensions)
    return set(zip(matches.event.tolist(), matches.conjunction.tolist(), strict=True))


def agrees(tree: BETree, clauses: list[list[Leaf]], events: list[Event], live: Iterable[int] | None = None) -> None:
    there = range(len(clauses)) if live is None else live
    assert pairs(tree, events) == matching({number: clauses[number] for number in there}, events)
