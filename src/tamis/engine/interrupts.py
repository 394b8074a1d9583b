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
