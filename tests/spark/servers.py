"""Servers in processes of their own: a free port, and waiting until they answer."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_SECONDS = 180
"""How long a server may take to start, on a machine that does other work."""


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def listens(port: int) -> bool:
    """Whether a server accepts connections."""
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False


def wait_for(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server is ready. Its log says why it never is."""
    ends = time.monotonic() + _SECONDS
    while not ready():
        assert process.poll() is None, f"the server has ended: {log.read_text()[-4000:]}"
        assert time.monotonic() < ends, f"the server does not answer: {log.read_text()[-4000:]}"
        time.sleep(0.1)
