"""Services as forks of one process that has imported everything already. Starting one takes a third of a second, not two.

A fork runs the same command with the same words as a process of its own would. Only what it imports is there already.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.context import ForkServerProcess
from pathlib import Path

IMPORTED = "tests.service.imported"
"""What the process imports that forks begin from."""


class Fork:
    """A process that was forked. It has what tests use of `subprocess.Popen`."""

    def __init__(self, module: str, words: list[str], output: Path, log: Path, environment: Mapping[str, str]) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["pytest", IMPORTED])
        os.mkfifo(output)
        self._process: ForkServerProcess = context.Process(
            target=run, args=(module, words, output, log, dict(environment)), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid
        self.stdout = open(output, encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
        output.unlink()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            assert self.pid is not None
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("fork", timeout)
        return self.returncode


def can_fork() -> bool:
    return "forkserver" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"


def run(module: str, words: list[str], output: Path, log: Path, environment: Mapping[str, str]) -> None:
    """Run a module in this process, as ``python -m`` does."""
    os.environ.clear()
    os.environ.update(environment)
    for descriptor, path, mode in ((2, log, os.O_APPEND | os.O_CREAT), (1, output, 0)):
        os.dup2(os.open(path, os.O_WRONLY | mode), descriptor)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - for as long as the process lives
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.argv = ["tamis", *words]
    runpy.run_module(module, run_name="__main__")
