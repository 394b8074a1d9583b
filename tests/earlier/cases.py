"""Hypothesis strategies for events that meet each other: few names, few values, of all kinds."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

import tamis
from tamis.language.expression import Expression
from tests.strategies import expressions

NAMES = ["a", "b", "c"]

SCALARS = st.sampled_from(
    [
        *(0, 1, 1.0, 2, 2.5, -0.0, 2**53, 2**53 + 1, float(2**53), float("inf"), "", "a", "b", True, False),
        *(date(2026, 1, 1), datetime(2026, 1, 1), datetime(2026, 1, 1, 12), date(2026, 1, 2)),
    ]
)
INTERVALS = st.sampled_from(
    [
        tamis.Interval(0, 1),
        tamis.Interval(1, 1),
        tamis.Interval(1.5, 3),
        tamis.Interval(date(2026, 1, 1), date(2026, 1, 2)),
    ]
)
VALUES: st.SearchStrategy[Any] = st.one_of(
    SCALARS, SCALARS, SCALARS, st.none(), INTERVALS, st.lists(SCALARS | INTERVALS, max_size=3)
)
TIMES = st.one_of(
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(0, 6).map(lambda hours: datetime(2026, 1, 1, hours)),
    st.sampled_from([None, "late", True, float("inf"), [1, 2], tamis.Interval(1, 2), 2.5]),
)
KEYS = st.one_of(st.sampled_from([1, 1, "x", "y"]), st.sampled_from([None, 1.0, True, [1, 2], tamis.Interval(1, 1)]))


def events() -> st.SearchStrategy[dict[str, Any]]:
    values = st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, VALUES))
    return st.builds(lambda some, time, key: {**some, "t": time, "k": key}, values, TIMES, KEYS)


@st.composite
def histories(draw: st.DrawFn) -> tamis.History:
    order = draw(st.sampled_from([None, "t", "t"]))
    ages = st.sampled_from([None, 1, 2.5, 4, timedelta(hours=1), timedelta(hours=3)])
    age = None if order is None else draw(ages)
    rows = draw(st.integers(1, 6)) if age is None else draw(st.none() | st.integers(1, 6))
    return tamis.History(rows=rows, age=age, order=order, key=draw(st.sampled_from([None, None, "k"])))


def joined_expressions() -> st.SearchStrategy[Expression]:
    """Expressions of which nearly all have joins."""
    return expressions(history=True, names=st.sampled_from(NAMES), max_leaves=6)
