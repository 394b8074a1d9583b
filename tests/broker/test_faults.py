"""Writes, syncs and the disk fail underneath SQLite, one call after another.

A failed call raises an error that says what to do. The broker then shows the state before the call, and goes on when the disk
does. A process that is killed leaves the state before the call or after it, never a part.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count, product
from pathlib import Path

import pytest

from tamis.broker import Broker
from tamis.errors import BrokerError
from tests.broker import faults as fault
from tests.broker.faults import Faults, Method
from tests.broker.model import Model
from tests.broker.script import SCRIPT, Opening, Step, at_time, expected, moment, shown, stored_events

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


@pytest.mark.parametrize("method", CODES)
def test_a_failed_call_has_not_happened_and_can_be_made_again(
    tmp_path: Path, faults: Faults, method: Method, soak: bool
) -> None:
    """For each call of the script: its first write fails, its second one, and so on."""
    opening, model, failures = Opening(tmp_path / "broker"), Model(), 0
    # The disk fails once, or until it is mended. A short run takes these by turns.
    ways = list(product(CODES[method], (False, True)))
    with opening.broker() as broker:
        for place, step in enumerate(SCRIPT):
            for at in count(1):
                for code, is_lasting in ways if soak else [ways[(place + at) % len(ways)]]:
                    run = Run(opening.copied(), faults, model)
                    faults.fail(method, code, at=at, is_lasting=is_lasting)
                    has_failed = fail_and_go_on(run, step, is_lasting)
                    assert run.call([*SCRIPT, CLOSE][place + 1])
                    run.broker.close()
                    run.settle(run.opening)
                if not has_failed:
                    break
                failures += 1
            opening.now = step.at
            step.broker(broker)
            model = step.applied(model)
    assert failures >= len(SCRIPT) // 2


def fail_and_go_on(run: Run, step: Step, is_lasting: bool) -> bool:
    """Make a call until it happens. Returns whether the disk has failed."""
    has_happened = run.call(step)
    if not has_happened and is_lasting:
        assert not run.call(step)
    has_failed = run.faults.happened > 0
    run.faults.mend()
    assert has_happened or run.call(step)
    return has_failed


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_lasting", [False, True], ids=["once", "from then on"])
def test_the_disk_fails_while_a_broker_is_closed(tmp_path: Path, faults: Faults, kind: str, is_lasting: bool) -> None:
    """SQLite copies its log to the tables then. If that fails, the log stays, with all that was acknowledged."""
    method, code, suffixes = KINDS[kind]
    opening, model = Opening(tmp_path / "broker"), Model()
    opening.log_pages = 1000
    with opening.broker() as broker:
        for step in SCRIPT:
            opening.now = step.at
            step.broker(broker)
            model = step.applied(model)
        for at in count(1):
            run = Run(opening.copied(), faults, model)
            faults.fail(method, code, at=at, suffixes=suffixes, is_lasting=is_lasting)
            run.broker.close()
            run.settle(run.opening)
            if not faults.happened:
                break
    assert at > 1 or kind == "write to the log"


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
    broker = opening.broker()
    broker.subscribe("ann", "later", "price > 1", valid_from=moment(5))
    opening.now = 10
    faults.fail("write", fault.FULL, at=1)
    with ThreadPoolExecutor(4) as pool:
        with broker._lock:  # All four calls are in the line before the first one has its turn.
            calls = [pool.submit(broker.publish, {"price": price}) for price in range(4)]
            while len(broker._line._waiting) < 4:
                time.sleep(0)
        for call in calls:
            with pytest.raises(BrokerError, match="Hint: the disk is full"):
                call.result()
    assert [broker.publish({"price": price}).sequence for price in range(4)] == [1, 2, 3, 4]
    assert [note.event for note in broker.notifications("ann")] == [{"price": 2}, {"price": 3}]
    broker.close()
