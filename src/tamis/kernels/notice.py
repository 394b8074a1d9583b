"""A message that kernels are being compiled, given if compiling takes long.

Users at a terminal see one line. Programs get the same line through `logging`, from the logger ``tamis``.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable

_AFTER = 2.0
"""Seconds of compiling before the message."""
_MESSAGE = "compiling kernels for this processor. This happens once, and `tamis warmup` does it ahead of time"

_log = logging.getLogger("tamis")


class Notice:
    """How long this process has been compiling, and whether the message was given."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.spent = 0.0
        self._began: float | None = None
        self._is_said = False

    def begin(self) -> None:
        """Note that this process starts to compile a kernel, or to wait for another process that compiles it."""
        if self._began is None:
            self._began = self._clock()
        self.tick()

    def end(self) -> None:
        if self._began is not None:
            self.spent += self._clock() - self._began
            self._began = None

    def tick(self) -> None:
        """Give the message if it is time. Called now and then while a kernel is compiled."""
        began = self._began
        if self._is_said or began is None or self.spent + self._clock() - began < _AFTER:
            return
        self._is_said = True
        _log.info(_MESSAGE)
        try:
            if sys.stderr.isatty():
                print(f"tamis: {_MESSAGE}", file=sys.stderr, flush=True)  # noqa: T201 - a person waits
        except (AttributeError, ValueError, OSError):  # no stderr, or a closed one
            return


notice = Notice()
"""The notice of this process."""
