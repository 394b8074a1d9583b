"""Plans of subscriptions with joins: the joins, what they need, what is skipped, and the order of phases."""

from __future__ import annotations

import threading
from typing import Any

import tamis
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store

AGAIN = "EXISTS (SELECT 1 FROM history h WHERE h.price = price)"
SEEN = "author = ANY (SELECT author FROM history)"


def matcher_with(**subscriptions: str) -> tamis.Matcher[Any]:
    matcher = matcher_over(new_store(history=tamis.History(rows=3), limits=StoreLimits(prefilter_from=0)))
    for name, text in subscriptions.items():
        matcher.add(name, text)
    return matcher


def test_a_plan_shows_joins_needs_and_phases() -> None:
    matcher = matcher_with(again=f"price < 10 AND {AGAIN}")
    matcher.match({"price": 12})
    plan = matcher.plan("again").history
    assert plan is not None
    assert plan.joins == (AGAIN,)
    assert plan.needs == (("some earlier event has price < 10", False),)
    assert (plan.is_skipped, plan.is_alone, plan.order) == (True, False, "constants first")
    assert set(plan.comparisons) == {"no index", "joins first", "constants first"}
    assert "skipped now" in str(matcher.plan("again"))
    matcher.match({"price": 5})
    plan = matcher.plan("again").history
    assert plan is not None
    assert (plan.needs[0][1], plan.is_skipped) == (True, False)
    written = matcher.plan("again").to_dict()["history"]
    assert written["needs"] == [{"need": "some earlier event has price < 10", "holds": True}]


def test_joins_alone_are_decided_for_every_event() -> None:
    matcher = matcher_with(seen=SEEN, both=f"price < 10 OR {SEEN}")
    plan = matcher.plan("seen")
    assert plan.note is not None
    assert plan.history is not None
    assert plan.history.is_alone
    assert "for every event" in str(plan)
    both = matcher.plan("both").history
    assert both is not None
    assert both.is_alone
    assert not both.is_skipped


def test_a_plan_without_joins_says_nothing_of_them() -> None:
    matcher = matcher_with(plain="price < 10")
    assert matcher.plan("plain").history is None
    assert "history" not in matcher.plan("plain").to_dict()
    assert matcher.stats()["history"]["skipped"] == 0


def test_each_need_in_words() -> None:
    needs = {
        f"price < 10 AND price >= 3 AND {AGAIN}": "some earlier event has price >= 3 and < 10",
        "price = 1 AND price < ALL (SELECT price FROM history)": "every earlier event has price > 1",
        "a = 'x' AND NOT EXISTS (SELECT 1 FROM history h WHERE h.a = a)": "no earlier event has a = 'x'",
        "b = 1 AND EXISTS (SELECT 1 FROM history h WHERE h.a = a)": "some earlier event has a with some value",
        "a = 'x' AND a <> ANY (SELECT a FROM history)": "some earlier event has a < 'x' or > 'x'",
    }
    matcher = matcher_with(**{str(number): text for number, text in enumerate(needs)})
    for number, said in enumerate(needs.values()):
        plan = matcher.plan(str(number)).history
        assert plan is not None
        assert [need for need, _ in plan.needs] == [said]


def test_plans_and_figures_beside_a_thread_that_matches() -> None:
    matcher = matcher_with(**{f"s{price}": f"price = {price} AND {AGAIN}" for price in range(20)})
    is_done = threading.Event()

    def match() -> None:
        price = 0
        while not is_done.is_set():
            matcher.match({"price": price % 20})
            price += 1

    thread = threading.Thread(target=match)
    thread.start()
    try:
        for number in range(100):
            plan = matcher.plan(f"s{number % 20}").history
            assert plan is not None
            assert plan.joins == (AGAIN,)
            assert 0 <= matcher.stats()["history"]["skipped"] <= 20
    finally:
        is_done.set()
        thread.join()
    matcher.match_batch([{"price": price} for price in (1, 2, 3)])
    assert matcher.stats()["history"]["skipped"] == 17
