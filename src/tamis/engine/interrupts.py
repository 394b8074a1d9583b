"""Calls inside of calls.

Python runs finalizers and signal handlers inside of any call of a thread, also inside of a change. They must not wait for that
thread, nor see or change a half-done state. `weakref.finalize(owner, matcher.remove, id)`, for example, removes a subscription
with its owner.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


def holding(lock: threading.RLock) -> Callable[[], bool]:
    """A function that says whether the calling thread holds the lock."""
    return lock._is_owned  # type: ignore[attr-defined] # what `threading.Condition` asks of any lock
