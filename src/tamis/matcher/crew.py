"""Work in parts by several threads, the calling one among them.

The others are kept: a new thread would have to make all buffers anew in which it matches, which takes as long as some hundred
events do.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

from tamis.kernels.background import begin_thread, is_ours, is_stopping, wake_with

T = TypeVar("T")
R = TypeVar("R")

# A crew has no more threads than this, whatever was asked for.
_MOST = 1024
# Seconds that a thread waits for items. They come within milliseconds, or not at all: when an interrupt came while another was
# dealt with, the caller may be gone without a sign.
_PATIENCE = 1.0
# The last parts of rows have such a fraction of one thread's share. More parts, and smaller ones, take longer than they save.
_LAST = 8


class _Shift:
    """What one thread does for a crew, unless it is called off before it begins."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._log: deque[bool] = deque()
        """Its first entry tells for good: whether a thread began, or it was called off."""
        self._is_done = False
        self._work = _thread.allocate_lock()
        """Held until the work is done."""
        self._work.acquire()

    def do(self, labour: Callable[[], None]) -> None:
        self._log.append(True)
        if self._log[0]:
            try:
                labour()
            except BaseException as error:
                self.error = error
            self._is_done = True
            self._work.release()

    def has_begun(self) -> bool:
        """Whether it has; if not, it never will."""
        self._log.append(False)
        return self._log[0]

    def wait(self) -> None:
        """Wait until the work is done. An interrupt may leave the lock held here, so a second call does not take it."""
        if not self._is_done:
            with self._work:
                pass


_Work = tuple[_Shift, Callable[[], None]]


class _Pool:
    """Threads that wait for work, with all that they share made in C: what Python's own pool, futures and conditions do can be
    interrupted half-way, after which they wait for ever, and so does Python when it is to end.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Threads do not survive a fork."""
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._free: deque[None] = deque()
        """Has something for each thread that is free."""

    def stop(self) -> None:
        """Let all threads end when they have done what they are at."""
        self._waiting.put(None)

    def begin(self, labour: Callable[[], None]) -> _Shift | None:
        """Let a thread labour; None when no more threads can be had."""
        if is_stopping():
            return None
        try:
            self._free.pop()
        except IndexError:
            if not begin_thread(functools.partial(_serve, self._waiting, self._free)):
                return None
        shift = _Shift()
        self._waiting.put((shift, labour))
        return shift


def _serve(waiting: SimpleQueue[_Work | None], free: deque[None]) -> None:
    while (work := waiting.get()) is not None:
        shift, labour = work
        shift.do(labour)
        del work, shift, labour  # Nothing is kept alive while the thread waits for more.
        free.append(None)
    waiting.put(None)  # for the next


_pool = _Pool()
wake_with(_pool.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


class Crew(Generic[T, R]):
    """Threads that work on items while more of them are made; the caller joins in when all have been given.

    Should the work raise, the first error that is met is raised, and items may be left out. Nobody works any more when the
    crew has been left.
    """

    def __init__(self, work: Callable[[T], R], threads: int) -> None:
        self._work = work
        self._threads = threads
        self._given = 0
        self._waiting: SimpleQueue[tuple[int, T] | None] = SimpleQueue()
        """None is the last, and whoever meets it leaves it there for others."""
        self._results: dict[int, R] = {}
        self._shifts: list[_Shift] = []

    def __enter__(self) -> Crew[T, R]:
        return self

    def begin(self) -> None:
        """Let all others wait for items, now that none has been given; else they begin when all have."""
        self._begin(self._threads - 1)

    def give(self, place: int, item: T) -> None:
        """Let anybody take an item, which has this place among all."""
        self._waiting.put((place, item))
        self._given += 1

    def results(self) -> list[R]:
        """What became of all items, in the order of their places. The caller works on what is left of them."""
        self._waiting.put(None)
        self._begin(min(self._threads, self._given) - 1)
        self._labour()
        for error in self._errors():
            raise error
        return [self._results[place] for place in sorted(self._results)]

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._leave_out()
        self._errors()

    def _begin(self, helpers: int) -> None:
        while len(self._shifts) < min(helpers, _MOST) and (shift := _pool.begin(self._labour)) is not None:
            self._shifts.append(shift)

    def _labour(self) -> None:
        try:
            while not (is_stopping() and is_ours()):
                try:
                    given = self._waiting.get(timeout=_PATIENCE)
                except Empty:
                    return
                if given is None:
                    self._waiting.put(None)
                    return
                place, item = given
                self._results[place] = self._work(item)
        except BaseException:
            self._leave_out()
            raise

    def _leave_out(self) -> None:
        """Let nobody find any more items."""
        try:
            with suppress(Empty):
                while True:
                    self._waiting.get_nowait()
        finally:
            self._waiting.put(None)

    def _errors(self) -> list[BaseException]:
        """What those met who helped. Whoever was too busy to begin is not waited for."""
        started = [shift for shift in self._shifts if shift.has_begun()]
        for shift in started:
            shift.wait()
        return [shift.error for shift in started if shift.error is not None]


def each(work: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """What `work` makes of each item, in their order.

    Should it raise, the first error that is met is raised, and items may be left out.
    """
    if min(threads, len(items)) < 2:
        return [work(item) for item in items]
    with Crew(work, min(threads, len(items))) as crew:
        for place, item in enumerate(items):
            crew.give(place, item)
        return crew.results()


def largest_first(sizes: Sequence[int]) -> list[int]:
    """The places of the largest, the next one, and so on."""
    return sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)


def shares_of(count: int, shares: int) -> list[tuple[int, int]]:
    """So many rows in shares of nearly one size: the first row of each, and where it ends."""
    shares = max(shares, 1)
    return list(itertools.pairwise(count * share // shares for share in range(shares + 1)))


def tapering(count: int, threads: int) -> Iterator[tuple[int, int]]:
    """So many rows in parts for so many threads, which get smaller to the end: the first row of each, and where it ends.

    Some rows take longer than others, and some threads: each part is one thread's share of what is left.
    """
    first, least = 0, max(count // (_LAST * threads), 1)
    while first < count:
        last = min(first + max(-(-(count - first) // threads), least), count)
        yield first, last
        first = last
