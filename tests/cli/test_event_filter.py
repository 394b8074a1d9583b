"""What is taken from an event means what the whole event means."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tamis.cli.event_filter import AskedFields, EventFilter
from tamis.errors import EventError
from tamis.language.event import flatten
from tamis.language.reading import to_expression

NAMES = st.sampled_from(["a", "b", "a.b", "a.c", "a.b.c", "b.c", "c"])
KEYS = st.sampled_from(["a", "b", "c", "a.b", "b.c", "a.b.c"])
VALUES = st.none() | st.integers(0, 2) | st.lists(st.integers(0, 2) | st.none(), max_size=2)
OBJECTS = st.recursive(VALUES, lambda inner: st.dictionaries(KEYS, inner, max_size=3), max_leaves=6)


@given(names=st.sets(NAMES, min_size=1), event=st.dictionaries(KEYS, OBJECTS, max_size=4))
def test_asked_fields(names: set[str], event: dict[str, Any]) -> None:
    try:
        whole = flatten(event)
    except EventError:  # Given twice: then the same error, or nobody asks about it.
        return
    found = flatten(AskedFields(names).of(event))
    assert {name: found.get(name) for name in names} == {name: whole.get(name) for name in names}


@given(names=st.sets(NAMES, min_size=1), event=st.dictionaries(KEYS, OBJECTS, max_size=4))
def test_the_filter_is_the_evaluator(names: set[str], event: dict[str, Any]) -> None:
    from tamis.language.evaluate import matches

    expression = to_expression(" OR ".join(f"({name} = 1 AND {name} IS NOT NULL)" for name in sorted(names)))
    try:
        expected = matches(expression, event)
    except EventError:
        return
    assert EventFilter(expression).matches(event) is expected
