"""Compiled kernels are kept on disk, never stale, and compiled once however many processes need them."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tamis.kernels import cache as kernel_cache
from tamis.kernels import kernel
from tamis.kernels.notice import Notice

pytestmark = pytest.mark.compiled

MODULE = """
from tamis.kernels.kernel import inlined, lean_kernel

STEP = {step}

@inlined
def step():
    return STEP

@lean_kernel
def count(array):
    return len(array) + step()
"""

# Prints whether the first call found the kernel in the cache.
PROGRAM = """
import numpy as np
from tried import STEP, count
assert count(np.zeros(3, np.int64)) == 3 + STEP
print("loaded" if sum(count.stats.cache_hits.values()) else "compiled")
"""


def environment(folder: Path, cache: Path | None = None) -> dict[str, str]:
    """Of a process that finds the module in a folder, and the cache in or beside it."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "NUMBA_CACHE_DIR": str(cache or folder), "PYTHONPATH": path}


def start(folder: Path, step: int = 1) -> subprocess.Popen[str]:
    module = folder / "tried.py"
    if not module.exists() or f"STEP = {step}\n" not in module.read_text():
        module.write_text(MODULE.format(step=step))
    command = [sys.executable, "-B", "-c", PROGRAM]
    return subprocess.Popen(command, env=environment(folder), stdout=subprocess.PIPE, text=True)


def run(folder: Path, step: int = 1) -> str:
    process = start(folder, step)
    printed = process.communicate()[0].strip()
    assert process.returncode == 0
    return printed


def test_a_kernel_is_compiled_again_only_when_its_sources_have_changed(tmp_path: Path) -> None:
    assert run(tmp_path, 1) == "compiled"
    assert run(tmp_path, 1) == "loaded"
    assert run(tmp_path, 2) == "compiled"
    assert run(tmp_path, 1) == "loaded"


def test_a_damaged_kernel_is_compiled_again(tmp_path: Path) -> None:
    run(tmp_path)
    (file,) = tmp_path.rglob("*.kernel")
    for damaged in (file.read_bytes()[:40], b"", file.read_bytes()[:-1] + b"?"):
        file.write_bytes(damaged)
        assert run(tmp_path) == "compiled"
        assert run(tmp_path) == "loaded"


def test_of_eight_processes_that_start_together_one_compiles(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(8)]
    printed = [process.communicate()[0].strip() for process in processes]
    assert [process.returncode for process in processes] == [0] * 8
    assert sorted(printed) == ["compiled"] + ["loaded"] * 7
    assert sorted(file.suffix for file in tmp_path.rglob("*") if file.is_file()) == [".kernel", ".py"]


def test_a_cache_that_cannot_be_kept_is_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    (tmp_path / "tried.py").write_text(MODULE.format(step=1))
    command = [sys.executable, "-c", PROGRAM + "\nprint(count(np.zeros(2, np.int64)))"]
    done = subprocess.run(command, env=environment(tmp_path, file), capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["compiled", "3"]
    assert done.stderr.count("compiled kernels cannot be kept") == 1
    assert f"{file}" in done.stderr
    assert "Set NUMBA_CACHE_DIR" in done.stderr


def test_files_that_nobody_has_used_for_a_month_are_removed(tmp_path: Path) -> None:
    names = ["a.sort-new.kernel", "a.sort-old.kernel", "a.sort-used.kernel", "a.sort_all-old.kernel"]
    for name in names:
        (tmp_path / name).touch()
        if "old" in name:
            os.utime(tmp_path / name, (0, 0))
    kernel_cache.remove_unused(tmp_path / names[0])
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(set(names) - {"a.sort-old.kernel"})


def test_a_helper_of_kernels_is_plain_python_to_python() -> None:
    @kernel.inlined
    def half(number: int) -> object:
        return number / 2 if number % 2 else "even"  # Numba has no type for that.

    assert [half(3), half(4)] == [1.5, "even"]
    assert half.__name__ == "half"


def test_a_kernel_calls_another_kernel(tmp_path: Path) -> None:
    @kernel.kernel
    def doubled(array: np.ndarray[tuple[int], np.dtype[np.int64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return array * 2

    @kernel.kernel
    def both(array: np.ndarray[tuple[int], np.dtype[np.int64]]) -> int:
        return int(doubled(array).sum() + len(array))

    assert both(np.arange(4)) == 16
    assert doubled(np.arange(3)).tolist() == [0, 2, 4]


def test_users_get_one_message_when_compiling_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tamis")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    times = iter([0.0, 1.0, 1.5, 10.0, 10.2, 11.0, 11.1, 30.0, 40.0, 50.0])
    notice = Notice(lambda: next(times))
    notice.begin()
    notice.tick()
    notice.end()  # after 10 seconds: nothing was compiled in between that could have said so
    assert capsys.readouterr().err == ""
    notice.begin()
    notice.tick()
    said = capsys.readouterr().err
    assert said.startswith("tamis: compiling")
    assert said.count("\n") == 1
    assert [record.message for record in caplog.records] == [said.removeprefix("tamis: ").rstrip("\n")]


def test_programs_get_the_message_through_logging_only(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tamis")
    times = iter([0.0, 5.0, 5.0])
    Notice(lambda: next(times)).begin()
    assert capsys.readouterr().err == ""
    assert len(caplog.records) == 1
