"""``tamis warmup``: compile everything ahead of time."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import click

from tamis.cli.diagnostics import Diagnostics, counted
from tamis.errors import OptionError, TamisError

_POLL = 0.1
"""Seconds between two checks of the processes."""


@click.command()
@click.option(
    "--processes",
    type=click.IntRange(1),
    help="Number of processes that compile at the same time. Default: one per processor, at most 8.",
)
@click.option("--indexes", "with_indexes", is_flag=True, help="Compile the indexes of the papers as well.")
@click.option("--quiet", is_flag=True, help="Print no progress and no summary.")
def warmup(processes: int | None, with_indexes: bool, quiet: bool) -> None:
    """Compile everything ahead of time, for images and clusters.

    Tamis compiles its inner loops when they are first used and keeps the result on disk. This command does it now, so
    that no later process has to wait. Run it in the same environment, and on the same kind of processor, as these
    processes. NUMBA_CACHE_DIR sets the folder for the result.

    \b
    Example:
      tamis warmup
      NUMBA_CACHE_DIR=kernels tamis warmup --processes 4
    """
    from tamis.kernels.cache import cache_folder
    from tamis.matcher.exercises import EXERCISES, index_exercises
    from tamis.matcher.options import processors

    folder = cache_folder()
    if folder is None:
        raise OptionError(
            "compiled kernels cannot be kept: no folder is writable. Set NUMBA_CACHE_DIR to a writable folder"
        )
    names = [*EXERCISES, *(index_exercises() if with_indexes else [])]
    _run_all(names, processes or min(processors(), 8), Diagnostics(quiet=quiet))
    kernels = [file.stat().st_size for file in folder.glob("*.kernel")]
    if not quiet:
        click.echo(f"{folder} has {counted(len(kernels), 'kernel')}, {sum(kernels) / 1e6:.1f} MB", err=True)


def _run_all(names: list[str], processes: int, diagnostics: Diagnostics) -> None:
    """Run all exercises, some at a time. No child process outlives this process."""
    waiting, running, done = list(names), dict[str, "subprocess.Popen[Any]"](), 0
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                name = waiting.pop(0)
                command = [sys.executable, "-m", "tamis.matcher.exercises", name]
                running[name] = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            time.sleep(_POLL)
            for name in [name for name, process in running.items() if process.poll() is not None]:
                _check(name, running.pop(name))
                done += 1
            diagnostics.progress(f"compiling: {', '.join(running)}", done / len(names))
    finally:
        for process in running.values():
            process.kill()
            process.wait()
        diagnostics.clear()


def _check(name: str, process: subprocess.Popen[Any]) -> None:
    said = process.communicate()[1]
    if process.returncode:
        raise TamisError(f"the exercise {name!r} failed with status {process.returncode}:\n{said}")
