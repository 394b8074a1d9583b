"""The page about cards is correct: its code runs, in the simulator or on a card."""

from __future__ import annotations

from typing import Any

import pytest

from tests.markdown import ROOT, Page
from tests.test_docs import run


@pytest.mark.compiled
def test_the_page() -> None:
    page = Page(ROOT / "docs" / "gpu.md")
    blocks = [block for block in page.of_language("python") if block.file == "gpu.py"]
    assert len(blocks) == 2
    namespace: dict[str, Any] = {}
    for block in blocks:
        assert run(page, block, namespace) == page.output_of(block)
