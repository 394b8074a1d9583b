"""The plan of a cluster: the arithmetic, and that the page has what the result files give."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from benchmarks.cluster_plan import BEGIN, END, Demand, Measured, measured, planned, to_section
from benchmarks.markdown import renewed
from tests.markdown import ROOT

RATES = Measured(
    match={10_000: 2e-6, 1_000_000: 10e-6},
    frame=40e-6,
    pair=1e-6,
    build=17e-6,
    build_memory=2 * 10**9,
    subscription_bytes=1000.0,
    matches=20.0,
    attributes=30.0,
)


def results() -> list[dict[str, Any]]:
    return [json.loads((ROOT / "docs" / "results" / f"{name}.json").read_text()) for name in ("engine", "spark")]


def test_the_arithmetic() -> None:
    plan = planned(RATES, Demand(cores=10, memory=500 * 10**9, busy=0.5))
    assert (plan.shards, plan.index_bytes, plan.groups, plan.group_bytes) == (1000, 1e12, 4, 0.25e12)
    assert plan.core_seconds == pytest.approx(1000 * 10e-6 + 4 * 40e-6 + 100 * 1e-6)
    assert plan.core_count == pytest.approx(20_520)
    assert (plan.replicas, plan.machines) == (513, 2052)
    assert plan.input_bytes == 1_000_000 * 31 * 8 * 4
    assert plan.output_bytes == 1_000_000 * 100 * 16


def test_the_traffic_of_caches() -> None:
    plan = planned(RATES, Demand(cores=10, memory=500 * 10**9, busy=0.5))
    assert plan.start_bytes == 2052 * 0.25e12
    # 60 of the million subscriptions of a shard change in a minute. A segment triples nine times until it has them all.
    assert plan.rewrites == pytest.approx(1 + 8.85 + 4, abs=0.01)
    assert plan.change_bytes == pytest.approx(1000 * plan.rewrites * 1000 / 4)
    once = planned(RATES, Demand(changes=10**9, update_seconds=1))
    assert once.rewrites == 5


def test_small_shards_cost_more_and_a_group_has_a_replica_at_least() -> None:
    assert planned(RATES, Demand(shard=10_000)).core_count > 15 * planned(RATES, Demand()).core_count
    small = planned(RATES, replace(Demand(), subscriptions=1_000_000, events=1))
    assert (small.groups, small.replicas) == (1, 2)


def test_what_was_measured_adds_up() -> None:
    """The model gives back the seconds of the job on Spark that it was made from."""
    engine, spark = results()
    rates, job = measured(engine, spark), spark["growth"][0]
    seconds = job["events"] * (rates.match[1_000_000] + rates.frame) + job["matches"] * rates.pair
    assert seconds == pytest.approx(job["match_seconds"] * spark["machine"]["cores"])


def test_the_page_is_renewed() -> None:
    page = (ROOT / "docs" / "spark.md").read_text()
    assert renewed(page, BEGIN, END, to_section(*results())) == page, (
        "python -m benchmarks.cluster_plan docs/results docs/spark.md"
    )
