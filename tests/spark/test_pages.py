"""The page about Spark and the example tell the truth."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.markdown import ROOT, Page
from tests.test_docs import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = Page(ROOT / "docs" / "spark.md")
    # Spark has its own working folder, which was set when it started.
    namespace: dict[str, Any] = {"spark": spark}
    blocks = page.of_language("python")
    assert len(blocks) >= 3
    for block in blocks:
        text = block.text
        for name in ("incoming", "matches", "checkpoint", "alerts"):
            text = text.replace(f'"{name}"', f'"{tmp_path / name}"').replace(f'"{name}/', f'"{tmp_path / name}/')
        assert run(page, block._replace(text=text), namespace) == page.output_of(block)


@pytest.mark.spark
def test_the_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spark_matching.py"), str(tmp_path / "shop")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "version 1: 5,000 wishes, 1 rejected" in done.stdout
    assert "version 2: 1 added, 1 removed" in done.stdout
    assert "batch 0 was matched with version 2" in done.stdout
