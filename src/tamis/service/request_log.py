"""Logs as JSON lines on stderr. A thread writes them: a reader that is slow or gone holds up no request."""

from __future__ import annotations

import json
import logging
import queue
import sys
import threading
from datetime import UTC, datetime
from typing import Any

_MOST = 10_000
"""Lines that may wait. Later ones are dropped and counted."""
LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


class Log:
    """Writes lines in a thread of its own."""

    def __init__(self, level: str) -> None:
        self.level = LEVELS[level]
        self.dropped = 0
        self._lines: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="tamis-service-log", daemon=True)
        self._thread.start()
        self._handler = _Handler(self)
        for name in ("tamis", "uvicorn"):
            logger = logging.getLogger(name)
            logger.addHandler(self._handler)
            logger.setLevel(max(self.level, logging.INFO))
            logger.propagate = False

    def __call__(self, level: str, event: str, **members: Any) -> None:
        """Log an event, if its level is high enough."""
        if LEVELS[level] < self.level:
            return
        if self._lines.qsize() >= _MOST:
            self.dropped += 1
            return
        self._lines.put({"time": datetime.now(UTC).isoformat(), "level": level, "event": event, **members})

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                sys.stderr.write(json.dumps(line, default=str) + "\n")
                if self._lines.empty():
                    sys.stderr.flush()
            except (OSError, ValueError):
                return  # Nobody can read it any more.

    def close(self) -> None:
        """Write what waits. A reader that does not read gets a second."""
        for name in ("tamis", "uvicorn"):
            logger = logging.getLogger(name)
            logger.removeHandler(self._handler)
            logger.setLevel(logging.NOTSET)
            logger.propagate = True
        self._lines.put(None)
        self._thread.join(1)


class _Handler(logging.Handler):
    """What others log through Python's logging, as JSON lines too."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        level = record.levelname.lower() if record.levelname.lower() in LEVELS else "error"
        members: dict[str, Any] = {"logger": record.name}
        if record.exc_info:
            members["traceback"] = logging.Formatter().formatException(record.exc_info)
        self._log(level, record.getMessage().strip(), **members)
