"""The documentation of Spark is correct."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.markdown import ROOT, Page
from tests.test_docs import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize(("name", "count"), [("spark.md", 4), ("cookbook.md", 1), ("sigma.md", 1)])
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
