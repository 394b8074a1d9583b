"""Sets of keys as sorted, disjoint, closed intervals: what every operator becomes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN

Intervals: TypeAlias = tuple[tuple[int, int], ...]

NOTHING: Intervals = ()
EVERYTHING: Intervals = ((KEY_MIN, KEY_MAX),)


def between(lo: int, hi: int) -> Intervals:
    return ((lo, hi),) if lo <= hi else NOTHING


def points(keys: Iterable[int]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for key in sorted(keys):
        if merged and key <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], key)
        else:
            merged.append((key, key))
    return tuple(merged)


def union(parts: Iterable[Intervals]) -> Intervals:
    """The union; intervals that overlap or touch become one, so equal sets are equal tuples."""
    merged: list[tuple[int, int]] = []
    for lo, hi in sorted(interval for part in parts for interval in part):
        if merged and lo <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(hi, merged[-1][1]))
        else:
            merged.append((lo, hi))
    return tuple(merged)


def complement(intervals: Intervals) -> Intervals:
    gaps = []
    start = KEY_MIN
    for lo, hi in intervals:
        if lo > start:
            gaps.append((start, lo - 1))
        start = hi + 1
    if start <= KEY_MAX:
        gaps.append((start, KEY_MAX))
    return tuple(gaps)


def intersection(left: Intervals, right: Intervals) -> Intervals:
    return complement(union((complement(left), complement(right))))
