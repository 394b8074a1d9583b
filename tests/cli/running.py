"""Running the command in tests: inside this process, or as a process of its own where signals and pipes matter."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tamis.cli.main import main

PLACES = ["event", "file", "line"]
COMMAND = [sys.executable, "-m", "tamis"]

# Tests that are started in the background have SIGINT ignored, and children inherit that.
_INTERRUPTIBLE = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("tamis", run_name="__main__")
"""


def run(*words: object, stdin: str | bytes | None = None) -> Result:
    """Run ``tamis`` with these words; anything that escapes as an exception fails the test."""
    result = CliRunner().invoke(main, [str(word) for word in words], input=stdin, catch_exceptions=False)
    assert "Traceback" not in result.output
    return result


def start(*words: object, stdout: Any = subprocess.PIPE) -> subprocess.Popen[str]:
    """Start ``tamis`` as a process with pipes to it, which Ctrl-C interrupts."""
    return subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTIBLE, *[str(word) for word in words]],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )


def write(path: Path, *lines: str) -> Path:
    """A text file of these lines."""
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_jsonl(path: Path, objects: Iterable[Any]) -> Path:
    return write(path, *[json.dumps(each) for each in objects])


def pairs(text: str) -> set[tuple[Any, Any]]:
    """The matches of JSONL output."""
    records = [json.loads(line) for line in text.splitlines()]
    assert all(
        list(record) in (["event", "line", "subscription"], ["event", "file", "line", "subscription"])
        for record in records
    )
    found = {(record["event"], record["subscription"]) for record in records}
    assert len(found) == len(records)
    return found
