"""Folders of these tests lie in memory where the system has a place for that: they are opened a thousand times, and each time
waits for the disk. No test needs a real disk: those that cut the power know what would be on it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_MEMORY = Path("/dev/shm")
_LEAST = 2 * 10**9
"""Free bytes that it must have: containers often have little."""


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of its own for a test."""
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _LEAST:
        with TemporaryDirectory(dir=_MEMORY, ignore_cleanup_errors=True) as name:
            yield Path(name)
    else:
        yield tmp_path_factory.mktemp("broker")
