"""A process under load is killed at random moments. Nothing that it acknowledged is missing, and nothing is told twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from random import Random

import pytest

import tamis
from tests.broker import crash_load
from tests.broker.crash_history import History
from tests.earlier.reference import ReferenceHistory


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_what_a_killed_process_acknowledged_is_there(tmp_path: Path, joins: bool, soak: bool) -> None:
    """A long run kills 100 processes. After 25 it takes a new folder, since all that was stored is read after each kill."""
    random, options = Random(27 + joins), crash_load.HISTORY if joins else None
    kills = 25 if soak else 2
    for first in range(1, 101, kills) if soak else [1]:
        history = killed_often(tmp_path / str(first), range(first, first + kills), random, options)
        assert len(history.events) > 10
        assert all(history.notes.values())


def killed_often(folder: Path, runs: range, random: Random, options: tamis.History | None) -> History:
    """Kill processes that use one folder, one after another, and check what each of them leaves."""
    history = History(retained=None if options is None else ReferenceHistory(options))
    for run in runs:
        lines = killed(folder, run, options is not None, random.randrange(600))
        clock = count(run * crash_load.TICKS_OF_A_RUN + crash_load.TICKS_OF_A_RUN // 2)
        with crash_load.opened(folder, clock, None) as broker:
            history.add_run(lines, broker, folder, is_whole=run % 10 == 0 or run == runs[-1])
    return history


def killed(folder: Path, run: int, keeps_history: bool, most: int) -> list[str]:
    """Start a process, and kill it after some lines. Returns all its lines."""
    errors = folder.with_name("errors")
    with open(errors, "w") as stream:
        command = [sys.executable, crash_load.__file__, str(folder), str(run), str(keeps_history)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True) as process:
            assert process.stdout is not None
            lines = [line for _, line in zip(range(most), process.stdout, strict=False)]
            process.kill()
            lines += process.stdout
    assert errors.read_text() == ""
    assert process.returncode == -signal.SIGKILL
    return lines
