"""Summaries of blocks of events, and what kernels read there.

    positions        0 ... 1023       1024 ... 2047     2048 ... 3071
                         [first                                 end]
    looked at one by one   whole blocks: their summaries              one by one

For each domain, a block has the number of its living events, their lowest and their highest key, and the position of the latest
event with each of these. For look-ups it also has its keys in order. Events that left early are not `alive`; blocks are
summarized again if an event of them leaves early.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.earlier.key_ranges import DOMAINS
from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.kernels.kernel import brief_kernel, inlined
from tamis.kernels.numbers import I64, I8s, I64s, U8s
from tamis.kernels.sorting import first_at_least

BLOCK = 1024
"""Events of a block. With 100,000 events and seven joins, 256 to 4,096 took the same time within 40 %."""

COUNT, LOW, HIGH, LOW_AT, HIGH_AT = range(5)
OF_DOMAIN = 5
SUMMARY = DOMAINS * OF_DOMAIN
"""The numbers of a summary."""
NOWHERE = -1
"""The position of an event that is not there."""


class Line(NamedTuple):
    """Events in order of arrival: those from position `first` to `end`, without `end`."""

    domains: I8s
    keys: I64s
    alive: U8s
    """Whether each event is there. An array of no length says that all are."""
    first: int
    end: int


class Summaries(NamedTuple):
    """The blocks before position `done` have summaries. Blocks have a size."""

    numbers: I64s
    """SUMMARY numbers for each block."""
    sorted_keys: I64s
    """The keys of each block in order, if it was ordered."""
    places: I64s
    """The position of each of these keys."""


def summary_at(numbers: I64s, domain: int) -> tuple[int, int, int]:
    """The number of events of a domain in a summary, the lowest and the highest key."""
    at = OF_DOMAIN * domain
    count, low, high = numbers[at : at + LOW_AT].tolist()
    return count, low, high


@inlined
def _clear(out: I64s, to: int) -> None:
    for domain in range(DOMAINS):
        at = to + OF_DOMAIN * domain
        out[at + COUNT], out[at + LOW], out[at + HIGH] = 0, KEY_MAX, KEY_MIN
        out[at + LOW_AT], out[at + HIGH_AT] = NOWHERE, NOWHERE


@inlined
def _look(line: Line, start: int, end: int, out: I64s, to: int) -> None:
    """Add the events between two positions to a summary."""
    all_alive = len(line.alive) == 0
    for i in range(start, end):
        if all_alive or line.alive[i]:
            at, key = to + OF_DOMAIN * I64(line.domains[i]), line.keys[i]
            out[at + COUNT] += 1
            if key <= out[at + LOW]:
                out[at + LOW], out[at + LOW_AT] = key, i
            if key >= out[at + HIGH]:
                out[at + HIGH], out[at + HIGH_AT] = key, i


@brief_kernel
def summarize_blocks(line: Line, size: int, start: int, end: int, summaries: I64s) -> None:
    """Summarize the blocks from number `start` to `end`, without `end`."""
    for block in range(start, end):
        _clear(summaries, SUMMARY * block)
        _look(line, block * size, (block + 1) * size, summaries, SUMMARY * block)


@brief_kernel
def summarize(line: Line, size: int, blocks: int, summaries: I64s, out: I64s) -> None:
    """Summarize all events of a line. The first `blocks` blocks have summaries."""
    _clear(out, 0)
    whole = min(max(-(-line.first // size), 0), blocks)
    behind = max(min(line.end // size, blocks), whole)
    _look(line, line.first, min(whole * size, line.end) if whole < behind else line.end, out, 0)
    if whole >= behind:
        return
    for block in range(whole, behind):
        for domain in range(DOMAINS):
            at, of = OF_DOMAIN * domain, SUMMARY * block + OF_DOMAIN * domain
            if summaries[of + COUNT]:
                out[at + COUNT] += summaries[of + COUNT]
                if summaries[of + LOW] <= out[at + LOW]:
                    out[at + LOW], out[at + LOW_AT] = summaries[of + LOW], summaries[of + LOW_AT]
                if summaries[of + HIGH] >= out[at + HIGH]:
                    out[at + HIGH], out[at + HIGH_AT] = summaries[of + HIGH], summaries[of + HIGH_AT]
    _look(line, behind * size, line.end, out, 0)


@inlined
def _is_in(line: Line, i: int, domain: int, lo: int, hi: int) -> bool:
    return line.domains[i] == domain and lo <= line.keys[i] <= hi and (len(line.alive) == 0 or line.alive[i] != 0)


# The parameters say which events, and where to write them: a tuple of them would be made for each call.
@brief_kernel
def find(
    line: Line, size: int, blocks: int, by: Summaries, domain: int, lo: int, hi: int, most: int, found: I64s
) -> int:
    """Find events of a domain whose key is between two keys, or is one of them. Returns how many there are, but at most `most`.

    Writes their positions as far as there is room. Blocks are looked through in order of arrival, each in the order of its keys.
    """
    count = 0
    i = line.first
    while i < line.end and count < most:
        block = i // size
        if i != block * size or block >= blocks or i + size > line.end:
            if _is_in(line, i, domain, lo, hi):
                if count < len(found):
                    found[count] = i
                count += 1
            i += 1
            continue
        i += size
        at = SUMMARY * block + OF_DOMAIN * domain
        low, high = by.numbers[at + LOW], by.numbers[at + HIGH]
        if by.numbers[at + COUNT] == 0 or high < lo or low > hi:
            continue
        if len(found) == 0 and lo <= low and high <= hi:
            count += by.numbers[at + COUNT]
            continue
        for j in range(first_at_least(by.sorted_keys, i - size, i, lo), i):
            if by.sorted_keys[j] > hi or count == most:
                break
            if _is_in(line, by.places[j], domain, lo, hi):
                if count < len(found):
                    found[count] = by.places[j]
                count += 1
    return min(count, most)
