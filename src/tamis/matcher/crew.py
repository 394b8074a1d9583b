"""Work in parts by several threads, the calling one among them.

The others are kept: a new thread would have to make all buffers anew in which it matches, which takes as long as some hundred
events do.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

from tamis.engine.reentry import become_helper, holding

T = TypeVar("T")
R = TypeVar("R")

# Threads are started when they are needed, so this is no number that anybody has.
_MOST = 1024
# Some items take longer than others, and some threads: a share is halved so often, and the smallest parts come last.
_HALVINGS = 4


class _Pool:
    """Threads that wait for work."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Threads do not survive a fork."""
        self._lock = threading.RLock()
        self._is_held = holding(self._lock)
        self._threads: ThreadPoolExecutor | None = None

    def begin(self, labour: Callable[[], None], helpers: int) -> list[Future[None]]:
        """Let so many threads labour; fewer, or none, when Python is about to end."""
        futures: list[Future[None]] = []
        if self._is_held():
            return futures  # A finalizer that matches, in the midst of this.
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_MOST, thread_name_prefix="tamis-match", initializer=become_helper)
            with suppress(RuntimeError):
                while len(futures) < helpers:
                    futures.append(self._threads.submit(labour))
        return futures


_pool = _Pool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.forget)


def each(work: Callable[[T], R], items: Sequence[T], threads: int, sizes: Sequence[int] | None = None) -> list[R]:
    """What `work` makes of each item, in their order. The largest are begun first, if sizes are given.

    Should it raise, the first error that is met is raised, and items may be left out.
    """
    helpers = min(threads, len(items)) - 1
    if helpers < 1:
        return [work(item) for item in items]
    results: list[Any] = [None] * len(items)
    order: Sequence[int] = range(len(items))
    if sizes is not None:
        order = sorted(order, key=sizes.__getitem__, reverse=True)
    waiting = deque(order)

    def labour() -> None:
        try:
            while True:
                try:
                    at = waiting.popleft()
                except IndexError:
                    return
                results[at] = work(items[at])
        except BaseException:
            waiting.clear()
            raise

    futures = _pool.begin(labour, helpers)
    try:
        labour()
    finally:
        # Nobody works any more when this returns; whoever was too busy to begin is not waited for.
        started = [future for future in futures if not future.cancel()]
        errors = [error for error in (future.exception() for future in started) if error is not None]
    if errors:
        raise errors[0]
    return results


def shares_of(count: int, shares: int) -> list[tuple[int, int]]:
    """So many rows in shares of nearly one size: the first row of each, and where it ends."""
    shares = max(shares, 1)
    return list(itertools.pairwise(count * share // shares for share in range(shares + 1)))


def halves_of(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Some rows in parts: one half of them, half of the rest, and so on."""
    for _ in range(_HALVINGS):
        middle = (first + last + 1) // 2
        if middle == last:
            break
        yield first, middle
        first = middle
    yield first, last
