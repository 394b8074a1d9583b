"""The vector code finds what its plain twins find. Both run on every host: LLVM writes plain code for what a processor lacks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

from tamis.engine.layout.record_words import (
    DONE,
    DOUBT,
    LONG,
    ROW,
    UNIT,
    range_holds,
    range_word,
    reference_of,
    shape_with,
)
from tamis.engine.layout.scale import MISSING
from tamis.engine.matching.scratch import LANES
from tamis.engine.matching.vectors import VECTORS, check_vector, collect_plain, collect_vectors, have_only_ranges
from tamis.kernels.kernel import lean_kernel

pytestmark = pytest.mark.compiled

DIMENSIONS = 300
ROOM = 64
"""Words behind a result, which must stay as they are but for the lanes of one vector."""


@lean_kernel
def _collect_plain(first: int, last: int, entry: Any, second: Any, space: Any, out: Any, n: int) -> int:
    return collect_plain(first, last, entry, second, space, out, n)


@lean_kernel
def _collect_vectors(first: int, last: int, entry: Any, second: Any, space: Any, out: Any, n: int) -> int:
    return collect_vectors(first, last, entry, second, space, out, n)


@lean_kernel
def _check(record: Any, survivor: Any, at: int, end: int, space: Any, out: Any, filled: int) -> int:
    return check_vector(record, survivor, at, end, space, out, filled)


@lean_kernel
def _only_ranges(survivor: Any, at: int) -> bool:
    return have_only_ranges(survivor, at)


@njit  # not one of our kernels: what comes from a cache has no code to look at
def _both(entry: Any, space: Any, record: Any, survivor: Any, out: Any) -> int:
    n = collect_vectors(0, 64, entry, survivor[:0], space, survivor, 0)
    return check_vector(record, survivor, 0, n, space, out, 0)


def spaces(chance: np.random.Generator) -> Any:
    """The spaces of an event that lacks some dimensions, with three bytes behind them."""
    space = chance.integers(0, 12, DIMENSIONS + 1 + 3).astype(np.uint8)
    space[chance.random(len(space)) < 0.3] = MISSING
    space[DIMENSIONS] = 0
    return space[: DIMENSIONS + 1]


def words(chance: np.random.Generator, count: int) -> Any:
    """Words of ranges. Those of the last dimension always hold, and the first dimension has the widest range of all."""
    found = []
    for _ in range(count):
        dimension = int(chance.choice([0, 1, DIMENSIONS - 1, DIMENSIONS, int(chance.integers(DIMENSIONS))]))
        first = 0 if dimension == DIMENSIONS else int(chance.integers(0, 12))
        last = first if dimension == DIMENSIONS else int(chance.choice([first, first + 3, 253]))
        found.append(range_word(dimension, first, max(first, last)))
    return np.array(found, np.uint32)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("twice", [False, True])
def test_collecting_survivors(seed: int, twice: bool) -> None:
    chance = np.random.default_rng(seed)
    count, space = int(chance.integers(1, 200)), spaces(chance)
    entry = np.zeros(2 * (count + ROOM), np.uint32)
    entry[: 2 * count : 2], entry[1 : 2 * count : 2] = words(chance, count), chance.integers(0, 2**32, count)
    second = words(chance, count + ROOM) if twice else np.zeros(0, np.uint32)
    first, last = sorted(chance.integers(0, count + 1, 2).tolist())
    before = int(chance.integers(0, 5))
    plain, vectors = np.full((2, count + ROOM), 7, np.uint32)
    n = _collect_plain(first, last, entry, second, space, plain, before)
    assert n == before + sum(
        bool(range_holds(entry[2 * q], space)) and (not twice or bool(range_holds(second[q], space)))
        for q in range(first, last)
    )
    assert _collect_vectors(first, last, entry, second, space, vectors, before) == n
    assert vectors[:n].tolist() == plain[:n].tolist()
    assert (vectors[n + 8 :] == 7).all()


@pytest.mark.parametrize("seed", range(30))
def test_checking_records(seed: int) -> None:
    chance = np.random.default_rng(seed)
    space = spaces(chance)
    record, survivor, expected = np.zeros(40 * UNIT * LANES, np.uint32), [], []
    at = UNIT * int(chance.integers(0, 5))
    for _ in range(LANES):
        row = int(chance.integers(0, ROW))
        ranges = int(chance.choice([0, 1, 1, 2, 3, 5, 15]))
        if chance.random() < 0.2:
            survivor.append(reference_of(DONE, row))
            expected.append(row)
            continue
        survivor.append(reference_of(shape_with(ranges, 0), at // UNIT))
        doubt = int(chance.integers(0, 2)) * DOUBT
        predicates = words(chance, ranges)
        record[at] = row | doubt | (5 << 24)
        record[at + 1 : at + 1 + ranges] = predicates
        expected.append((row | doubt) if all(range_holds(word, space) for word in predicates) else -1)
        at += (1 + ranges + UNIT - 1) // UNIT * UNIT
    given = np.array([9, *survivor] + [reference_of(DONE, 0)] * LANES, np.uint32)
    end = int(chance.integers(1, LANES + 1))
    out = np.full(ROOM, 7, np.uint32)
    found = [row for row in expected[:end] if row >= 0]
    assert _only_ranges(given, 1)
    assert _check(record, given, 1, 1 + end, space, out, 3) == 3 + len(found)
    assert out[3 : 3 + len(found)].tolist() == found
    assert (out[:3] == 7).all()
    assert (out[3 + len(found) + LANES :] == 7).all()


@pytest.mark.parametrize("shape", [shape_with(0, 1), shape_with(3, 2), LONG])
def test_other_records_are_left_to_the_plain_code(shape: int) -> None:
    survivor = np.full(2 * LANES, reference_of(shape_with(15, 0), 3), np.uint32)
    assert _only_ranges(survivor, 0)
    for lane in range(LANES):
        other = survivor.copy()
        other[lane] = reference_of(shape, 3)
        assert not _only_ranges(other, 0)


@pytest.mark.skipif(not VECTORS, reason="the processor lacks AVX-512")
def test_the_instructions_are_those_of_avx512() -> None:
    space, entry, record = np.zeros(4, np.uint8), np.zeros(256, np.uint32), np.zeros(256, np.uint32)
    _both(entry, space[:1], record, np.zeros(256, np.uint32), np.zeros(256, np.uint32))
    code = "".join(_both.inspect_asm().values())
    assert "vpcompressd" in code
    assert "vpgatherdd" in code or "vpgatherqd" in code
