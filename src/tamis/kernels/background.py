"""Threads of ours, which all end before the interpreter does.

If a thread is in a kernel or in LLVM when Python ends, the whole process is aborted. So all threads are told to stop before that.
They stop at the next *checkpoint*, between two kernels, and the process waits for them.

Ctrl-C may interrupt the main thread anywhere. So this module uses locks and deques made in C: no interrupt leaves them half done.
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
from contextlib import suppress

# PyArrow imports this module when it first reads a list, and Python refuses that when the main thread has ended. So other threads
# could not match their first batch then.
with suppress(RuntimeError):
    import concurrent.futures.thread  # noqa: F401

_MOST_WAITED = 10.0
"""Seconds to wait for threads before the process ends anyway: far longer than any kernel takes."""


class Stopped(BaseException):
    """Raised in a thread of ours that has been told to stop."""


class _Own(threading.local):
    is_ours = False


_own = _Own()


class _Threads:
    """The threads of this process."""

    def __init__(self) -> None:
        self.wakers: deque[Callable[[], None]] = deque()
        """Functions that wake up threads that wait for something."""
        self.forget()

    def forget(self) -> None:
        """Start without threads: they do not survive a fork."""
        self.stopping = False
        self.alive: deque[_thread.LockType] = deque()
        """A lock for each thread, which is free when the thread has ended."""
        self._is_registered = False

    def begin(self, start: Callable[[_thread.LockType], object]) -> bool:
        """Start a thread, which frees the lock when it ends; returns whether it was started."""
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
        """Stop threads when the process ends."""
        if self._is_registered:
            return
        self._is_registered = True
        atexit.register(self.stop)
        processes = sys.modules.get("multiprocessing.util")
        if processes is not None:  # Its child processes do not call the functions of `atexit`.
            processes.Finalize(None, self.stop, exitpriority=0)

    def stop(self) -> bool:
        """Tell all threads to stop, and wait for them. Returns whether all have ended."""
        self.stopping = True
        for wake in list(self.wakers):
            wake()
        until = time.monotonic() + _MOST_WAITED
        have_ended = True
        for ended in list(self.alive):
            if ended.acquire(timeout=max(until - time.monotonic(), 0)):
                # The end of a process calls this twice: for `atexit`, and for `multiprocessing`.
                ended.release()
            else:
                have_ended = False
        return have_ended


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
    """Call a function in a new thread; returns whether a thread was started."""
    return _threads.begin(lambda ended: _thread.start_new_thread(_run, (labour, ended)))


def begin_named_thread(labour: Callable[[], None], name: str) -> threading.Thread | None:
    """Call a function in a new thread, and return the thread; None if no thread was started."""
    threads: list[threading.Thread] = []

    def start(ended: _thread.LockType) -> None:
        threads.append(threading.Thread(target=_run, args=(labour, ended), name=name, daemon=True))
        threads[0].start()

    return threads[0] if _threads.begin(start) else None


def stop_threads() -> bool:
    """Tell all threads to stop, and wait for them; returns whether all have ended. No thread can be started after that."""
    return _threads.stop()


def wake_with(wake: Callable[[], None]) -> None:
    """Call `wake` when threads are told to stop. It wakes up threads that wait for something."""
    _threads.wakers.append(wake)


def is_ours() -> bool:
    """Whether the calling thread is one of ours. A finalizer that runs in such a thread must not wait."""
    return _own.is_ours


def is_stopping() -> bool:
    """Whether our threads were told to stop."""
    return _threads.stopping


def checkpoint() -> None:
    """End the calling thread here if it is one of ours and was told to stop.

    Raises
    ------
    Stopped
    """
    if _threads.stopping and _own.is_ours:
        raise Stopped
