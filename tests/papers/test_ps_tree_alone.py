"""A single PS-Tree compared with a simple model: the paper's examples, all kinds and operators, deletion."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from tamis.errors import EventError, ExpressionError, OptionError, UnknownPredicateError
from tamis.papers.ps_tree.checking import elements_to, nodes_of
from tamis.papers.ps_tree.elements import INT64_ELEMENTS, Kind, element_of, elements_of, elements_up_to
from tamis.papers.ps_tree.nodes import LIVE_LEAVES, LIVE_NODES
from tamis.papers.ps_tree.tree import OPERATORS, PSTree

pytestmark = pytest.mark.kernels


def texts(tree: PSTree) -> list[str]:
    return [space.text for space in tree.spaces()]


def test_the_elements_of_values() -> None:
    assert elements_of(-5, Kind.BYTE).tolist() == [0, 7, 11]
    assert elements_of(5, Kind.BYTE).tolist() == [1, 0, 5]
    assert len(elements_of(0, Kind.INT32)) == 9
    assert len(elements_of(0, Kind.INT64)) == len(elements_of(0.5, Kind.FLOAT64)) == INT64_ELEMENTS == 17
    assert elements_of("ab", Kind.STRING).tolist() == [0, 97, 98]
    assert elements_of("", Kind.STRING).tolist() == [0]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Kind.BYTE, range(-128, 128)),
        (Kind.INT32, [-(2**31), -17, -16, -1, 0, 1, 255, 256, 2**31 - 1]),
        (Kind.INT64, [-(2**63), -(2**62), -1, 0, 1, 2**60, 2**63 - 1]),
        (Kind.FLOAT64, [float("-inf"), -1e300, -2.5, -2.0, -1e-300, 0.0, 5e-324, 1.0, 1.5, 1e9, float("inf")]),
        (Kind.STRING, ["", "a", "a\0", "aa", "ab", "b", "é", "\U0001f600"]),
    ],
)
def test_elements_are_in_the_order_of_values(kind: Kind, values: Any) -> None:
    paths = [tuple(elements_of(value, kind).tolist()) for value in values]
    assert paths == sorted(set(paths))


def test_elements_in_kernels_are_the_same() -> None:
    for key in (-(2**63), -12345678901234567, -1, 0, 1, 2**62 + 7, 2**63 - 1):
        assert [element_of(key, at) for at in range(INT64_ELEMENTS)] == elements_of(key, Kind.INT64).tolist()
        assert elements_up_to(key, INT64_ELEMENTS - 1) == key
        assert elements_up_to(key, 0) == -(key < 0)
        assert elements_up_to(key, 1) == key // 2**60


def test_the_example_of_figure_2() -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("between", -5, -1)
    tree.insert("between", 1, 5)
    assert texts(tree) == ["[-128,-5)", "[-5,-1]", "(-1,1)", "[1,5]", "(5,127]"]
    assert [space.predicates for space in tree.spaces()] == [0, 1, 0, 1, 0]
    assert tree.space(tree.match(2)).text == "[1,5]"
    nodes, state = tree.arrays.nodes, tree.arrays.state
    assert state[LIVE_LEAVES] == 5
    assert state[LIVE_NODES] == 1 + 2 + 4, "the root, a node for - 7, one for + 0, four values"
    first, last = nodes.g[tree.root], nodes.l[tree.root]
    assert (tree.space(first).text, tree.space(last).text) == ("[-128,-5)", "(5,127]")
    tree.check()


def test_the_example_of_figure_1() -> None:
    tree = PSTree(Kind.INT32, domain=(0, 4))
    assert [tree.space(leaf).text for leaf in tree.insert("between", 0, 4)] == ["[0,4]"]
    assert [tree.space(leaf).text for leaf in tree.insert("between", 2, 4)] == ["[2,4]"]
    assert [(space.text, space.predicates) for space in tree.spaces()] == [("[0,2)", 1), ("[2,4]", 2)]
    assert tree.space(tree.match(3)).text == "[2,4]"


def test_the_example_of_section_4_4() -> None:
    tree = PSTree(Kind.BYTE, domain=(1, 100))
    tree.insert("between", 20, 60)
    tree.insert("between", 30, 80)
    assert texts(tree) == ["[1,20)", "[20,30)", "[30,60]", "(60,80]", "(80,100]"]
    assert [space.predicates for space in tree.spaces()] == [0, 1, 2, 1, 0]
    tree.delete("between", 30, 80)
    assert texts(tree) == ["[1,20)", "[20,60]", "(60,100]"]
    assert [space.predicates for space in tree.spaces()] == [0, 1, 0]
    tree.check()
    tree.delete("between", 20, 60)
    assert texts(tree) == ["[1,100]"]
    assert tree.arrays.state[LIVE_NODES] == 1, "only the root is left"


def test_space_ids_are_the_same_as_in_figure_4() -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("=", 1)
    assert [(space.text, space.id) for space in tree.spaces()] == [("[-128,1)", 3), ("[1,1]", 2), ("(1,127]", 1)]


@pytest.mark.parametrize(
    ("predicate", "spaces", "covered"),
    [
        ((">=", 7), ["[-128,7)", "[7,127]"], [1]),
        (("<", 7), ["[-128,7)", "[7,127]"], [0]),
        (("<=", 7), ["[-128,7]", "(7,127]"], [0]),
        ((">", 7), ["[-128,7]", "(7,127]"], [1]),
        (("!=", 7), ["[-128,7)", "[7,7]", "(7,127]"], [0, 2]),
        (("in", 7, 3), ["[-128,3)", "[3,3]", "(3,7)", "[7,7]", "(7,127]"], [1, 3]),
        (("not in", 7, 3), ["[-128,3)", "[3,3]", "(3,7)", "[7,7]", "(7,127]"], [0, 2, 4]),
        (("=", -128), ["[-128,-128]", "(-128,127]"], [0]),
        (("!=", 127), ["[-128,127)", "[127,127]"], [0]),
        ((">", 127), ["[-128,127]"], []),
        (("between", 5, 4), ["[-128,127]"], []),
        ((">=", -128), ["[-128,127]"], [0]),
    ],
)
def test_where_operators_cut(predicate: tuple[Any, ...], spaces: list[str], covered: list[int]) -> None:
    tree = PSTree(Kind.BYTE)
    leaves = tree.insert(*predicate)
    assert texts(tree) == spaces
    assert [tree.space(leaf) for leaf in leaves] == [tree.spaces()[at] for at in covered]
    tree.delete(*predicate)
    assert texts(tree) == ["[-128,127]"]


def test_between_neighbours_there_is_one_cut() -> None:
    tree = PSTree(Kind.INT32)
    tree.insert("<=", 5)
    tree.insert(">=", 6)
    assert len(texts(tree)) == 2
    tree.delete("<=", 5)
    tree.check()
    assert len(texts(tree)) == 2, "the other predicate needs the cut"
    assert tree.space(tree.match(6)).predicates == 1


def test_a_split_copies_counters_and_a_merge_adds_events() -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("between", 0, 9)
    for value in (3, 4, 50):
        tree.match(value, count=True)
    assert tree.matching_events("between", 0, 9) == 2
    tree.insert(">=", 4)
    assert [(space.text, space.predicates, space.events) for space in tree.spaces()] == [
        ("[-128,0)", 0, 0),
        ("[0,4)", 1, 2),
        ("[4,9]", 2, 2),
        ("(9,127]", 1, 1),
    ]
    assert tree.matching_events(">=", 4) == 3
    tree.delete("between", 0, 9)
    assert [(space.text, space.events) for space in tree.spaces()] == [("[-128,4)", 2), ("[4,127]", 3)]


def test_a_string_that_is_a_prefix_of_others() -> None:
    tree = PSTree(Kind.STRING)
    tree.insert("=", "abc")
    tree.insert(">=", "abd")
    assert texts(tree) == ["['','abc')", "['abc','abc']", "('abc','abd')", "['abd',..."]
    assert [tree.space(tree.match(text)).text for text in ("", "ab", "abc", "abcc", "abd", "b")] == [
        "['','abc')",
        "['','abc')",
        "['abc','abc']",
        "('abc','abd')",
        "['abd',...",
        "['abd',...",
    ]
    tree.insert("=", "ab")
    assert tree.space(tree.match("ab")).text == "['ab','ab']"
    tree.check()
    tree.delete("=", "abc")
    tree.check()
    assert tree.space(tree.match("ab")).text == "['ab','ab']"
    tree.delete("=", "ab")
    tree.check()


def test_deleting_an_unknown_predicate_changes_nothing() -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("between", 0, 9)
    tree.insert(">=", 5)
    before = tree.spaces()
    for predicate in (("=", 3), (">=", 10), ("between", 5, 9), ("<", 0), ("<=", 127), ("in", 0, 9)):
        with pytest.raises(UnknownPredicateError, match="no predicate"):
            tree.delete(*predicate)
        assert tree.spaces() == before
        tree.check()
    tree.delete(">=", 5)
    with pytest.raises(KeyError, match="no predicate >= 5 is in the tree"):
        tree.delete(">=", 5)
    assert texts(tree) == ["[-128,0)", "[0,9]", "(9,127]"]


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        (("like", 3), "no operator 'like'; the operators are: =, !=, <"),
        (("in",), "'in' takes one value or more, not 0"),
        (("not in",), "'not in' takes one value or more, not 0"),
        (("=",), "'=' takes one value, not 0"),
        (("<", 1, 2), "'<' takes one value, not 2"),
        (("between", 1), "'between' takes two values, not 1"),
        (("=", "a"), "'a' is not a value of a tree of kind BYTE, which holds whole numbers from -128 to 127"),
        (("=", 2.5), "2.5 is not a value of a tree of kind BYTE"),
        (("=", True), "True is not a value"),
        (("=", None), "None is not a value"),
        (("in", 3, "a"), "'a' is not a value"),
    ],
)
def test_wrong_predicates_are_refused(predicate: tuple[Any, ...], message: str) -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("=", 3)
    for call in (tree.insert, tree.delete, tree.covered, tree.matching_events):
        with pytest.raises(ExpressionError, match=message):
            call(*predicate)
    assert len(texts(tree)) == 3


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.BYTE, "a"),
        (Kind.INT32, None),
        (Kind.INT64, 2.0),
        (Kind.FLOAT64, float("nan")),
        (Kind.FLOAT64, 10**400),
        (Kind.FLOAT64, "1"),
        (Kind.STRING, 5),
    ],
)
def test_events_of_another_kind(kind: Kind, value: Any) -> None:
    with pytest.raises(EventError, match=f"is not a value of a tree of kind {kind.name}"):
        PSTree(kind).match(value)


def test_the_domain_of_a_tree() -> None:
    tree = PSTree(Kind.BYTE, domain=(1, 100))
    assert tree.insert("<", 120) == [tree.match(100)], "predicates may reach beyond"
    for value in (0, 101, 261):
        with pytest.raises(EventError, match=f"{value} is outside the domain of the tree, from 1 to 100"):
            tree.match(value)
    for kind, beyond in ((Kind.BYTE, 261), (Kind.BYTE, -129), (Kind.INT32, 2**31), (Kind.INT64, -(2**63) - 1)):
        with pytest.raises(EventError, match=f"{beyond} is outside the domain of the tree, from -"):
            PSTree(kind).match(beyond)
    for domain in ((1, 300), (5, 1), (None, 4)):
        with pytest.raises(OptionError, match="domain"):
            PSTree(Kind.BYTE, domain=domain)
    assert texts(PSTree(Kind.STRING, domain=("a", "m"))) == ["['a',m]"]


def test_unknown_leaves_and_cuts() -> None:
    tree = PSTree(Kind.BYTE)
    tree.insert("=", 3)
    with pytest.raises(UnknownPredicateError, match="no predicate of the tree cuts where >= 50 begins or ends"):
        tree.covered(">=", 50)
    (gone,) = tree.insert("=", 9)
    tree.delete("=", 9)
    for leaf in (gone, -1, 77):
        with pytest.raises(KeyError, match=f"the tree has no leaf {leaf}"):
            tree.space(leaf)


TRUE: dict[str, Callable[..., bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda value, *values: value in values,
    "not in": lambda value, *values: value not in values,
    "between": lambda value, low, high: low <= value <= high,
}
VALUES: dict[Kind, Callable[[random.Random], Any]] = {
    Kind.BYTE: lambda chance: chance.randint(-128, 127),
    Kind.INT32: lambda chance: chance.choice([chance.randint(-20, 20), chance.randint(-(2**31), 2**31 - 1)]),
    Kind.INT64: lambda chance: chance.choice([chance.randint(-9, 9), chance.randint(-(2**63), 2**63 - 1)]),
    Kind.FLOAT64: lambda chance: chance.choice([float(chance.randint(-5, 5)), chance.gauss(0, 1e6), 0.25, -0.25]),
    Kind.STRING: lambda chance: "".join(chance.choice("abc") for _ in range(chance.randrange(4))),
}


@pytest.mark.parametrize("kind", [Kind.INT64, Kind.STRING])
def test_paths_without_branches_are_one_node(kind: Kind) -> None:
    tree = PSTree(kind)
    values = (
        [2**60 + 7, 2**60 + 9, 5] if kind is Kind.INT64 else ["the same beginning, a", "the same beginning, b", "x"]
    )
    tree.insert("=", values[0])
    assert tree.arrays.state[LIVE_NODES] == 1 + 1, "the root and one value, however long"
    tree.insert("=", values[1])
    tree.insert("=", values[2])
    begin = elements_of(values[0], kind).tolist()[:-1]
    paths = [elements_to(tree.arrays, node) for node in nodes_of(tree.arrays, tree.root)]
    assert sorted(paths) == sorted([begin[:1], begin, *(elements_of(value, kind).tolist() for value in values)])
    tree.delete("=", values[1])
    tree.check()
    assert tree.arrays.state[LIVE_NODES] == 1 + 1 + 2, "where paths part, and two values"
    tree.delete("=", values[2])
    assert tree.arrays.state[LIVE_NODES] == 1 + 1
    tree.check()


def test_elements_of_values_that_are_gone_are_dropped() -> None:
    tree = PSTree(Kind.STRING)
    tree.insert("=", "it stays")
    for number in range(200):
        tree.insert(">=", f"it goes {number}")
        tree.delete(">=", f"it goes {number}")
    tree.check()
    assert len(tree.arrays.text) < 400
    assert tree.space(tree.match("it stays")).predicates == 1


@pytest.mark.parametrize("kind", Kind)
def test_predicates_are_added_and_removed(kind: Kind) -> None:
    chance = random.Random(kind.value)
    tree = PSTree(kind)
    inserted: list[tuple[Any, ...]] = []
    for step in range(60):
        if inserted and chance.random() < 0.45:
            tree.delete(*inserted.pop(chance.randrange(len(inserted))))
        else:
            name = chance.choice(OPERATORS)
            count = {"in": 3, "not in": 3, "between": 2}.get(name, 1)
            predicate = (name, *(VALUES[kind](chance) for _ in range(count)))
            inserted.append(predicate)
            tree.insert(*predicate)
        tree.check()
        assert len(tree.spaces()) <= 1 + sum(2 * (len(each) - 1) for each in inserted)
        if step % 6 == 0:
            for _ in range(12):
                value = VALUES[kind](chance)
                leaf = tree.match(value)
                matching = [each for each in inserted if TRUE[each[0]](value, *each[1:])]
                assert tree.space(leaf).predicates == len(matching)
                assert all(leaf in tree.covered(*each) for each in matching)
    for predicate in inserted:
        tree.delete(*predicate)
    tree.check()
    assert len(tree.spaces()) == 1
    assert tree.arrays.state[LIVE_NODES] == 1
