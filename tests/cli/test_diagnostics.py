"""Bad lines stop the work or are counted; progress is drawn only for someone who sees it."""

from __future__ import annotations

import io
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest

from tamis.cli.diagnostics import BAD_LINES_SHOWN, CLEAR, Diagnostics, counted
from tamis.cli.error_file import open_errors
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
    assert shown[BAD_LINES_SHOWN:] == ["... further bad lines are only counted. Hint: --errors FILE writes all of them"]
    assert diagnostics.bad_lines == 99


@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_all_bad_lines_go_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], on_error: Literal["stop", "skip"]
) -> None:
    path = tmp_path / "errors.jsonl"
    lines = 1 if on_error == "stop" else 50
    with suppress(FileError), open_errors(str(path)) as errors:
        diagnostics = Diagnostics(on_error, errors=errors)
        for line in range(1, lines + 1):
            diagnostics.bad_line(FileError("wrong: é", path="f: g", line=line))
    found = [json.loads(line) for line in path.read_text().splitlines()]
    assert found == [{"file": "f: g", "line": line, "message": "wrong: é"} for line in range(1, lines + 1)]
    if on_error == "skip":
        assert capsys.readouterr().err.endswith(f"... further bad lines are in {path}\n")


@pytest.mark.parametrize("name", ["", "no/such/folder", "a\0b"])
def test_errors_that_cannot_be_written(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileError, match="cannot be written"), open_errors(os.path.join(tmp_path, name)):
        raise AssertionError("unreachable")


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
