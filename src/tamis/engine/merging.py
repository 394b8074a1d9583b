"""Merging: which parts of an engine should become one, and the threads that merge them.

A thread merges until nothing is due. Large merges have a thread of their own, so that short merges need not wait for them.
"""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Protocol, TypeAlias

from tamis.engine.delta import Delta
from tamis.engine.limits import USUAL_LIMITS, Limits
from tamis.engine.segment import Segment
from tamis.kernels.background import begin_named_thread

Part: TypeAlias = Segment | Delta

_BREAK_SECONDS = 1e-6
"""Length of a break. The system sleeps for some 60 microseconds, enough for a thread to wake up and take the GIL."""


def due_parts(
    deltas: Sequence[Delta], segments: Iterable[Segment], dead: Mapping[int, int], limits: Limits
) -> Iterator[list[Part]]:
    """Parts that should become one: full deltas, segments of one tier, a segment with many dead or whose events drift.

    `dead` has the number of dead slots by key of a part.
    """
    tier_rows = min(limits.tier_rows, limits.delta_rows)
    if deltas:
        yield list(deltas)
    tiers: dict[int, list[Part]] = {}
    for segment in segments:
        died = dead.get(id(segment), 0)
        if died > tier_rows // 4 and 2 * died > segment.owned:
            yield [segment]
        elif segment.owned <= limits.most_merged:
            tiers.setdefault(_tier(segment.owned, tier_rows, limits.fan), []).append(segment)
    for _, alike in sorted(tiers.items()):
        if len(alike) >= limits.fan:
            yield alike
    drifted = drifted_segment(segments)
    if drifted is not None:
        yield [drifted]


def _tier(rows: int, tier_rows: int, fan: int) -> int:
    tier = 0
    while rows > tier_rows:
        rows //= fan
        tier += 1
    return tier


def drifted_segment(segments: Iterable[Segment]) -> Segment | None:
    """The segment that gains most from a new plan, if it is time for any."""
    due = [segment for segment in segments if segment.watch.is_due()]
    return max(due, key=lambda segment: (segment.watch.observed or 0.0) - segment.watch.expected, default=None)


class Mergeable(Protocol):
    """An engine. Merges get it with every call: if they kept it, it would live as long as they do."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    def due(self) -> Iterator[list[Part]]: ...
    def merge(self, parts: list[Part]) -> None: ...


class Merges:
    """The running merges of an engine. Merges of more than `large` rows are large."""

    def __init__(self, large: int = USUAL_LIMITS.large_merge) -> None:
        self._large = large
        self.busy: set[int] = set()
        """Keys of the parts that are being merged."""
        self.threads: dict[bool, threading.Thread] = {}
        """The thread of large merges (True), and the thread of other merges."""
        self._process = os.getpid()

    def _survive_fork(self) -> None:
        """Threads and their merges do not survive a fork."""
        if self._process != os.getpid():
            self.busy, self.threads, self._process = set(), {}, os.getpid()

    def wait(self) -> None:
        """Wait until no merge is running."""
        self._survive_fork()
        for thread in list(self.threads.values()):
            if thread is not threading.current_thread():
                thread.join()

    def begin(self, engine: Mergeable) -> None:
        """Merge what is due: deltas in the calling thread, segments in the background.

        A thread that merges takes the GIL some 200 times, even for a few rows. Threads that match wait each time. The writer
        builds a delta in a few microseconds per row.
        """
        self._survive_fork()
        parts = self._take(engine, lambda parts: not isinstance(parts[0], Segment))
        if parts:
            # The caller only made a change, so it gets no error of a merge. A thread tries again and reports the error.
            with suppress(Exception):
                self._do(engine, parts)
        self.begin_in_background(engine)

    def let_in(self) -> None:
        """Take a break if a merge runs in the background. A writer with many changes calls this now and then.

        A thread that never rests gives up the GIL every five milliseconds, and a merge takes the GIL 200 times. Without breaks,
        65,000 rows took 0.7 seconds to merge; with breaks they take 0.2 seconds, of which 0.14 are work. Until a merge is done,
        every event visits all of its parts. The breaks take a tenth of the writer's time.
        """
        if self.threads:
            time.sleep(_BREAK_SECONDS)

    def begin_in_background(self, engine: Mergeable) -> None:
        """Start threads for the merges that are due."""
        self._survive_fork()
        with engine.lock:
            for size in {self._is_large(parts) for parts in engine.due()} - self.threads.keys():
                thread = begin_named_thread(functools.partial(self.do_all, engine, size), "tamis-merge")
                # The new thread first waits for the lock, so `wait` finds it in `threads`.
                if thread is not None:
                    self.threads[size] = thread

    def do_all(self, engine: Mergeable, large: bool | None = None) -> None:
        """Merge until nothing is due: only large merges (True), only others (False), or all (None)."""
        try:
            while parts := self._take(engine, lambda parts: large is None or self._is_large(parts) is large, large):
                self._do(engine, parts)
        except BaseException:
            self._forget_thread(large)  # The next change tries again.
            raise

    def _take(self, engine: Mergeable, wanted: Callable[[list[Part]], bool], ending: bool | None = None) -> list[Part]:
        """Parts that are due and wanted, for the caller alone to merge. If there are none, the thread `ending` ends."""
        with engine.lock:
            for parts in engine.due():
                if wanted(parts):
                    self.busy.update(id(part) for part in parts)
                    return parts
            self._forget_thread(ending)
            return []

    def _do(self, engine: Mergeable, parts: list[Part]) -> None:
        try:
            engine.merge(parts)
        finally:
            self.busy.difference_update([id(part) for part in parts])

    def _forget_thread(self, large: bool | None) -> None:
        if large is not None:
            self.threads.pop(large, None)

    def _is_large(self, parts: Sequence[Part]) -> bool:
        return sum(part.owned if isinstance(part, Segment) else len(part) for part in parts) > self._large
