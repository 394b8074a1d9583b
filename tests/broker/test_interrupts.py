"""Ctrl-C at any line of the broker: the call has happened or not, and the broker goes on or asks to be opened again."""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import pytest

import tamis.broker
from tamis.errors import BrokerError
from tests.broker.model import Model
from tests.broker.sampling import spread
from tests.broker.script import SCRIPT, STORIES, Opening, Step, at_time, expected, shown

PACKAGE = str(Path(tamis.broker.__file__).parent)


@contextmanager
def watched(at: int | None, functions: tuple[str, ...] = ()) -> Iterator[list[int]]:
    """Raise a KeyboardInterrupt before a line of the broker, counted from 0; None: before none.

    Yields a list that gets, for each line of the program that is run, how many lines came before it first. With `functions`,
    it gets the lines of these functions only.
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
            is_first = lines.setdefault((name, frame.f_lineno), number) == number
            if is_first and (not functions or frame.f_code.co_qualname in functions):
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


def returns(call: Callable[[], object]) -> bool:
    """Whether a call returns. A lock that an interrupt has left would hold it for ever."""
    returned: list[object] = []
    thread = threading.Thread(target=lambda: returned.append(call()), daemon=True)
    thread.start()
    thread.join(60)
    return bool(returned)


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
    else:
        assert returns(lambda: broker.publish({"nobody asks": 1}))
    broker.close()
    with opening.broker() as again:
        stored = shown(again)
    assert stored in possible
    assert seen in (None, stored)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool traces the lines")
@pytest.mark.parametrize("story", STORIES)
def test_a_call_that_is_interrupted_at_any_line(tmp_path: Path, story: str, soak: bool) -> None:
    """A short run tries one line in 75 of each call."""
    opening, model, random = Opening(tmp_path / "broker", "off"), STORIES[story].model(), Random(27)
    opening.history = STORIES[story].history
    opening.broker().close()
    for step in STORIES[story].steps:
        opening.now = step.at
        before, start = at_time(model, step.at), opening.copied()
        with opening.broker() as broker, watched(None) as firsts:
            step.broker(broker)
        assert len(firsts) > 20
        for at in firsts if soak else spread(firsts, max(3, len(firsts) // 75), random):
            other = start.copied()
            check_interrupt(other, before, step, at)
            shutil.rmtree(other.path)
        model = step.applied(before)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool traces the lines")
@pytest.mark.parametrize(
    ("place", "functions"), [(2, ("Line.publish", "Line._leave")), (4, ("Tables.transaction",))], ids=["line", "tables"]
)
def test_an_interrupt_leaves_nothing_behind(tmp_path: Path, place: int, functions: tuple[str, ...]) -> None:
    """A later call does not store the event of an interrupted one, and does not wait for it or meet its transaction."""
    opening, model, step = Opening(tmp_path / "broker", "off"), Model(), SCRIPT[place]
    with opening.broker() as broker:
        for earlier in SCRIPT[:place]:
            opening.now = earlier.at
            earlier.broker(broker)
            model = earlier.applied(model)
    opening.now = step.at
    start = opening.copied()
    with opening.broker() as broker, watched(None, functions) as firsts:
        step.broker(broker)
    assert len(firsts) > 4
    for at in firsts:
        check_interrupt(start.copied(), at_time(model, step.at), step, at)


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or a coverage tool traces the lines")
def test_closing_that_is_interrupted_goes_on_when_it_is_called_again(tmp_path: Path, soak: bool) -> None:
    """The folder is then free for the next broker, and nothing is missing."""
    opening, model = Opening(tmp_path / "broker", "off"), Model()
    with opening.broker() as broker:
        for step in SCRIPT[:4]:
            opening.now = step.at
            step.broker(broker)
            model = step.applied(model)
    start = opening.copied()

    def changed() -> tuple[Opening, Any]:
        other = start.copied()
        broker = other.broker()
        broker.publish({"nobody asks": 1})
        return other, broker

    _, broker = changed()
    with watched(None) as firsts:
        broker.close()
    assert len(firsts) > 20
    for at in firsts if soak else spread(firsts, 25, Random(27)):
        other, broker = changed()
        with watched(at), pytest.raises(KeyboardInterrupt):
            broker.close()
        broker.close()
        with other.broker() as again:
            assert again.event(again.stats()["last_event"]).event == {"nobody asks": 1}
        shutil.rmtree(other.path)
