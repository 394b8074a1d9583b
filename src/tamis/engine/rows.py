"""Rows: the clauses of subscriptions, one row each, on their way into a segment.

A plain conjunction has one row. A DNF has a row per clause. An expression that keeps its tree has a row per necessary clause,
each with its program. All rows of a subscription stay together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.labels import Relabelling
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import (
    Conjunctions,
    all_differ,
    conjunctions_taken,
    equal_conjunctions,
    hash_conjunctions,
    joined_conjunctions,
)
from tamis.encoding.expressions.predicates import joined_predicates, relabelled, taken
from tamis.encoding.expressions.programs import ACCEPT, NO_PROGRAMS, Programs
from tamis.engine.matching.owners import Owners
from tamis.kernels.numbers import Bools, I32s, I64s


class Rows(NamedTuple):
    """Conjunctions with their owners."""

    table: Conjunctions
    slot: I32s
    program: I64s
    """First step of the owner's program in `programs`; ACCEPT if it has none."""
    several: Bools
    """Whether the owner has several rows."""
    programs: Programs

    @property
    def number(self) -> int:
        """The number of rows."""
        return len(self.slot)

    def apart(self) -> int:
        """The number of rows that name no value, so that they would lie apart in a delta."""
        start, (_, mode, begin, lo, hi) = self.table
        some = np.flatnonzero(mode == Mode.SOME)
        named = np.zeros(len(mode) + 1, np.int64)
        named[some + 1] = lo[begin[some]] == hi[begin[some + 1] - 1]
        return int(np.count_nonzero(np.diff(np.cumsum(named)[start]) == 0))

    def relabelled(self, dimension: int, relabelling: Relabelling) -> Rows:
        """The rows with new keys in a dimension whose labels move."""
        table = Conjunctions(self.table.start, relabelled(self.table.predicates, dimension, relabelling))
        programs = self.programs._replace(predicates=relabelled(self.programs.predicates, dimension, relabelling))
        return self._replace(table=table, programs=programs)

    def renumbered(self, numbers: I32s) -> Rows:
        """The rows with new numbers of dimensions, which have the same order."""
        predicates, steps = self.table.predicates, self.programs.predicates
        table = self.table._replace(predicates=predicates._replace(dimension=numbers[predicates.dimension]))
        programs = self.programs._replace(predicates=steps._replace(dimension=numbers[steps.dimension]))
        return self._replace(table=table, programs=programs)

    def taken(self, chosen: npt.NDArray[Any]) -> Rows:
        """Some rows, in the order of `chosen`, with all programs."""
        return Rows(
            conjunctions_taken(self.table, chosen),
            self.slot[chosen],
            self.program[chosen],
            self.several[chosen],
            self.programs,
        )


NO_ROWS = Rows(
    Conjunctions(np.zeros(1, np.int64), NO_PROGRAMS.predicates),
    np.zeros(0, np.int32),
    np.zeros(0, np.int64),
    np.zeros(0, np.bool_),
    NO_PROGRAMS,
)


def nbytes(arrays: Any) -> int:
    """The bytes of all arrays in a nest of tuples."""
    if isinstance(arrays, int):
        return 0
    return int(arrays.nbytes) if isinstance(arrays, np.ndarray) else sum(nbytes(part) for part in arrays)


def concatenated(parts: Sequence[Rows]) -> Rows:
    """The rows of all parts, one after another, with their programs."""
    if len(parts) == 1:
        return parts[0]
    programs, moved = NO_PROGRAMS, []
    for part in parts:
        programs, program = concatenated_programs(programs, part)
        moved.append(program)
    return Rows(
        joined_conjunctions([part.table for part in parts]),
        np.concatenate([part.slot for part in parts]),
        np.concatenate(moved),
        np.concatenate([part.several for part in parts]),
        programs,
    )


def concatenated_programs(programs: Programs, rows: Rows) -> tuple[Programs, I64s]:
    """Programs with those of rows behind them, and the program of each row there."""
    shift = len(programs.then)
    jumps = [
        np.concatenate((old, np.where(new >= 0, new + shift, new)))
        for old, new in zip(programs[1:], rows.programs[1:], strict=True)
    ]
    joined = Programs(joined_predicates([programs.predicates, rows.programs.predicates]), *jumps)
    return joined, np.where(rows.program == ACCEPT, ACCEPT, rows.program + shift)


def without_idle_programs(rows: Rows) -> Rows:
    """The rows with only the programs that some row needs."""
    steps = rows.programs
    if len(steps.then) == 0:
        return rows
    if (rows.program == ACCEPT).all():
        return rows._replace(programs=NO_PROGRAMS)
    reached = np.zeros(len(steps.then), np.bool_)
    frontier = np.unique(rows.program[rows.program != ACCEPT])
    while len(frontier):
        reached[frontier] = True
        following = np.unique(np.concatenate((steps.then[frontier], steps.otherwise[frontier])))
        following = following[following >= 0]
        frontier = following[~reached[following]]
    kept = np.flatnonzero(reached)
    number = np.cumsum(reached) - 1

    def moved(targets: I64s) -> I64s:
        return np.where(targets >= 0, number[np.maximum(targets, 0)], targets)

    programs = Programs(taken(steps.predicates, kept), moved(steps.then[kept]), moved(steps.otherwise[kept]))
    return rows._replace(program=moved(rows.program), programs=programs)


def distinct(rows: Rows) -> tuple[Conjunctions, Owners]:
    """Each distinct conjunction once, and its owners."""
    count = rows.number
    group = _groups(rows.table)
    alone = (rows.program == ACCEPT) & ~rows.several
    if group is None:
        table, shared = rows.table, ~alone
        group = np.arange(count)
    else:
        first = np.full(int(group.max()) + 1, count, np.int64)
        np.minimum.at(first, group, np.arange(count))
        table = conjunctions_taken(rows.table, first)
        shared = np.bincount(group, minlength=len(first)) > 1
        np.logical_or.at(shared, group, ~alone)
    sole = np.empty(len(shared), np.int32)
    sole[group] = rows.slot
    sole[shared] = ~np.arange(int(shared.sum()), dtype=np.int32)
    edges = np.flatnonzero(shared[group])
    number = np.cumsum(shared) - 1
    order = edges[np.argsort(number[group[edges]], kind="stable")]
    start = np.append(0, np.cumsum(np.bincount(number[group[edges]], minlength=int(shared.sum()))))
    return table, Owners(sole, start, rows.slot[order], rows.program[order], rows.several[order])


def _groups(table: Conjunctions) -> I64s | None:
    """The group of equal conjunctions that each conjunction belongs to; None if all are different."""
    hashes = hash_conjunctions(table)
    if all_differ(hashes):
        return None
    order = np.argsort(hashes, kind="stable")
    same = np.zeros(len(order), np.bool_)
    same[1:] = hashes[order][1:] == hashes[order][:-1]
    # Different conjunctions with equal hashes are next to impossible. They may then separate equal ones, which does no harm.
    equal_conjunctions(table, order, same)
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(~same) - 1
    return group
