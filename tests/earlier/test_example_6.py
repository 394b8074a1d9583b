"""Tatbul's example 6 on the structures: price = 10 AND exists d (d.price = price) implies exists d (d.price = 10).

The implied constraint may replace the join.
"""

from __future__ import annotations

import pytest

import tamis
from tamis.earlier.implied import EQ, REPLACING, implied
from tamis.earlier.join_table import split
from tamis.earlier.needs import need_of
from tamis.earlier.prefilter import PreFilter, State
from tamis.earlier.retained import Retained
from tamis.language.evaluate import matches
from tamis.language.event import flatten

JOIN = "EXISTS (SELECT 1 FROM history h WHERE h.price = price)"
PROFILE = tamis.parse(f"price = 10 AND {JOIN}")
IMPLIED = tamis.parse("price = 10 AND EXISTS (SELECT 1 FROM history h WHERE h.price = 10)")


def test_the_cell_of_the_table() -> None:
    assert implied(EQ, EQ) is EQ
    assert REPLACING is EQ


def test_the_need_is_the_implied_constraint() -> None:
    constant, rest, _ = split(PROFILE)
    assert rest is not None
    [clause] = need_of(rest, constant, one_history=True)
    assert list(map(str, clause)) == ["some earlier event has price = 10"]
    # The other profile asks for it itself.
    assert need_of(IMPLIED, one_history=True) == (clause,)


@pytest.mark.parametrize("prices", [[], [9], [10], [9, 10, 11], [None], ["10"], [True]])
@pytest.mark.parametrize("new", [9, 10, 10.0, None, "10"])
def test_it_replaces_the_join(prices: list[object], new: object) -> None:
    history = [{} if price is None else {"price": price} for price in prices]
    event = {} if new is None else {"price": new}
    assert matches(PROFILE, event, history) is matches(IMPLIED, event, history)


def test_it_does_not_replace_the_join_for_several_values() -> None:
    """10 satisfies the constant, and 12 the join. So such an event is not filtered."""
    event, history = {"price": [10, 12]}, [{"price": 12}]
    assert matches(PROFILE, event, history)
    assert not matches(IMPLIED, event, history)


def test_the_pre_filter_follows_the_documents() -> None:
    prefilter, retained = PreFilter(fewest=0), Retained(tamis.History(rows=2))
    constant, rest, _ = split(PROFILE)
    assert rest is not None
    need = prefilter.number(rest, constant)
    found = []
    for price in (9, 10, 11, 12):
        found.append(prefilter.state(need, retained))
        retained.keep(flatten({"price": price}))
    said = "some earlier event has price = 10"
    skipped, there = State(True, ((said, False),)), State(False, ((said, True),))
    assert found == [skipped, skipped, there, there]
    assert prefilter.state(need, retained) == skipped
