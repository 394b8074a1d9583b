"""Merging: which parts of an engine should become one, and the threads in which they do.

A thread merges until nothing is due. Large merges have a thread of their own, so that a long one does not keep short ones from
being done.
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
from tamis.engine.segment import Segment
from tamis.kernels.background import begin_named_thread

Part: TypeAlias = Segment | Delta

_FAN = 4
"""So many segments of one tier are merged."""
_MOST_MERGED = 1 << 22
"""Segments with more rows than this are only built anew, not merged."""
_LARGE = 1 << 17
"""Merges of more rows than this are large."""
_BREAK = 1e-6
"""Seconds: what the system makes of it, some 60 microseconds, is long enough for a thread to wake up and take the GIL."""


def due_parts(
    deltas: Sequence[Delta], segments: Iterable[Segment], dead: Mapping[int, int], tier_rows: int
) -> Iterator[list[Part]]:
    """Parts that should become one: full deltas, segments of one tier, one with many dead or whose events drift.

    `dead` has the number of dead slots by key of a part. The first tier is that of segments of up to so many rows.
    """
    if deltas:
        yield list(deltas)
    tiers: dict[int, list[Part]] = {}
    for segment in segments:
        died = dead.get(id(segment), 0)
        if died > tier_rows // 4 and 2 * died > segment.owned:
            yield [segment]
        elif segment.owned <= _MOST_MERGED:
            tiers.setdefault(_tier(segment.owned, tier_rows), []).append(segment)
    for _, alike in sorted(tiers.items()):
        if len(alike) >= _FAN:
            yield alike
    drifted = drifted_segment(segments)
    if drifted is not None:
        yield [drifted]


def _tier(rows: int, tier_rows: int) -> int:
    tier = 0
    while rows > tier_rows:
        rows //= _FAN
        tier += 1
    return tier


def drifted_segment(segments: Iterable[Segment]) -> Segment | None:
    """The segment for which planning anew promises most, if it is time for any."""
    due = [segment for segment in segments if segment.watch.is_due()]
    return max(due, key=lambda segment: (segment.watch.observed or 0.0) - segment.watch.expected, default=None)


class Mergeable(Protocol):
    """An engine. It is handed to all that is asked of its merges: were it kept, it would not go when nobody needs it any more."""

    @property
    def lock(self) -> AbstractContextManager[bool]: ...
    def due(self) -> Iterator[list[Part]]: ...
    def merge(self, parts: list[Part]) -> None: ...


class Merges:
    """The merges of an engine that are running."""

    def __init__(self) -> None:
        self.busy: set[int] = set()
        """Keys of the parts that are being merged."""
        self.threads: dict[bool, threading.Thread] = {}
        """The thread of large merges (True) and that of others."""
        self._process = os.getpid()

    def _survive_fork(self) -> None:
        """Threads do not survive a fork, nor do the merges that they were at."""
        if self._process != os.getpid():
            self.busy, self.threads, self._process = set(), {}, os.getpid()

    def wait(self) -> None:
        """Wait until those that are running are done."""
        self._survive_fork()
        for thread in list(self.threads.values()):
            if thread is not threading.current_thread():
                thread.join()

    def begin(self, engine: Mergeable) -> None:
        """Merge what is due: deltas here and now, segments in the background.

        A thread that merges asks for the GIL some 200 times, however few the rows are, and whoever matches meanwhile has to
        wait for it each time. To build a delta takes the writer a few microseconds for each of its rows.
        """
        self._survive_fork()
        parts = self._take(engine, lambda parts: not isinstance(parts[0], Segment))
        if parts:
            # Should it fail, that is no concern of whoever made a change: a thread tries again, and says why it cannot.
            with suppress(Exception):
                self._do(engine, parts)
        self.begin_in_background(engine)

    def let_in(self) -> None:
        """Take a break if something is merged in the background. Whoever makes change after change calls it now and then.

        Of a thread that never rests, others get the GIL every five milliseconds, and each of the 200 times that a merge asks
        for it would take that long: 65,000 rows were merged in 0.7 seconds, and are in 0.2 now, of which 0.14 are work. Until
        then every event meets all of the parts. Beside merges the breaks take a tenth of the time.
        """
        if self.threads:
            time.sleep(_BREAK)

    def begin_in_background(self, engine: Mergeable) -> None:
        """Begin threads for what is due."""
        self._survive_fork()
        with engine.lock:
            for size in {_is_large(parts) for parts in engine.due()} - self.threads.keys():
                thread = begin_named_thread(functools.partial(self.do_all, engine, size), "tamis-merge")
                # It waits for the lock before it does anything; whoever waits for it must find it started.
                if thread is not None:
                    self.threads[size] = thread

    def do_all(self, engine: Mergeable, large: bool | None = None) -> None:
        """Merge until nothing is due; only what is large, or only what is not, if that is asked for."""
        try:
            while parts := self._take(engine, lambda parts: large is None or _is_large(parts) is large, large):
                self._do(engine, parts)
        except BaseException:
            self._forget_thread(large)  # The next change tries again.
            raise

    def _take(self, engine: Mergeable, wanted: Callable[[list[Part]], bool], ending: bool | None = None) -> list[Part]:
        """Parts that are due and wanted, which nobody else merges from now on. If there are none, the thread is ending."""
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


def _is_large(parts: Sequence[Part]) -> bool:
    return sum(part.owned if isinstance(part, Segment) else len(part) for part in parts) > _LARGE
