"""The crash test of the broker, through HTTP: the service is killed under load. Whatever got a 2xx is there, and nothing is told
twice."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

import tamis
from tamis.errors import ServiceError
from tests.broker import crash_load
from tests.broker.crash_history import NEVER, History
from tests.earlier.reference import ReferenceHistory
from tests.service.serving import PATIENCE, Server

SETTINGS = """
[broker.history]
rows = 5
key = "genre"
"""
ALWAYS = datetime(2999, 1, 1, tzinfo=UTC)

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a signal that cannot be caught")


def test_what_a_killed_service_acknowledged_is_there(tmp_path: Path) -> None:
    history = killed_often(tmp_path / "served", range(1, 2), Random(29), joins=True)
    assert len(history.events) > 20
    assert all(history.notes.values())


@pytest.mark.long
@pytest.mark.parametrize("joins", [False, True])
def test_100_kills(tmp_path: Path, joins: bool) -> None:
    """After 10 kills, the test takes a new folder, since all that was stored is read after each kill."""
    random = Random(290 + joins)
    for first in range(1, 51, 10):
        history = killed_often(tmp_path / str(first), range(first, first + 10), random, joins=joins)
        assert len(history.events) > 100


def killed_often(folder: Path, runs: range, random: Random, *, joins: bool) -> History:
    """Kill services of one folder, one after another, and check what each of them leaves with the next one."""
    folder.mkdir()
    if joins:
        (folder / "service.toml").write_text(SETTINGS, encoding="utf-8")
    history = History(retained=ReferenceHistory(crash_load.HISTORY) if joins else None, long_runs=NEVER)
    server = Server(folder, "--log", "warning")
    try:
        for run in runs:
            lines = killed(server, run, random.randrange(50, 600), joins=joins)
            server = Server(folder, "--log", "warning")
            with tamis.connect(server.url) as client:
                history.add_run(lines, client, folder / "tenants" / "default", is_whole=run == runs[-1])
    finally:
        server.kill()
    assert server.log() == ""
    return history


def killed(server: Server, run: int, most: int, *, joins: bool) -> list[str]:
    """Put a service under load, and kill it after some lines. Returns all lines."""
    lines: list[str] = []
    said, is_killed = threading.Semaphore(0), threading.Event()
    failures: list[Exception] = []

    def say(*words: object) -> None:
        lines.append(json.dumps(words))
        said.release()

    def worked(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            if not (is_killed.is_set() and isinstance(error, ServiceError) and error.status is None):
                failures.append(error)

    # Nothing is sent again: an answer that was lost is one that nobody has seen.
    with tamis.connect(server.url, tries=1) as client:
        load = crash_load.Load(client, milliseconds(), run, ALWAYS, say, joins=joins)
        load.begin_all()
        threads = [threading.Thread(target=worked, args=[work]) for work in load.works()]
        for thread in threads:
            thread.start()
        for _ in range(most):
            assert said.acquire(timeout=PATIENCE), failures
        is_killed.set()
        server.kill()
        for thread in threads:
            thread.join()
    assert not failures
    return lines


def milliseconds() -> Iterator[int]:
    """The clock of the machine, which the service has, too."""
    return iter(lambda: int((datetime.now(UTC) - crash_load.START).total_seconds() * 1000), -1)
