"""Output to stderr while a command works: messages, bad lines, progress. Results go to stdout or to a file."""

from __future__ import annotations

import sys
import time
from typing import Literal, TextIO

import click

from tamis.cli.error_file import ErrorFile
from tamis.errors import FileError

OnError = Literal["stop", "skip"]

BAD_LINES_SHOWN = 20
"""Most skipped lines that are shown; the rest is counted."""

CLEAR = "\r\x1b[K"
"""Control characters that go back to the beginning of a terminal's line and clear it."""

_REDRAW_SECONDS = 0.1
_BAR = 24


class Diagnostics:
    """Prints messages for the user, and counts bad lines.

    Parameters
    ----------
    on_error : "stop" or "skip"
        What `bad_line` does.
    quiet : bool
        No progress and no summary; bad lines are still shown.
    progress : bool
        Whether to draw progress; it is drawn only where stderr is a terminal.
    errors : ErrorFile, optional
        The file for all bad lines.
    """

    def __init__(
        self,
        on_error: OnError = "stop",
        *,
        quiet: bool = False,
        progress: bool = True,
        errors: ErrorFile | None = None,
    ) -> None:
        self.stops = on_error == "stop"
        self.bad_lines = 0
        self._quiet = quiet
        self._errors = errors
        self._draws = progress and not quiet and is_terminal(sys.stderr)
        self._drawn_at = 0.0
        self._bar_is_there = False

    def bad_line(self, error: FileError) -> None:
        """Show and count a bad line, or raise the error if bad lines stop the work."""
        if self._errors is not None:
            self._errors.write(error)
        if self.stops:
            self.clear()
            raise error
        self.bad_lines += 1
        if self.bad_lines <= BAD_LINES_SHOWN:
            self.say(str(error))
        elif self.bad_lines == BAD_LINES_SHOWN + 1:
            where = (
                "only counted. Hint: --errors FILE writes all of them"
                if self._errors is None
                else f"in {self._errors.path}"
            )
            self.say(f"... further bad lines are {where}")

    def summary(self, message: str) -> None:
        """Print what was done, unless quiet."""
        self.clear()
        if not self._quiet:
            self.say(message)

    def progress(self, doing: str, share: float | None) -> None:
        """Draw the progress: always the current step, and a bar if the total is known."""
        if not self._draws or time.monotonic() < self._drawn_at + _REDRAW_SECONDS:
            return
        self._drawn_at = time.monotonic()
        bar = ""
        if share is not None:
            full = int(share * _BAR)
            bar = f"{share:4.0%} [{'#' * full}{' ' * (_BAR - full)}] "
        click.echo(f"{CLEAR}{bar}{doing}", nl=False, err=True)
        self._bar_is_there = True

    def clear(self) -> None:
        """Remove the progress bar."""
        if self._bar_is_there:
            click.echo(CLEAR, nl=False, err=True)
            self._bar_is_there = False

    def say(self, message: str) -> None:
        """Print a message, even if quiet."""
        self.clear()
        click.echo(message, err=True)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal. Python has None for a closed stream."""
    return stream is not None and stream.isatty()


def counted(number: int, one: str, many: str = "") -> str:
    """``1 event``, ``1,000 events``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
