"""Matching events against a segment: load an event, collect survivors from its lists, check their records, name the owners.

match_events  some events of a batch at a time: rows from `match_rows`, which are named while they are in the cache
match_rows    events -> rows; it is compiled once, and called by its address (see `tamis.kernels.by_address`)
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.encoding.events.event_batch import EventBatch
from tamis.engine.layout.pairs import find_pairs
from tamis.engine.layout.segment_build import Body
from tamis.engine.matching.checking import check
from tamis.engine.matching.filtering import filter_pairs, scan_lists, scan_runs
from tamis.engine.matching.lists_met import LISTS_PER_VALUE, bound_runs, lists_of_several, presence_runs
from tamis.engine.matching.loading import load, load_wide, note_cells, show_several, unload
from tamis.engine.matching.owners import NamingScratch, Place, name_owners
from tamis.engine.matching.results import CANDIDATES, COMPARED, SURVIVORS, Life
from tamis.engine.matching.scratch import AHEAD, LANES, LoadedEvent, Met, Scratch, Values, room_for
from tamis.engine.matching.several_values import check_lists, check_pairs, check_runs, sort_rows
from tamis.kernels.by_address import call_kernel
from tamis.kernels.fields import reader_of, word_of, words_in
from tamis.kernels.kernel import addressed_kernel, lean_kernel, merged
from tamis.kernels.numbers import UP, I64s, U32s
from tamis.kernels.packed import Packed, words_at

NO_ROOM_ENTRIES, NO_ROOM_LISTS, NO_ROOM_OUT, NO_ROOM_SLOTS = 1, 2, 3, 4
"""What a kernel may lack: entries and lists of the scratch, rows, slots."""
_EVENTS_AT_ONCE = 16
"""Events whose rows are found before they are named."""


class RowsCall(NamedTuple):
    """What `match_rows` works on."""

    body: Packed
    """The packed `Body` of a segment."""
    scratch: Packed
    """The packed `Scratch` of a thread."""
    batch: EventBatch
    counts: I64s
    """Event -> how many rows it has."""
    rows: U32s
    """The rows, event by event, some with DOUBT."""
    work: I64s
    """Visited entries, survivors, and rows whose keys were compared."""
    event: int = 0
    """The first event; afterwards, the event at which it stopped."""
    stop: int = 0
    """One behind the last event."""
    lack: int = 0
    """Afterwards: what was lacking, if it stopped before."""
    need: int = 0
    """How much of it is needed."""


class _Noted(NamedTuple):
    """How many lists, runs and entries an event meets."""

    lists: int
    once: int
    """Lists that find rows that no other list finds. They come first."""
    runs: int
    paired: int
    """Entries of pairs."""
    entries: int
    """Entries of lists and runs."""


EVENT, STOP, LACK, NEED = (word_of(RowsCall, name) for name in ("event", "stop", "lack", "need"))
_CALL_WORDS = words_in(RowsCall)
_read_call, _read_body, _read_scratch = reader_of(RowsCall), reader_of(Body), reader_of(Scratch)


@addressed_kernel
def match_rows(address: int) -> int:
    """Match events; returns the event at which it stopped. `address` is that of a packed `RowsCall`."""
    words = words_at(address, _CALL_WORDS)
    call = _read_call(words)
    body, scratch, batch = _read_body(call.body), _read_scratch(call.scratch), call.batch
    event, filled, lack, need = call.event, 0, 0, 0
    while event < call.stop and not lack:
        values = Values(batch.start[event], batch.start[event + 1], batch.dimension, batch.lo, batch.hi)
        before = filled
        filled, lack, need = _match_event(values, body, scratch, call.rows, filled, call.work)
        if not lack:
            call.counts[event] = filled - before
            event += 1
    words[EVENT], words[LACK], words[NEED] = event, lack, need
    return event


@merged
def _match_event(
    values: Values, body: Body, scratch: Scratch, out: U32s, filled: int, work: I64s
) -> tuple[int, int, int]:
    """Match one event; returns how much of `out` is filled, what was lacking, and how much of it is needed."""
    event, met = scratch.event, scratch.met
    room = LISTS_PER_VALUE * (values.end - values.begin + 1)
    if room > len(met.begin):
        return filled, NO_ROOM_LISTS, 2 * room
    count, single_valued, lists, once, runs = _meet(values, body, event, met)
    paired, looked = 0, 0
    if lists >= 0 and len(body.pairs.start) > 0:
        cells = note_cells(values, count, single_valued, body, scratch.pairs, event)
        # Half of the room is left to survivors in doubt, which come from its end.
        half = (len(scratch.survivor) - AHEAD) // 2
        paired, looked = find_pairs(body.pairs, scratch.pairs, max(cells, 0), scratch.survivor, half)
        lists = min(lists, cells) if cells < 0 else lists
    lack, need, entries, runs = _sum_up(count, lists, paired, runs, body, scratch, len(out) - filled)
    if not lack:
        work[CANDIDATES] += entries + looked
        noted = _Noted(lists, once, runs, paired, entries)
        if single_valued:
            filled = _find(noted, body, scratch, out, filled, work)
        else:
            filled = _find_several(noted, body, scratch, out, filled, work)
    unload(count, single_valued, event)
    return filled, lack, need


@merged
def _meet(values: Values, body: Body, event: LoadedEvent, met: Met) -> tuple[int, bool, int, int, int]:
    """Load an event and note its lists and runs.

    Returns the number of dimensions in which it has values, and whether it is single-valued. Then the number of lists, or minus
    the room that they lack, and how many of these lists find rows that no other list finds. Last, the number of runs.
    """
    count, single_valued, lists, runs = load(values, body, event, met)
    wide = len(event.seen) > 0
    if wide and single_valued:
        lists, runs = load_wide(values, count, body, event, lists, runs, met)
    once = lists
    if not single_valued:
        if wide:
            show_several(values, body, event)
        lists, once, runs = lists_of_several(values, count, body, event, met)
    return count, single_valued, lists, once, runs


@merged
def _sum_up(
    count: int, lists: int, paired: int, runs: int, body: Body, scratch: Scratch, free: int
) -> tuple[int, int, int, int]:
    """What is lacking and how much of it is needed, how many entries of lists and runs there are, and how many runs."""
    met = scratch.met
    if lists < 0:
        return NO_ROOM_LISTS, 2 * len(met.begin) - lists, 0, runs
    if paired < 0:
        return NO_ROOM_ENTRIES, -2 * paired, 0, runs
    entries, lack = 0, 0
    if len(body.runs.list) > 0:
        runs = presence_runs(body, scratch.event, count, runs, met)
        entries = bound_runs(body.runs, runs, scratch.event, met)
    for i in range(lists):
        entries += met.end[UP(i)] - met.begin[UP(i)]
    need = entries + paired
    if room_for(need) > len(scratch.survivor):
        lack = NO_ROOM_ENTRIES
    elif need + LANES > free:
        lack, need = NO_ROOM_OUT, need + LANES
    return lack, need, entries, runs


@merged
def _find(noted: _Noted, body: Body, scratch: Scratch, out: U32s, filled: int, work: I64s) -> int:
    """Find the rows of a single-valued event that was loaded."""
    event, survivor = scratch.event, scratch.survivor
    found = filter_pairs(noted.paired, body.pairs, event.space, survivor)
    found, skipped = scan_lists(noted.lists, scratch.met, body, event.space, survivor, found, noted.entries)
    if noted.runs:
        found, filled = scan_runs(body, noted.runs, scratch, found, out, filled)
    work[CANDIDATES] -= skipped
    work[SURVIVORS] += found
    return check(body, scratch, found, noted.lists + noted.runs, out, filled)


@merged
def _find_several(noted: _Noted, body: Body, scratch: Scratch, out: U32s, filled: int, work: I64s) -> int:
    """Find the rows of any other event that was loaded, each of them once."""
    before = filled
    if noted.paired:
        filled = check_pairs(noted.paired, body, scratch, out, filled)
        filled = before + sort_rows(out, before, filled)
    filled, skipped = check_lists(0, noted.once, body, scratch, out, filled)
    again = filled
    filled, more = check_lists(noted.once, noted.lists, body, scratch, out, filled)
    if noted.runs:
        filled = check_runs(noted.runs, body, scratch, out, filled)
    filled = again + sort_rows(out, again, filled)
    work[CANDIDATES] -= skipped + more
    work[SURVIVORS] += filled - before
    return filled


class Matching(NamedTuple):
    """How `match_rows` is called."""

    kernel: int
    """The address of `match_rows`."""
    call: Packed
    """The packed `RowsCall`."""
    address: int
    """The address of `call`."""


class Reached(NamedTuple):
    """Where `match_events` stopped."""

    place: Place
    filled: int
    """How many slots there are."""
    lack: int
    """What was lacking, if it stopped for want of room."""
    need: int


@lean_kernel
def match_events(
    matching: Matching, owners: Packed, batch: EventBatch, life: Life, place: Place, naming: NamingScratch
) -> Reached:
    """Match the events of a batch from a place on, and write the slots of each and how many they are."""
    words = matching.call
    call = _read_call(words)
    event, found, at = place.event, place.stop, place.at
    events, filled = len(call.counts), 0
    while event < events:
        if found == event:
            words[EVENT], words[STOP] = event, min(event + _EVENTS_AT_ONCE, events)
            found, at = call_kernel(matching.kernel, matching.address), 0
            if found == event:
                return Reached(Place(event, found, at), filled, words[LACK], words[NEED])
        rest = NamingScratch(naming.places, naming.slots[filled:], naming.repeated)
        event, at, slots, compared = name_owners(
            owners, batch, life, call.rows, call.counts, Place(event, found, at), rest
        )
        filled += slots
        call.work[COMPARED] += compared
        if event < found:
            return Reached(Place(event, found, at), filled, NO_ROOM_SLOTS, 0)
    return Reached(Place(event, found, at), filled, 0, 0)
