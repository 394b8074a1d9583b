"""The formulas of section 4.3.1, and what the matcher says of them."""

from __future__ import annotations

import math

import pytest

from tamis.earlier.phases import CONSTANTS_FIRST, JOINS_FIRST, Figures, attributes_left, estimated


def figures(**changes: float) -> Figures:
    usual = Figures(
        subscriptions=1023,
        retained=255,
        conjuncts=3,
        joins=6,
        joins_left=2,
        attributes=4,
        attributes_left=3,
    )
    return usual._replace(**changes)  # type: ignore[arg-type]


def test_the_formulas() -> None:
    phases = estimated(figures())
    assert phases.no_index == 1023 * 255 * 3
    assert phases.joins_first == 6 * 8 + 3 * 10
    assert phases.constants_first == 4 * 10 + 2 * 8
    assert phases.order == CONSTANTS_FIRST


def test_joins_come_first_if_there_are_few_and_they_leave_little() -> None:
    assert estimated(figures(joins=1, joins_left=1, attributes_left=1)).order == JOINS_FIRST
    # An index is better than none in any case.
    assert estimated(figures(joins=1, joins_left=1)).joins_first < estimated(figures()).no_index


def test_constants_come_first_if_the_estimates_are_equal() -> None:
    assert estimated(figures(joins=2, attributes_left=4)).order == CONSTANTS_FIRST


def test_nothing_has_no_steps() -> None:
    nothing = Figures(0, 0, 0, 0, 0, 0, 0)
    assert estimated(nothing) == (0, 0, 0)
    assert estimated(nothing).order == CONSTANTS_FIRST


@pytest.mark.parametrize(("share", "left"), [(0, 0), (1, 4), (2, 4), (0.5, 4 * (1 - 0.5**10)), (-1, 0)])
def test_attributes_that_are_left(share: float, left: float) -> None:
    assert math.isclose(attributes_left(4, 100, 10, share), left)
