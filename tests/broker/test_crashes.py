"""A process under load is killed at random moments. Nothing that it acknowledged is missing, and nothing is told twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests.broker import crash_load
from tests.broker.crash_history import History


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")
def test_what_a_killed_process_acknowledged_is_there(tmp_path: Path, soak: bool) -> None:
    folder, history, random = tmp_path / "broker", History(), Random(27)
    kills = 100 if soak else 4
    for run in range(1, kills + 1):
        lines = killed(folder, run, random.randrange(600))
        clock = count(run * crash_load.TICKS_OF_A_RUN + crash_load.TICKS_OF_A_RUN // 2)
        with crash_load.opened(folder, clock) as broker:
            history.add_run(lines, broker, folder, is_whole=run % 10 == 0 or run == kills)
    assert len(history.events) > 30
    assert all(history.notes.values())


def killed(folder: Path, run: int, most: int) -> list[str]:
    """Start a process, and kill it after some lines. Returns all its lines."""
    errors = folder.with_name("errors")
    with open(errors, "w") as stream:
        command = [sys.executable, crash_load.__file__, str(folder), str(run)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True) as process:
            assert process.stdout is not None
            lines = [line for _, line in zip(range(most), process.stdout, strict=False)]
            process.kill()
            lines += process.stdout
    assert errors.read_text() == ""
    assert process.returncode == -signal.SIGKILL
    return lines
