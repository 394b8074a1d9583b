"""A process under load is killed at random moments. Nothing that it acknowledged is missing, and nothing is told twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from itertools import count
from pathlib import Path
from random import Random
from types import ModuleType

import pytest

import tamis
from tamis.broker import Broker
from tests.broker import crash_load, crash_retention
from tests.broker.crash_history import History
from tests.earlier.reference import ReferenceHistory
from tests.markdown import ROOT

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")


@pytest.mark.parametrize("joins", [False, True])
def test_what_a_killed_process_acknowledged_is_there(tmp_path: Path, joins: bool, soak: bool) -> None:
    """A long run kills 100 processes. After 25 it takes a new folder, since all that was stored is read after each kill."""
    random, options = Random(27 + joins), crash_load.HISTORY if joins else None
    kills = 25 if soak else 2
    for first in range(1, 101, kills) if soak else [1]:
        history = killed_often(tmp_path / str(first), range(first, first + kills), random, options)
        assert len(history.events) > 10
        assert all(history.notes.values())


@pytest.mark.parametrize("kept", crash_retention.KEPT)
def test_numbers_go_on_although_notes_are_dropped(tmp_path: Path, kept: str, soak: bool) -> None:
    """A process is killed while it drops notes and deletes events. No number is given twice, and only the oldest notes go."""
    if not soak and kept != "both":
        pytest.skip("only in a long run")
    random, events, notes = Random(27), dict[int, str](), dict[tuple[str, int], tuple[int, str]]()
    cursors: Counter[str] = Counter()
    for run in range(25 if soak else 2):
        for line in killed(tmp_path / "shop", crash_retention, [run, kept], random.randrange(50, 1500)):
            match json.loads(line):
                case ["event", number, name]:
                    assert events.setdefault(number, name) == name
                case ["note", subscriber, number, event, name]:
                    assert notes.setdefault((subscriber, number), (event, name)) == (event, name)
                case ["cursor", subscriber, number]:
                    cursors[subscriber] = max(cursors[subscriber], number)
        # With a clock of the past, time stands where the process has left it, and nothing more is dropped.
        with Broker(tmp_path / "shop", clock=lambda: crash_load.START, limits=crash_retention.LIMITS) as broker:
            assert broker.stats()["last_event"] >= max(events, default=0)
            for subscriber in crash_retention.SUBSCRIBERS:
                left = list(broker.notifications(subscriber, after=0))
                figures = broker.subscriber(subscriber)
                assert [note.sequence for note in left] == list(range(figures.last + 1 - len(left), figures.last + 1))
                assert figures.cursor >= cursors[subscriber]
                assert figures.last >= max((number for name, number in notes if name == subscriber), default=0)
                for note in left:
                    told = note.event_sequence, note.event["id"]
                    assert notes.setdefault((subscriber, note.sequence), told) == told
    assert len(set(events.values())) == len(events) > 10


def killed_often(folder: Path, runs: range, random: Random, options: tamis.History | None) -> History:
    """Kill processes that use one folder, one after another, and check what each of them leaves."""
    history = History(retained=None if options is None else ReferenceHistory(options))
    for run in runs:
        lines = killed(folder, crash_load, [run, options is not None], random.randrange(600))
        clock = count(run * crash_load.TICKS_OF_A_RUN + crash_load.TICKS_OF_A_RUN // 2)
        with crash_load.opened(folder, clock, None) as broker:
            history.add_run(lines, broker, folder, is_whole=run % 10 == 0 or run == runs[-1])
    return history


def killed(folder: Path, program: ModuleType, arguments: list[object], most: int) -> list[str]:
    """Start a process, and kill it after some lines. Returns all its lines."""
    errors = folder.with_name("errors")
    with open(errors, "w") as stream:
        command = [sys.executable, "-m", program.__name__, str(folder), *map(str, arguments)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=stream, text=True) as process:
            assert process.stdout is not None
            lines = [line for _, line in zip(range(most), process.stdout, strict=False)]
            process.kill()
            lines += process.stdout
    assert errors.read_text() == ""
    assert process.returncode == -signal.SIGKILL
    return lines
