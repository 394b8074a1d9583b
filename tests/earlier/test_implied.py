"""Table 2 of Tatbul, cell by cell, against the events and histories of a small domain."""

from __future__ import annotations

import itertools

import pytest

import tamis
from tamis.earlier.implied import COLUMNS, REPLACING, TABLE, implied, joined, surely_joined
from tamis.language.evaluate import evaluate_flat
from tamis.language.event import FlatEvent
from tamis.language.expression import Predicate
from tamis.language.joins import Exists, Join
from tamis.language.operators import COMPARISONS, Operator
from tamis.language.scalar_set import ScalarSet, common_states, read_scalar_set, states_of

CONSTANT = 2
EARLIER = (0, 1, 1.5, 2, 2.5, 3, 4)
NEW = (-1, 0, 0.5, 1, 1.25, 1.5, 1.75, 2, 2.25, 2.5, 2.75, 3, 3.5, 4, 5)
"""Between two earlier values there is always a new one, as on the line of numbers."""
CELLS = list(itertools.product(TABLE, COLUMNS))


def event(name: str, value: object) -> FlatEvent:
    return {} if value is None else {name: (value,)}  # type: ignore[dict-item]


def new_values(constant: Operator) -> list[float]:
    return [x for x in NEW if evaluate_flat(Predicate("a", constant, [CONSTANT]), event("a", x)) is True]


def joins(earlier: object, join: Operator, new: object) -> bool:
    """Whether EXISTS holds over one earlier event."""
    exists = Exists([Join("a", join, "a")])
    return evaluate_flat(exists, event("a", new), [event("a", earlier)]) is True


def test_the_table_has_25_cells_of_which_17_say_something() -> None:
    assert len(CELLS) == 25
    assert sum(implied(join, constant) is not None for constant, join in CELLS) == 17


@pytest.mark.parametrize(("constant", "join"), CELLS)
def test_a_cell_is_what_follows(constant: Operator, join: Operator) -> None:
    """An earlier value satisfies the constraint exactly if some new value that satisfies the constant is joined with it."""
    operator = implied(join, constant)
    for earlier in EARLIER:
        is_joined = any(joins(earlier, join, x) for x in new_values(constant))
        if operator is None:
            assert is_joined
        else:
            assert is_joined is (evaluate_flat(Predicate("a", operator, [CONSTANT]), event("a", earlier)) is True)


@pytest.mark.parametrize("join", COLUMNS)
def test_the_first_row_replaces_the_join_and_no_other_row_does(join: Operator) -> None:
    def agree(constant: Operator) -> bool:
        operator = implied(join, constant)
        return operator is not None and all(
            joins(earlier, join, x)
            is (evaluate_flat(Predicate("a", operator, [CONSTANT]), event("a", earlier)) is True)
            for earlier in EARLIER
            for x in new_values(constant)
        )

    assert [constant for constant in TABLE if agree(constant)] == [REPLACING]


@pytest.mark.parametrize(("constant", "join"), CELLS)
def test_a_constraint_is_necessary_over_whole_histories(constant: Operator, join: Operator) -> None:
    operator = implied(join, constant)
    exists = Exists([Join("a", join, "a")])
    values: list[float | None] = [0, 2, 3.5, None]
    for history in itertools.chain.from_iterable(itertools.product(values, repeat=size) for size in range(3)):
        earlier = [event("a", value) for value in history]
        some_match = any(evaluate_flat(exists, event("a", x), earlier) is True for x in new_values(constant))
        says = [
            operator is None or evaluate_flat(Predicate("a", operator, [CONSTANT]), each) is True
            for each in earlier
            if each
        ]
        assert some_match is any(says)


def test_unequal_is_a_column_that_the_paper_lacks() -> None:
    assert [implied(Operator.NE, constant) for constant in TABLE] == [Operator.NE, None, None, None, None]


NEW_SETS = [
    ("a = 2", [2]),
    ("a <> 2", [0, 1, 3]),
    ("a > 1 AND a < 3", [1.5, 2, 2.5]),
    ("a >= 1 AND a <= 3", [1, 2, 3]),
    ("a IN (1, 3)", [1, 3]),
    ("a NOT IN (1, 3)", [0, 2, 4]),
    ("a NOT BETWEEN 1 AND 3", [0, 4]),
    ("a = 'x'", ["x"]),
    ("a LIKE 'x%'", ["x", "xy"]),
    ("a IN (1, 'x')", [1, "x"]),
    ("a = TRUE", [True]),
    ("a > 1 AND a < 0", []),
    ("a IS NOT NULL", [0, 5, "x", True]),
]


@pytest.mark.parametrize(("text", "values"), NEW_SETS)
@pytest.mark.parametrize("join", sorted(COMPARISONS))
def test_two_sided_constants_and_lists(text: str, values: list[float | str], join: Operator) -> None:
    """`joined` has every earlier value that some new value joins, and `surely_joined` only such as all of them join."""
    read = tamis.parse(text)
    sets = [read_scalar_set(each) for each in (read.operands or (read,))]
    new = common_states([each for each in sets if each is not None])
    some, sure = joined(join, new), surely_joined(join, new)
    for earlier in (-1, 0, 0.5, 1, 2, 3, 4, 9, "", "x", "xy", "y", True, False):
        kept = ScalarSet(False, some), ScalarSet(False, sure)
        is_some, is_sure = (bool(common_states([states_of([earlier]), each])) for each in kept)
        truths = [joins(earlier, join, x) for x in values]
        assert is_some or not any(truths), (earlier, some)
        assert not is_sure or all(truths), (earlier, sure)
