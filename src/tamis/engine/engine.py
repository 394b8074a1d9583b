"""The engine: segments, deltas and slots, changed by one writer and read by any number of threads.

It has the shape of an LSM tree, like Lucene. New rows go into the active *delta*. The writer that fills a delta builds it into a
segment. Threads in the background merge segments of one size into a larger one. Matching works on a *version* (`version`), which
never changes.

Removing a subscription only writes the time of death of its slot (`slot_table`). Its rows go when their segment is built again.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.events.plain_rows import PlainRows
from tamis.encoding.expressions.plain_row import PlainRow
from tamis.engine.delta import Delta, DeltaView
from tamis.engine.interrupts import holding
from tamis.engine.limits import USUAL_LIMITS, Limits
from tamis.engine.matching.counters import Counters
from tamis.engine.matching.results import Found, Life
from tamis.engine.matching.thread_scratch import ThreadScratch
from tamis.engine.merging import Merges, Part, drifted_segment, due_parts
from tamis.engine.rows import NO_ROWS, Rows, concatenated, without_idle_programs
from tamis.engine.segment import Segment, segments_of
from tamis.engine.single import Singles
from tamis.engine.slot_table import NO_DEATHS, NOWHERE, SlotTable
from tamis.engine.version import SegmentMatching, Version
from tamis.engine.watch import PATIENCE
from tamis.kernels.numbers import Bools, I32s


class Rewritten(NamedTuple):
    """Segments that are to replace all parts."""

    parts: list[Part]
    segments: list[Segment]


class Engine:
    """Rows of subscriptions, and which of them events satisfy. The caller lets only one thread change it at a time.

    Parameters
    ----------
    sample : function
        Gives the sample of events to plan for, or None.
    background : bool
        Whether threads merge segments. Otherwise the writer does.
    """

    def __init__(
        self, sample: Callable[[], EventBatch | None], background: bool = True, limits: Limits = USUAL_LIMITS
    ) -> None:
        self._sample = sample
        self._background = background
        self._limits = limits
        self._slots = SlotTable()
        self._active = Delta()
        self._frozen: tuple[tuple[Delta, DeltaView], ...] = ()
        """Full deltas, which wait to be built into a segment."""
        self._segments: tuple[Segment, ...] = ()
        self._coming: tuple[Segment, ...] = ()
        """Segments of new rows, which wait to be published."""
        self._rewrites = 0
        """Counts the changes that make the result of a running merge useless."""
        self._is_rewriting = False
        self.lock = threading.RLock()
        """Held while parts change. A merge holds it only at its beginning and at its end."""
        self.is_changing = holding(self.lock)
        """Whether the calling thread holds the lock."""
        self.running_merges = Merges(limits.large_merge)
        """The threads that merge, and what they merge."""
        self._scratch = ThreadScratch(limits.scratch)
        self.counters = Counters()
        self.singles = Singles(self.counters, limits)
        """The buffers in which each thread matches single events."""
        self._numbers = itertools.count()
        self._segment_sets = 0
        """Counts the changes of the segments that versions have."""
        self._shown: tuple[Segment, ...] = ()
        """The segments of the last version."""
        self._stale = False
        """Whether the current version lacks a change that came alone."""
        self._set_version((), (), Life(NO_DEATHS, 0))
        self._changes = 0
        self.merges = 0
        self.replans = 0
        """Merges because of drift, which `merges` counts too."""

    # -- versions

    @property
    def version(self) -> Version:
        """What matching sees from now on. Changes that come alone get a version only here, since there may be many of them."""
        if self._stale:
            with self.lock:
                self._catch_up()
        return self._current

    def latest(self) -> tuple[Version, int, int]:
        """What matching sees from now on: a version, the number of rows in its last delta by now, and the time.

        If it can, it makes no new version: between changes, a single event would spend more time on versions than on matching.
        """
        latest = self._latest
        if self._stale:
            with self.lock:
                version = self._current
                # If the version is no longer stale, changes may wait to be published.
                if self._stale and self._goes_on(version):
                    return version, self._active.number, self._slots.now
                self._catch_up()
                latest = self._latest
        return latest

    def _goes_on(self, version: Version) -> bool:
        """Whether only the number of rows in the active delta and the time have changed since this version."""
        if not version.deltas or version.segments is not self._segments:
            return False
        delta, view = version.deltas[-1]
        return delta is self._active and view.columns is delta.columns and version.life.died is self._slots.died

    def _catch_up(self) -> None:
        """Publish changes that came alone, in a fraction of the time of `_show`.

        Call it before a change that must not be seen until it is published.
        """
        if not self._stale:
            return
        active = self._active
        deltas = self._frozen
        if active.number:
            deltas = (*deltas, (active, tuple.__new__(DeltaView, (active.columns, active.number))))
        self._set_version(self._segments, deltas, tuple.__new__(Life, (self._slots.died, self._slots.now)))

    def publish(self) -> None:
        """Let the next match see all changes so far, together, and merge if it is time."""
        with self.lock:
            self._show()
        self._merge_if_due()
        self._count_change()

    def _show(self) -> None:
        if self._coming:
            self._segments, self._coming = self._segments + self._coming, ()
        self._slots.count_dead()
        deltas = self._frozen
        if len(self._active):
            deltas += ((self._active, self._active.view()),)
        self._set_version(self._segments, deltas, Life(self._slots.died, self._slots.now))

    def _set_version(
        self, segments: tuple[Segment, ...], deltas: tuple[tuple[Delta, DeltaView], ...], life: Life
    ) -> None:
        if segments is not self._shown:
            self._shown = segments
            self._segment_sets += 1
        # What the __new__ of a NamedTuple does, without the calls in between.
        version = tuple.__new__(Version, (segments, deltas, life, next(self._numbers), self._segment_sets))
        self._current = version
        self._latest = version, deltas[-1][1].number if deltas else 0, life.now
        self._stale = False  # This comes last: a reader that sees False uses the version.

    # -- changing

    def new_slots(self, count: int) -> I32s:
        """Slots for new subscriptions."""
        with self.lock:
            return self._slots.take(count)

    def new_slot(self) -> int:
        """A slot for a new subscription."""
        slots = self._slots
        if not slots.free:
            with self.lock:
                slots.have_free(self._limits.slots_at_once)
        return slots.take_one()

    def add(self, rows: Rows) -> None:
        """Take in rows, whose slots `new_slots` gave. Matching sees them after the next `publish`."""
        if self._is_segment(rows):
            built = self.build(rows)
            with self.lock:
                for segment in built:
                    self._settle(segment)
                self._coming += tuple(built)
            return
        with self.lock:
            self._catch_up()
            limits = self._limits
            if len(self._active) + rows.number > limits.delta_rows or self._active.apart >= limits.delta_apart:
                self._freeze()
            self._active.add(rows)
            self._slots.settle(rows.slot, id(self._active))

    def _is_segment(self, rows: Rows) -> bool:
        """Whether rows that come together become a segment at once."""
        limits = self._limits
        if rows.number >= min(limits.delta_rows, limits.segment_rows):
            return True
        return rows.number >= limits.segment_apart and rows.apart() >= limits.segment_apart

    def add_plain(self, row: PlainRow, slot: int) -> bool:
        """Take in a row that comes alone, which the next match sees; False if it is not a conjunction as it stands.

        Nothing else may wait to be published.
        """
        with self.lock:
            if self._active.number >= self._limits.delta_rows or self._active.apart >= self._limits.delta_apart:
                self._freeze()
            active = self._active
            if not active.add_plain(row, slot):
                return False
            self._slots.settle_one(slot, active.part_id)
            self._stale = True
        self._look()
        return True

    def _freeze(self) -> None:
        if len(self._active):
            self._frozen += ((self._active, self._active.view()),)
            self._active = Delta()

    def remove(self, slots: I32s) -> None:
        """Let slots die. Matching sees it after the next `publish`."""
        with self.lock:
            self._catch_up()
            self._slots.kill(slots)

    def remove_one(self, slot: int) -> None:
        """Let a slot die if it is alive, which the next match sees. Nothing else may wait to be published."""
        with self.lock:
            if not self._slots.is_alive(slot):
                return
            self._stale = True
            self._slots.kill_one(slot)
        self._look()

    def living_among(self, slots: I32s) -> I32s:
        """The slots that have not been removed."""
        return self._slots.living_among(slots)

    def settle_again(self, slots: I32s) -> I32s:
        """Find the parts that have the rows of slots, after adding them was interrupted; returns the slots without rows."""
        with self.lock:
            self._slots.settle(slots, NOWHERE)
            for part in self._parts():
                self._slots.settle(np.intersect1d(slots, part.slots()), id(part))
            self._stale = True
            return self._slots.homeless_among(slots)

    def _look(self) -> None:
        """Count a change that came alone. Now and then, look for parts to merge: one change seldom makes parts due."""
        self._count_change()
        if self._frozen or self._changes % self._limits.changes_per_look == 0:
            self._merge_if_due()

    def _count_change(self) -> None:
        """Count a call that changed something, and take a break if it is time."""
        self._changes += 1
        if self._changes % self._limits.changes_per_break == 0:
            self.running_merges.let_in()

    def clear(self) -> None:
        """Forget everything."""
        with self.lock:
            self._rewrites += 1
            self._segments, self._coming, self._frozen, self._active = (), (), (), Delta()
            self._slots.clear()
            self._set_version((), (), Life(NO_DEATHS, self._slots.now))

    def restore(self, segments: Sequence[Segment], rows: Rows | None, alive: Bools) -> None:
        """Begin with a snapshot: its segments, the rows of its delta, and which slots are alive."""
        self.clear()
        with self.lock:
            held = np.zeros(len(alive), np.bool_)
            for segment in segments:
                held[segment.slots()] = True
            self._slots.restore(alive, held)
            for segment in segments:
                self._settle(segment)
            self._segments = tuple(segments)
            if rows is not None:
                self.add(rows)
        self.publish()

    # -- parts

    def _parts(self) -> list[Part]:
        deltas = [delta for delta, _ in self._frozen] + ([self._active] if len(self._active) else [])
        return [*self._segments, *self._coming, *deltas]

    def _settle(self, segment: Segment) -> None:
        self._slots.settle_part(segment.slots(), id(segment), self.version.life.now)

    def build(self, rows: Rows) -> list[Segment]:
        """New segments of rows, planned for the present sample of events."""
        return segments_of(rows, self._sample()) if rows.number else []

    def living(self) -> Rows:
        """The rows of all living slots. Nobody changes rows meanwhile."""
        with self.lock:
            parts = self._parts()
        if not parts:
            return NO_ROWS
        life = self._slots.life(self._slots.now)
        rows = [part.rows(life) if isinstance(part, Segment) else part.view().living(life) for part in parts]
        return without_idle_programs(concatenated(rows))

    def _replace(self, old: Sequence[Part], new: Sequence[Segment]) -> None:
        """Replace parts by the segments that were made of them."""
        gone = {id(part) for part in old}
        segments = tuple(segment for segment in self._segments if id(segment) not in gone) + tuple(new)
        coming = tuple(segment for segment in self._coming if id(segment) not in gone)
        frozen = tuple(pair for pair in self._frozen if id(pair[0]) not in gone)
        active = Delta() if id(self._active) in gone else self._active
        # In one step: whenever an interrupt comes, each row is in exactly one part.
        self._segments, self._coming, self._frozen, self._active = segments, coming, frozen, active
        kept = np.concatenate([segment.slots() for segment in new]) if new else np.zeros(0, np.int32)
        for part in old:
            self._slots.dead.pop(id(part), None)
            part.lease.after = tuple(segment.lease for segment in new)
            self._slots.release(part.slots(), kept, part.lease)
        for segment in new:
            self._settle(segment)

    @contextmanager
    def rewriting(self, changed: Callable[[Rows], Rows], sample: EventBatch | None) -> Iterator[Rewritten]:
        """Build segments of all rows after `changed`. Matching sees them when `put` is called. No rows change meanwhile."""
        try:
            with self.lock:
                self._show()
                self._is_rewriting = True  # No merge begins or ends meanwhile.
                parts = self._parts()
            rows = changed(self.living())
            yield Rewritten(parts, segments_of(rows, sample) if rows.number else [])
        finally:
            self._is_rewriting = False

    def put(self, rewritten: Rewritten) -> None:
        """Let the next match see rewritten segments. A second call does nothing."""
        with self.lock:
            if [id(part) for part in rewritten.parts] == [id(part) for part in self._parts()]:
                self._rewrites += 1
                self._replace(rewritten.parts, rewritten.segments)
            self._show()

    # -- merging

    def optimize(self) -> None:
        """Build all rows again into as few segments as possible, planned for the present sample."""
        self.wait()
        with self.rewriting(lambda rows: rows, self._sample()) as rewritten:
            self.put(rewritten)
        self._merge_if_due()

    def wait(self) -> None:
        """Wait until no merge is running."""
        self.running_merges.wait()

    def due(self) -> Iterator[list[Part]]:
        """Parts that should become one and are not being merged, see `due_parts`."""
        if self._is_rewriting:
            return iter(())
        busy = self.running_merges.busy
        deltas = [delta for delta, _ in self._frozen if id(delta) not in busy]
        segments = [part for part in self._segments if id(part) not in busy]
        return due_parts(deltas, segments, self._slots.dead, self._limits)

    def follow(self) -> None:
        """Plan again, in the background, a segment whose events drift. Threads that match call this now and then."""
        if self._background and not self.running_merges.threads and drifted_segment(self._segments) is not None:
            self.running_merges.begin_in_background(self)

    def _merge_if_due(self) -> None:
        if self._background:
            self.running_merges.begin(self)
        else:
            self.running_merges.do_all(self)

    def merge(self, parts: list[Part]) -> None:
        """Replace parts by one segment."""
        with self.lock:
            rewrites = self._rewrites
            only = parts[0]
            drifted = only if len(parts) == 1 and isinstance(only, Segment) and only.watch.is_due() else None
            frozen = {id(delta): view for delta, view in self._frozen}
            views = [part.rows if isinstance(part, Segment) else frozen[id(part)].living for part in parts]
            # A slot that died but is still seen keeps its rows: only `publish` shows changes.
            life = self._slots.life(self.version.life.now)
        built = self.build(concatenated([living(life) for living in views]))
        with self.lock:
            if rewrites != self._rewrites or self._is_rewriting:
                return
            self._replace(parts, built)
            self.merges += 1
            if drifted is not None:
                self.replans += 1
                for segment in built:
                    segment.watch.needed = PATIENCE * drifted.watch.needed
            self._publish_parts()

    def _publish_parts(self) -> None:
        """Let matching see the same subscriptions in new parts, and no change that waits to be published."""
        version = self.version
        active = tuple(pair for pair in version.deltas if pair[0] is self._active)
        self._set_version(self._segments, self._frozen + active, version.life)

    # -- matching

    def match(
        self, version: Version, batch: EventBatch | PlainRows, dimensions: int, by: SegmentMatching | None = None
    ) -> Found:
        """Match a batch against a version; its segments `by` something else, if that is given.

        Raises
        ------
        NotPlainError
        """
        return version.match(batch, dimensions, self._scratch, by)

    @property
    def nbytes(self) -> int:
        """The size of all parts, as matching last saw them."""
        version = self._current
        sizes = [segment.nbytes + segment.table_nbytes for segment in version.segments]
        return sum(sizes) + sum(delta.nbytes for delta, _ in version.deltas)

    def stats(self) -> dict[str, Any]:
        with self.lock:
            dead = self._slots.count_deaths()
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
            "dead": dead,
            "merges": self.merges,
        }
