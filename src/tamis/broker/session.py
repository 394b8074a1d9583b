"""A session with a folder: what all calls of a broker share."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import TracebackType
from typing import TypeVar

from tamis.broker.alarm import Alarm
from tamis.broker.arguments import check_clock, check_synchronous, plain_path
from tamis.broker.asked_attributes import AskedAttributes
from tamis.broker.checking import closed_mark, ensure_sound, ensure_sound_log
from tamis.broker.compacting import Compacting
from tamis.broker.delivering import Delivering
from tamis.broker.folder import TABLES, Folder
from tamis.broker.following import Following
from tamis.broker.forking import part_in_children
from tamis.broker.history_table import read_options
from tamis.broker.housekeeping import Housekeeping
from tamis.broker.last_commit import LastCommit, ensure_complete, last_commit
from tamis.broker.limits import USUAL_BROKER_LIMITS, BrokerLimits
from tamis.broker.moments import Clock, moment_of, system_clock
from tamis.broker.opening import ProgressLine, agree_on_history, open_reading, open_state
from tamis.broker.publishing import Line
from tamis.broker.reader_matcher import ReaderMatcher
from tamis.broker.retention import read_retention
from tamis.broker.state import State
from tamis.broker.stored_ends import store_moment
from tamis.broker.subscribing import Subscribing
from tamis.broker.tables import MEMORY, Synchronous, Tables
from tamis.earlier.history import History
from tamis.errors import BrokerError, OptionError
from tamis.matcher.expression_reader import ExpressionReader

SessionT = TypeVar("SessionT", bound="Session")


class Session:
    """An open folder, the lock, and the parts that work under the lock."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = False,
        clock: Clock = system_clock,
        synchronous: Synchronous = "full",
        history: History | None = None,
        limits: BrokerLimits = USUAL_BROKER_LIMITS,
    ) -> None:
        plain = plain_path(path)
        check_synchronous(synchronous)
        check_clock(clock)
        in_memory = plain == MEMORY
        if in_memory and read_only:
            raise OptionError("a broker in memory has nothing to read. Hint: name a folder, or leave out read_only")
        self._folder = None if in_memory else Folder(plain, read_only=read_only)
        self._limits = limits
        self._read_only = read_only
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)
        self._is_closed = False
        self._has_left = False
        """Whether all files are closed."""
        self._is_copy = False
        """Whether this is the copy of a broker in a process that was forked."""
        home = None if self._folder is None else self._folder.path
        with ExitStack() as stack:  # closes all if one cannot be opened
            if self._folder is not None:
                stack.callback(self._folder.close)
                ensure_sound_log(self._folder)
                noted = last_commit(self._folder.path)
            address = MEMORY if home is None else str(home / TABLES)
            self._tables = Tables(address, read_only=read_only, synchronous=synchronous, log_pages=limits.log_pages)
            stack.callback(self._tables.close)
            if self._folder is not None:
                ensure_complete(self._tables, self._folder.path, noted)
                ensure_sound(self._tables, self._folder, synchronous)
            self.history = agree_on_history(self._tables, history, read_only=read_only)
            """The options of the history; None if the broker has none."""
            self._state, saved = open_state(self._tables, home, clock, limits, read_only=read_only)
            if home is not None and not read_only:
                self._state.last_commit = LastCommit(home, self._state.event, self._state.change)
            self._reading = open_reading(self._tables, self._lock)
            stack.callback(self._reading.close)
            self._make_parts(clock, saved)
            stack.pop_all()
        if self._has_alarm:
            with self._lock:
                self._alarm.set()
        if self._folder is not None:
            part_in_children(self._part)

    def _make_parts(self, clock: Clock, saved: int) -> None:
        """Make what works under the lock. `saved` is the last change that is in the saved matcher."""
        limits, home = self._limits, None if self._folder is None else self._folder.path
        self._cursors: Tables | None = None
        self._asked = AskedAttributes(self._reading, limits)
        self._following: Following | None = None
        self._foreign: ReaderMatcher | None = None
        """The matcher, if another process writes."""
        if self._read_only:
            assert home is not None
            self._following = Following(self._state, limits)
            self._foreign = ReaderMatcher(self._tables, home, clock, limits, ProgressLine())
        self._expressions = ExpressionReader(None, keeps_history=self.history is not None)
        self._retention = read_retention(self._tables)
        self._subscribing = Subscribing(self._state)
        self._line = Line(self._state, lambda: self._retention, self._publishing)
        self._delivering = Delivering(self._state, lambda: self._retention)
        self._alarm = Alarm(self._told, self._seconds_left, self._state.now)
        self._has_alarm = clock is system_clock and not self._read_only
        self._compacting = Compacting(self._state, self._lock, limits)
        self._housekeeping = Housekeeping(self._state, home, self._lock, limits, saved)

    def _part(self) -> None:
        """Leave the folder to the parent: this process was forked while the broker was open.

        SQLite's connections must not be used in both processes. Another thread may have held the lock: it is not here.
        """
        self._is_copy = True
        self._lock = threading.RLock()
        self._told = threading.Condition(self._lock)
        if self._folder is not None:
            self._folder.part()

    @contextmanager
    def _looking(self) -> Iterator[None]:
        """Hold the lock, for a call that changes nothing."""
        with self._told:
            self._look()
            yield

    def _look(self) -> None:
        """Bring what is in memory up to the present. The caller holds the lock."""
        self._check_open()
        if self._following is not None:
            if self._following.refresh():
                self._retention = read_retention(self._tables)
                self.history = read_options(self._tables)
                self._expressions = ExpressionReader(None, keeps_history=self.history is not None)
        else:
            self._state.now()

    @contextmanager
    def _matching(self) -> Iterator[State]:
        """Hold the lock, for a call that matches events or asks about subscriptions, and changes nothing."""
        with self._looking():
            yield self._state if self._foreign is None else self._foreign.state()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Hold the lock, for a call that changes something."""
        with self._told:
            self._check_writing()
            yield

    def _check_writing(self) -> None:
        self._check_open()
        if self._read_only:
            raise BrokerError(
                "the broker was opened with read_only=True. Hint: open it without, or ask the process that writes"
            )

    def _cursor_tables(self) -> Tables:
        """The tables in which cursors can be moved. Readers have a connection of their own for that: SQLite lets them take turns
        with the writer."""
        if not self._read_only:
            return self._tables
        if self._cursors is None:
            self._cursors = Tables(self._tables.path)
        return self._cursors

    def _check_open(self) -> None:
        if self._is_closed:
            raise BrokerError("the broker is closed. Hint: open the folder again")
        if self._is_copy:
            raise BrokerError(
                "another process opened this broker, and was forked then. Hint: open the folder in this process"
            )
        if self._state.is_doubtful:
            raise BrokerError("a call was interrupted halfway. Hint: close this broker and open the folder again")

    def _after_change(self) -> None:
        """Wake those who wait for notes, and begin what is due in the background. The caller holds the lock."""
        self._told.notify_all()
        self._housekeeping.begin(self._sweep)
        if self._has_alarm:
            self._alarm.set()

    def _seconds_left(self) -> float | None:
        """How long it is until a subscription begins or ends; None if nothing is to come."""
        coming = self._state.schedule.next
        return None if coming is None or self._is_closed else (coming - moment_of(self._state.clock())) / 1e6

    @contextmanager
    def _publishing(self) -> Iterator[None]:
        with self._writing():
            yield
            self._after_change()

    def _sweep(self) -> bool:
        """Delete what nobody can read any more. Returns whether blocks of the queues have changed."""
        return self._compacting.sweep(self._retention)

    def close(self) -> None:
        """Close the broker. Iterators that wait for notes end. If an interrupt comes meanwhile, close it again."""
        with self._lock:
            if self._has_left:
                return
            self._is_closed = True
            self._told.notify_all()
        if self._is_copy:
            return
        try:
            if not self._read_only:
                self._housekeeping.finish()
        finally:  # Whatever comes of the caches, the folder is free for the next process.
            with self._lock:
                self._leave()

    def _leave(self) -> None:
        """Close all files. The caller holds the lock. A second call goes on where the first was interrupted."""
        if not self._read_only and not self._state.is_doubtful:
            with suppress(BrokerError):  # such as a full disk: then time goes on from the last event or change
                store_moment(self._tables, self._state.moment)
        # First: if nobody else has the tables open, SQLite copies the log to them when a connection that writes is closed.
        # They would not be as the last writer left them, and the next process would check all of them.
        if self._cursors is not None:
            self._cursors.close()
        self._reading.close()
        self._tables.close()
        if self._state.last_commit is not None:
            self._state.last_commit.close()
        if self._folder is not None:
            self._folder.close(None if self._read_only else closed_mark(self._folder / TABLES))
        self._has_left = True

    def __enter__(self: SessionT) -> SessionT:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
