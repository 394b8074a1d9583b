"""The scan: which predicate it tests first, and when it stops."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.encoding.dimensions.leaf import Leaf, Mode
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.papers.scan import Scan
from tests.papers.naive import Event, batch_of, rows_of

pytestmark = pytest.mark.kernels

A, B, C = range(3)


def some(dimension: int, lo: int, hi: int) -> Leaf:
    return Leaf(dimension, Mode.SOME, ((lo, hi),))


def scan_of(clauses: list[list[Leaf]], seen: list[Event] | None = None) -> Scan:
    table = ConjunctionTable()
    scan = Scan(table)
    if seen is not None:
        scan.observe(batch_of(seen), 3)
    scan.insert(table.intern(rows_of(clauses)))
    scan.check()
    return scan


def evaluated(scan: Scan, event: Event) -> int:
    """The number of predicates tested for an event. A first predicate that holds is tested again with the others."""
    return scan.match(batch_of([event]), 3).counters.predicates


def test_it_stops_at_the_first_predicate_that_fails() -> None:
    scan = scan_of([[some(A, 0, 0), some(B, 0, 9), some(C, 0, 99)]])
    assert evaluated(scan, {A: [(0, 0)], B: [(5, 5)], C: [(50, 50)]}) == 4
    assert evaluated(scan, {A: [(0, 0)], B: [(10, 10)], C: [(50, 50)]}) == 3
    assert evaluated(scan, {A: [(1, 1)], B: [(5, 5)], C: [(50, 50)]}) == 1
    assert evaluated(scan, {}) == 1


def test_without_events_the_narrowest_predicate_comes_first() -> None:
    scan = scan_of([[some(A, 0, 99), some(B, 0, 9), some(C, 7, 7)]])
    assert evaluated(scan, {A: [(5, 5)], B: [(5, 5)], C: [(8, 8)]}) == 1
    assert evaluated(scan, {A: [(5, 5)], B: [(10, 10)], C: [(7, 7)]}) == 3


def test_past_events_decide_which_predicate_comes_first() -> None:
    # All past events have c = 7, and none has a.
    seen: list[Event] = [{B: [(number % 20, number % 20)], C: [(7, 7)]} for number in range(200)]
    scan = scan_of([[some(A, 0, 99), some(B, 0, 9), some(C, 7, 7)]], seen)
    assert evaluated(scan, {B: [(5, 5)], C: [(7, 7)]}) == 1
    assert evaluated(scan, {A: [(5, 5)], B: [(10, 10)], C: [(7, 7)]}) == 3
    assert evaluated(scan, {A: [(5, 5)], B: [(5, 5)], C: [(8, 8)]}) == 4


def test_all_rows_are_candidates_until_they_are_deleted() -> None:
    clauses = [[some(A, number, number)] for number in range(50)]
    scan = scan_of(clauses)
    event = batch_of([{A: [(3, 3)]}, {A: [(70, 70)]}])
    assert scan.match(event, 3).counters.candidates == 100
    scan.delete(np.arange(0, 50, 2, dtype=np.int32))
    scan.check()
    assert scan.match(event, 3).counters.candidates == 50
    assert scan.match(event, 3).conjunction.tolist() == [3]
