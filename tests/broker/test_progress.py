"""Building the matcher from the tables takes long for many subscriptions, so users are told how far it is."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

import tamis
from tamis.broker.folder import TABLES
from tamis.broker.limits import BrokerLimits
from tamis.broker.moments import system_clock
from tamis.broker.opening import ProgressLine
from tamis.broker.queues import Queues
from tamis.broker.state import State
from tamis.broker.tables import Tables
from tamis.matcher.engine_store import EngineStore


def test_each_part_of_the_tables_is_told(tmp_path: Path) -> None:
    with tamis.open(tmp_path / "shop") as broker:
        for name in "abcdefgh":
            broker.subscribe("ann", name, "price > 0")
        broker.unsubscribe("ann", "b")
    limits = BrokerLimits(rows_at_once=3)
    tables = Tables(str(tmp_path / "shop" / TABLES), read_only=True)
    state = State(tables, system_clock, Queues(limits), EngineStore(None), limits)
    told: list[tuple[int, int]] = []
    state.load_matcher(lambda done, total: told.append((done, total)))
    assert told == [(3, 7), (6, 7), (7, 7)]
    assert len(state.matcher) == 7
    tables.close()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_line_says_how_many_are_built(
    is_terminal: bool,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    line = "building the matcher from the tables: 20,000 of 1,000,000 subscriptions"
    with caplog.at_level(logging.INFO, logger="tamis"):
        ProgressLine(after=0)(20_000, 1_000_000)
    assert caplog.messages == [line]
    assert capsys.readouterr().err == (f"tamis: {line}\n" if is_terminal else "")


def test_what_is_quick_needs_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tamis"):
        late, seldom = ProgressLine(after=3600), ProgressLine(after=0, every=3600)
        late(1, 2)
        seldom(1, 2)
        seldom(2, 2)
    assert len(caplog.messages) == 1
