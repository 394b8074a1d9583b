"""A process is killed, and then its log is cut off or deleted: an error instead of a wrong answer."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
from tamis.broker import last_commit
from tamis.broker.folder import LAST_COMMIT, TABLES
from tamis.errors import BrokerError

LOG = f"{TABLES}-wal"
KILLED = """
import os, signal, sys, tamis
broker = tamis.open(sys.argv[1], synchronous="off")
broker.subscribe("ann", "low", "price < 10")
for price in range(5):
    broker.publish({"price": price})
if sys.argv[2] == "change":
    broker.pause("ann", "low")
os.kill(os.getpid(), signal.SIGKILL)
"""


class Killed:
    """The folder of a process that was killed. Its files can be put back in place."""

    def __init__(self, folder: Path, last: str) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-c", KILLED, folder, last], check=False)
        self._files = {name: (folder / name).read_bytes() for name in (TABLES, LOG, LAST_COMMIT)}

    def put_back(self) -> None:
        (self.folder / f"{TABLES}-shm").unlink(missing_ok=True)
        for name, content in self._files.items():
            (self.folder / name).write_bytes(content)

    def cut(self) -> None:
        log = self._files[LOG]
        (self.folder / LOG).write_bytes(log[: len(log) - 4096])

    def delete(self) -> None:
        (self.folder / LOG).unlink()


@pytest.mark.parametrize("last", ["event", "change"])
def test_a_log_that_is_cut_off_or_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str) -> None:
    killed = Killed(tmp_path / "broker", last)
    for damage in (killed.cut, killed.delete):
        for read_only in (True, False, False):
            killed.put_back()
            damage()
            with pytest.raises(BrokerError, match=r"lacks the last \d events and \d changes .*Hint: .*last-commit"):
                tamis.open(killed.folder, read_only=read_only)
        with pytest.raises(BrokerError, match="lacks the last"):  # A try has changed nothing.
            tamis.open(killed.folder)
    # A copy is another file, and so is what a machine that has started again finds.
    killed.put_back()
    killed.delete()
    tamis.open(shutil.copytree(killed.folder, tmp_path / "copy")).close()
    with monkeypatch.context() as patched:
        patched.setattr(last_commit, "machine_start", lambda: "another")
        tamis.open(killed.folder, read_only=True).close()
    # What is left can be used once the file is deleted.
    (killed.folder / LAST_COMMIT).unlink()
    with tamis.open(killed.folder) as broker:
        assert broker.stats()["last_event"] == 0
    killed.put_back()
    with tamis.open(killed.folder) as broker:
        assert broker.stats()["last_event"] == 5
        assert len(list(broker.notifications("ann"))) == 5
    assert not (killed.folder / LAST_COMMIT).exists()


def test_the_last_commit_is_kept_as_long_as_the_log(tmp_path: Path) -> None:
    """A reader keeps the log. If it is lost after the writer has closed, that is an error, too."""
    folder = tmp_path / "broker"
    with tamis.open(folder) as broker:
        broker.publish({"price": 1})
        reader = tamis.open(folder, read_only=True)
    assert (folder / LAST_COMMIT).exists()
    tamis.open(folder, read_only=True).close()
    reader.close()
    with tamis.open(folder) as broker:
        assert broker.stats()["last_event"] == 1
    assert not (folder / LAST_COMMIT).exists()
