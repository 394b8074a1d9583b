"""What a type checker reports for a project that uses matchers: an error for each wrong use, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import tamis

PROJECT = """
from collections.abc import Iterator
from typing import assert_type

import tamis
from tamis import Matcher, Rejected, Subscription


def alerts() -> Matcher[str]:
    matcher: Matcher[str] = Matcher(schema={"price": "number"})
    matcher.add("ann", "price < 20", weight=2)
    matcher.upsert("ann", [["price", "<", 5]])
    matcher.replace_many(["ann"], ["price < 9"], weights=[1.5])
    rejected = matcher.add_many(["ben", "eva"], ["price >", "price > 3"], on_error="collect")
    assert_type(rejected, list[Rejected])
    for identifier, row, error in rejected:
        print(identifier, row + 1, error.args)
    return matcher


def names(matcher: Matcher[str]) -> Iterator[str]:
    for identifier in matcher:
        yield identifier.upper()
    assert_type(matcher.match({"price": 3}), list[str])
    assert_type(matcher.ids(), list[str])
    assert_type(matcher["ann"], Subscription[str])
    assert_type(matcher.get("ann"), Subscription[str] | None)
    assert_type(matcher.get("ann", 5), Subscription[str] | int)
    assert_type(matcher["ann"].text, str)
    assert_type(matcher.discard("ann"), bool)


def any_ids(matcher: Matcher) -> list[str | int]:
    matcher.add(1, "price < 20")
    return matcher.match({"price": 3})


numbered = Matcher[int]()
assert_type(numbered.match({}), list[int])
loaded: Matcher[str] = tamis.load("alerts.tamis")
any_ids(Matcher())

numbered.add("ann", "price < 20")  # wrong
numbered.remove_many(["ann"])  # wrong
numbered.get("ann")  # wrong
first: str = numbered.match({})[0]  # wrong
alerts().add_many(["kim"], ["price < 3"], on_error="skip")  # wrong
Matcher[float]()  # wrong
any_ids(numbered)  # wrong
numbered.replace(1, "price < 3", weight="heavy")  # wrong
numbered.unknown  # wrong
"""


def test_a_users_project(tmp_path: Path) -> None:
    (tmp_path / "project.py").write_text(PROJECT, encoding="utf-8")
    cache = Path(__file__).parents[2] / ".cache" / "mypy-of-users"
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--cache-dir", str(cache)]
    environment = {**os.environ, "MYPYPATH": str(Path(tamis.__file__).parents[1])}
    command += ["--config-file", os.devnull, "project.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    found = {int(line) for line in re.findall(r"^project\.py:(\d+): error", done.stdout, re.MULTILINE)}
    wrong = {number for number, line in enumerate(PROJECT.splitlines(), 1) if line.endswith("# wrong")}
    assert found == wrong, done.stdout + done.stderr
