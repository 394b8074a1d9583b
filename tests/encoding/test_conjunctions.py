"""The conjunction table: canonical order, each conjunction once, labels that move."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tamis.encoding.dimensions.intervals import between, points
from tamis.encoding.dimensions.labels import Labels, Relabelling
from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import Conjunctions, ConjunctionTable
from tamis.encoding.expressions.predicates import predicates_of

pytestmark = pytest.mark.kernels


def rows(*clauses: list[Leaf]) -> Conjunctions:
    start = np.append(0, np.cumsum([len(clause) for clause in clauses])).astype(np.int64)
    return Conjunctions(start, predicates_of(leaf for clause in clauses for leaf in clause))


def read(table: ConjunctionTable) -> list[list[Leaf]]:
    view = table.view()
    columns = view.predicates
    found = []
    for c in range(len(table)):
        clause = []
        for p in range(view.start[c], view.start[c + 1]):
            intervals = tuple(
                (int(columns.lo[i]), int(columns.hi[i])) for i in range(columns.start[p], columns.start[p + 1])
            )
            clause.append(Leaf(int(columns.dimension[p]), Mode(columns.mode[p]), intervals))
        found.append(clause)
    return found


A = Leaf(0, Mode.SOME, points([5]))
B = Leaf(1, Mode.SOME, points([1, 3]))
C = Leaf(1, Mode.NONE, between(2, 9))
D = Leaf(2, Mode.ABSENT, ())


def test_equal_conjunctions_in_any_order_get_the_same_number() -> None:
    table = ConjunctionTable()
    assert table.intern(rows([A, B], [B, A], [A], [A, B, A], [])).tolist() == [0, 0, 1, 0, 2]
    assert table.intern(rows([B, A], [], [C], [D, C, B, A])).tolist() == [0, 2, 3, 4]
    assert read(table) == [[A, B], [A], [], [C], [A, B, C, D]]


def test_predicates_that_differ_anywhere_are_not_equal() -> None:
    variants = [
        Leaf(dimension, mode, intervals)
        for dimension in (0, 1)
        for mode in (Mode.SOME, Mode.NONE)
        for intervals in (points([1]), points([1, 3]), between(1, 3), between(1, 2), points([3]))
    ]
    table = ConjunctionTable()
    numbers = table.intern(rows(*[[leaf] for leaf in variants]))
    assert numbers.tolist() == list(range(len(variants)))
    assert table.intern(rows(*[[leaf] for leaf in reversed(variants)])).tolist() == numbers.tolist()[::-1]


def test_many_random_conjunctions_against_a_dictionary() -> None:
    chance = random.Random(3)
    leaves = [Leaf(d, mode, points([k])) for d in range(4) for mode in (Mode.SOME, Mode.NONE) for k in range(4)]
    table = ConjunctionTable()
    expected: dict[frozenset[Leaf], int] = {}
    for _ in range(20):
        clauses = [chance.choices(leaves, k=chance.randint(0, 4)) for _ in range(chance.randint(0, 60))]
        numbers = table.intern(rows(*clauses)).tolist()
        assert numbers == [expected.setdefault(frozenset(clause), len(expected)) for clause in clauses]
    assert len(table) == len(expected)


def test_a_conjunction_of_thousands() -> None:
    leaves = [Leaf(d, Mode.SOME, points([d])) for d in range(3000)]
    shuffled = leaves * 2
    random.Random(1).shuffle(shuffled)
    table = ConjunctionTable()
    assert table.intern(rows(leaves, shuffled)).tolist() == [0, 0]
    assert read(table)[0] == leaves


def test_keys_follow_their_labels_and_equal_conjunctions_are_still_found() -> None:
    table = ConjunctionTable()
    gap = Leaf(7, Mode.SOME, ((-100, 19), (21, 39)))
    table.intern(rows([Leaf(7, Mode.SOME, points([20]))], [gap], [Leaf(8, Mode.SOME, points([20]))]))
    table.relabel(7, Relabelling(Labels(0, 1000), [], [], np.array([20, 40]), np.array([300, 600])))
    moved = Leaf(7, Mode.SOME, ((-100, 299), (301, 599)))
    expected = [[Leaf(7, Mode.SOME, points([300]))], [moved], [Leaf(8, Mode.SOME, points([20]))]]
    assert read(table) == expected
    assert table.intern(rows(*expected)).tolist() == [0, 1, 2]
