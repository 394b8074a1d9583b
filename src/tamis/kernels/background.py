"""Threads of ours, of which none is left when the interpreter goes.

A thread that is in a kernel or in LLVM when Python ends is stopped there by force, and with it the whole process is aborted. So
before that all threads are told to stop. They do so at the next *checkpoint*, between two kernels, and are waited for.

Whoever is interrupted by Ctrl-C may be interrupted anywhere: what is here works with locks and deques made in C, which no
interrupt leaves half done.
"""

from __future__ import annotations

import _thread
import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable

_MOST_WAITED = 10.0
"""Seconds after which a process ends all the same: far more than any kernel takes."""


class Stopped(BaseException):
    """Raised in a thread of ours that has been told to stop."""


class _Own(threading.local):
    is_ours = False


_own = _Own()


class _Threads:
    """The threads of this process."""

    def __init__(self) -> None:
        self.wakers: deque[Callable[[], None]] = deque()
        """What to call so that threads that wait for something wake up."""
        self.forget()

    def forget(self) -> None:
        """Begin without threads: they do not survive a fork."""
        self.stopping = False
        self.alive: deque[_thread.LockType] = deque()
        """A lock for each thread, which is free when the thread has ended."""
        self._is_registered = False

    def begin(self, start: Callable[[_thread.LockType], object]) -> bool:
        """Start a thread, which frees the lock when it ends; whether one could be had."""
        if self.stopping:
            return False
        self._register()
        ended = _thread.allocate_lock()
        ended.acquire()
        try:
            start(ended)
        except RuntimeError:  # The system has no more threads, or Python is about to end.
            return False
        while self.alive and not self.alive[0].locked():
            self.alive.popleft()
        self.alive.append(ended)
        return True

    def _register(self) -> None:
        """Let threads be stopped when the process ends."""
        if self._is_registered:
            return
        self._is_registered = True
        atexit.register(self.stop)
        processes = sys.modules.get("multiprocessing.util")
        if processes is not None:  # Its children end without what `atexit` has.
            processes.Finalize(None, self.stop, exitpriority=0)

    def stop(self) -> None:
        """Tell all threads to stop, and wait for them."""
        self.stopping = True
        for wake in list(self.wakers):
            wake()
        until = time.monotonic() + _MOST_WAITED
        for ended in list(self.alive):
            ended.acquire(timeout=max(until - time.monotonic(), 0))


_threads = _Threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.forget)


def _run(labour: Callable[[], None], ended: _thread.LockType) -> None:
    _own.is_ours = True
    try:
        labour()
    except Stopped:
        pass
    finally:
        ended.release()


def begin_thread(labour: Callable[[], None]) -> bool:
    """Let a thread labour; whether one could be had."""
    return _threads.begin(lambda ended: _thread.start_new_thread(_run, (labour, ended)))


def begin_named_thread(labour: Callable[[], None], name: str) -> threading.Thread | None:
    """Let a thread labour that can be waited for; None if none could be had."""
    threads: list[threading.Thread] = []

    def start(ended: _thread.LockType) -> None:
        threads.append(threading.Thread(target=_run, args=(labour, ended), name=name, daemon=True))
        threads[0].start()

    return threads[0] if _threads.begin(start) else None


def wake_with(wake: Callable[[], None]) -> None:
    """Let `wake` be called when threads are to stop, for those that wait for something."""
    _threads.wakers.append(wake)


def is_ours() -> bool:
    """Whether the calling thread is one of ours: a finalizer that runs in it must wait for nothing."""
    return _own.is_ours


def is_stopping() -> bool:
    """Whether threads of ours are to stop."""
    return _threads.stopping


def checkpoint() -> None:
    """End the calling thread here if it is one of ours and is to stop.

    Raises
    ------
    Stopped
    """
    if _threads.stopping and _own.is_ours:
        raise Stopped
