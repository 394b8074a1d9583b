"""A real standalone cluster on this machine: a master and two workers, each in its own process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from tamis.spark.java import ensure_java

_SPARK = Path(pyspark.__file__).parent
_MASTER = "org.apache.spark.deploy.master.Master"
_WORKER = "org.apache.spark.deploy.worker.Worker"


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """Start a master and two workers with one core each. Returns the address that sessions connect to."""
    ensure_java()
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        master = _logged(
            stack, folder / "master.log", _MASTER, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        address = _said(master, r"Starting Spark master at (spark://\S+)")
        for number in range(2):
            worker = _logged(
                stack, folder / f"worker-{number}.log", _WORKER, "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1",
                "--memory", "1g", "--work-dir", str(folder / f"work-{number}"), address,
            )  # fmt: skip
            _said(worker, r"(Successfully registered with master)")
        yield address


def _logged(stack: ExitStack, log: Path, *arguments: str) -> Path:
    """Start a daemon of Spark. When the stack ends, it is killed together with all its child processes."""
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_MEMORY": "256m",
    }
    stream = stack.enter_context(log.open("w"))
    daemon = subprocess.Popen(
        [str(_SPARK / "bin" / "spark-class"), *arguments],
        stdout=stream,
        stderr=subprocess.STDOUT,
        env=environment,
        start_new_session=True,
    )
    stack.callback(_killed, daemon)
    return log


def _killed(daemon: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(daemon.pid, signal.SIGKILL)
    daemon.wait()


def _said(log: Path, pattern: str, seconds: float = 60) -> str:
    """Wait until the log of a daemon has a text, and return it."""
    ends = time.monotonic() + seconds
    while True:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        assert time.monotonic() < ends, log.read_text()
        time.sleep(0.05)
