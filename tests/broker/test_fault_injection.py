"""The faults underneath SQLite do what they say, and leave other connections alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.broker import faults as fault
from tests.broker.faults import Faults

pytestmark = pytest.mark.skipif(not fault.available(), reason=fault.REASON)


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS books (title)")
    return connection


def add(connection: sqlite3.Connection) -> str:
    """Add a row. Returns the name of SQLite's error, or nothing."""
    try:
        connection.execute("INSERT INTO books VALUES ('Emma')")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorname
    return ""


def test_a_failure_comes_at_its_call_and_only_for_its_files(tmp_path: Path) -> None:
    with Faults() as faults:
        connection = connected(tmp_path / "books.sqlite")
        faults.fail("sync", fault.IOERR_FSYNC, at=2, suffixes=("-wal",))
        assert [add(connection) for _ in range(4)] == ["", "SQLITE_IOERR_FSYNC", "", ""]
        faults.fail("write", fault.FULL, at=1, is_lasting=True)
        assert [add(connection) for _ in range(2)] == ["SQLITE_FULL"] * 2
        assert faults.happened >= 2
        with faults.paused():
            assert add(connection) == ""
        faults.fail("write", fault.FULL, at=1, suffixes=(".sqlite",))
        assert [add(connection) for _ in range(2)] == ["", ""]
        assert faults.happened == 0
        connection.close()
        assert faults.happened == 1
    connection = connected(tmp_path / "books.sqlite")
    assert connection.execute("SELECT count(*) FROM books").fetchone() == (6,)
    connection.close()


def test_a_connection_that_outlives_the_faults_goes_on(tmp_path: Path) -> None:
    with Faults() as faults:
        connection = connected(tmp_path / "books.sqlite")
        faults.fail("write", fault.FULL, at=1, is_lasting=True)
        other_names = {row[2] for row in connection.execute("PRAGMA database_list")}
    assert other_names == {str((tmp_path / "books.sqlite").resolve())}
    assert add(connection) == ""
    connection.close()


def test_a_sync_takes_longer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    with Faults(sync_delay=0.002, methods=("sync",)):
        connection = connected(tmp_path / "books.sqlite")
        add(connection)  # The first one also syncs the head of the log.
        monkeypatch.setattr("time.sleep", slept.append)
        assert [add(connection) for _ in range(3)] == [""] * 3
        connection.close()
    assert slept[:3] == [0.002] * 3


def test_a_hook_sees_each_call_and_its_error_is_raised(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def look(method: fault.Method, name: str) -> None:
        seen.append((method, Path(name).name))
        if method == "truncate":
            raise RuntimeError("seen enough")

    faults = Faults()
    faults.__enter__()
    connection = connected(tmp_path / "books.sqlite")
    faults.before = look
    add(connection)
    assert seen == [("write", "books.sqlite-wal")] * (len(seen) - 1) + [("sync", "books.sqlite-wal")]
    connection.close()
    with pytest.raises(RuntimeError, match="seen enough"):
        faults.__exit__(None, None, None)
