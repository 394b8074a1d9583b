"""Bad lines stop the work or are counted; progress is drawn only for someone who sees it."""

from __future__ import annotations

import io
import sys

import pytest

from tamis.cli.diagnostics import BAD_LINES_SHOWN, CLEAR, Diagnostics, counted
from tamis.errors import FileError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Called by the test itself: after a fixture, pytest would put its own stream there."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    return stream


def test_stop_raises_the_first_error() -> None:
    error = FileError("wrong", path="f", line=3)
    with pytest.raises(FileError) as caught:
        Diagnostics("stop").bad_line(error)
    assert caught.value is error


def test_skip_shows_some_and_counts_all(capsys: pytest.CaptureFixture[str]) -> None:
    diagnostics = Diagnostics("skip")
    for line in range(1, 100):
        diagnostics.bad_line(FileError("wrong", path="f", line=line))
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "f:1: wrong"
    assert shown[BAD_LINES_SHOWN:] == ["... further bad lines are only counted"]
    assert diagnostics.bad_lines == 99


def test_no_progress_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    diagnostics = Diagnostics()
    diagnostics.progress("working", 0.5)
    diagnostics.summary("done")
    assert capsys.readouterr().err == "done\n"


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    diagnostics = Diagnostics("skip")
    diagnostics.progress("loading", 0.5)
    assert terminal.getvalue() == f"{CLEAR} 50% [{'#' * 12}{' ' * 12}] loading"
    diagnostics.progress("too soon", 0.6)
    diagnostics.bad_line(FileError("wrong", path="f", line=1))
    assert terminal.getvalue().endswith(f"loading{CLEAR}f:1: wrong\n")
    diagnostics.clear()
    assert terminal.getvalue().endswith("wrong\n")


def test_progress_without_a_known_end(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    Diagnostics().progress("5 events", None)
    assert terminal.getvalue() == f"{CLEAR}5 events"


def test_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    diagnostics = Diagnostics("skip", quiet=True)
    diagnostics.progress("working", 0.5)
    diagnostics.summary("done")
    assert terminal.getvalue() == ""
    diagnostics.bad_line(FileError("wrong", path="f", line=1))
    assert terminal.getvalue() == "f:1: wrong\n"


@pytest.mark.parametrize(("number", "text"), [(0, "0 events"), (1, "1 event"), (1234, "1,234 events")])
def test_counted(number: int, text: str) -> None:
    assert counted(number, "event") == text
    assert counted(number, "match", "matches").endswith("match" if number == 1 else "matches")
