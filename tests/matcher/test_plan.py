"""How events find subscriptions, and how plans depend on past events."""

from __future__ import annotations

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import tamis
from tests.random_cases import RandomCases


def optimized(*texts: str, events: list[dict[str, object]] | None = None) -> tamis.Matcher:
    matcher = tamis.Matcher()
    matcher.observe(events or [])
    matcher.add_many(range(len(texts)), texts)
    matcher.optimize()
    return matcher


def rarely(name: str, other: str) -> list[dict[str, object]]:
    return [{name: i % 100, other: 1} for i in range(1000)]


@pytest.mark.parametrize(("rare", "often"), [("x", "y"), ("y", "x")])
def test_the_rarest_value_is_the_access_predicate(rare: str, often: str) -> None:
    matcher = optimized("x = 1 AND y = 1", events=rarely(rare, often))
    (clause,) = matcher.plan(0).clauses
    assert (clause.access, clause.filter, clause.rest) == (f"{rare} = 1", f"{often} = 1", ())
    assert clause.probability == pytest.approx(0.01, abs=0.01)
    assert clause.filter_probability > 0.9


def test_tables_are_observed_too() -> None:
    matcher = tamis.Matcher()
    matcher.observe(pa.Table.from_pylist(rarely("x", "y")))
    matcher.add("a", "x = 1 AND y = 1")
    matcher.optimize()
    assert matcher.plan("a").clauses[0].access == "x = 1"


def test_strings_observed_before_a_predicate_used_an_attribute() -> None:
    events: list[dict[str, object]] = [{"genre": "crime" if i % 50 else "poetry"} for i in range(1000)]
    matcher = optimized("genre = 'poetry'", "genre = 'crime'", events=events)
    assert matcher.plan(0).clauses[0].probability == pytest.approx(0.02, abs=0.01)
    assert matcher.plan(1).clauses[0].probability == pytest.approx(0.98, abs=0.01)


def test_a_plan_in_words() -> None:
    events: list[dict[str, object]] = [{"genre": f"g{i % 50}", "price": i % 60, "n": 1, "m": 1} for i in range(2000)]
    others = [f"genre = 'g{i % 50}' AND price < {i % 60} AND n = 1 AND m = 1" for i in range(1000)]
    matcher = optimized("genre = 'g7' AND price BETWEEN 20 AND 40 AND n = 1 AND m = 1", *others, events=events)
    plan = matcher.plan(0)
    assert str(plan) == (
        "found by genre = 'g7' (a list of 7 entries, met by 2 % of events), filtered by price BETWEEN 20 AND 40 (35 %), "
        f"then 2 more predicates; expected cost {plan.cost:.2g} ns per event"
    )
    told = json.loads(json.dumps(plan.to_dict()))
    assert told["subscription"] == 0
    assert told["cost"] == plan.cost
    assert told["clauses"][0]["rest"] == ["n = 1", "m = 1"]


def test_one_line_per_clause() -> None:
    lines = str(optimized("a = 1 OR (b = 2 AND c = 3)").plan(0)).splitlines()
    assert len(lines) == 2
    assert all(line.startswith("found by ") for line in lines)


def test_trees_have_a_necessary_condition() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 2 OR c{i} = 3 OR d{i} = 4)" for i in range(6))
    plan = optimized(text).plan(0)
    assert len(plan.clauses) == 64
    assert all(clause.is_necessary for clause in plan.clauses)
    assert "then the whole expression, of which this is a necessary condition" in str(plan)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a IS NULL", "it asks only for attributes to be missing"),
        ("TRUE", "it asks for nothing"),
        ("a > -1", "none of its predicates is rare enough to be worth a list"),
    ],
)
def test_the_reason_why_every_event_visits_a_clause(text: str, why: str) -> None:
    plan = optimized(text, *(f"a = {i}" for i in range(40))).plan(0)
    assert plan.clauses[0].way == "always"
    assert f"in the list that every event goes through (1 entry), since {why}" in str(plan)


def test_subscriptions_without_an_access_path() -> None:
    matcher = tamis.Matcher()
    matcher.add_many(["new", "never"], ["a = 1", "FALSE"])
    assert str(matcher.plan("new")).startswith("not indexed yet")
    assert str(matcher.plan("never")) == "not indexed: no event can satisfy it"
    assert matcher.plan("new").cost is None
    matcher.optimize()
    assert str(matcher.plan("new")).startswith("found by a = 1")


def test_ways() -> None:
    events: list[dict[str, object]] = [{"price": i % 1000, "tag": "t", "k": 50} for i in range(2000)]
    texts = [f"price {sign} {i} AND k <> {j}" for sign in "<>" for i in range(0, 1000, 14) for j in range(10)]
    texts += ["tag <> 'x'", "price IS NOT NULL", "price IN (1, 5, 9)"]
    matcher = optimized(*texts, events=events)
    ways = {text: matcher.plan(i).clauses[0].way for i, text in enumerate(texts)}
    assert ways["price IN (1, 5, 9)"] == "value"
    assert {"value", "bound"} <= set(ways.values())


def test_wide_dimensions() -> None:
    random_ = random.Random(0)
    numbers = [random_.randrange(10**9) for _ in range(3000)]
    texts = [f"n = {number}" if i % 3 else f"n < {number} AND k = {i % 9}" for i, number in enumerate(numbers)]
    matcher = optimized(*texts, events=[{"n": n, "k": n % 7} for n in numbers])
    assert matcher.plan(1).clauses[0].access == f"n = {numbers[1]}"
    assert matcher.plan(1).clauses[0].entries >= 1
    for number in range(0, 3000, 100):
        plan = matcher.plan(number)
        told = [plan.clauses[0].access, plan.clauses[0].filter, *plan.clauses[0].rest]
        assert any(f"{numbers[number]}" in str(text) for text in told)


@pytest.mark.parametrize("seed", range(3))
def test_random_subscriptions_all_have_plans(seed: int) -> None:
    cases = RandomCases(seed)
    expressions = [cases.expression() for _ in range(150)]
    matcher = tamis.Matcher()
    matcher.observe([cases.event() for _ in range(50)])
    matcher.add_many(range(150), expressions)
    matcher.optimize()
    for number in range(150):
        plan = matcher.plan(number)
        assert str(plan)
        for clause in plan.clauses:
            assert clause.entries >= 1
            assert 0 <= clause.probability <= 1.5
            assert clause.cost >= 0


def test_plans_are_the_plans_of_the_segment() -> None:
    """The lists in a plan contain the conjunction. The sum of their sizes is the number of entries of the segment."""
    matcher = tamis.Matcher()
    texts = [f"a{i} = {i} AND b > {i}" for i in range(50)]
    matcher.add_many(range(50), texts)
    matcher.optimize()
    assert all(matcher.plan(i).clauses[0].entries == 1 for i in range(50))
    assert matcher.stats()["index_stats"]["segments"][0]["entries"] == 50


def test_wrong_ids_and_events() -> None:
    matcher = optimized("a = 1")
    with pytest.raises(tamis.UnknownIdError):
        matcher.plan(7)
    with pytest.raises(tamis.TamisError):
        matcher.plan([])  # type: ignore[arg-type]
    with pytest.raises(tamis.EventError):
        matcher.observe({"a": 1})
    with pytest.raises(tamis.EventError):
        matcher.observe([{"a": object()}])
    with pytest.raises(tamis.TamisError):
        matcher.observe(pa.table({"a": [b"x"]}))
    strict = tamis.Matcher(schema={"a": "number"})
    for events in ([{"a": "x"}], pa.table({"a": ["x"]})):
        with pytest.raises(tamis.TamisError):
            strict.observe(events)
    assert matcher.stats()["index_stats"]["sample"] == 0


def test_an_index_without_plans_says_so() -> None:
    matcher = tamis.Matcher(index="scan")
    matcher.add("a", "x = 1")
    matcher.observe([{"x": 1}])
    matcher.optimize()
    assert str(matcher.plan("a")) == "by the index 'scan': looks at every conjunction; no structure, no surprises"


def test_a_plan_is_shorter_with_a_schema() -> None:
    matcher = tamis.Matcher(schema={"a": "number"})
    matcher.add("x", "a <> 3")
    matcher.optimize()
    assert "a <> 3" in str(matcher.plan("x"))


def test_removed_and_replaced() -> None:
    matcher = optimized("a = 1", "b = 2")
    matcher.replace(0, "c = 3")
    assert str(matcher.plan(0)).startswith("not indexed yet")
    matcher.remove(1)
    with pytest.raises(tamis.UnknownIdError):
        matcher.plan(1)
    matcher.optimize()
    assert matcher.plan(0).clauses[0].access == "c = 3"


def test_threads_match_while_others_observe_and_optimize() -> None:
    matcher = optimized(*(f"a = {i % 10} AND s = 'v{i % 7}'" for i in range(1500)))
    expected = sorted(i for i in range(1500) if i % 10 == 3 and i % 7 == 2)
    table = pa.table({"a": [3] * 50, "s": ["v2"] * 50})

    def work(number: int) -> None:
        for turn in range(10):
            if number == 0:
                matcher.optimize()
                matcher.observe([{"a": turn, "s": f"w{turn}"}])
            elif number == 1:
                matcher.add(10_000 + turn, f"s = 'w{turn}'")
                matcher.plan(turn)
            elif number == 2:
                assert matcher.count_batch(table, threads=1).tolist() == [len(expected)] * 50
            else:
                assert sorted(matcher.match({"a": 3, "s": "v2"})) == expected

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
