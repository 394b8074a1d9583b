"""`device="gpu"` in every call that takes batches: the same matches, and clear errors."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis import CapabilityError, Matcher, OptionError
from tests.random_cases import RandomCases

Pairs = list[tuple[int, Any]]


def pairs(found: pa.Table) -> Pairs:
    return sorted(zip(*found.to_pydict().values(), strict=True))


def both(matcher: Matcher[Any], events: Any, **options: Any) -> Pairs:
    """What both devices find."""
    found = pairs(matcher.match_batch(events, **options))
    assert pairs(matcher.match_batch(events, device="gpu", **options)) == found
    return found


@pytest.mark.compiled
@pytest.mark.parametrize("seed", range(12))
def test_random_expressions_and_changes(seed: int, on_card: bool) -> None:
    cases = RandomCases(seed)
    matcher: Matcher[str] = Matcher()
    count = 2_000 if on_card else 120
    for number in range(count):
        matcher.add(f"s{number}", cases.expression())
    events = [cases.event() for _ in range(500 if on_card else 10)]
    assert both(matcher, events)
    matcher.optimize()
    assert both(matcher, events)
    for number in range(0, count, 3):
        matcher.remove(f"s{number}")
    matcher.add("new", "a > 0 OR b > 0")
    both(matcher, events)
    both(matcher, events, k=3, threads=2)


@pytest.fixture
def shop() -> Matcher[int]:
    matcher: Matcher[int] = Matcher()
    weights = list(range(60))
    matcher.add_many(range(60), [f"price < {n} AND item = {n % 5}" for n in range(60)], weights=weights)
    matcher.optimize()
    return matcher


EVENTS = pa.table({"price": [3.0, 40.0, None, 10.5], "item": [1, 2, 3, 4], "odd": [[1, 2], None, [3], []]})


@pytest.mark.compiled
def test_every_call_takes_a_device(shop: Matcher[int]) -> None:
    found = both(shop, EVENTS)
    assert found
    for device in ("gpu", "gpu:0"):
        assert pairs(shop.match_batch(EVENTS, k=1, device=device)) == pairs(shop.match_batch(EVENTS, k=1))
        assert np.array_equal(shop.count_batch(EVENTS, device=device), shop.count_batch(EVENTS))
        assert np.array_equal(shop.exists_batch(EVENTS, device=device), shop.exists_batch(EVENTS))
        parts = list(shop.match_iter([EVENTS, EVENTS], most=5, device=device))
        assert max(map(len, parts)) <= 5 or len(parts) > 1
        assert sum(map(len, parts)) == 2 * len(found)
        lines = b'{"price": 3, "item": 1}\n{"price": 40, "item": [2, 3]}\n'
        assert pairs(shop.match_json_batch(lines, device=device)) == pairs(shop.match_json_batch(lines))


@pytest.mark.compiled
def test_a_matcher_may_have_a_device_of_its_own(shop: Matcher[int]) -> None:
    mine: Matcher[int] = Matcher(device="gpu", gpu_memory=1 << 30)
    mine.add_many(list(shop), [shop[id].expression for id in shop])
    mine.optimize()
    assert pairs(mine.match_batch(EVENTS)) == pairs(shop.match_batch(EVENTS))
    (card,) = mine.stats()["cards"]
    assert (card["device"], card["segments"], card["segments_elsewhere"]) == ("gpu:0", 1, 0)
    assert pairs(mine.match_batch(EVENTS, device="cpu")) == pairs(shop.match_batch(EVENTS))
    assert shop.stats()["cards"] == []


@pytest.mark.compiled
def test_a_loaded_matcher_may_have_a_device(shop: Matcher[int], tmp_path: Path) -> None:
    shop.save(tmp_path / "shop.tamis")
    loaded = tamis.load(tmp_path / "shop.tamis", device="gpu", gpu_memory=1 << 30)
    assert pairs(loaded.match_batch(EVENTS)) == pairs(shop.match_batch(EVENTS))
    assert [card["most_bytes"] for card in loaded.stats()["cards"]] == [1 << 30]
    with pytest.raises(OptionError, match="device must be"):
        tamis.load(tmp_path / "shop.tamis", device="tpu")


@pytest.mark.compiled
def test_names_of_several_segments_and_of_a_delta() -> None:
    matcher: Matcher[str] = Matcher()
    for part in range(3):
        matcher.add_many([f"{part}-{n}" for n in range(50)], [f"a > {n} AND b = {part}" for n in range(50)])
        matcher.optimize() if part == 0 else None
    events = [{"a": a, "b": b} for a in (3, 20) for b in range(3)]
    assert {each[1][0] for each in both(matcher, events)} == {"0", "1", "2"}


@pytest.mark.compiled
@pytest.mark.parametrize("k", [1, 3, 7, 100])
def test_the_heaviest_matches_come_in_the_same_order(k: int) -> None:
    matcher: Matcher[int] = Matcher()
    for part in range(2):
        ids = range(100 * part, 100 * part + 40)
        matcher.add_many(ids, [f"a > {n % 40}" for n in ids], weights=[n * 7 % 5 - 2 for n in ids])
        if part == 0:
            matcher.optimize()
    events = pa.table({"a": [0, 1, 20, 39, 50]})
    for _ in range(2):
        found = matcher.match_batch(events, k=k, device="gpu", threads=1)
        assert found.to_pydict() == matcher.match_batch(events, k=k, threads=1).to_pydict()
        matcher.remove_many([id for id in matcher if id % 5 == 3])


@pytest.mark.compiled
def test_removed_subscriptions_are_left_out_on_the_card(shop: Matcher[int]) -> None:
    before = both(shop, EVENTS)
    shop.remove_many([id for id in range(60) if id % 3])
    assert {id for _, id in both(shop, EVENTS)} == {id for _, id in before if id % 3 == 0}


@pytest.mark.compiled
def test_subscriptions_that_are_not_in_a_segment_see_what_waits(shop: Matcher[int]) -> None:
    shop.add(99, "price > 10 AND size > 3")
    table = pa.table({"price": [3.0, 40.0, None, 10.5], "item": [1, 2, 3, 4], "size": [9, 9, 9, 1]})
    assert (1, 99) in both(shop, table)


@pytest.mark.compiled
def test_shared_rows_and_programs_in_a_table() -> None:
    matcher: Matcher[int] = Matcher()
    matcher.add_many(range(40), [f"a > {n % 4} AND b = {n % 3}" for n in range(40)])
    table = pa.table({"a": [0, 1, 2, 9], "b": [0, 1, 2, 0]})
    matcher.optimize()
    both(matcher, table)
    trees = " AND ".join(f"(a = {n} OR b > {n} OR a < {n - 9} AND b < {n})" for n in range(9))
    matcher.add_many(range(40, 44), [trees, f"NOT ({trees})", f"a > 3 AND NOT ({trees})", trees])
    matcher.optimize()
    found = {id for _, id in both(matcher, table)}
    assert min(found) < 40 <= max(found)


@pytest.mark.compiled
def test_results_outlive_the_next_batch(shop: Matcher[int]) -> None:
    first = shop.match_batch(EVENTS, device="gpu")
    before = first.to_pydict()
    for _ in range(3):
        shop.match_batch(EVENTS.slice(1), device="gpu")
    assert first.to_pydict() == before


@pytest.mark.compiled
def test_a_history_decides_joins_of_what_a_card_finds() -> None:
    made = [Matcher(history=tamis.History(rows=10)) for _ in range(2)]
    for matcher in made:
        matcher.add("drop", "price < ALL (SELECT price FROM history) AND item = 1")
        matcher.optimize()
    events = [{"price": price, "item": 1} for price in (5, 4, 6, 3)]
    assert pairs(made[0].match_batch(events)) == pairs(made[1].match_batch(events, device="gpu"))


@pytest.mark.parametrize("device", ["tpu", "GPU", "gpu:", "gpu:-1", "gpu:one", 0, True])
def test_wrong_devices(device: Any, shop: Matcher[int]) -> None:
    with pytest.raises(OptionError, match="device must be 'cpu', 'gpu'"):
        shop.match_batch(EVENTS, device=device)


@pytest.mark.compiled
def test_a_card_that_is_not_there(shop: Matcher[int]) -> None:
    with pytest.raises(OptionError, match="this machine has no device 'gpu:99'"):
        shop.match_batch(EVENTS, device="gpu:99")


def test_an_index_of_the_papers_has_no_card() -> None:
    with pytest.raises(CapabilityError, match="cannot match on a GPU"):
        Matcher("counting", device="gpu")


def test_without_numba_cuda(monkeypatch: pytest.MonkeyPatch, shop: Matcher[int]) -> None:
    from tamis.gpu import card, toolkit

    card.card_of.cache_clear()
    monkeypatch.setitem(importlib.import_module("sys").modules, "numba_cuda", None)
    with pytest.raises(CapabilityError, match=r"needs numba-cuda .* Hint: pip install 'tamis\[gpu\]'"):
        shop.match_batch(EVENTS, device="gpu")
    assert tamis.gpu.devices() == []
    monkeypatch.undo()
    assert toolkit.cuda_library() is not None
    assert len(tamis.gpu.devices()) == 1


def test_without_a_card(monkeypatch: pytest.MonkeyPatch, shop: Matcher[int]) -> None:
    from tamis.gpu import card, toolkit

    cuda = toolkit.cuda_library()
    card.card_of.cache_clear()
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(CapabilityError, match="no NVIDIA GPU that can be used"):
        Matcher(device="gpu")
    monkeypatch.setattr(
        cuda, "cuda_error", lambda: "Error at driver init:\n\nCUDA driver library cannot be found.\n:", raising=False
    )
    with pytest.raises(CapabilityError, match=r"driver library cannot be found\. Hint: install NVIDIA's driver"):
        Matcher(device="gpu")
