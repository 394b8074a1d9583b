"""Many lines of JSON together are decided as one by one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import NamedTuple

import pytest

from tamis import parse
from tamis.cli.diagnostics import Diagnostics, OnError
from tamis.cli.event_filter import EventFilter
from tamis.cli.filter_run import FilterRun
from tamis.cli.kernel_choice import KernelChoice
from tamis.errors import FileError
from tests.json_texts import JsonTexts

EXPRESSIONS = ("a = 5 OR a LIKE 'x%'", "b IS NULL AND NOT (c > 3)", "a.b.c = 5 OR b.c IS NOT NULL")


class Outcome(NamedTuple):
    """What a pass over a file gave."""

    output: bytes
    matched: int
    selected: int
    bad_lines: int
    stopped_at: int | None


def outcome(path: Path, expression: str, one_by_one: int, on_error: OnError, *, invert: bool) -> Outcome:
    written: list[bytes] = []
    diagnostics = Diagnostics(on_error, quiet=True, progress=False)
    run = FilterRun(
        EventFilter(parse(expression)),
        diagnostics,
        write=written.append,
        invert=invert,
        choice=KernelChoice(one_by_one, loading=0),
    )
    stopped_at = None
    try:
        run.filter_all([str(path)], "jsonl")
    except FileError as error:
        stopped_at = error.line
    return Outcome(b"".join(written), run.matched, run.selected, diagnostics.bad_lines, stopped_at)


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("invert", [False, True])
def test_together_as_one_by_one(tmp_path: Path, expression: str, invert: bool) -> None:
    texts, path = JsonTexts(3), tmp_path / "events.jsonl.gz"
    lines = [texts.line() for _ in range(300)]
    right = [line for line in lines if line.lstrip().startswith(b'{"unasked"')]
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf{}\r\n" + b"\n".join(lines)))
    alone = outcome(path, expression, 1_000, "skip", invert=invert)
    assert alone.bad_lines > 20
    assert alone.selected > 3
    for one_by_one in (0, 1, 150):
        assert outcome(path, expression, one_by_one, "skip", invert=invert) == alone
    path.write_bytes(gzip.compress(b"\n".join([*right, *lines])))
    alone = outcome(path, expression, 1_000, "stop", invert=invert)
    assert alone.stopped_at is not None
    for one_by_one in (0, 1, 150):
        assert outcome(path, expression, one_by_one, "stop", invert=invert) == alone


def test_names_given_twice_matter_if_the_expression_asks(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"a": 5, "x": 1, "x": 2}\n{"a": 5, "a": 5}\n')
    for one_by_one in (0, 10):
        found = outcome(path, "a = 5", one_by_one, "skip", invert=False)
        assert (found.matched, found.bad_lines) == (1, 1)
