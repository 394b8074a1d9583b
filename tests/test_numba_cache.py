"""Kernels compiled by tests are kept per process."""

from __future__ import annotations

import os
from pathlib import Path

from tests.numba_cache import ROOT, _free_slot


def test_processes_at_work_have_different_slots(tmp_path: Path) -> None:
    assert [_free_slot(tmp_path).name for _ in range(3)] == ["0", "1", "2"]


def test_the_suite_uses_a_slot_in_the_repository() -> None:
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_relative_to(ROOT / ".cache")
