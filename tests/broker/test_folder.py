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
from tamis.broker import session
from tamis.broker.housekeeping import Housekeeping
from tamis.broker.schema import CHECKED, STEPS, VERSION
from tamis.broker.tables import Tables
from tamis.errors import BrokerError, LockedError
from tests.broker.model import Model
from tests.broker.script import QUIET, SCRIPT, Opening, at_time, expected, shown

TABLES = "broker.sqlite"
LOG_HEAD, LOG_PAGE = 32, 24 + 4096
"""Bytes of the head of SQLite's log, and of a page in it with what stands before the page."""


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


def test_a_log_that_is_cut_off_leaves_the_state_after_some_call(tmp_path: Path, soak: bool) -> None:
    """It is cut off in the middle of each page. A short run tries the last page of each commit, and the page after it."""
    opening, now = Opening(tmp_path / "broker"), Model()
    opening.log_pages, opening.limits = 100_000, QUIET
    models = [now]
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
            models.append(step.applied(models[-1]))
        whole = opening.copied().path
    states = [expected(at_time(each, opening.now)) for each in models]
    content, found = (whole / f"{TABLES}-wal").read_bytes(), []
    pages = range(LOG_HEAD, len(content), LOG_PAGE)
    # The second number before a page is 0 if its commit goes on.
    commits = {start for start in pages if any(content[start + 4 : start + 8])}
    tried = pages if soak else [start for start in pages if commits & {start, start - LOG_PAGE}]
    for start in reversed(tried):
        folder = Path(shutil.copytree(whole, tmp_path / str(start)))
        (folder / f"{TABLES}-wal").write_bytes(content[: start + LOG_PAGE - 100])
        found.append(states.index(read(folder, opening.now)))
        shutil.rmtree(folder)
    assert found == sorted(found, reverse=True)
    assert set(found) == set(range(len(SCRIPT)))


def read(folder: Path, now: int) -> dict[str, Any]:
    opening = Opening(folder)
    opening.now = now
    with opening.broker() as broker:
        return shown(broker)


_NUMBERS = ("[1", "{}", "[1.5]", '["1"]', "[0]", "[-1]", "[999]", f"[{2**70}]", "7")


@pytest.mark.parametrize(
    "damage",
    [*(f"UPDATE events SET matches = '{each}' WHERE sequence = 1" for each in _NUMBERS),
     *(f"UPDATE meetings SET events = '{each}'" for each in ("[1", "{}", "[1.5]", "7", f"[{2**70}]")),
     "UPDATE meetings SET subscription = 999"],
)  # fmt: skip
def test_damaged_numbers_of_subscriptions_and_events(folder: Path, damage: str) -> None:
    for path in folder.glob("queue-*"):
        path.unlink()
    tables = sqlite3.connect(folder / TABLES)
    tables.execute(damage)
    tables.commit()
    tables.close()
    assert_error(folder, "Restore a backup")


def test_tables_that_are_gone(folder: Path) -> None:
    (folder / TABLES).unlink()
    assert_error(folder, f"{TABLES} is gone")


def test_a_new_folder_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name lies in the folder above. So each folder in which a name was made is synced."""
    synced = set()
    sync = os.fsync

    def noting(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noting)
    tamis.open(tmp_path / "a" / "b" / "broker").close()
    for path in (tmp_path, tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "broker"):
        assert path.stat().st_ino in synced, path


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


LATER = (
    *STEPS,
    "ALTER TABLE events ADD COLUMN source TEXT; UPDATE events SET source = 'here';",
    "CREATE TABLE sources (name TEXT); INSERT INTO sources VALUES ('here');",
)


def test_older_tables_are_brought_up_to_date(folder: Path) -> None:
    path = str(folder / TABLES)
    with pytest.raises(BrokerError, match="open the folder once without read_only"):
        Tables(path, read_only=True, steps=LATER)
    for steps in (LATER[:-1], LATER, LATER):
        tables = Tables(path, steps=steps)
        assert set(tables.rows("SELECT source FROM events")) == {("here",)}
        tables.close()
    tables = Tables(path, read_only=True, steps=LATER)
    assert list(tables.rows("SELECT name FROM sources")) == [("here",)]
    tables.close()
    assert_error(folder, "use a newer Tamis")


def test_tables_of_the_first_version(folder: Path) -> None:
    """They have no checksums and no table for a history."""
    connection = sqlite3.connect(folder / TABLES)
    for table in ("events", "history"):
        connection.execute(f"ALTER TABLE {table} DROP COLUMN event_checksum")
    for table in CHECKED:
        connection.execute(f"ALTER TABLE {table} DROP COLUMN checksum")
    connection.executescript("DROP TABLE history; PRAGMA user_version = 1;")
    connection.close()
    assert look(folder) == expected(model())
    with tamis.open(folder, history=tamis.History(rows=3)) as broker:
        assert broker.history == tamis.History(rows=3)


def test_a_step_that_fails_changes_nothing(folder: Path) -> None:
    with pytest.raises(BrokerError, match="no such table"):
        Tables(str(folder / TABLES), steps=(*STEPS, "UPDATE nowhere SET name = 1;"))
    assert look(folder) == expected(model())


def test_a_file_instead_of_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "broker"
    path.write_text("")
    assert_error(path, "is a file")


def test_a_process_changes_its_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker stays in its folder, though another one has the same relative name."""
    for place, subscribers in (("one", ["ann"]), ("two", ["bob", "eve"])):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        with tamis.open("shop") as made:
            made.subscribe_many(
                [{"subscriber": each, "name": "all", "expression": "price > 0"} for each in subscribers]
            )
            made.publish({"price": 1})
    files = sorted(Path("shop").iterdir())
    monkeypatch.chdir(tmp_path / "one")
    with tamis.open("shop") as broker, tamis.open("shop", read_only=True) as reader:
        monkeypatch.chdir(tmp_path / "two")
        assert [each.subscription.subscriber for each in broker.find_subscriptions()] == ["ann"]
        reader.acknowledge("ann", 1)
        assert reader.would_match({"price": 1})
        assert broker.subscriber("ann").cursor == 1
        broker.backup("copy")
        broker.subscribe("ann", "free", "price = 0")
        broker.compact()
        assert broker.stats()["problem"] is None
    assert sorted(Path("shop").iterdir()) == files
    with tamis.open("shop") as other, tamis.open("copy") as copy:
        assert [other.subscriber(each).cursor for each in ("bob", "eve")] == [0, 0]
        assert copy.subscriber("ann").cursor == 1


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


def test_an_error_late_at_opening_gives_the_lock_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(tables: Tables) -> None:
        raise BrokerError("row 1 of the settings is damaged")

    with monkeypatch.context() as patched:
        patched.setattr(session, "read_retention", fail)
        with pytest.raises(BrokerError, match="settings") as caught:
            tamis.open(folder)
    tamis.open(folder).close()
    del caught  # Until here, the error has kept the broker that was being opened.


def test_an_error_while_closing_gives_the_lock_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(housekeeping: Housekeeping) -> None:
        raise MemoryError

    broker = tamis.open(folder)
    with monkeypatch.context() as patched:
        patched.setattr(Housekeeping, "finish", fail)
        with pytest.raises(MemoryError):
            broker.close()
    tamis.open(folder).close()
    broker.close()


def test_the_lock_has_two_lines_however_often_a_folder_is_opened(tmp_path: Path) -> None:
    """It is opened to append, since a process that does not get the lock must not change it."""
    sizes = []
    for _ in range(3):
        with tamis.open(tmp_path / "broker"):
            sizes.append(len((tmp_path / "broker" / "lock").read_text().splitlines()))
    assert sizes == [2, 2, 2]
