"""``tamis warmup`` compiles what scripts need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.first_use import SCRIPTS
from tamis.matcher.exercises import EXERCISES, exercise
from tests.cli.running import run

TAIL = """
from tamis.kernels.notice import notice
print(notice.spent)
"""


@pytest.mark.parametrize("name", EXERCISES)
def test_exercises_do_their_work(name: str) -> None:
    exercise(name)


@pytest.mark.compiled
def test_an_environment_where_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    command = [sys.executable, "-m", "tamis", "warmup"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Set NUMBA_CACHE_DIR" in done.stderr


def test_a_wrong_number_of_processes() -> None:
    assert run("warmup", "--processes", "0").exit_code == 2


@pytest.mark.long
def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "tamis", "warmup", "--quiet"], env=environment, check=True)
    for script in SCRIPTS.values():
        done = subprocess.run(
            [sys.executable, "-c", script + TAIL], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout == "0.0\n"
