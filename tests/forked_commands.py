"""The command `tamis` as forks of one process that has imported everything: a tenth of a second each, not one or two.

A fork has the words, folder, environment, input and output of the command that a shell starts. Only what it imports is there
already.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.service.forking import IMPORTED, can_fork

_ALONE = """#!/bin/sh
exec "{python}" -m tamis "$@"
"""
_CLIENT = """#!/bin/sh
exec "{python}" -IS "{program}" "$@"
"""
_PROGRAM = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as link:
    link.connect({address!r})
    socket.send_fds(link, [b"x"], [0, 1, 2])
    link.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    link.shutdown(socket.SHUT_WR)
    status = link.recv(1)
os._exit(status[0] if status else 1)
"""


@contextmanager
def command(folder: Path) -> Iterator[Path]:
    """A program `tamis` in a folder."""
    path, program, address = folder / "tamis", folder / "client.py", folder / "socket"
    path.touch(0o755)
    if not can_fork():
        path.write_text(_ALONE.format(python=sys.executable))
        yield path
        return
    path.write_text(_CLIENT.format(python=sys.executable, program=program))
    program.write_text(_PROGRAM.format(address=str(address)))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", IMPORTED])
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen()
        server = context.Process(target=_serve, args=(listener,), daemon=True)
        server.start()
    try:
        yield path
    finally:
        server.terminate()
        server.join()


def _serve(listener: socket.socket) -> None:
    """Fork for each connection. Nobody waits for the forks, so the system forgets those that have ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        link, _ = listener.accept()
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            _answer(link)
        link.close()


def _answer(link: socket.socket) -> None:
    """Run a command, and send its exit status."""
    status = 1
    try:
        _, descriptors, _, _ = socket.recv_fds(link, 1, 3)
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
            os.close(descriptor)
        with link.makefile("rb") as sent:
            words, folder, environment = json.load(sent)
        status = _run(words, folder, environment)
    finally:
        link.sendall(bytes([status]))
        os._exit(status)


def _run(words: list[str], folder: str, environment: dict[str, str]) -> int:
    """Run the command in this process, as ``python -m tamis`` does. Returns its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    streams: Any = [open(place, mode, encoding="utf-8", closefd=False) for place, mode in enumerate("rww")]  # noqa: SIM115
    sys.stdin, sys.stdout, sys.stderr = streams
    sys.argv = ["tamis", *words]
    try:
        runpy.run_module("tamis", run_name="__main__")
    except SystemExit as end:
        status = end.code
    else:
        status = 0
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    return status if isinstance(status, int) else int(status is not None)
