"""The engine: segments, deltas and the dead, changed by one writer and read by any number of threads.

LSM-shaped, like Lucene: rows come into the active *delta*; a full one is frozen and built into a segment by whoever filled it;
segments of one size are merged into a larger one, in the background. A *version* is what matching sees, and it never changes:

    version    segments  [ 812,000 rows ] [ 61,000 ] [ 16,384 ]      immutable, indexed
               deltas    [ 16,384 rows, frozen ] [ 318 rows, so many of the active one ]
               life      when each slot died; who died later than the version is alive in it

Removing only writes a time of death. Rows of the dead go when their segment is built anew; their slots are given again
once no version that anybody holds has the old segment.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.plain_row import PlainRow
from tamis.engine.delta import Delta, DeltaView, match_delta
from tamis.engine.interrupts import holding
from tamis.engine.layout.access_path import Access
from tamis.engine.matching.counters import Tally
from tamis.engine.matching.owners import ALIVE
from tamis.engine.matching.results import Found, Life, nothing_found, together
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.merging import Merges, Part, drifted_segment, due_parts
from tamis.engine.rows import NO_ROWS, Rows, concatenated, without_idle_programs
from tamis.engine.segment import Segment, segments_of
from tamis.engine.single import Singles
from tamis.engine.watch import PATIENCE
from tamis.kernels.growing import GrowingArray

DELTA_ROWS = 1 << 14
"""A delta of so many rows is frozen: an event looks at a few of them only, and to build them more often takes longer."""
_MOST_APART = 4096
"""So is one in which so many lie apart. An event looks at all of these, in some 5 microseconds."""
_SEGMENT_ROWS = 4096
"""Rows that come together and are a segment at once. Fewer go into the delta: events find them there as fast by the values that
they name, and neither building nor matching segments must be compiled, which takes twice as long as all else."""
_SEGMENT_APART = 1024
"""Rows among them that name no value, and make them a segment as well: every event looks at all of these in a delta."""
_TIER_ROWS = 4096
"""Segments of up to so many rows are of the first tier."""
_NOWHERE = 0
"""The home of a slot that has no rows."""

_SLOTS_AT_ONCE = 64
_CHANGES_PER_LOOK = 512
"""After so many changes that came alone, parts are looked at for something to merge."""
_CHANGES_PER_BREAK = 32
"""After so many calls that change something, threads that merge are let in."""

_NO_DEATHS = np.zeros(0, np.int64)


def _is_segment(rows: Rows) -> bool:
    """Whether rows that come together are built into a segment at once."""
    if rows.number >= min(DELTA_ROWS, _SEGMENT_ROWS):
        return True
    return rows.number >= _SEGMENT_APART and rows.apart() >= _SEGMENT_APART


class Version(NamedTuple):
    """What matching sees."""

    segments: tuple[Segment, ...]
    deltas: tuple[tuple[Delta, DeltaView], ...]
    life: Life
    number: int = 0
    """Tells it from all other versions of the engine."""
    generation: int = 0
    """Tells its segments from those of other versions."""


class Rewritten(NamedTuple):
    """Segments that are to take the place of all parts there were."""

    parts: list[Part]
    segments: list[Segment]


class Engine:
    """Rows of subscriptions, and which of them events satisfy. One thread changes it at a time: the caller sees to that."""

    def __init__(self, sample: Callable[[], EventBatch | None], background: bool = True) -> None:
        self._sample = sample
        self._background = background
        self._died = GrowingArray(np.int64)
        self._home = GrowingArray(np.int64)
        """Slot -> key of the part that has its rows."""
        self._dead: dict[int, int] = {}
        """Key of a part -> how many of its slots are dead, as matching sees it."""
        self._dying: list[npt.NDArray[np.int32]] = []
        """Slots whose death waits to be published."""
        self._now = 0
        self._deaths = 0
        self._free: list[int] = []
        self._released: deque[tuple[int, list[int]]] = deque()
        """Slots that nobody can find any more; written by whichever thread drops the last of them."""
        self._active = Delta()
        self._frozen: tuple[tuple[Delta, DeltaView], ...] = ()
        self._segments: tuple[Segment, ...] = ()
        self._coming: tuple[Segment, ...] = ()
        """Segments of new rows, which wait to be published."""
        self._generation = 0
        """Counts what makes the result of a running merge useless."""
        self._is_rewriting = False
        self._lives = 0
        """Counts how often everything was forgotten, and slots given from 0 again."""
        self.lock = threading.RLock()
        """Held while parts change, and by a merge only when it begins and when it is done."""
        self.is_changing = holding(self.lock)
        """Whether the calling thread holds it."""
        self._merges = Merges()
        self._scratch = ThreadScratch()
        self.tally = Tally()
        self.singles = Singles(self.tally)
        """What each thread matches single events in."""
        self._numbers = itertools.count()
        self._generations = 0
        self._shown: tuple[Segment, ...] = ()
        """The segments of the last version."""
        self._stale = False
        """Whether a change that came alone is not in the current version yet."""
        self._set_version((), (), Life(_NO_DEATHS, 0))
        self._changes = 0
        self.merges = 0
        self.replans = 0
        """How many of the merges were for drift."""

    @property
    def version(self) -> Version:
        """What matching sees from now on. Changes that came alone are put into it when it is asked for: they may be many."""
        if self._stale:
            with self.lock:
                self._catch_up()
        return self._current

    def latest(self) -> tuple[Version, int, int]:
        """What matching sees from now on, without a new version if that can be: a version, how many rows of its last delta are
        there by now, and what time it is. Who matches event by event between changes would spend more on versions than on
        matching."""
        latest = self._latest
        if self._stale:
            with self.lock:
                version = self._current
                # Not if it is no longer so: then what was changed may wait to be published.
                if self._stale and self._goes_on(version):
                    return version, self._active.number, self._now
                self._catch_up()
                latest = self._latest
        return latest

    def _goes_on(self, version: Version) -> bool:
        """Whether all that has changed since is how many rows the active delta has, and the time."""
        if not version.deltas or version.segments is not self._segments:
            return False
        delta, view = version.deltas[-1]
        died = self._died.data if self._deaths else _NO_DEATHS
        return delta is self._active and view.columns is delta.columns and version.life.died is died

    # -- changing

    def new_slots(self, count: int) -> npt.NDArray[np.int32]:
        """Numbers for new subscriptions: freed ones first."""
        with self.lock:
            self._take_back()
            again = [self._free.pop() for _ in range(min(count, len(self._free)))]
            slots = np.concatenate(
                (np.array(again, np.int32), np.arange(count - len(again), dtype=np.int32) + len(self._died))
            )
            self._grow(count - len(again))
            self._died.view()[slots] = ALIVE
            self._home.view()[slots] = _NOWHERE
            return slots

    def _grow(self, count: int) -> None:
        """Make room for so many more slots. Homes come first: an interrupt in between leaves some without a slot, no more."""
        self._home.grow(max(len(self._died) + count - len(self._home), 0))
        self._died.grow(count, fill=ALIVE)

    def new_slot(self) -> int:
        """One of `new_slots`."""
        if not self._free:
            with self.lock:
                self._take_back()
                if not self._free:
                    first = len(self._died)
                    self._grow(_SLOTS_AT_ONCE)
                    self._free.extend(range(first + _SLOTS_AT_ONCE - 1, first - 1, -1))
        # Without the lock: only the one writer takes slots, and nobody else knows a free one.
        slot = self._free.pop()
        self._died.data[slot] = ALIVE
        self._home.data[slot] = _NOWHERE
        return slot

    def add(self, rows: Rows) -> None:
        """Take in rows, whose slots were given by `new_slots`. They are seen from the next `publish` on."""
        if _is_segment(rows):
            built = self._built(rows)
            with self.lock:
                for segment in built:
                    self._settle(segment)
                self._coming += tuple(built)
            return
        with self.lock:
            self._catch_up()
            if len(self._active) + rows.number > DELTA_ROWS or self._active.apart >= _MOST_APART:
                self._freeze()
            self._active.add(rows)
            self._home.view()[rows.slot] = id(self._active)

    def remove(self, slots: npt.NDArray[np.int32]) -> None:
        """Let slots die. It is seen from the next `publish` on."""
        with self.lock:
            self._catch_up()
            is_nowhere = self._home.view()[slots] == _NOWHERE
            self._now += 1
            self._deaths += len(slots) - int(np.count_nonzero(is_nowhere))
            # In one step: an interrupt comes before all of them have died, or after.
            self._died.view()[slots] = self._now
            self._dying.append(slots[~is_nowhere])
            self._free.extend(slots[is_nowhere].tolist())  # What has no rows was never found by anybody.

    def add_plain(self, row: PlainRow, slot: int) -> bool:
        """Take in a row that comes alone, which the next match sees; False if it is no conjunction as it stands.

        Nothing else waits to be published meanwhile.
        """
        with self.lock:
            if self._active.number >= DELTA_ROWS or self._active.apart >= _MOST_APART:
                self._freeze()
            active = self._active
            if not active.add_plain(row, slot):
                return False
            self._home.data[slot] = active.key
            self._stale = True
        self._look()
        return True

    def remove_one(self, slot: int) -> None:
        """Let a slot die, if it lives, which the next match sees. Nothing else waits to be published meanwhile."""
        with self.lock:
            if self._died.data.item(slot) != ALIVE:
                return
            home = self._home.data.item(slot)
            if home == _NOWHERE:
                self._died.data[slot] = self._now
                self._free.append(slot)
                return
            # Should this be interrupted, it is done once more: it has happened when the time of death is written.
            self._stale = True
            self._now += 1
            self._deaths += 1
            self._died.data[slot] = self._now
            self._dead[home] = self._dead.get(home, 0) + 1
        self._look()

    def living_among(self, slots: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """The slots that have not been removed, of some that were given."""
        return slots[self._died.view()[slots] == ALIVE]

    @property
    def nbytes(self) -> int:
        """The size of all parts, as matching last saw them."""
        segments, deltas, _, _, _ = self._current
        sizes = [segment.nbytes + segment.table_nbytes for segment in segments]
        return sum(sizes) + sum(delta.nbytes for delta, _ in deltas)

    def _catch_up(self) -> None:
        """Show changes that came alone; what `_show` does, in a fraction of its time. Whoever is to change more, of which nothing
        is to be seen until it is published, does it before."""
        if not self._stale:
            return
        active = self._active
        deltas = self._frozen
        if active.number:
            deltas = (*deltas, (active, tuple.__new__(DeltaView, (active.columns, active.number))))
        life = tuple.__new__(Life, (self._died.data if self._deaths else _NO_DEATHS, self._now))
        self._set_version(self._segments, deltas, life)

    def _look(self) -> None:
        """Begin to merge if it is time, of which small changes are seldom the reason."""
        self._count_change()
        if self._frozen or self._changes % _CHANGES_PER_LOOK == 0:
            self._merge_if_due()

    def publish(self) -> None:
        """Let the next match see all changes so far, at once; and begin to merge if it is time."""
        with self.lock:
            self._show()
        self._merge_if_due()
        self._count_change()

    def _count_change(self) -> None:
        """Count a call that changed something, and take a break if it is time."""
        self._changes += 1
        if self._changes % _CHANGES_PER_BREAK == 0:
            self._merges.let_in()

    def _show(self) -> None:
        if self._coming:
            self._segments, self._coming = self._segments + self._coming, ()
        for slots in self._dying:
            for home in self._home.view()[slots].tolist():
                self._dead[home] = self._dead.get(home, 0) + 1
        self._dying = []
        deltas = self._frozen
        if len(self._active):
            deltas += ((self._active, self._active.view()),)
        died = self._died.data if self._deaths else _NO_DEATHS
        self._set_version(self._segments, deltas, Life(died, self._now))

    def _set_version(
        self, segments: tuple[Segment, ...], deltas: tuple[tuple[Delta, DeltaView], ...], life: Life
    ) -> None:
        self._current = version = self._version(segments, deltas, life)
        self._latest = version, deltas[-1][1].number if deltas else 0, life.now
        self._stale = False  # Not before: whoever finds nothing waiting takes the version.

    def _version(
        self, segments: tuple[Segment, ...], deltas: tuple[tuple[Delta, DeltaView], ...], life: Life
    ) -> Version:
        if segments is not self._shown:
            self._shown = segments
            self._generations += 1
        # What the __new__ of a NamedTuple does, without the calls in between.
        return tuple.__new__(Version, (segments, deltas, life, next(self._numbers), self._generations))

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._generation += 1
            self._lives += 1
            self._segments, self._coming, self._frozen, self._active = (), (), (), Delta()
            self._died, self._home = GrowingArray(np.int64), GrowingArray(np.int64)
            self._dead, self._dying, self._free, self._deaths = {}, [], [], 0
            self._set_version((), (), Life(_NO_DEATHS, self._now))

    def restore(self, segments: Sequence[Segment], rows: Rows | None, alive: npt.NDArray[np.bool_]) -> None:
        """Begin with what a snapshot has: segments, rows of the delta, and which slots live."""
        self.clear()
        with self.lock:
            self._now += 1
            self._died.extend(np.where(alive, ALIVE, self._now))
            self._home.grow(len(alive), fill=0)
            held = np.zeros(len(alive), np.bool_)
            for segment in segments:
                self._settle(segment)
                held[segment.slots()] = True
            self._segments = tuple(segments)
            self._deaths = int(np.count_nonzero(held & ~alive))
            self._free = np.flatnonzero(~held & ~alive).tolist()
            if rows is not None:
                self.add(rows)
        self.publish()

    @contextmanager
    def rewriting(self, changed: Callable[[Rows], Rows], sample: EventBatch | None) -> Iterator[Rewritten]:
        """Build everything anew from rows that are changed, aside; `put` lets it be seen. Nobody changes rows meanwhile."""
        try:
            with self.lock:
                self._show()
                self._is_rewriting = True  # No merge begins or ends meanwhile.
                parts = self._parts()
            rows = changed(without_idle_programs(self._living(parts)))
            yield Rewritten(parts, segments_of(rows, sample) if rows.number else [])
        finally:
            self._is_rewriting = False

    def put(self, rewritten: Rewritten) -> None:
        """Let the next match see what was rewritten; once more, and nothing happens."""
        with self.lock:
            if [id(part) for part in rewritten.parts] == [id(part) for part in self._parts()]:
                self._generation += 1
                self._replace(rewritten.parts, rewritten.segments)
            self._show()

    def living(self) -> Rows:
        """The rows of all that live. Nobody changes rows meanwhile."""
        with self.lock:
            parts = self._parts()
        return without_idle_programs(self._living(parts))

    def settle_anew(self, slots: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Find out where slots have rows, after adding them was interrupted; returns those that have none."""
        with self.lock:
            self._home.view()[slots] = _NOWHERE
            for part in self._parts():
                self._home.view()[np.intersect1d(slots, part.slots())] = id(part)
            self._stale = True
            return slots[self._home.view()[slots] == _NOWHERE]

    def _settle(self, part: Part, slots: npt.NDArray[np.int32] | None = None) -> None:
        """Note that the slots of a part live there."""
        slots = part.slots() if slots is None else slots
        self._home.view()[slots] = id(part)
        dead = int(np.count_nonzero(self._died.view()[slots] <= self.version.life.now))
        if dead:
            self._dead[id(part)] = dead

    def _freeze(self) -> None:
        if len(self._active):
            self._frozen += ((self._active, self._active.view()),)
            self._active = Delta()

    # -- merging

    def optimize(self) -> None:
        """Build everything anew into as few segments as possible, with what is known of events now."""
        self.wait()
        with self.rewriting(lambda rows: rows, self._sample()) as rewritten:
            self.put(rewritten)
        self._merge_if_due()

    def wait(self) -> None:
        """Wait until merges that are running are done."""
        self._merges.wait()

    def _parts(self) -> list[Part]:
        deltas = [delta for delta, _ in self._frozen] + ([self._active] if len(self._active) else [])
        return [*self._segments, *self._coming, *deltas]

    def due(self) -> Iterator[list[Part]]:
        """Parts that should become one and are not being merged, see `due_parts`."""
        if self._is_rewriting:
            return iter(())
        busy = self._merges.busy
        deltas = [delta for delta, _ in self._frozen if id(delta) not in busy]
        segments = [part for part in self._segments if id(part) not in busy]
        return due_parts(deltas, segments, self._dead, min(_TIER_ROWS, DELTA_ROWS))

    def follow(self) -> None:
        """Begin, in the background, to plan anew what events have drifted from. Whoever matches calls it now and then."""
        if self._background and not self._merges.threads and drifted_segment(self._segments) is not None:
            self._merges.begin_in_background(self)

    def _merge_if_due(self) -> None:
        if self._background:
            self._merges.begin(self)
        else:
            self._merges.do_all(self)

    def merge(self, parts: list[Part]) -> None:
        """Put one segment in the place of some parts."""
        with self.lock:
            generation = self._generation
            only = parts[0]
            drifted = only if len(parts) == 1 and isinstance(only, Segment) and only.watch.is_due() else None
            rows = self._living_views(parts)
            # Who died but is still seen stays: only `publish` shows what changed.
            life = Life(self._died.view(), self.version.life.now)
        built = self._built(concatenated([part(life) for part in rows]))
        with self.lock:
            if generation != self._generation or self._is_rewriting:
                return
            self._replace(parts, built)
            self.merges += 1
            if drifted is not None:
                self.replans += 1
                for segment in built:
                    segment.watch.needed = PATIENCE * drifted.watch.needed
            self._publish_parts()

    def _publish_parts(self) -> None:
        """Let matching see the same subscriptions in new parts: nothing that waits to be published is seen early."""
        _, deltas, life, _, _ = self.version
        active = tuple(pair for pair in deltas if pair[0] is self._active)
        self._set_version(self._segments, self._frozen + active, life)

    def _living_views(self, parts: Sequence[Part]) -> list[Callable[[Life], Rows]]:
        frozen = {id(delta): view for delta, view in self._frozen}
        return [part.rows if isinstance(part, Segment) else frozen[id(part)].living for part in parts]

    def _living(self, parts: Sequence[Part]) -> Rows:
        """The rows of parts, of those that live now."""
        life = Life(self._died.view(), self._now)
        if not parts:
            return NO_ROWS
        return concatenated(
            [part.rows(life) if isinstance(part, Segment) else part.view().living(life) for part in parts]
        )

    def _built(self, rows: Rows) -> list[Segment]:
        return segments_of(rows, self._sample()) if rows.number else []

    def _replace(self, old: Sequence[Part], new: Sequence[Segment]) -> None:
        """Put segments in the place of the parts they were made from."""
        gone = {id(part) for part in old}
        segments = tuple(segment for segment in self._segments if id(segment) not in gone) + tuple(new)
        coming = tuple(segment for segment in self._coming if id(segment) not in gone)
        frozen = tuple(pair for pair in self._frozen if id(pair[0]) not in gone)
        active = Delta() if id(self._active) in gone else self._active
        # At once: no row is ever in two parts, or in none, whenever this is interrupted.
        self._segments, self._coming, self._frozen, self._active = segments, coming, frozen, active
        kept = np.concatenate([segment.slots() for segment in new]) if new else np.zeros(0, np.int32)
        for part in old:
            self._dead.pop(id(part), None)
            # Not `np.setdiff1d`, which keeps the GIL for tens of milliseconds.
            gone_slots = np.zeros(len(self._died), np.bool_)
            gone_slots[part.slots()] = True
            gone_slots[kept] = False
            dropped = np.flatnonzero(gone_slots)
            part.lease.after = tuple(segment.lease for segment in new)
            if len(dropped):
                # Until the last version with this part, or with one it was made from, is gone, readers may meet these slots.
                gone_for_good = (self._lives, dropped.tolist())
                weakref.finalize(part.lease, self._released.append, gone_for_good).atexit = False
        for segment in new:
            self._settle(segment)

    def _take_back(self) -> None:
        """Give the slots of parts that are gone to whoever comes next."""
        while self._released:
            lives, slots = self._released.popleft()
            if lives == self._lives:
                self._free.extend(slots)
                self._deaths -= len(slots)

    # -- matching

    def match(self, version: Version, batch: EventBatch, dimensions: int) -> Found:
        """Match a batch against a version."""
        events = len(batch.start) - 1
        if events == 0:
            return nothing_found(0)
        parts = [segment.match(batch, dimensions, version.life, self._scratch) for segment in version.segments]
        for _, view in version.deltas:
            scratch = self._scratch.take_delta()
            parts.append(match_delta(view, batch, dimensions, version.life, scratch))
            self._scratch.give_delta(scratch)
        return together(parts, events)

    def accesses(self, slot: int) -> tuple[list[tuple[Access, bool]], bool]:
        """How the rows of a slot are found in segments (see `Segment.accesses`), and whether some wait in a delta."""
        segments, deltas, _, _, _ = self.version
        found = [access for segment in segments for access in segment.accesses(slot)]
        return found, any(bool((view.rows.slot == slot).any()) for _, view in deltas)

    def stats(self) -> dict[str, Any]:
        with self.lock:
            self._take_back()
        version = self.version
        watches = [segment.watch for segment in version.segments]
        expected = sum(watch.expected for watch in watches)
        seen = [watch.observed for watch in watches if watch.observed is not None]
        known = sum(watch.expected for watch in watches if watch.observed is not None)
        return {
            "segments": [segment.stats() for segment in version.segments],
            "expected": expected,
            "observed": sum(seen) if seen else None,
            "drift": sum(seen) / known if known > 0 else None,
            "replans": self.replans,
            "delta_rows": sum(view.rows.number for _, view in version.deltas),
            "dead": self._deaths,
            "merges": self.merges,
        }
