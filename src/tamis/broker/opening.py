"""Opening a broker: the tables first, then what is cached, then what is missing."""

from __future__ import annotations

import logging
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

from tamis.broker import cache_names, matcher_file, queue_files, valid_file
from tamis.broker.history_table import begin_history, read_options
from tamis.broker.limits import BrokerLimits
from tamis.broker.moments import Clock
from tamis.broker.queues import Queues
from tamis.broker.reading import Reading
from tamis.broker.state import State
from tamis.broker.stored_ends import last_deleted, reaches
from tamis.broker.tables import Tables
from tamis.earlier.history import History
from tamis.errors import OptionError, shortened
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import new_store

_log = logging.getLogger("tamis")


class Opened(NamedTuple):
    """What a broker works with."""

    state: State
    saved: int
    """The last change that is in the saved matcher."""


def open_state(tables: Tables, folder: Path | None, clock: Clock, limits: BrokerLimits, *, read_only: bool) -> Opened:
    """Load what a broker keeps in memory. A broker that only reads needs no matcher."""
    if read_only:
        with tables.snapshot():  # Another process may write: events that leave the tables change the numbers of notes.
            state = State(tables, clock, _queues(tables, folder, limits), EngineStore(None), limits)
            state.catch_up()
        return Opened(state, 0)
    own = tables.caches()
    history = read_options(tables)
    found = None if folder is None else matcher_file.read_matcher(folder, own, history)
    store = new_store(history=history) if found is None else found.store
    assert isinstance(store, EngineStore)
    state = State(tables, clock, _queues(tables, folder, limits), store, limits)
    spans = {block.span for block in state.queues.blocks}
    state.catch_up()
    if found is None:
        state.load_matcher(ProgressLine())
    else:
        state.catch_up_matcher(*found.stamp)
    if state.history is not None:
        state.history.ensure()
    saved = None if folder is None else valid_file.find_valid(folder, own)
    if folder is not None:
        cache_names.remove(folder, valid_file.KIND, [] if saved is None else [saved.path.name])
        cache_names.remove(folder, matcher_file.KIND, [] if found is None else [found.name])
        cache_names.remove(
            folder, queue_files.KIND, [name for span, name in queue_files.spans(own).items() if span in spans]
        )
    state.begin_valid(saved)
    return Opened(state, 0 if found is None else found.stamp.change)


def agree_on_history(tables: Tables, given: History | None, *, read_only: bool) -> History | None:
    """The history of a folder: the one that it has, or a new one if it has none.

    Raises
    ------
    OptionError
        The folder has another history.
    """
    there = read_options(tables)
    if given is None or given == there:
        return there
    if not isinstance(given, History):
        raise OptionError(f"history must be a tamis.History, not {shortened(given)}. Hint: tamis.History(rows=10_000)")
    if there is not None:
        raise OptionError(
            f"the broker has the history {there}, not {given}. Hint: leave out `history`: the folder remembers it"
        )
    if read_only:
        raise OptionError("the broker has no history. Hint: open it once with `history`, but without read_only")
    begin_history(tables, given)
    return given


def _queues(tables: Tables, folder: Path | None, limits: BrokerLimits) -> Queues:
    """The queues as far as files have them."""
    blocks = [] if folder is None else list(queue_files.read_blocks(folder, tables.caches()).values())
    return Queues(limits, blocks if blocks and reaches(blocks[-1].span.end, last_deleted(tables)) else [])


def open_reading(tables: Tables, lock: threading.RLock) -> Reading:
    """A second connection to the tables. Tables in memory have one connection alone."""
    if tables.in_memory:
        return Reading(tables, lock)
    return Reading(Tables(tables.path, read_only=True), threading.RLock())


class ProgressLine:
    """Tells users at a terminal how many subscriptions are built, if that takes long. Programs get the line through `logging`.

    Parameters
    ----------
    after, every : float
        Seconds before the first line, and between two lines.
    """

    def __init__(self, after: float = 2.0, every: float = 1.0) -> None:
        self._every = every
        self._next = time.monotonic() + after

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._every
        message = f"building the matcher from the tables: {done:,} of {total:,} subscriptions"
        _log.info(message)
        if sys.stderr is not None and sys.stderr.isatty():
            print(f"tamis: {message}", file=sys.stderr, flush=True)  # noqa: T201 - a person waits
