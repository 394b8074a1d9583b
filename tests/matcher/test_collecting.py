"""The collector of reference cycles is paused while many subscriptions are added, and runs again afterwards."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

import tamis
from tamis.matcher.collecting import paused_collector


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    gc.enable()
    yield
    gc.enable()


def test_pauses_may_overlap_in_threads() -> None:
    inside, outside = threading.Event(), threading.Event()

    def pause() -> None:
        with paused_collector():
            inside.set()
            outside.wait()

    thread = threading.Thread(target=pause)
    with paused_collector():
        thread.start()
        inside.wait()
    assert not gc.isenabled()
    outside.set()
    thread.join()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    with paused_collector():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_adding_leaves_the_collector_on() -> None:
    matcher: tamis.Matcher[int] = tamis.Matcher()
    matcher.add_many([1, 2], ["a = 1", "a = 2"])
    assert gc.isenabled()
    with pytest.raises(tamis.ExpressionError):
        matcher.add_many([3, 4], ["a = 1", "a ="])
    assert gc.isenabled()
    assert len(matcher) == 2
