"""Copies of a broker's folder: what is on disk at this moment is what a killed process would leave."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path


def copy_folder(source: Path, target: Path) -> Path:
    """Copy a folder while a broker has it open. Its background thread may rename or delete a cache meanwhile."""
    target.mkdir()
    for path in source.iterdir():
        with suppress(FileNotFoundError):
            shutil.copy(path, target)
    return target
