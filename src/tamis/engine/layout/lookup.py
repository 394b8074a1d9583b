"""How the lists of a value are found: tables of words for the dimensions and the whole numbers of a segment.

    whole number --whole--> its space, its list, the ends of its bounds
    dimension of the matcher --brief--> what an event needs besides, if it has one value there, and the value is in `whole`
    dimension --about--> all that is needed for any value

This module has the meaning of each word, and the functions that pack words and read them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.engine.layout.aspects import Words
from tamis.engine.layout.lists import Points, first_point_list
from tamis.engine.layout.plan import POINTS, Plan
from tamis.engine.layout.predicate_codes import KEYS, POINT, Coded, CodedTable
from tamis.engine.layout.scale import MOST_SPACES, PER_WHOLE, Bytes, Dimensions, Keys, Scales
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U32, UP, Bools, I64s, U32s

HAS_RUNS = 1 << 31
"""Set in the begin of a list that has runs."""
BEGIN = HAS_RUNS - 1
"""The bits of a list's begin that hold its place."""


class Directory(NamedTuple):
    """Where lists begin and end."""

    begin: Words
    """The first entry of each list of spaces, presence, always and points; one more at the end. Some have HAS_RUNS set."""
    bounds: Words
    """For the sorted bounds of a dimension: their begin, then the end of the satisfied prefix for each space."""


class _Sides(NamedTuple):
    """Dimension -> where its sorted upper and lower bounds lie in `Directory.bounds`."""

    upper: I64s
    lower: I64s


class Lookup(NamedTuple):
    """What is needed to find the space and code of a value: see `Scales`, and below the columns of `about`."""

    local: Dimensions
    about: I64s
    cuts: Keys
    table: Bytes
    shift: Bytes
    whole: I64s
    """For each whole number of the dimensions that have a table: the words WHOLE_LIST and WHOLE_ENDS."""
    brief: I64s
    """For each dimension of the matcher: what a single-valued event needs besides `whole` if its value is there. See BRIEF."""


ABOUT = 8
CELL, BLOCKS, AT, LOWEST, WHOLES, SIDES, PRESENCE, SHIFT_AT = range(ABOUT)
EDGES, NUMBERED, ALL_NUMBERED = 1 << 32, 1 << 33, 1 << 34
SHIFTS = EDGES - 1
"""The ABOUT words of a dimension in `Lookup.about`: what matching needs to know of it, in one cache line.

    CELL       its first cell
    BLOCKS     how many blocks of cuts it has, at AT; 0: spaces are looked up in a table at AT
    LOWEST     the first whole number of this table; WHOLES: how many whole numbers it has
    SIDES      halves: where its sorted lower bounds lie, and its sorted upper bounds
    PRESENCE   halves: begin and end of the list of the dimension
    SHIFT_AT   as in `Scales`; above SHIFTS, EDGES and NUMBERED are as in `Coded`; ALL_NUMBERED: all keys that have lists of
               their own have numbers
"""
BRIEF = 4
BRIEF_WHOLES, BRIEF_PLACE, BRIEF_PRESENCE, BRIEF_BEGINS = range(BRIEF)
"""The BRIEF words of a dimension of the matcher in `Lookup.brief`, two halves each. Two dimensions share a cache line.

    BRIEF_WHOLES     LOWEST and WHOLES; 0: the numbers do not fit, so whole numbers are found like other values
    BRIEF_PLACE      the place of its first whole number in `whole`, and the dimension here; -1: the segment does not ask about it
    BRIEF_PRESENCE   begin and end of the list of the dimension, without HAS_RUNS
    BRIEF_BEGINS     begin of its sorted upper bounds, and of its sorted lower bounds
"""
WHOLE = 2
WHOLE_LIST, WHOLE_ENDS = range(WHOLE)
"""The WHOLE words of a whole number in `Lookup.whole`.

    WHOLE_LIST   its space and list, see `whole_word`
    WHOLE_ENDS   halves: where the sorted upper bounds that it satisfies end, and the sorted lower bounds
"""
_SPACE, _RUNS, _SIZE_AT, _BEGIN_AT = (1 << 8) - 1, 1 << 8, 9, 32
MOST_SIZE = (1 << (_BEGIN_AT - _SIZE_AT)) - 1
"""The size in the word of a list that is as long or longer."""


# -- packing words and reading them


@inlined
def whole_word(space: int, begin: int, size: int, has_runs: bool) -> int:
    """The space of a whole number and its list, in one word.

    begin of the list << _BEGIN_AT | size << _SIZE_AT | _RUNS? | space       size MOST_SIZE: the list is too long, look it up
    """
    return (begin << _BEGIN_AT) | (min(size, MOST_SIZE) << _SIZE_AT) | (_RUNS if has_runs else 0) | space


@inlined
def read_whole_word(word: int) -> tuple[int, int, int, bool, bool]:
    """The space of a whole number, begin and end of its list, whether the list has runs, and whether it is too long."""
    begin, size = word >> _BEGIN_AT, (word >> _SIZE_AT) & MOST_SIZE
    return word & _SPACE, begin, begin + size, word & _RUNS != 0, size == MOST_SIZE


@inlined
def list_at(begins: U32s, number: int) -> tuple[int, int, bool]:
    """Begin and end of a list, and whether it has runs."""
    begin = I64(begins[UP(number)])
    return begin & BEGIN, I64(begins[UP(number + 1)]) & BEGIN, begin & HAS_RUNS != 0


# -- building the tables


def find_lists(
    table: CodedTable, plan: Plan, points: Points, lists: I64s, run_lists: I64s, most_size: int = MOST_SIZE
) -> tuple[Lookup, Directory]:
    """How matching finds the lists of a value. `lists` has the list of each entry outside of runs, `run_lists` of each run.

    A list with `most_size` entries or more is looked up in the directory.
    """
    scales = table.scales
    unsorted = first_point_list(scales) + len(points.key)
    directory, sides = _directory(lists, run_lists, scales, unsorted)
    about = _about(scales, plan, table.coded, directory, sides)
    whole = np.zeros(WHOLE * max(len(scales.table) // PER_WHOLE, 1), np.int64)
    _fill_whole_words(scales, directory, sides, most_size, whole)
    brief = _brief(scales, about, directory.bounds)
    return Lookup(scales.local, about, scales.cuts, scales.table, scales.shift, whole, brief), directory


def _directory(lists: I64s, run_lists: I64s, scales: Scales, unsorted: int) -> tuple[Directory, _Sides]:
    """The directory, and where the sorted bounds of each dimension lie in it. The first `unsorted` lists are not sorted."""
    cells = int(scales.cell[-1])
    counts = np.bincount(lists, minlength=unsorted + 2 * cells)
    ends = np.cumsum(counts)
    begin = np.zeros(unsorted + 1, np.uint32)
    begin[1:] = ends[:unsorted]
    begin[run_lists] |= U32(HAS_RUNS)
    # A dimension with bounds on one side only has an empty list on the other side, which saves branches in matching.
    places, filled = [], MOST_SPACES + 2
    bounds: list[I64s] = [np.zeros(filled, np.int64)]
    for side in range(2):
        base = unsorted + side * cells
        used = np.add.reduceat(counts[base : base + cells], scales.cell[:-1]) if cells else np.zeros(0)
        at = np.zeros(len(scales.spaces), np.int64)
        for d in np.flatnonzero(used).tolist():
            first, spaces = base + int(scales.cell[d]), int(scales.spaces[d])
            prefix = ends[first : first + spaces]
            at[d] = filled
            bounds.append(ends[first - 1 : first] if first else np.zeros(1, np.int64))
            bounds.append(prefix[::-1] if side == 0 else prefix)
            filled += spaces + 1
        places.append(at)
    return Directory(begin, np.concatenate(bounds).astype(np.uint32)), _Sides(*places)


@lean_kernel
def _fill_whole_words(scales: Scales, directory: Directory, sides: _Sides, most_size: int, words: I64s) -> None:
    begins, bounds, at = directory.begin, directory.bounds, 0
    for d in range(len(scales.wholes)):
        for _ in range(scales.wholes[d]):
            space = I64(scales.table[PER_WHOLE * at])
            number = scales.cell[d] + space
            begin, end, has_runs = list_at(begins, number)
            size = end - begin if end - begin < most_size else MOST_SIZE
            words[WHOLE * at + WHOLE_LIST] = whole_word(space, begin, size, has_runs)
            upper, lower = I64(bounds[sides.upper[d] + 1 + space]), I64(bounds[sides.lower[d] + 1 + space])
            words[WHOLE * at + WHOLE_ENDS] = halves(upper, lower)
            at += 1


def _about(scales: Scales, plan: Plan, coded: Coded, directory: Directory, sides: _Sides) -> I64s:
    by_table = scales.wholes > 0
    flags = EDGES * coded.edges | NUMBERED * coded.numbered | ALL_NUMBERED * _all_numbered(plan, coded)
    first = int(scales.cell[-1])
    presence = directory.begin[first : first + len(scales.spaces) + 1].astype(np.int64)
    lines = np.empty((len(scales.spaces), ABOUT), np.int64)
    lines[:, CELL] = scales.cell[:-1]
    lines[:, BLOCKS] = np.where(by_table, 0, scales.blocks)
    lines[:, AT] = np.where(by_table, scales.table_at, scales.cut)
    lines[:, LOWEST] = scales.lowest
    lines[:, WHOLES] = scales.wholes
    lines[:, SIDES] = halves(sides.lower, sides.upper)
    lines[:, PRESENCE] = halves(presence[:-1], presence[1:] & BEGIN)
    lines[:, SHIFT_AT] = np.where(scales.shift_at < 0, -1, scales.shift_at | flags)
    return lines.ravel()


def _all_numbered(plan: Plan, coded: Coded) -> Bools:
    """By dimension: whether all keys that have lists of their own have numbers. The keys of POINT and KEYS have them."""
    by_keys = plan.access[plan.way == POINTS]
    unnamed = by_keys[(coded.kind[by_keys] != POINT) & (coded.kind[by_keys] != KEYS)]
    all_numbered = coded.numbered.copy()
    all_numbered[coded.dimension[unnamed]] = False
    return all_numbered


def _brief(scales: Scales, about: I64s, bounds: Words) -> I64s:
    lines = about.reshape(-1, ABOUT)
    lowest, wholes, place = lines[:, LOWEST], lines[:, WHOLES], lines[:, AT] // PER_WHOLE
    near = (wholes > 0) & (np.abs(lowest) < 1 << 31) & (place < 1 << 30)
    sides = lines[:, SIDES]
    upper, lower = (bounds[at].astype(np.int64) for at in (second_half(sides), first_half(sides)))
    words = np.full((len(scales.local) + 1, BRIEF), -1, np.int64)
    there = np.flatnonzero(scales.local >= 0)
    at = scales.local[there]
    words[there, BRIEF_WHOLES] = np.where(near, halves(lowest, wholes), 0)[at]
    words[there, BRIEF_PLACE] = halves(np.where(near, place, 0), np.arange(len(lines)))[at]
    presence = lines[at, PRESENCE]
    words[there, BRIEF_PRESENCE] = halves(first_half(presence) & BEGIN, second_half(presence))
    words[there, BRIEF_BEGINS] = halves(upper, lower)[at]
    return words.ravel()
