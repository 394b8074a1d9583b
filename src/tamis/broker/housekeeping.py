"""Housekeeping: a thread in the background merges blocks of notes, and writes blocks, the matcher and valid events to files.

Nothing waits for it, and nothing is lost if it fails: the files are caches of the tables. It takes the lock of the broker only to
see what is due, and to store a result. One thread works at a time: the one in the background, or one that calls
`compact` or `close`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from pathlib import Path

from tamis.broker import cache_names, queue_files, valid_file
from tamis.broker.limits import BrokerLimits
from tamis.broker.matcher_file import Stamp, write_matcher
from tamis.broker.matcher_files import MatcherFiles
from tamis.broker.queue_block import merged
from tamis.broker.state import State
from tamis.errors import BrokerError, SnapshotError
from tamis.kernels.background import begin_named_thread, checkpoint

Job = Callable[[], None]
Sweep = Callable[[], bool]
"""Deletes what is too old. Returns whether blocks of the queues have changed."""


class Housekeeping:
    """The work that is due beside the calls of users. `folder` is None if nothing is kept."""

    def __init__(
        self, state: State, folder: Path | None, lock: threading.RLock, limits: BrokerLimits, saved: int
    ) -> None:
        self._state = state
        self._folder = folder
        self._lock = lock
        self._limits = limits
        if folder is not None:
            state.matcher_files = MatcherFiles(state.tables, folder, limits, saved)
        self._swept = state.event
        """The last event when old events were deleted."""
        self._written = {} if folder is None else queue_files.spans(cache_names.found_in(folder, queue_files.KIND))
        """The files of blocks by span."""
        self._thread: threading.Thread | None = None
        self._at_work = threading.Lock()
        """Held by the thread that works."""
        self._settled = -1
        """How many blocks the queues had made when nothing was to do for them."""
        self._problem: str | None = None
        """Why the last file could not be written."""

    @property
    def problem(self) -> str | None:
        """Why the last file could not be written; None if all is well."""
        files = self._state.matcher_files
        return self._problem or (None if files is None else files.problem)

    def begin(self, sweep: Sweep) -> None:
        """Start the thread if something is due. The caller holds the lock."""
        if self._thread is None and self._due(self._often, sweep) is not None:
            self._thread = begin_named_thread(lambda: self._labour(sweep), "tamis-broker")

    @property
    def _often(self) -> int:
        """Changes after which the matcher is saved in the background: early, so that calls seldom save it themselves."""
        return max(1, self._limits.changes_behind // 2)

    def finish(self, sweep: Sweep | None = None) -> None:
        """Wait for the thread, and do all that is left. `sweep` is done in any case."""
        while (thread := self._thread) is not None:
            thread.join()
        with self._at_work:
            if sweep is not None:
                self._sweep(sweep)
            with self._lock:
                self._state.queues.flush()
            self._do_all(self._limits.changes_to_save, None)

    def _labour(self, sweep: Sweep) -> None:
        try:
            with self._at_work:
                self._do_all(self._often, sweep)
        finally:
            self._thread = None

    def _do_all(self, changes: int, sweep: Sweep | None) -> None:
        self._problem = None
        while self._problem is None:
            with self._lock:
                job = self._due(changes, sweep)
            if job is None:
                return
            checkpoint()
            try:
                job()
            except (SnapshotError, BrokerError) as error:
                self._problem = str(error)

    def _due(self, changes: int, sweep: Sweep | None) -> Job | None:
        """The next thing to do."""
        if sweep is not None and self._state.event - self._swept >= self._limits.events_between_sweeps:
            return lambda: self._sweep(sweep)
        if self._settled != self._state.queues.made:
            if self._state.queues.due():
                return self._merge
            if self._folder is not None and any(block.span not in self._written for block in self._state.queues.blocks):
                return self._write_block
            self._settled = self._state.queues.made
        files = self._state.matcher_files
        if self._folder is None or files is None:
            return None
        if self._state.change - files.saved >= changes:
            return self._save_matcher
        if self._state.valid_is_due(is_last=sweep is None):
            return self._save_valid
        return None

    def _sweep(self, sweep: Sweep) -> None:
        self._swept = self._state.event
        if sweep():
            with self._lock:
                self._written.clear()  # The blocks have changed, so they are written again.
                self._settled = -1

    def _merge(self) -> None:
        with self._lock:
            blocks = self._state.queues.due()
        whole = merged(blocks)
        with self._lock:
            self._state.queues.replace(blocks, whole)

    def _write_block(self) -> None:
        assert self._folder is not None
        with self._lock:
            block = next(block for block in self._state.queues.blocks if block.span not in self._written)
        name = queue_files.write_block(self._folder, block)
        with self._lock:
            self._written[block.span] = name
            needed = {block.span for block in self._state.queues.blocks}
            files = queue_files.spans(cache_names.found_in(self._folder, queue_files.KIND))
            if needed <= self._written.keys():
                self._written = {span: name for span, name in self._written.items() if span in needed}
                files = self._written  # The parts of merged blocks are not needed any more.
            self._put_cache(name, queue_files.KIND, {**files, block.span: name}.values())

    def _put_cache(self, name: str, kind: str, kept: Collection[str]) -> None:
        """Let the tables know a new file, and delete all others of its kind but some. The caller holds the lock."""
        assert self._folder is not None
        gone = [each for each in cache_names.found_in(self._folder, kind) if each not in kept]
        with self._state.tables.transaction():
            self._state.tables.put_cache(name, gone)
        cache_names.remove(self._folder, kind, kept)

    def _save_matcher(self) -> None:
        files = self._state.matcher_files
        assert self._folder is not None
        assert files is not None
        with self._lock:
            stamp = Stamp(self._state.change, self._state.moment)
            contents = self._state.matcher_contents()
        name = write_matcher(self._folder, contents, stamp)
        with self._lock:
            files.take(name, stamp.change)

    def _save_valid(self) -> None:
        assert self._folder is not None
        with self._lock:
            if self._state.is_doubtful:
                return
            valid = self._state.valid
            event, contents, unsaved = self._state.event, valid.contents(), valid.unsaved
        name = valid_file.write_valid(self._folder, contents, event)
        with self._lock:
            self._put_cache(name, valid_file.KIND, [name])
            valid.unsaved -= unsaved
