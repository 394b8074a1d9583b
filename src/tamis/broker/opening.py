"""Opening a broker: the tables first, then what is cached, then what is missing."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tamis.broker import matcher_file, queue_files
from tamis.broker.limits import BrokerLimits
from tamis.broker.moments import Clock
from tamis.broker.queues import Queues
from tamis.broker.reading import Reading
from tamis.broker.state import State, end_of, last_deleted, reaches
from tamis.broker.tables import Tables
from tamis.matcher.engine_store import EngineStore

_log = logging.getLogger("tamis")


class Opened(NamedTuple):
    """What a broker works with."""

    state: State
    saved: int
    """The last change that is in the saved matcher."""


def open_state(tables: Tables, folder: Path | None, clock: Clock, limits: BrokerLimits, *, read_only: bool) -> Opened:
    """Load what a broker keeps in memory. A broker that only reads needs no matcher."""
    change = tables.last("subscriptions", "change")
    blocks = [] if folder is None else queue_files.read_blocks(folder, end_of(tables))
    if blocks and not reaches(blocks[-1].span.end, last_deleted(tables)):
        blocks = []
    found = None if folder is None or read_only else matcher_file.read_matcher(folder, change)
    store = EngineStore(None) if found is None else found[0]
    state = State(tables, clock, Queues(blocks, most_in_tail=limits.notes_in_tail), store, limits)
    state.catch_up()
    if read_only:
        return Opened(state, 0)
    if found is None:
        state.load_matcher(ProgressLine())
    else:
        state.catch_up_matcher(*found[1])
    if folder is not None:
        queue_files.remove_others(folder, (block.span for block in blocks))
        matcher_file.remove_others(folder, None if found is None else found[1])
    return Opened(state, 0 if found is None else found[1].change)


def open_reading(tables: Tables, lock: threading.RLock) -> Reading:
    """A second connection to the tables. Tables in memory have one connection alone."""
    if tables.in_memory:
        return Reading(tables, lock)
    return Reading(Tables(tables.path, read_only=True), threading.RLock())


class ProgressLine:
    """Tells users at a terminal how many subscriptions are built, if that takes long. Programs get the line through `logging`."""

    _AFTER, _EVERY = 2.0, 1.0
    """Seconds before the first line, and between two lines."""

    def __init__(self) -> None:
        self._next = time.monotonic() + self._AFTER

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._EVERY
        message = f"building the matcher from the tables: {done:,} of {total:,} subscriptions"
        _log.info(message)
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"tamis: {message}", file=sys.stderr, flush=True)  # noqa: T201 - a person waits
