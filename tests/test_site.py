"""The site: its pages can be put together, every public name has its place, and every page is listed once."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import tamis
import tamis.broker
import tamis.spark
from tests.markdown import ROOT

_LINK = re.compile(r"\]\((?![a-z]+:)([^)#\s]+)[^)\s]*\)")


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "site.py"), run_name="site")


@pytest.fixture(scope="module")
def folder(site: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "pages"
    site["assemble"](folder)
    return folder


def test_every_public_name_is_in_the_reference(site: dict[str, Any]) -> None:
    text = "\n".join(site["reference"]().values())
    listed = re.findall(r"^\.\. auto(?:class|function):: (.*)$", text, re.MULTILINE)
    names = [f"tamis.{name}" for name in tamis.__all__ if not name.startswith("__")]
    names += [f"tamis.spark.{name}" for name in tamis.spark.__all__]
    names += [f"tamis.broker.{name}" for name in tamis.broker.__all__]
    names += ["tamis.client.Client", "tamis.client.AsyncClient"]
    assert sorted(listed) == sorted(names)


def test_every_page_is_listed_once(site: dict[str, Any], folder: Path) -> None:
    pages = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.md")}
    listed = [page for group in site["CONTENTS"].values() for page in group]
    assert sorted({*listed}) == sorted(listed)
    others = {page for page in pages if page.startswith(("indexes/", "experiments/", "examples/"))}
    assert pages - others == {*listed, "index"}


def test_links_lead_to_pages_of_the_site(folder: Path) -> None:
    for path in folder.rglob("*.md"):
        prose = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in _LINK.findall(prose):
            assert (path.parent / target).is_file(), f"{path.name}: {target}"
