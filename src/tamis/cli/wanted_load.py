"""From a file of subscriptions into a broker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.cli.history_options import NO_HISTORY
from tamis.cli.subscription_lines import wrong_subscription
from tamis.cli.wanted_files import Read, WantedFile, WantedLine
from tamis.errors import ExpressionError, FileError, HistoryError, IdTypeError, OptionError, TamisError, UnknownIdError

if TYPE_CHECKING:
    from tamis.broker.broker import Broker

_TOGETHER = 10_000
"""Subscriptions that are stored in one step."""

_WRONG = (ExpressionError, OptionError, IdTypeError, UnknownIdError)
"""Errors that are the fault of one subscription."""


class WantedLoad:
    """Adds and changes the subscriptions of a file. The first line with a pair of names owns the pair; later ones are errors."""

    def __init__(self, file: WantedFile, broker: Broker, diagnostics: Diagnostics) -> None:
        self._file = file
        self._broker = broker
        self._diagnostics = diagnostics
        self._lines: dict[tuple[str, str], int] = {}
        self.done = 0

    def put_all(self) -> None:
        """Subscribe all.

        Raises
        ------
        FileError
            For the first bad line, if the diagnostics stop at it; all subscriptions before it are stored.
        """
        for wanted, errors in self._blocks():
            for error in self._put(wanted):
                errors.append(error)
                if self._diagnostics.stops:
                    break
            for error in sorted(errors, key=lambda error: error.line or 0):
                self._diagnostics.bad_line(error)
            self._diagnostics.progress(f"subscribing: {counted(self.done, 'subscription')}", self._file.share())
        self._diagnostics.clear()

    def _blocks(self) -> Iterator[tuple[list[WantedLine], list[FileError]]]:
        """Subscriptions with the errors of other lines. On a live stream a block does not wait for lines that have not come."""
        wanted: list[WantedLine] = []
        errors: list[FileError] = []
        for read in self._file:
            item = self._owned(read)
            if isinstance(item, FileError):
                errors.append(item)
            else:
                wanted.append(item)
            full = len(wanted) + len(errors) >= _TOGETHER
            if full or not self._file.ready() or (self._diagnostics.stops and errors):
                yield wanted, errors
                wanted, errors = [], []
        yield wanted, errors

    def _owned(self, read: Read) -> Read:
        """The line, or an error if an earlier line has its names."""
        if isinstance(read, FileError):
            return read
        first = self._lines.setdefault(read.names, read.line)
        if first == read.line:
            return read
        subscriber, name = read.names
        return self._file.error(read.line, f"line {first} already has a subscription {name!r} of {subscriber!r}")

    def _put(self, wanted: Sequence[WantedLine]) -> Iterator[FileError]:
        """Subscribe; yields the errors of wrong subscriptions. A refused block is halved until the wrong one is alone."""
        if not wanted:
            return
        try:
            self._broker.subscribe_many([each.words for each in wanted])
            self.done += len(wanted)
        except _WRONG as error:
            if len(wanted) == 1:
                yield self._file.error(wanted[0].line, _message(error))
                return
            half = len(wanted) // 2
            yield from self._put(wanted[:half])
            yield from self._put(wanted[half:])


def _message(error: TamisError) -> str:
    if isinstance(error, HistoryError):
        return NO_HISTORY
    return wrong_subscription(error)
