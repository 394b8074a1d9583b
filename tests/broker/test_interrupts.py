"""Ctrl-C at any line of the broker: the call has happened or not, and the broker goes on or asks to be opened again."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import tamis.broker
from tamis.errors import BrokerError
from tests.broker.model import Model
from tests.broker.script import SCRIPT, Opening, Step, at_time, expected, shown

PACKAGE = str(Path(tamis.broker.__file__).parent)


@contextmanager
def watched(at: int | None) -> Iterator[list[int]]:
    """Raise a KeyboardInterrupt before a line of the broker, counted from 0; None: before none.

    Yields a list that gets, for each line of the program that is run, how many lines came before it first.
    """
    lines: dict[tuple[str, int], int] = {}
    firsts: list[int] = []
    counter = count()

    def look(frame: FrameType, what: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(PACKAGE):
            return None
        if what == "line":
            number = next(counter)
            if lines.setdefault((name, frame.f_lineno), number) == number:
                firsts.append(number)
            if number == at:
                sys.settrace(None)
                raise KeyboardInterrupt
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        yield firsts
    finally:
        sys.settrace(before)


def check_interrupt(opening: Opening, before: Model, step: Step, at: int) -> None:
    """Interrupt a call and check what it leaves."""
    possible = [expected(before), expected(step.applied(before))]
    broker = opening.broker()
    with watched(at), pytest.raises(KeyboardInterrupt):
        step.broker(broker)
    try:
        seen = shown(broker)
    except BrokerError as error:
        assert "open the folder again" in str(error)  # noqa: PT017 - whether there is an error is not known
        seen = None
    broker.close()
    with opening.broker() as again:
        stored = shown(again)
    assert stored in possible
    assert seen in (None, stored)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool traces the lines")
def test_a_call_that_is_interrupted_at_any_line(tmp_path: Path, soak: bool) -> None:
    """A short run tries every 24th line of each call, other lines for each call."""
    opening, model = Opening(tmp_path / "broker", "off"), Model()
    opening.broker().close()
    for place, step in enumerate(SCRIPT):
        opening.now = step.at
        before, start = at_time(model, step.at), opening.copied()
        with opening.broker() as broker, watched(None) as firsts:
            step.broker(broker)
        assert len(firsts) > 20
        for at in firsts if soak else firsts[place % 24 :: 24]:
            other = start.copied()
            check_interrupt(other, before, step, at)
            shutil.rmtree(other.path)
        model = step.applied(before)
