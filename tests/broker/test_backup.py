"""A backup is a whole broker. One that was interrupted says so."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

import tamis
from tamis.broker import Broker
from tamis.broker.tables import Tables
from tamis.errors import BrokerError


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with tamis.open(tmp_path / "shop") as opened:
        yield opened


INTERRUPTED = """
import os, signal, sys, tamis
from tamis.broker.tables import Tables
Tables.backup = lambda self, path: os.kill(os.getpid(), signal.SIGKILL)
tamis.open(":memory:").backup(sys.argv[1])
"""


def test_an_interrupted_backup_is_not_complete(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", INTERRUPTED, tmp_path / "copy"], check=False)
    for read_only in (True, False):
        with pytest.raises(BrokerError, match=r"a backup that is not complete\. Hint: delete this folder"):
            tamis.open(tmp_path / "copy", read_only=read_only)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_backup_that_fails_leaves_nothing(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_new: bool
) -> None:
    def fail(tables: Tables, path: str) -> None:
        Path(path).write_bytes(b"half")
        Path(f"{path}-journal").write_bytes(b"half")
        raise BrokerError("the disk is full")

    target = tmp_path / "copy"
    if not is_new:
        target.mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(Tables, "backup", fail)
        with pytest.raises(BrokerError, match="the disk is full"):
            broker.backup(target)
    assert target.exists() != is_new
    broker.backup(target)
    assert [path.name for path in target.iterdir()] == ["broker.sqlite"]


def test_notes_are_read_while_a_backup_is_made(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copying a large broker takes long. Readers and publishers do not wait for it."""
    broker.subscribe("ann", "a", "price < 20")
    receipt = broker.publish({"price": 1})
    prices: list[int] = []
    copy = Tables.backup

    def read() -> None:
        assert list(receipt.matches) == [("ann", "a")]
        broker.publish({"price": 2})
        prices.extend(note.event["price"] for note in broker.notifications("ann"))

    def read_meanwhile(tables: Tables, path: str) -> None:
        reader = Thread(target=read, daemon=True)
        reader.start()
        reader.join(60)
        copy(tables, path)

    monkeypatch.setattr(Tables, "backup", read_meanwhile)
    broker.backup(tmp_path / "copy")
    assert prices == [1, 2]


def test_a_backup_is_a_whole_broker(broker: Broker, tmp_path: Path) -> None:
    broker.subscribe("ann", "a", "price < 20")
    broker.publish({"price": 1})
    broker.backup(tmp_path / "copy")
    broker.publish({"price": 2})
    with tamis.open(tmp_path / "copy") as copy:
        assert [note.event["price"] for note in copy.notifications("ann")] == [1]
        assert copy.publish({"price": 3}).sequence == 2
    with pytest.raises(BrokerError, match="exists"):
        broker.backup(tmp_path / "copy")
