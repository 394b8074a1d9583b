"""Folders and files that are damaged, foreign, newer or in use: an error that says what to do, never a wrong answer."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tamis
from tamis.broker.tables import VERSION
from tamis.errors import BrokerError, LockedError
from tests.broker.model import Model
from tests.broker.script import SCRIPT, Opening, at_time, expected, shown

TABLES = "broker.sqlite"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the script has run."""
    opening = Opening(tmp_path_factory.mktemp("good") / "broker")
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
    return opening.path


@pytest.fixture
def folder(good: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(good, tmp_path / "broker"))


def model() -> Model:
    now = Model()
    for step in SCRIPT:
        now = step.applied(now)
    return now


def look(folder: Path) -> object:
    """What a broker shows, or the error that it raises. Everything that is stored is read."""
    opening = Opening(folder)
    opening.now = SCRIPT[-1].at
    try:
        with opening.broker() as broker:
            seen = shown(broker)
            list(broker.changes())
            broker.publish({"price": 1})
            return seen
    except BrokerError as error:
        return error


def assert_error(folder: Path, words: str) -> None:
    error = look(folder)
    assert isinstance(error, BrokerError)
    assert words in str(error)
    assert "Hint:" in str(error)


# Damage


def test_a_file_that_is_cut_off_anywhere_is_an_error(folder: Path) -> None:
    content = (folder / TABLES).read_bytes()
    for size in [0, 1, 50, 99, 100, 4095, *range(4096, len(content), 4096), len(content) - 1]:
        (folder / TABLES).write_bytes(content[:size])
        assert_error(folder, "Restore a backup")
    (folder / TABLES).write_bytes(content)
    assert look(folder) == expected(model())


@pytest.mark.parametrize("fill", [b"\x00", b"\xff", b"tamis"])
def test_a_page_that_is_overwritten_is_an_error(good: Path, tmp_path: Path, fill: bytes) -> None:
    content = (good / TABLES).read_bytes()
    for start in range(0, len(content), 4096):
        folder = Path(shutil.copytree(good, tmp_path / str(start)))
        (folder / TABLES).write_bytes(content[:start] + (fill * 4096)[:4096] + content[start + 4096 :])
        seen = look(folder)
        # Nobody needs some pages, such as those of an empty table.
        assert seen == expected(model()) or (isinstance(seen, BrokerError) and "Restore a backup" in str(seen)), start


def test_a_log_that_is_cut_off_leaves_the_state_after_some_call(tmp_path: Path) -> None:
    opening, now = Opening(tmp_path / "broker"), Model()
    opening.log_pages = 100_000
    models = [now]
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
            models.append(step.applied(models[-1]))
        whole = opening.copied().path
    states = [expected(at_time(each, opening.now)) for each in models]
    # A page in the log takes 4,120 bytes, so the log is cut off in the middle of each page.
    content, found = (whole / f"{TABLES}-wal").read_bytes(), []
    for size in range(len(content) - 100, 0, -4120):
        folder = Path(shutil.copytree(whole, tmp_path / str(size)))
        (folder / f"{TABLES}-wal").write_bytes(content[:size])
        found.append(states.index(read(folder, opening.now)))
        shutil.rmtree(folder)
    assert found == sorted(found, reverse=True)
    assert set(found) == set(range(len(SCRIPT)))


def read(folder: Path, now: int) -> dict[str, Any]:
    opening = Opening(folder)
    opening.now = now
    with opening.broker() as broker:
        return shown(broker)


# Foreign and newer files


def test_a_file_that_is_not_of_sqlite(folder: Path) -> None:
    (folder / TABLES).write_text("a list of books\n" * 1000)
    assert_error(folder, "Restore a backup")


def test_a_file_of_another_program(folder: Path) -> None:
    (folder / TABLES).unlink()
    connection = sqlite3.connect(folder / TABLES)
    connection.execute("CREATE TABLE books (title)")
    connection.close()
    before = (folder / TABLES).read_bytes()
    assert_error(folder, "another program")
    assert (folder / TABLES).read_bytes() == before


def test_tables_of_a_newer_version(folder: Path) -> None:
    connection = sqlite3.connect(folder / TABLES)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    assert_error(folder, "use a newer Tamis")


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "broker"
    path.write_text("")
    assert_error(path, "is a file")


def test_a_folder_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Ann")
    assert_error(tmp_path, "letter.txt")
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]


def test_a_folder_that_has_no_broker_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BrokerError, match=r"has no broker. Hint: "):
        tamis.open(tmp_path, read_only=True)
    assert list(tmp_path.iterdir()) == []


# Two writers


def test_a_second_writer_in_this_process(folder: Path) -> None:
    with tamis.open(folder), pytest.raises(LockedError, match=rf"process {os.getpid()} writes to .*Hint: "):
        tamis.open(folder)
    tamis.open(folder).close()


HOLDER = """
import sys, tamis
broker = tamis.open(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


def test_a_second_writer_is_told_which_process_writes(folder: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(LockedError, match=rf"process {process.pid} writes to .*Hint: .*read_only=True"):
            tamis.open(folder)
        # It may read meanwhile.
        with tamis.open(folder, read_only=True) as reader:
            assert len(list(reader.subscriptions())) == 4
        process.kill()
    # The lock of a killed process is free.
    tamis.open(folder).close()


def test_an_error_at_opening_gives_the_lock_back(folder: Path) -> None:
    content = (folder / TABLES).read_bytes()
    (folder / TABLES).write_bytes(content[:5000])
    assert_error(folder, "Restore a backup")
    (folder / TABLES).write_bytes(content)
    assert look(folder) == expected(model())
