"""What an index declares is held against what it is asked."""

from __future__ import annotations

import pytest

import tamis
from tamis.encoding.events import has_several
from tamis.index import registry
from tamis.index.interface import Capabilities
from tamis.index.scan import Scan
from tests.index.naive import Event, batch_of


class Modest(Scan):
    """An index that matches plain scalars only."""

    name = "modest"
    capabilities = Capabilities(several_values=False, interval_values=False)


@pytest.fixture
def modest(monkeypatch: pytest.MonkeyPatch) -> tamis.Matcher:
    monkeypatch.setitem(registry._INDEXES, "modest", Modest)
    matcher = tamis.Matcher(index="modest")
    matcher.add_many(range(3), ["a = 1", "b > 2", "s LIKE '%x%'"])
    return matcher


def test_what_an_index_cannot_do_is_refused(modest: tamis.Matcher) -> None:
    assert modest.match({"a": 1, "b": 3}) == [0, 1]
    with pytest.raises(tamis.CapabilityError, match="'modest' cannot match events with an Interval"):
        modest.match({"a": tamis.Interval(1, 2)})
    with pytest.raises(tamis.CapabilityError, match="'modest' cannot match events with several values"):
        modest.match_batch([{"a": 1}, {"a": [1, 2]}])
    with pytest.raises(tamis.CapabilityError, match="several patterns"):
        modest.match({"s": "x"})


def test_capabilities_are_listed() -> None:
    everything = {"dynamic": True, "several_values": True, "interval_values": True}
    assert tamis.indexes()["scan"].to_dict() == everything
    assert tamis.indexes()["engine"].to_dict() == everything


def test_the_engine_is_what_auto_means() -> None:
    assert registry.find_index("auto") is None
    assert registry.find_index("engine") is None
    assert tamis.Matcher().stats()["index"] == tamis.Matcher(index="engine").stats()["index"] == "engine"
    assert "segments" in registry.summary_of("engine")
    assert registry.summary_of("scan") == Scan.summary


@pytest.mark.parametrize(
    ("events", "several"),
    [
        ([], False),
        ([{}], False),
        ([{0: [(1, 1)]}, {0: [(2, 2)]}], False),
        ([{0: [(1, 1)]}, {}, {0: [(2, 2)]}], False),
        ([{}, {0: [(1, 1)]}, {0: [(2, 2)]}, {}], False),
        ([{0: [(1, 1)], 1: [(1, 1)]}], False),
        ([{0: [(1, 1), (2, 2)]}], True),
        ([{0: [(1, 1)]}, {0: [(1, 1), (2, 2)]}], True),
        ([{1: [(1, 1)], 0: [(1, 1), (2, 2)]}, {}], True),
    ],
)
def test_several_keys_in_one_dimension(events: list[Event], several: bool) -> None:
    assert has_several(batch_of(events)) is several
