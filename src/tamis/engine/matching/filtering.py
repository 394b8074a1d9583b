"""Filtering: filter words reduce the entries that a single-valued event meets to survivors."""

from __future__ import annotations

from tamis.engine.layout.guards import BLOCK, GUARDED
from tamis.engine.layout.pairs import Pairs, pair_reference, pair_word
from tamis.engine.layout.record_words import range_holds
from tamis.engine.layout.runs import BAND_RUN
from tamis.engine.layout.scale import MISSING
from tamis.engine.layout.segment_build import ENTRY_WORDS, Body, entry_reference, entry_word
from tamis.engine.matching.scratch import AHEAD, LISTS_AHEAD, Met, Scratch
from tamis.engine.matching.vectors import collect
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U32, UP, U8s, U16s, U32s
from tamis.kernels.prefetch import LINE, prefetch

_LINES_AHEAD = 12
"""Cache lines of a list to prefetch before its scan."""


@inlined
def filter_pairs(count: int, pairs: Pairs, space: U8s, survivor: U32s) -> int:
    """Replace the numbers of entries of pairs by references, for entries whose filter words hold. Returns their number."""
    entry, n = pairs.entry, 0
    for i in range(count):
        place = I64(survivor[UP(i)])
        survivor[UP(n)] = pair_reference(entry, place)
        n += I64(range_holds(pair_word(entry, place), space))
    return n


@inlined
def scan_lists(lists: int, met: Met, body: Body, space: U8s, survivor: U32s, n: int, most: int) -> tuple[int, int]:
    """Append the entries whose filter words hold to the `n` survivors. The lists have at most `most` entries in total.

    The scan prefetches the next lists; `met` has room for LISTS_AHEAD more. Returns the number of survivors, and how many entries
    were skipped because of guards.
    """
    begin, end = met.begin, met.end
    entry, second, guard = body.entry, body.second, body.guard
    for i in range(lists, lists + LISTS_AHEAD):
        begin[UP(i)], end[UP(i)] = 0, 0
    for i in range(LISTS_AHEAD):
        _fetch_list(entry, guard, begin[UP(i)], end[UP(i)])
    # First collect the blocks at the end of the array, and scan them later. This needs no branch that the processor could predict
    # wrong, and blocks can be prefetched before their scan.
    blocks = len(survivor) - AHEAD - most // BLOCK
    block, passed_over = blocks, 0
    for i in range(lists):
        _fetch_list(entry, guard, begin[UP(i + LISTS_AHEAD)], end[UP(i + LISTS_AHEAD)])
        first, last = begin[UP(i)], end[UP(i)]
        if is_guarded(guard, first, last):
            passed_over += (last - first) // BLOCK
            for k in range(first // BLOCK, last // BLOCK):
                survivor[UP(block)] = U32(k)
                block += I64(space[UP(guard[UP(k)])] != MISSING)
        else:
            n = collect(first, last, entry, second, space, survivor, n)
    if block > blocks:
        for i in range(block, block + AHEAD):
            survivor[UP(i)] = 0
        for i in range(blocks, blocks + AHEAD):
            _fetch_block(entry, second, I64(survivor[UP(i)]))
        for i in range(blocks, block):
            _fetch_block(entry, second, I64(survivor[UP(i + AHEAD)]))
            first = BLOCK * I64(survivor[UP(i)])
            n = collect(first, first + BLOCK, entry, second, space, survivor, n)
    return n, BLOCK * (passed_over - (block - blocks))


@inlined
def is_guarded(guard: U16s, begin: int, end: int) -> bool:
    """Whether a list has guards."""
    return end - begin >= GUARDED and begin < BLOCK * len(guard)


@inlined
def _fetch_block(entry: U32s, second: U32s, block: int) -> None:
    prefetch(entry, ENTRY_WORDS * BLOCK * block)
    if len(second) > 0:
        prefetch(second, BLOCK * block)


@inlined
def _fetch_list(entry: U32s, guard: U16s, begin: int, end: int) -> None:
    if is_guarded(guard, begin, end):
        return  # The guards have not yet been read, so the blocks to fetch are not known.
    # Not a loop: the number of iterations would differ from list to list, and the processor would predict it wrong.
    first = ENTRY_WORDS * begin
    prefetch(entry, first)
    prefetch(entry, first + LINE)
    prefetch(entry, first + 2 * LINE)
    prefetch(entry, first + 3 * LINE)
    if end - begin > 8 * BLOCK:
        for line in range(4, _LINES_AHEAD):
            prefetch(entry, first + LINE * line)


@inlined
def scan_runs(body: Body, count: int, scratch: Scratch, n: int, out: U32s, filled: int) -> tuple[int, int]:
    """Append survivors of runs to the `n` survivors. Entries of complete runs need no check: `out` gets them as matches."""
    runs, entry = body.runs, body.run_entry
    met, event, survivor = scratch.met, scratch.event, scratch.survivor
    for i in range(count):
        r = met.run[UP(i)]
        band = runs.side[UP(r)] >= BAND_RUN
        key, shift = event.low[UP(runs.dimension[UP(r)])], runs.end_shift[UP(r)]
        if runs.complete[UP(r)]:
            for q in range(met.run_begin[UP(i)], met.run_end[UP(i)]):
                out[UP(filled)] = entry_reference(entry, q)
                filled += I64(not band or runs.end[UP(q + shift)] >= key)
        else:
            for q in range(met.run_begin[UP(i)], met.run_end[UP(i)]):
                survivor[UP(n)] = entry_reference(entry, q)
                within = not band or runs.end[UP(q + shift)] >= key
                n += I64(range_holds(entry_word(entry, q), event.space) and within)
    return n, filled
