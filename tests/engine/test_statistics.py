"""What the planner expects of events, what events really cost, and what happens if the two differ."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.engine.watch import FEWEST_EVENTS, PATIENCE, Watch
from tamis.matcher.engine_store import EngineStore
from tamis.matcher.matcher import matcher_over

SUBSCRIPTIONS = 4200  # a segment
VALUES = 20


def stream(often: str, seldom: str, count: int, seed: int = 0) -> pa.Table:
    """Events whose value of one attribute is often named by subscriptions, and whose value of the other attribute seldom."""
    random = np.random.default_rng(seed)
    return pa.table({often: random.integers(0, VALUES, count), seldom: random.integers(0, 50 * VALUES, count)})


def matcher_for(events: pa.Table | None, store: EngineStore | None = None) -> tamis.Matcher:
    matcher = matcher_over(EngineStore() if store is None else store)
    if events is not None:
        matcher.observe(events)
    texts = [f"x = {i % VALUES} AND y = {i // 7 % VALUES} AND z{i} IS NULL" for i in range(SUBSCRIPTIONS)]
    matcher.add_many(range(SUBSCRIPTIONS), texts)
    return matcher


def candidates(matcher: tamis.Matcher, events: pa.Table) -> float:
    before = matcher.stats()["candidates"]
    matcher.match_batch(events, threads=1)
    return float(matcher.stats()["candidates"] - before) / len(events)


def test_observed_entries_are_the_expected_ones() -> None:
    matcher = matcher_for(stream("x", "y", 5000))
    seen = candidates(matcher, stream("x", "y", 2000, seed=1))
    stats = matcher.stats()["index_stats"]
    assert stats["observed"] == pytest.approx(seen)
    assert stats["expected"] == pytest.approx(seen, rel=0.6)
    assert stats["drift"] == pytest.approx(stats["observed"] / stats["expected"])
    assert [part["observed_events"] for part in stats["segments"]] == [2000]


def test_a_stream_that_changes_costs_more_until_it_is_optimized() -> None:
    matcher = matcher_for(stream("x", "y", 5000))
    before = candidates(matcher, stream("x", "y", 500, seed=1))
    changed = stream("y", "x", 500, seed=2)
    drifted = candidates(matcher, changed)
    expected = matcher.match_batch(changed)
    assert drifted > 10 * before
    for seed in range(3, 6):
        matcher.observe(stream("y", "x", 5000, seed=seed))
    matcher.optimize()
    assert candidates(matcher, changed) < 3 * before
    assert sorted(map(str, matcher.match_batch(changed).to_pylist())) == sorted(map(str, expected.to_pylist()))


def test_a_segment_with_drift_is_planned_again_in_the_background() -> None:
    store = EngineStore()
    matcher, engine = matcher_for(stream("x", "y", 5000), store), store.engine
    changed = stream("y", "x", FEWEST_EVENTS - 1, seed=2)
    drifted = candidates(matcher, changed)
    engine.wait()
    assert engine.replans == 0
    matcher.observe(stream("y", "x", 5000, seed=3))
    matcher.match_batch(stream("y", "x", 2000, seed=4))
    engine.wait()
    assert engine.replans == 1
    assert engine.version.segments[0].watch.needed == PATIENCE * FEWEST_EVENTS
    assert candidates(matcher, changed) < drifted / 10
    assert matcher.stats()["index_stats"]["replans"] == 1


def test_events_that_keep_to_the_plan_cause_no_new_plan() -> None:
    store = EngineStore()
    matcher, engine = matcher_for(stream("x", "y", 5000), store), store.engine
    for seed in range(5):
        matcher.match_batch(stream("x", "y", 2 * FEWEST_EVENTS, seed=seed))
    engine.wait()
    assert engine.replans == engine.merges == 0


def test_matched_events_are_sampled() -> None:
    matcher = matcher_for(None)
    matcher.match({"x": 1})
    assert matcher.stats()["index_stats"]["sample"] == 1
    matcher.match_batch([{"x": 1}, {"x": 2}])
    assert matcher.stats()["index_stats"]["sample"] == 3
    candidates(matcher, stream("x", "y", 5000))
    assert 100 < matcher.stats()["index_stats"]["sample"] <= 3 + 256


def test_the_sample_keeps_events_as_they_were_matched() -> None:
    matcher = tamis.Matcher()
    event = {"x": [1]}
    matcher.match(event)
    event["x"].append(2)
    matcher.add("a", "x = 2")
    matcher.optimize()
    assert matcher.plan("a").clauses[0].probability < 0.3


def test_work_without_a_match_is_counted() -> None:
    matcher = matcher_for(None)
    matcher.add(-1, "x = 1 AND w = 2")
    assert matcher.match({"x": 1, "y": 0, **{f"z{number}": 0 for number in range(SUBSCRIPTIONS)}}) == []
    assert matcher.stats()["candidates"] > 10


def test_the_watch_forgets_slowly() -> None:
    watch = Watch(10.0)
    assert (watch.observed, watch.drift, watch.is_due()) == (None, None, False)
    watch.add(1_000_000, 10_000_000)
    for _ in range(20):
        assert not watch.is_due()
    assert watch.events <= 4 * FEWEST_EVENTS
    for _ in range(4 * FEWEST_EVENTS):
        watch.add(1, 100)
    assert watch.is_due()
    assert watch.drift == watch.entries / watch.events / 10


def test_a_few_more_entries_are_not_drift() -> None:
    watch = Watch(0.01)
    watch.add(100_000, 1_000_000)
    assert not watch.is_due()


@pytest.mark.parametrize("values", [150, 1000])
def test_frequent_values_of_a_wide_dimension_keep_their_likelihood(values: int) -> None:
    """Codes tell more than 126 values apart. The number of different values is not the number of times that they are named."""
    random = np.random.default_rng(1)
    matcher = tamis.Matcher()
    drawn = {"category": values, "brand": 20, "price": 20_000}
    matcher.observe(pa.table({name: random.integers(0, most, 4000) for name, most in drawn.items()}))
    texts = [f"category = {i % values} AND brand = {i // values % 20} AND price < {i}" for i in range(20_000)]
    matcher.add_many(range(len(texts)), texts)
    found = [matcher.plan(number).clauses[0] for number in range(2999, 20_000, 1999)]
    assert all(clause.access is not None and clause.access.startswith("category") for clause in found)
    likely = [clause.probability * values for clause in found]
    assert 0.2 < np.median(likely) < 5
