"""Kernels compiled by tests are kept per process, and nothing stale is reused."""

from __future__ import annotations

import os
from pathlib import Path

from tests.numba_cache import ROOT, _digest, _free_slot


def test_processes_at_work_have_different_slots(tmp_path: Path) -> None:
    assert [_free_slot(tmp_path).name for _ in range(3)] == ["0", "1", "2"]


def test_the_suite_uses_a_slot_in_the_repository() -> None:
    assert Path(os.environ["NUMBA_CACHE_DIR"]).is_relative_to(ROOT / ".cache")


def test_a_change_in_any_source_that_kernels_draw_on_changes_the_folder(tmp_path: Path) -> None:
    source = tmp_path / "encoding" / "constants.py"
    source.parent.mkdir()
    source.write_text("A = 1")
    before = _digest(tmp_path)
    source.write_text("A = 2")
    assert _digest(tmp_path) != before
