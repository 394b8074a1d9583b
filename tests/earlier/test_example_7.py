"""Tatbul's example 7 on the structures: price < 10 AND exists d (d.price = price) implies exists d (d.price < 10).

The implied constraint is added to the join. In its place, it would lose what the join says.
"""

from __future__ import annotations

import tamis
from tamis.earlier.implied import implied
from tamis.earlier.join_table import split
from tamis.earlier.needs import Constraint, need_of
from tamis.earlier.retained import Retained
from tamis.earlier.tally import Tally
from tamis.language.evaluate import matches
from tamis.language.event import flatten
from tamis.language.operators import Operator
from tamis.matcher.limits import StoreLimits
from tamis.matcher.matcher import matcher_over, new_store

PROFILE = tamis.parse("price < 10 AND EXISTS (SELECT 1 FROM history h WHERE h.price = price)")
IMPLIED = tamis.parse("price < 10 AND EXISTS (SELECT 1 FROM history h WHERE h.price < 10)")


def constraint() -> Constraint:
    constant, rest, _ = split(PROFILE)
    assert rest is not None
    [[found]] = need_of(rest, constant, one_history=True)
    return found


def test_the_cell_of_the_table() -> None:
    assert implied(Operator.EQ, Operator.LT) is Operator.LT
    assert str(constraint()) == "some earlier event has price < 10"


def test_it_does_not_replace_the_join() -> None:
    event, history = {"price": 5}, [{"price": 7}]
    assert matches(IMPLIED, event, history)
    assert not matches(PROFILE, event, history)


def test_the_tally_counts_by_cells() -> None:
    """The constant cuts the line of prices in two: below 10, and from 10 on."""
    retained = Retained(tamis.History(rows=9))
    for price in (3, 7, 10, 12, "cheap", None):
        retained.keep(flatten({"price": price}))
    tally = Tally({0: (frozenset([constraint()]),)}, retained.log)
    assert tally.holds(constraint()) is False
    column = retained.log.column("price")
    tally.count(0, column, retained.window.positions(), 1)
    assert tally.holds(constraint()) is True
    # Missing, below 10, from 10 on, and strings.
    assert sorted(tally.counts.cells[tally.counts.cells > 0].tolist()) == [1, 1, 2, 2]
    tally.count(0, column, retained.window.positions()[:2], -1)
    assert tally.holds(constraint()) is False


def test_the_profile_is_skipped_until_a_document_is_below_10() -> None:
    store = new_store(history=tamis.History(rows=2), limits=StoreLimits(prefilter_from=0))
    matcher = matcher_over(store)
    matcher.add("again", PROFILE)

    def match(price: int) -> tuple[bool, int]:
        return matcher.match({"price": price}) == ["again"], matcher.stats()["history"]["decided"]

    decided = list(map(match, (5, 6, 5, 20, 5, 30, 40, 5)))
    # The first event has no earlier ones. The last one has only 30 and 40. Prices from 10 on are no candidates.
    assert decided == [
        (False, 0),
        (False, 1),
        (True, 2),
        (False, 2),
        (True, 3),
        (False, 3),
        (False, 3),
        (False, 3),
    ]
    assert matcher.stats()["history"]["skips"] == 2
