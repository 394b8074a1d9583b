"""Judges of claims, on curves made by hand."""

from __future__ import annotations

import pytest

from tamis.experiments.claims import below, best, fails, flatter, grows, lead, order, together
from tamis.experiments.figure import Curves, Value, Verdict

CURVES = Curves(
    {
        "fast": [Value(1, 1.0), Value(10, 2.0)],
        "slow": [Value(1, 4.0), Value(10, 20.0)],
        "flat": [Value(1, 3.0), Value(10, 3.0)],
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


def test_verdicts_have_words() -> None:
    assert [Verdict(held, "").word for held in (True, False, None)] == ["held", "not held", "not tested"]
