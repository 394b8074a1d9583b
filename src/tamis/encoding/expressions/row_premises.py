"""The premises of rows: strings of which an event must have one, so that a row can match. See `encoding.dimensions.premises`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis.encoding.dimensions.dimension import Facet, StringDimension
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.dimensions.premises import Premise
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.kernels.numbers import I32s, I64s

_MOST_STRINGS = 16
"""The most strings of a predicate that names a premise."""
_MOST_ROWS = 1 << 16
"""Rows that are looked at together. Of more, no premise is noted: a set this large is seldom written by hand."""

_Guard = tuple[int, tuple[int, ...]]
"""A dimension of strings and the keys of the strings."""


def premises_of_rows(
    table: Conjunctions, program: I64s, programs: Programs, dimensions: Dimensions
) -> Iterator[tuple[str, frozenset[Premise] | None]]:
    """Each attribute that rows ask about, with the premises of these rows. None: some row has no premise.

    `program` has the program of each row.
    """
    counts = [
        np.bincount(each.dimension, minlength=len(dimensions)) for each in (table.predicates, programs.predicates)
    ]
    asked = np.flatnonzero(counts[0] + counts[1]).tolist()
    guards = _guards(table, asked, dimensions) if len(program) <= _MOST_ROWS else None
    if guards is None:
        yield from ((name, None) for name in {dimensions[number].attribute for number in asked})
        return
    numbers = {guard: number for number, guard in enumerate(dict.fromkeys(guards))}
    number_of = np.array([numbers[guard] for guard in guards], np.int64)
    pairs = _pairs(number_of, np.diff(table.start), table.predicates.dimension)
    by_program = _pairs_of_programs(number_of, program, programs)
    premises: dict[str, set[Premise]] = {}
    free: set[str] = set()
    named = [_named(guard, dimensions) for guard in numbers]
    for number, dimension in sorted({*pairs, *by_program}):
        attribute, texts = dimensions[dimension].attribute, named[number]
        if texts:
            premises.setdefault(attribute, set()).update(texts)
        else:
            free.add(attribute)
    free.update(attribute for texts in named for attribute, _ in texts)  # The strings of premises are always needed.
    for attribute in free:
        yield attribute, None
    for attribute, of_it in premises.items():
        if attribute not in free:
            yield attribute, frozenset(of_it)


def _named(guard: _Guard | None, dimensions: Dimensions) -> frozenset[Premise]:
    """The premises that a guard names."""
    if guard is None:
        return frozenset()
    dimension = dimensions[guard[0]]
    assert isinstance(dimension, StringDimension)
    return frozenset((dimension.attribute, text) for text in dimension.texts_at(guard[1]))


def _pairs(number_of: I64s, counts: I64s, dimension: I32s) -> list[tuple[int, int]]:
    """The distinct pairs of a guard's number and a dimension that a row with this guard asks about."""
    width = int(dimension.max(initial=0)) + 1
    pairs = np.unique(np.repeat(number_of, counts) * width + dimension)
    return list(zip((pairs // width).tolist(), (pairs % width).tolist(), strict=True))


def _guards(table: Conjunctions, asked: list[int], dimensions: Dimensions) -> list[_Guard | None] | None:
    """The guard of each row: the predicate on the dimension with the most strings. None instead of all if no row has one."""
    predicates = table.predicates
    texts = [number for number in asked if dimensions[number].facet is Facet.STRING]
    words = np.zeros(max(asked, default=-1) + 1, np.int64)
    words[texts] = [dimensions[number].words() for number in texts]
    wide = np.append(0, np.cumsum(predicates.lo != predicates.hi))[predicates.start]
    counts = np.diff(predicates.start)
    is_guard = (words[predicates.dimension] > 0) & (predicates.mode == Mode.SOME) & (np.diff(wide) == 0)
    is_guard &= (counts > 0) & (counts <= _MOST_STRINGS)
    places = np.flatnonzero(is_guard)
    if not len(places):
        return None
    rows = np.repeat(np.arange(len(table.start) - 1), np.diff(table.start))[places]
    order = np.lexsort((-words[predicates.dimension[places]], rows))
    best = order[np.diff(rows[order], prepend=-1) > 0]
    guards: list[_Guard | None] = [None] * (len(table.start) - 1)
    places = places[best]
    first = predicates.start[places]
    for row, number, at, key, count in zip(
        *(
            each.tolist()
            for each in (rows[best], predicates.dimension[places], first, predicates.lo[first], counts[places])
        ),
        strict=True,
    ):
        guards[row] = number, (key,) if count == 1 else tuple(predicates.lo[at : at + count].tolist())
    return guards


def _pairs_of_programs(number_of: I64s, program: I64s, programs: Programs) -> Iterator[tuple[int, int]]:
    """The same pairs of programs. A program runs only if a row of its owner holds."""
    rows = np.flatnonzero(program != ACCEPT)
    by_program: dict[int, set[int]] = {}
    for first, number in zip(program[rows].tolist(), number_of[rows].tolist(), strict=True):
        by_program.setdefault(first, set()).add(number)
    lowest = 0
    for first in sorted(by_program):  # The steps of a program end with its first one.
        for dimension in np.unique(programs.predicates.dimension[lowest : first + 1]).tolist():
            for number in by_program[first]:
                yield number, dimension
        lowest = first + 1
