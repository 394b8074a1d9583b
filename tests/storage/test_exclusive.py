"""A file is created by one of several writers, and nobody sees a part of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tamis.storage import exclusive


def refused(number: int) -> Callable[..., None]:
    def refuse(*arguments: Any) -> None:
        raise OSError(number, os.strerror(number))

    return refuse


@pytest.mark.parametrize("renames", [True, False])
def test_one_of_many_writers_creates_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: bool) -> None:
    if not renames:  # as on NFS
        monkeypatch.setattr(exclusive, "rename_exclusively", refused(errno.EINVAL))

    def create(writer: int) -> bool:
        try:
            exclusive.create(tmp_path / "file", bytes([writer]) * 1000)
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(create, range(8)))
    assert sum(won) == 1
    assert (tmp_path / "file").read_bytes() == bytes([won.index(True)]) * 1000
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_a_file_system_that_can_do_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exclusive, "rename_exclusively", refused(errno.EINVAL))
    monkeypatch.setattr(os, "link", refused(errno.EPERM))
    with pytest.raises(PermissionError):
        exclusive.create(tmp_path / "file", b"x")
    assert list(tmp_path.iterdir()) == []
