"""Judges of claims, on curves made by hand."""

from __future__ import annotations

import pytest

from tamis.experiments.claims import (
    always_best,
    below,
    below_next,
    best,
    close,
    costs,
    fails,
    flatter,
    grow_alike,
    grows,
    lead,
    lead_grows,
    lowest_moves_up,
    order,
    settled,
    together,
    unclaimed,
    within,
    worst,
)
from tamis.experiments.figure import FIRST, MATCHING, Curves, Figure, Value, Verdict
from tamis.experiments.scales import SMOKE

CURVES = Curves(
    {
        "fast": [Value(1, 1.0), Value(10, 2.0)],
        "slow": [Value(1, 4.0), Value(10, 20.0)],
        "flat": [Value(1, 3.0), Value(10, 3.0)],
        "nearly": [Value(1, 1.05), Value(10, 2.15)],
        "dip": [Value(1, 1.0), Value(5, 9.0), Value(10, 1.0)],
        "bump": [Value(1, 9.0), Value(5, 1.0), Value(10, 9.0)],
        "gone": [Value(1, 5.0), Value(10, None, "takes more than 9 s")],
    }
)


@pytest.mark.parametrize(
    ("judge", "held"),
    [
        pytest.param(below("fast", "slow", 90), True, id="equal to the paper"),
        pytest.param(below("fast", "slow", 98), True, id="half of the lead, on a logarithmic scale"),
        pytest.param(below("fast", "slow", 99.1), False, id="less than half of the lead"),
        pytest.param(below("slow", "fast", 10), False, id="the other way round"),
        pytest.param(below("fast", "slow", 75, 1), True, id="at another place"),
        pytest.param(below("fast", "gone", 10), None, id="one failed"),
        pytest.param(lead("fast", "slow", 100), True, id="a lead of 10 for 100"),
        pytest.param(lead("fast", "slow", 101), False, id="a lead of 10 for 101"),
        pytest.param(order("fast", "flat", "slow"), True, id="order"),
        pytest.param(order("flat", "fast"), False, id="another order"),
        pytest.param(order("flat", "fast", place=3), None, id="order where nothing was measured"),
        pytest.param(best("fast", ["slow", "gone"]), True, id="best of those that there are"),
        pytest.param(best("flat", ["fast", "slow"]), False, id="not best"),
        pytest.param(best("gone", ["fast", "slow"]), None, id="best failed"),
        pytest.param(below_next("fast", ["fast", "flat", "slow"], 30), True, id="less than the next one"),
        pytest.param(below_next("fast", ["flat", "slow"], 60), False, id="not enough less than the next one"),
        pytest.param(below_next("fast", ["gone"], 60), None, id="there is no next one"),
        pytest.param(lead_grows("fast", "slow"), True, id="a lead of 4 grows to 10"),
        pytest.param(lead_grows("flat", "fast"), True, id="a lead may grow from behind"),
        pytest.param(lead_grows("slow", "fast"), False, id="a lead falls"),
        pytest.param(lead_grows("fast", "gone"), None, id="the lead over one that failed"),
        pytest.param(close("fast", "flat"), True, id="close"),
        pytest.param(close("flat", "fast", times=1.4), False, id="one and a half is not close"),
        pytest.param(close("slow", "fast"), False, id="far above is not close"),
        pytest.param(close("fast", "slow"), False, id="far below is not close"),
        pytest.param(costs("nearly", "fast"), True, id="costs less than a tenth"),
        pytest.param(costs("flat", "fast"), False, id="costs a half"),
        pytest.param(costs("fast", "slow"), True, id="costs nothing"),
        pytest.param(within("slow", 10.0), True, id="twice the paper's number"),
        pytest.param(within("slow", 9.9), False, id="more than twice the paper's number"),
        pytest.param(within("gone", 9.9), None, id="no number"),
        pytest.param(order("nearly", "fast"), True, id="nearly equal ones have no order"),
        pytest.param(best("nearly", ["fast", "slow"]), True, id="nearly the best"),
        pytest.param(best("fast", ["slow"], FIRST), True, id="best at the first place"),
        pytest.param(best("bump", ["fast"], FIRST), False, id="not best at the first place"),
        pytest.param(always_best("fast", ["slow", "flat"]), True, id="always best"),
        pytest.param(always_best("dip", ["bump"]), False, id="best at both ends only"),
        pytest.param(always_best("none", ["fast"]), None, id="always best, but not measured"),
        pytest.param(worst("slow", ["fast", "flat"]), True, id="worst"),
        pytest.param(worst("flat", ["slow"]), False, id="not worst"),
        pytest.param(worst("slow", ["gone"]), None, id="worst but for one that failed"),
        pytest.param(settled("dip", "bump", places=1), True, id="in order in the end"),
        pytest.param(settled("dip", "bump", places=3), True, id="in order by the median"),
        pytest.param(settled("fast", "nearly", places=1), False, id="nearly equal in the end"),
        pytest.param(settled("slow", "flat", places=2), False, id="not in order by the median"),
        pytest.param(settled("fast", "slow"), None, id="too few places for a median"),
        pytest.param(grow_alike("fast", "nearly"), True, id="grow alike"),
        pytest.param(grow_alike("fast", "slow"), False, id="grow differently"),
        pytest.param(grow_alike("fast", "nearly", least=2.5), False, id="grow alike, but not enough"),
        pytest.param(lowest_moves_up("dip", "bump"), True, id="the lowest place moves up"),
        pytest.param(lowest_moves_up("bump", "dip"), False, id="the lowest place moves down"),
        pytest.param(lowest_moves_up("dip", "dip"), False, id="the lowest place stays"),
        pytest.param(lowest_moves_up("dip", "gone"), None, id="a lowest place among failures"),
        pytest.param(flatter(("flat", "fast"), ("slow",)), True, id="two are flatter than one"),
        pytest.param(flatter(("flat", "slow"), ("fast", "slow")), False, id="one of two is steeper"),
        pytest.param(grows("dip", most=0.2, start=5), True, id="grows from a later place on"),
        pytest.param(grows("slow", least=5.0), True, id="grows"),
        pytest.param(grows("slow", most=4.9), False, id="grows too much"),
        pytest.param(grows("flat", most=1.0, least=1.0), True, id="flat"),
        pytest.param(grows("gone", most=2.0), None, id="one value does not show growth"),
        pytest.param(flatter("flat", "slow"), True, id="flatter"),
        pytest.param(flatter("slow", "fast"), False, id="steeper"),
        pytest.param(flatter("fast", "gone"), None, id="flatter than one that failed"),
        pytest.param(fails("gone"), True, id="fails"),
        pytest.param(fails("flat"), False, id="does not fail"),
        pytest.param(fails("other"), False, id="not measured is no failure"),
    ],
)
def test_claims_are_judged_by_what_was_measured(judge: object, held: bool | None) -> None:
    verdict = judge(CURVES)  # type: ignore[operator]
    assert verdict.held is held
    assert verdict.ours


def test_claims_together_hold_if_all_hold() -> None:
    true, false, unknown = best("fast", ["slow"]), best("slow", ["fast"]), best("gone", ["fast"])
    assert together(true, true)(CURVES).held is True
    assert together(true, unknown)(CURVES).held is None
    assert together(unknown, false)(CURVES).held is False


def test_what_several_claims_measured_is_told_once() -> None:
    told = together(grows("slow", least=2.0), flatter("flat", "slow"))(CURVES).ours
    assert told == "slow at 10 takes 5 times that at 1; flat at 10 takes 1 times that at 1"


def test_numbers_have_units_and_failures_no_hints_for_users() -> None:
    curves = Curves(CURVES, slow=[Value(1, None, "tamis.errors.CapabilityError: too wide. Hint: use index='auto'")])
    curves.unit = "µs"
    assert best("fast", ["flat"])(curves).ours == "fast takes least at 10, 2 µs"
    assert fails("slow")(curves).ours == "slow fails at 1: too wide"


def test_verdicts_have_words() -> None:
    assert [Verdict(held, "").word for held in (True, False, None)] == ["held", "not held", "not tested"]
    assert unclaimed(CURVES).word == "no claim"


def test_the_curves_of_a_figure_have_the_unit_of_its_axis() -> None:
    figure = Figure(
        paper="p",
        number="1",
        title="t",
        axis="a",
        metric=MATCHING,
        spots=lambda _: [],
        claim="c",
        says="s",
        judge=unclaimed,
    )
    assert figure.curves(SMOKE, {}).unit == "µs"
