"""The documentation of Spark and its example are correct."""

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


@pytest.mark.parametrize(("name", "count"), [("spark.md", 4), ("cookbook.md", 1)])
def test_the_pages(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, count: int) -> None:
    monkeypatch.chdir(tmp_path)
    page = Page(ROOT / "docs" / name)
    # Spark has its own working folder, set at its start.
    namespace: dict[str, Any] = {"spark": spark}
    blocks = [block for block in page.of_language("python") if block.file == "spark.py"]
    assert len(blocks) >= count
    for block in blocks:
        text = block.text
        for folder in ("incoming", "matches", "checkpoint", "alerts", "shop"):
            text = text.replace(f'"{folder}"', f'"{tmp_path / folder}"').replace(
                f'"{folder}/', f'"{tmp_path / folder}/'
            )
        assert run(page, block._replace(text=text), namespace) == page.output_of(block)


@pytest.mark.spark
@pytest.mark.own_spark
def test_the_example(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spark_matching.py"), str(tmp_path / "shop")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "version 1: 5,000 wishes, 1 rejected" in done.stdout
    assert "version 2: 1 added, 1 removed" in done.stdout
    assert "batch 0 was matched with version 2" in done.stdout
