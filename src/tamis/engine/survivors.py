"""From the entries that an event meets to the rows that it satisfies: filter words, then records."""

from __future__ import annotations

from typing import Any

from tamis.encoding.kernel import inlined
from tamis.engine.lists import BAND_RUN
from tamis.engine.numbers import I64, U32, U64, UP
from tamis.engine.plan import DONE, LONG
from tamis.engine.prefetch import prefetch
from tamis.engine.records import DOUBT, PLACE_BITS, ROW, keys_hold, mask_holds, range_holds, set_holds

AHEAD = 16
"""So many records are fetched before they are needed."""
LISTS_AHEAD = 3
_LINES_AHEAD = 16
_PLACE = (1 << PLACE_BITS) - 1


# -- plain events


@inlined
def scan_lists(lists: int, met: Any, entry: Any, space: Any, survivor: Any) -> int:
    """Collect the entries whose filter words hold. The next lists are fetched meanwhile: there is room for some more."""
    begin, end = met[0], met[1]
    for i in range(lists, lists + LISTS_AHEAD):
        begin[UP(i)], end[UP(i)] = 0, 0
    for i in range(LISTS_AHEAD):
        _fetch_list(entry, begin[UP(i)], end[UP(i)])
    n = 0
    for i in range(lists):
        _fetch_list(entry, begin[UP(i + LISTS_AHEAD)], end[UP(i + LISTS_AHEAD)])
        for q in range(begin[UP(i)], end[UP(i)]):
            survivor[UP(n)] = entry[UP(2 * q + 1)]
            n += I64(range_holds(entry[UP(2 * q)], space))
    return n


@inlined
def _fetch_list(entry: Any, begin: int, end: int) -> None:
    for line in range(min(_LINES_AHEAD, (end - begin + 7) // 8)):
        prefetch(entry, 2 * begin + 16 * line)


@inlined
def scan_runs(
    runs: Any, entry: Any, count: int, met: Any, event: Any, survivor: Any, survivors: int, out: Any, filled: int
) -> tuple[int, int]:
    """Collect survivors of runs; where nothing is left to check, they are matches."""
    _, dimensions, sides, complete, _, _, ends = runs
    _, _, run, run_begin, run_end = met
    space, low = event[0], event[3]
    for i in range(count):
        r = run[UP(i)]
        band = sides[UP(r)] >= BAND_RUN
        key = low[UP(dimensions[UP(r)])]
        if complete[UP(r)]:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                out[UP(filled)] = entry[UP(2 * q + 1)]
                filled += I64(not band or ends[UP(q)] >= key)
        else:
            for q in range(run_begin[UP(i)], run_end[UP(i)]):
                survivor[UP(survivors)] = entry[UP(2 * q + 1)]
                within = not band or ends[UP(q)] >= key
                survivors += I64(range_holds(entry[UP(2 * q)], space) and within)
    return survivors, filled


@inlined
def _fetch_record(record: Any, reference: Any) -> None:
    at = I64(reference & U32(_PLACE))
    shape = reference >> U32(PLACE_BITS)
    if shape != U32(DONE):
        prefetch(record, at)
        prefetch(record, at + 12)
    if shape == U32(LONG):
        prefetch(record, at + 24)


@inlined
def check(record: Any, event: Any, survivor: Any, survivors: int, out: Any, filled: int) -> int:
    """Check the records of survivors; the rows of those that hold are written."""
    space, _, code, low, _, _, _, _ = event
    for i in range(AHEAD):
        survivor[UP(survivors + i)] = U32(DONE << PLACE_BITS)
    for i in range(AHEAD):
        _fetch_record(record, survivor[UP(i)])
    for i in range(survivors):
        _fetch_record(record, survivor[UP(i + AHEAD)])
        reference = survivor[UP(i)]
        shape = I64(reference >> U32(PLACE_BITS))
        at = I64(reference & U32(_PLACE))
        if shape == DONE:
            out[UP(filled)] = U32(at)
            filled += 1
            continue
        ranges, sets, p = shape & 15, shape >> 4, at + 1
        if shape == LONG:
            ranges, sets, p = I64(record[UP(at + 1)] & U32(255)), 0, at + 3
        matched = True
        for w in range(p, p + ranges):
            if not range_holds(record[UP(w)], space):
                matched = False
                break
        if not matched:
            continue
        row = record[UP(at)]
        if shape == LONG:
            matched, doubt = _check_long(record, at, p + ranges, space, code, low)
            row |= U32(doubt) << U32(31)
        else:
            for w in range(p + ranges, p + ranges + 2 * sets, 2):
                if not set_holds(record[UP(w)], record[UP(w + 1)], space):
                    matched = False
                    break
        out[UP(filled)] = row
        filled += I64(matched)
    return filled


@inlined
def _check_long(record: Any, at: int, p: int, space: Any, code: Any, key: Any) -> tuple[bool, bool]:
    """Check what follows the ranges of a long record; returns whether it holds, and whether keys must be compared."""
    header, codes = record[UP(at + 1)], I64(record[UP(at + 2)] & U32(0xFFFF))
    edges = I64(record[UP(at + 2)] >> U32(16))
    # Without branches but for failing: ties are as good as random.
    tied = U32(0)
    for _ in range(edges):
        word = U64(record[UP(p)]) | (U64(record[UP(p + 1)]) << U64(32))
        width = U32(word & U64(0xFFFFFF))
        above = U32(code[UP(word >> U64(48))] - U32((word >> U64(24)) & U64(0xFFFFFF)))
        if above > width:
            return False, False
        tied |= U32(above == U32(0)) | U32(above == width)
        p += 2
    for _ in range(codes - edges):
        word = U64(record[UP(p)]) | (U64(record[UP(p + 1)]) << U64(32))
        above = U32(code[UP(word >> U64(48))] - U32((word >> U64(24)) & U64(0xFFFFFF)))
        if above > U32(word & U64(0xFFFFFF)):
            return False, False
        p += 2
    for _ in range(I64(header >> U32(24))):
        if not keys_hold(record, p, space, key):
            return False, False
        p += 1 + 2 * I64((record[UP(p)] >> U32(16)) & U32(0x7FFF))
    for _ in range(I64((header >> U32(8)) & U32(255))):
        if not set_holds(record[UP(p)], record[UP(p + 1)], space):
            return False, False
        p += 2
    for _ in range(I64((header >> U32(16)) & U32(255))):
        if not mask_holds(record, p, space):
            return False, False
        p += 9
    return True, tied != U32(0)


# -- other events


@inlined
def list_candidates(
    lists: int, met: Any, entry: Any, record: Any, space: Any, several: Any, out: Any, filled: int
) -> int:
    """The rows that an event which is not plain may satisfy by its lists, some of them several times."""
    begin, end = met[0], met[1]
    for i in range(lists):
        for q in range(begin[UP(i)], end[UP(i)]):
            word = entry[UP(2 * q)]
            if range_holds(word, space) or several[UP(word >> U32(16))]:
                out[UP(filled)] = _row(record, entry[UP(2 * q + 1)]) | U32(DOUBT)
                filled += 1
    return filled


@inlined
def run_candidates(runs: Any, entry: Any, count: int, met: Any, record: Any, out: Any, filled: int) -> int:
    """The same by its runs."""
    complete = runs.complete
    _, _, run, run_begin, run_end = met
    for i in range(count):
        for q in range(run_begin[UP(i)], run_end[UP(i)]):
            reference = entry[UP(2 * q + 1)]
            out[UP(filled)] = (reference if complete[UP(run[UP(i)])] else _row(record, reference)) | U32(DOUBT)
            filled += 1
    return filled


@inlined
def _row(record: Any, reference: Any) -> Any:
    at = reference & U32(_PLACE)
    if reference >> U32(PLACE_BITS) == U32(DONE):
        return at
    return record[UP(at)] & U32(ROW)
