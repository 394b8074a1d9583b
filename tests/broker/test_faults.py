"""Writes, syncs and the disk fail underneath SQLite, one call after another.

A failed call raises an error that says what to do. The broker then shows the state before the call, and goes on when the disk
does. A process that is killed leaves the state before the call or after it, never a part.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from itertools import count, pairwise, product
from pathlib import Path
from random import Random

import pytest

from tamis.broker import Broker
from tamis.broker.folder import TABLES
from tamis.broker.opening import open_state
from tamis.broker.publishing import Line, Offer
from tamis.broker.retention import Retention
from tamis.broker.tables import Tables
from tamis.errors import BrokerError
from tests.broker import faults as fault
from tests.broker.faults import Faults, Method
from tests.broker.model import Model
from tests.broker.sampling import spread
from tests.broker.script import (
    LIMITS,
    QUIET,
    SCRIPT,
    START,
    STORIES,
    Opening,
    Step,
    at_time,
    expected,
    moment,
    shown,
    stored_events,
)

pytestmark = pytest.mark.skipif(not fault.available(), reason=fault.REASON)

KINDS: dict[str, tuple[Method, int, tuple[str, ...]]] = {
    "write to the log": ("write", fault.IOERR_WRITE, ("-wal",)),
    "write to the tables": ("write", fault.IOERR_WRITE, (".sqlite", "-journal")),
    "sync": ("sync", fault.IOERR_FSYNC, ("",)),
    "truncate": ("truncate", fault.IOERR_TRUNCATE, ("",)),
    "disk full": ("write", fault.FULL, ("",)),
}
"""The method that fails, the code of SQLite, and the ends of the files' names."""
CODES: dict[Method, list[int]] = {
    "write": [fault.IOERR_WRITE, fault.FULL],
    "sync": [fault.IOERR_FSYNC],
    "truncate": [fault.IOERR_TRUNCATE],
}
NEVER = 2**62
CLOSE = Step(40, "close", lambda broker: broker.close(), lambda model: None)


@pytest.fixture
def faults() -> Iterator[Faults]:
    # No test cuts the power here, so the disk need not be waited for.
    with Faults(skips_sync=True) as installed:
        yield installed


class Run:
    """A broker that meets faults.

    `models` are the states that a killed process may leave. The first one is what the broker shows; each other one has a call
    that failed.
    """

    def __init__(self, opening: Opening, faults: Faults, model: Model) -> None:
        self.opening = opening
        self.faults = faults
        self.models = [model]
        with faults.paused():
            self.broker = opening.broker()

    def call(self, step: Step) -> bool:
        """Make a call. Returns whether it has happened."""
        self.opening.now = step.at
        before = at_time(self.models[0], step.at)
        error = failure(step, self.broker)
        if error is None:
            self.models = [step.applied(before)]
            return True
        assert "Hint:" in str(error)
        self.models.append(step.applied(before))
        with self.faults.paused():
            assert shown(self.broker) == expected(before)
            self.settle(self.opening.copied())
        return False

    def settle(self, opening: Opening) -> None:
        """Open a folder without faults. It must have one of the states that it may have."""
        with self.faults.paused(), opening.broker() as broker:
            seen = shown(broker)
            events = stored_events(opening.path)
        assert events == list(range(1, len(events) + 1))
        possible = [at_time(model, opening.now) for model in self.models]
        assert seen in [expected(model) for model in possible if len(model.events) == len(events)]
        shutil.rmtree(opening.path)


def failure(step: Step, broker: Broker) -> BrokerError | None:
    try:
        step.broker(broker)
    except BrokerError as error:
        return error
    return None


class Places:
    """The calls of a method that fail, counted from 1: all of them, or `most` of them in a short run."""

    def __init__(self, most: int, soak: bool) -> None:
        self._most = most
        self._soak = soak
        self._random = Random(27)

    def __call__(self, total: int) -> Sequence[int]:
        """Places among `total` calls."""
        places = range(1, total + 1)
        return places if self._soak else spread(places, self._most, self._random)


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize("method", CODES)
def test_a_failed_call_has_not_happened_and_can_be_made_again(
    tmp_path: Path, faults: Faults, method: Method, story: str, soak: bool
) -> None:
    """For each call of the script: its first write fails, its second one, and so on. A short run takes some of the writes."""
    script = STORIES[story].steps
    opening, model, failures = Opening(tmp_path / "broker"), STORIES[story].model(), 0
    opening.limits, opening.history = QUIET, STORIES[story].history
    # The disk fails once, or until it is mended. A short run takes these by turns.
    ways, places = list(product(CODES[method], (False, True))), Places(3, soak)
    turns = count()
    with opening.broker() as broker:
        opening.history = None  # The folder remembers it.
        for step, later in pairwise([*script, CLOSE]):
            for at in places(calls_of(method, Run(opening.copied(), faults, model), step)):
                for code, is_lasting in ways if soak else [ways[next(turns) % len(ways)]]:
                    faults.fail(method, code, at=at, is_lasting=is_lasting)
                    assert has_failed(Run(opening.copied(), faults, model), step, later, is_lasting)
                failures += 1
            opening.now = step.at
            step.broker(broker)
            model = step.applied(model)
    assert failures >= len(script) // 2


def calls_of(method: Method, run: Run, step: Step) -> int:
    """How often a call asks for a method when nothing fails."""
    run.faults.fail(method, fault.FULL, at=NEVER)
    assert run.call(step)
    run.faults.mend()
    run.broker.close()
    shutil.rmtree(run.opening.path)
    return run.faults.called


def has_failed(run: Run, step: Step, later: Step, is_lasting: bool) -> bool:
    """Make a call until it happens, and the next call after it. Returns whether the disk has failed."""
    has_happened = run.call(step)
    if not has_happened and is_lasting:
        assert not run.call(step)
    failed = run.faults.happened > 0
    run.faults.mend()
    assert has_happened or run.call(step)
    assert run.call(later)
    run.broker.close()
    run.settle(run.opening)
    return failed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
def test_the_disk_fails_while_a_broker_is_closed(
    tmp_path: Path, faults: Faults, kind: str, is_lasting: bool, soak: bool
) -> None:
    """SQLite copies its log to the tables then. If that fails, the log stays, with all that was acknowledged."""
    method, code, suffixes = KINDS[kind]
    opening, model = Opening(tmp_path / "broker"), Model()
    opening.log_pages, opening.limits = 1000, QUIET
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
            model = step.applied(model)

        def is_closed_with_a_fault(at: int) -> bool:
            run = Run(opening.copied(), faults, model)
            faults.fail(method, code, at=at, suffixes=suffixes, is_lasting=is_lasting)
            run.broker.close()
            run.settle(run.opening)
            return faults.happened > 0

        assert not is_closed_with_a_fault(NEVER)
        assert faults.called or kind == "write to the log"
        assert all(map(is_closed_with_a_fault, Places(6, soak)(faults.called)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_disk_fails_while_a_broker_is_made(tmp_path: Path, faults: Faults, kind: str) -> None:
    method, code, suffixes = KINDS[kind]
    for at in count(1):
        opening = Opening(tmp_path / str(at))
        faults.fail(method, code, at=at, suffixes=suffixes)
        if not faults_at_opening(opening, faults):
            break
        run = Run(opening, faults, Model())
        assert all(map(run.call, SCRIPT[:3]))
        run.broker.close()
        run.settle(opening)
    assert at > 1 or kind in ("truncate", "write to the log")


def faults_at_opening(opening: Opening, faults: Faults) -> bool:
    """Open and close a broker. Returns whether the disk has failed."""
    try:
        opening.broker().close()
    except BrokerError as error:
        assert "Hint:" in str(error)  # noqa: PT017 - whether there is an error is not known
    return faults.happened > 0


def test_publishers_that_share_a_commit_share_its_failure(tmp_path: Path, faults: Faults) -> None:
    """The disk fails when a subscription begins, which the first call of the line lets happen. Others wait behind it."""
    opening = Opening(tmp_path / "broker")
    with opening.broker() as broker:
        broker.subscribe("ann", "later", "price > 1", valid_from=moment(5))
    tables = Tables(str(opening.path / TABLES))
    state = open_state(tables, None, lambda: START + timedelta(seconds=10), LIMITS, read_only=False).state
    together = 4

    @contextmanager
    def writing() -> Iterator[None]:
        """All four calls are in the line before the first one has its turn."""
        while line.waiting < together:
            time.sleep(0)
        yield

    line = Line(state, Retention, writing)
    offers = [[Offer([{"price": price}], [None], [None], None) for price in range(4)] for _ in range(2)]
    faults.fail("write", fault.FULL, at=1)
    with ThreadPoolExecutor(4) as pool:
        for call in [pool.submit(line.publish, offer) for offer in offers[0]]:
            with pytest.raises(BrokerError, match="Hint: the disk is full"):
                call.result()
    together = 1
    assert [line.publish(offer)[0].sequence for offer in offers[1]] == [1, 2, 3, 4]
    tables.close()
    opening.now = 10
    with opening.broker() as broker:
        assert [note.event for note in broker.notifications("ann")] == [{"price": 2}, {"price": 3}]
