"""Calls inside of calls.

Python runs finalizers and signal handlers wherever a thread happens to be, also in the midst of a change. What they do then
must neither wait for that thread, nor see or change what is half done: `weakref.finalize(owner, matcher.remove, id)` is how
subscriptions go with their owners.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


def holding(lock: threading.RLock) -> Callable[[], bool]:
    """What tells whether the calling thread holds the lock."""
    return lock._is_owned  # type: ignore[attr-defined] # what `threading.Condition` asks of any lock


class _Thread(threading.local):
    helps = False


_thread = _Thread()


def become_helper() -> None:
    """Note that the calling thread is one of ours, for which somebody may be waiting who is in the midst of something."""
    _thread.helps = True


def is_helper() -> bool:
    """Whether the calling thread is one of ours: a finalizer that runs in it must wait for nothing."""
    return _thread.helps
