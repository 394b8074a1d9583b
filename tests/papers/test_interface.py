"""Calls are checked against what an index declares."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

import tamis
from tamis.encoding.events.event_batch import has_several
from tamis.papers import registry
from tamis.papers.interface import Capabilities
from tamis.papers.options import Options, option
from tamis.papers.scan import Scan
from tests.papers.naive import Event, batch_of


class Modest(Scan):
    """An index that can match only plain scalars."""

    name = "modest"
    capabilities = Capabilities(several_values=False, interval_values=False)


@pytest.fixture
def modest(monkeypatch: pytest.MonkeyPatch) -> tamis.Matcher:
    monkeypatch.setitem(registry.INDEXES, "modest", Modest)
    matcher = tamis.Matcher(index="modest")
    matcher.add_many(range(3), ["a = 1", "b > 2", "s LIKE '%x%'"])
    return matcher


def test_calls_that_an_index_does_not_support_are_refused(modest: tamis.Matcher) -> None:
    assert modest.match({"a": 1, "b": 3}) == [0, 1]
    with pytest.raises(tamis.CapabilityError, match="'modest' cannot match events with an Interval"):
        modest.match({"a": tamis.Interval(1, 2)})
    with pytest.raises(tamis.CapabilityError, match="'modest' cannot match events with several values"):
        modest.match_batch([{"a": 1}, {"a": [1, 2]}])
    with pytest.raises(tamis.CapabilityError, match="several patterns"):
        modest.match({"s": "x"})


def test_capabilities_are_listed() -> None:
    everything = {"dynamic": True, "several_values": True, "interval_values": True, "every_predicate": True}
    assert tamis.indexes()["scan"].to_dict() == everything
    assert tamis.indexes()["engine"].to_dict() == everything


def test_options_are_checked() -> None:
    with pytest.raises(tamis.OptionError, match="the index 'scan' has no option 'max_cap'; it has none"):
        tamis.Matcher(index="scan", options={"max_cap": 3})
    with pytest.raises(tamis.OptionError, match=r"options must be a mapping of names to values, not \['max_cap'\]"):
        tamis.Matcher(index="be-tree", options=["max_cap"])  # type: ignore[arg-type]
    with pytest.raises(tamis.OptionError, match="the index 'auto' has no option 'a'; it has none"):
        tamis.Matcher(options={"a": 3})
    assert Some.read({"size": 3, "rate": 1, "way": "b", "limit": None}, "x") == Some(
        size=3, rate=1, way="b", limit=None
    )
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"sise": 3}, "no option 'sise'; did you mean 'size'?; it has: size, rate, on, way, limit"),
        ({"size": 0}, "'size' of the index 'x' must be a whole number of at least 1, not 0"),
        ({"size": True}, "a whole number of at least 1, not True"),
        ({"rate": "a"}, "'rate' of the index 'x' must be a number, not 'a'"),
        ({"on": 1}, "'on' of the index 'x' must be True or False, not 1"),
        ({"way": "c"}, "'way' of the index 'x' must be one of 'a', 'b', not 'c'"),
        ({"limit": "x"}, "'limit' of the index 'x' must be a whole number of at least 0 or None, not 'x'"),
    ]
    for given, message in wrong:
        with pytest.raises(tamis.OptionError, match=re.escape(message)):
            Some.read(given, "x")


@dataclass(frozen=True, slots=True)
class Some(Options):
    size: int = option(1, least=1)
    rate: float = option(0.5)
    on: bool = option(True)
    way: str = option("a", choices=("a", "b"))
    limit: int | None = option(None, least=0, nothing=True)


def test_auto_means_the_engine() -> None:
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


@pytest.mark.parametrize(
    ("index", "options", "message"),
    [
        ("be-tree", {"domain_lo": 2**70}, "a whole number of at most 9,007,199,254,740,992"),
        ("be-tree", {"domain_lo": 5, "domain_hi": 4}, "'domain_lo', 5, is above 'domain_hi', 4"),
        ("be-tree", {"min_size": 2**40}, "a whole number of at most 1,048,576"),
        ("pst-bloom", {"most_leaves": 2**70}, "a whole number of at most 2,147,483,647"),
        ("k-index", {"max_values": 2**70}, "a whole number of at most"),
        ("k-index", {"domain": (0, 2**70)}, "two whole numbers, the lower one first"),
        ("hybrid-index", {"min_cluster_size": 2**70}, "a whole number of at most"),
        ("counting", {"method": "key", "lowest": 10, "highest": 5}, "'lowest', 10, is above 'highest', 5"),
        ("counting", {"method": "tree", "highest": 20_000_000}, "the SIFT methods enumerate at most 1,000,000 values"),
    ],
)
def test_numbers_that_are_too_large_are_refused(index: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tamis.OptionError, match=re.escape(message)):
        tamis.Matcher(index=index, options=options)
