"""The command as a whole: help, exit statuses, pipes and signals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tamis
from tamis.cli.main import main
from tests.cli.running import COMMAND, run, start, write

HEAVY = {"numba", "numpy", "pyarrow", "sqlglot", "pyspark", "pandas"}


def test_help_and_version() -> None:
    assert "Match events against standing Boolean expressions" in run("--help").stdout
    assert run("-h").stdout == run("--help").stdout
    assert run("--version").stdout == f"tamis, version {tamis.__version__}\n"


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_command_shows_an_example(name: str) -> None:
    text = run(name, "--help").stdout
    assert "Example" in text
    assert f"tamis {name}" in text
    assert main.commands[name].get_short_help_str(limit=80)[-3:] != "..."


@pytest.mark.parametrize("name", sorted(main.commands))
def test_every_option_says_what_it_does(name: str) -> None:
    options = [parameter for parameter in main.commands[name].params if isinstance(parameter, click.Option)]
    assert all(option.help for option in options)


def test_help_loads_nothing_heavy() -> None:
    program = "import sys; from tamis.cli.main import main; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert not HEAVY & set(loaded.split())


def test_usage_errors() -> None:
    assert run("match").exit_code == 2
    assert run("nonsense").exit_code == 2
    assert run("match", "a", "b", "--on-error", "panic").exit_code == 2


def test_indexes() -> None:
    result = run("indexes")
    assert result.exit_code == 0
    for name in tamis.indexes():
        assert name in result.stdout
    assert "engine (auto)" in result.stdout
    assert "scan\n" in result.stdout


@pytest.fixture
def many(tmp_path: Path) -> list[Path]:
    """Subscriptions and events with far more matches than a pipe holds."""
    return [write(tmp_path / "s.txt", *["TRUE"] * 300), write(tmp_path / "e.jsonl", *['{"a": 1}'] * 3000)]


def test_a_reader_that_goes_away_is_no_error(many: list[Path]) -> None:
    process = start("match", *many)
    assert process.stdout is not None
    assert process.stderr is not None
    assert json.loads(process.stdout.readline())["event"] == 0
    process.stdout.close()
    assert process.wait(60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [["match"], ["check"]])
def test_a_full_disk_is_an_error(many: list[Path], words: list[str]) -> None:
    with open("/dev/full", "w") as full:
        process = start(*words, *many[: 2 if words == ["match"] else 1], stdout=full)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "No space left on device" in errors
    assert "Traceback" not in errors


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_under_a_file(many: list[Path]) -> None:
    result = run("match", *many, "-o", "/dev/full")
    assert result.exit_code == 1
    message, stopped = result.stderr.splitlines()
    assert message == "/dev/full: cannot be written: No space left on device"
    assert stopped.startswith("stopped after ")


def test_a_live_stream_is_answered_at_once_and_can_be_interrupted(tmp_path: Path) -> None:
    process = start("match", write(tmp_path / "s.txt", "a > 0"), "-")
    assert process.stdin is not None
    assert process.stdout is not None
    for number in range(2):
        process.stdin.write('{"a": 1}\n')
        process.stdin.flush()
        # Comes although stdin stays open and a batch is not full.
        assert json.loads(process.stdout.readline()) == {"event": number, "line": number + 1, "subscription": 1}
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert output == ""
    assert errors == "Interrupted\n"


def test_an_interrupted_run_leaves_no_file(tmp_path: Path) -> None:
    subscriptions = write(tmp_path / "s.txt", "a > 0")
    process = start("match", subscriptions, "-", "-o", tmp_path / "m.csv", "--on-error", "skip")
    assert process.stdin is not None
    assert process.stderr is not None
    process.stdin.write("bad\n")
    process.stdin.flush()
    assert process.stderr.readline().startswith("stdin:1: not JSON")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert os.listdir(tmp_path) == ["s.txt"]


def test_no_progress_and_no_colour_in_a_pipe(many: list[Path]) -> None:
    done = subprocess.run([*COMMAND, "match", *map(str, many), "--count"], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_closed_streams(tmp_path: Path, closed: int) -> None:
    subscriptions = write(tmp_path / "s.txt", "a > 0")
    program = f"import os, sys; os.close({closed}); os.execv(sys.executable, sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", program, *COMMAND, "match", str(subscriptions), "-"],
        input='{"a": 1}\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if closed == 2 else 1)
