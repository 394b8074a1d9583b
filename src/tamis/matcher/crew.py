"""Work in parts by several threads, the calling thread among them.

The other threads stay for the next call. A new thread would have to make its buffers for matching, which takes as long as
matching some hundred events.
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

_PATIENCE = 1.0
"""Seconds that a thread waits for items. Items come within milliseconds, or not at all: if an interrupt comes while another is
handled, the caller may leave without telling the crew."""
_LAST = 8
"""The smallest part is a thread's share divided by this number. Smaller parts cost more time than they save."""


class Shift:
    """The work of one thread for a crew, unless it is called off before it begins."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._log: deque[bool] = deque()
        """The first entry decides: True if a thread began, False if the shift was called off."""
        self.is_done = False
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
            self.is_done = True
            self._work.release()

    def has_begun(self) -> bool:
        """Whether the work has begun. If not, it never will."""
        self._log.append(False)
        return self._log[0]

    def wait(self) -> None:
        """Wait until the work is done. An interrupt may leave the lock held, so a second call does not take the lock."""
        if not self.is_done:
            with self._work:
                pass


_Work = tuple[Shift, Callable[[], None]]


class _Pool:
    """Threads that wait for work.

    All that they share is made in C. An interrupt in the middle of Python's own pool, futures or conditions makes threads wait
    for ever, and Python waits for these threads when it ends.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Threads do not survive a fork."""
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self.free: deque[None] = deque()
        """One item for each free thread."""

    def stop(self) -> None:
        """Let all threads end after their present work."""
        self._waiting.put(None)

    def begin(self, labour: Callable[[], None]) -> Shift | None:
        """Let a thread labour; None if the system has no more threads."""
        if is_stopping():
            return None
        try:
            self.free.pop()
        except IndexError:
            if not begin_thread(functools.partial(_serve, self._waiting, self.free)):
                return None
        shift = Shift()
        self._waiting.put((shift, labour))
        return shift


def _serve(waiting: SimpleQueue[_Work | None], free: deque[None]) -> None:
    while (work := waiting.get()) is not None:
        shift, labour = work
        shift.do(labour)
        del work, shift, labour  # Keep nothing alive while the thread waits for more work.
        free.append(None)
    waiting.put(None)  # for the next


pool = _Pool()
wake_with(pool.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=pool.forget)


class Crew(Generic[T, R]):
    """Threads that work on items while the caller makes more items. The caller joins in after the last item.

    If the work raises, the first error is raised again here, and some items may be left out. When the caller has left the crew,
    no thread works for it any more. A thread that waits for an item longer than `patience` seconds leaves.
    """

    def __init__(self, work: Callable[[T], R], threads: int, *, patience: float = _PATIENCE) -> None:
        self._work = work
        self._patience = patience
        self._threads = threads
        self._given = 0
        self._waiting: SimpleQueue[tuple[int, T] | None] = SimpleQueue()
        """None is the last item. A thread that takes it puts it back for the others."""
        self._results: dict[int, R] = {}
        self.shifts: list[Shift] = []
        """The work of the other threads."""

    def __enter__(self) -> Crew[T, R]:
        return self

    def begin(self) -> None:
        """Let all other threads wait for items now. Without this call they begin after the last item."""
        self._begin(self._threads - 1)

    def give(self, place: int, item: T) -> None:
        """Let any thread take an item. `place` is its place among all items."""
        self._waiting.put((place, item))
        self._given += 1

    def results(self) -> list[R]:
        """The results of all items, in the order of their places. The caller works on the items that are left."""
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
        while len(self.shifts) < helpers and (shift := pool.begin(self._labour)) is not None:
            self.shifts.append(shift)

    def _labour(self) -> None:
        try:
            while not (is_stopping() and is_ours()):
                try:
                    given = self._waiting.get(timeout=self._patience)
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
        """Remove all items that nobody took."""
        try:
            with suppress(Empty):
                while True:
                    self._waiting.get_nowait()
        finally:
            self._waiting.put(None)

    def _errors(self) -> list[BaseException]:
        """The errors of the other threads. A thread that was too busy to begin is not waited for."""
        started = [shift for shift in self.shifts if shift.has_begun()]
        for shift in started:
            shift.wait()
        return [shift.error for shift in started if shift.error is not None]


def each(work: Callable[[T], R], items: Sequence[T], threads: int) -> list[R]:
    """The result of `work` for each item, in order. If `work` raises, the first error is raised, and items may be left out."""
    if min(threads, len(items)) < 2:
        return [work(item) for item in items]
    with Crew(work, min(threads, len(items))) as crew:
        for place, item in enumerate(items):
            crew.give(place, item)
        return crew.results()


def largest_first(sizes: Sequence[int]) -> list[int]:
    """The places of sizes, the largest size first."""
    return sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)


def shares_of(count: int, shares: int) -> list[tuple[int, int]]:
    """`count` rows in shares of nearly the same size: the first row of each share, and the row behind its last."""
    shares = max(shares, 1)
    return list(itertools.pairwise(count * share // shares for share in range(shares + 1)))


def tapering(count: int, threads: int) -> Iterator[tuple[int, int]]:
    """`count` rows in parts that become smaller: the first row of each part, and the row behind its last.

    Each part is one thread's share of the rows that are left. So threads end together, although some rows, and some threads, take
    longer than others.
    """
    first, least = 0, max(count // (_LAST * threads), 1)
    while first < count:
        last = min(first + max(-(-(count - first) // threads), least), count)
        yield first, last
        first = last
