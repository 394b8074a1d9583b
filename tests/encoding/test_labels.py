"""Order-preserving labels: order, gaps, growth, relabelling."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tamis.encoding.dimensions.labels import Labels, Relabelling

FIRST, LAST = -(2**40), 2**40


def check(labels: Labels) -> None:
    assert labels.constants == sorted(set(labels.constants))
    assert all(label % 2 == 0 and labels.first < label < labels.last for label in labels.labels)
    assert all(lower < upper for lower, upper in zip(labels.labels, labels.labels[1:], strict=False))
    assert all(labels.label(constant) == label for constant, label in zip(labels.constants, labels.labels, strict=True))


def added(labels: Labels, constants: list[Any]) -> Relabelling | None:
    """Add constants, and carry out the relabelling, if one is needed."""
    relabelling = labels.add(labels.missing(constants))
    if relabelling is not None:
        relabelling.carry_out()
    return relabelling


def test_a_value_between_constants_falls_in_their_gap() -> None:
    labels = Labels(FIRST, LAST)
    added(labels, ["plum", "apple", "pear"])
    check(labels)
    assert labels.label("apple") < labels.locate("banana") < labels.label("pear")
    assert labels.locate("aardvark") < labels.label("apple")
    assert labels.locate("zebra") > labels.label("plum")
    assert labels.locate("pear") == labels.label("pear")


def test_without_constants_all_values_share_a_key() -> None:
    labels = Labels(FIRST, LAST)
    assert labels.locate("a") == labels.locate("b")


def test_adding_again_changes_nothing() -> None:
    labels = Labels(FIRST, LAST)
    added(labels, ["b", "a"])
    before = list(labels.labels)
    assert labels.missing(["a", "b", "a"]) == []
    assert added(labels, ["a", "b", "a"]) is None
    assert labels.labels == before


@pytest.mark.parametrize("batch", [1, 2, 7, 100])
@pytest.mark.parametrize("order", ["random", "ascending", "descending", "inwards"])
def test_intervals_stay_right_while_constants_come_in_any_order(batch: int, order: str) -> None:
    """Early intervals move when labels move. They have the same meaning after all constants are added."""
    values = list(range(400))
    if order == "random":
        random.Random(5).shuffle(values)
    elif order == "descending":
        values.reverse()
    elif order == "inwards":
        values = [value for pair in zip(values, reversed(values), strict=True) for value in pair][:400]
    labels = Labels(-(2**11), 2**11)  # little room, so relabelling happens often
    made: list[tuple[str, int, int, int]] = []
    moves = 0
    for start in range(0, len(values), batch):
        moved = added(labels, values[start : start + batch])
        if moved is not None:
            moves += 1
            lows = moved.lows(np.array([lo for _, _, lo, _ in made], np.int64))
            highs = moved.highs(np.array([hi for _, _, _, hi in made], np.int64))
            made = [(kind, v, int(lo), int(hi)) for (kind, v, _, _), lo, hi in zip(made, lows, highs, strict=True)]
        check(labels)
        for value in values[start : start + batch]:
            label = labels.label(value)
            made += [("=", value, label, label), ("<", value, -(2**62), label - 1), (">", value, label + 1, 2**62)]
    assert moves > 0 or batch == 100
    probes = [*values, *[value + 0.5 for value in values], -1, 1000]
    keys = {probe: labels.locate(probe) for probe in probes}
    for kind, value, lo, hi in made:
        for probe in probes[:: 13 if kind != "=" else 1]:
            expected = {"=": probe == value, "<": probe < value, ">": probe > value}[kind]
            assert (lo <= keys[probe] <= hi) is expected, (kind, value, probe)


def test_integers_are_located_together_as_one_by_one() -> None:
    labels = Labels(FIRST, LAST)
    values = np.array([5, 6, 7, 2**62, -(2**62), 0, 10**12], np.int64)
    assert labels.locate_integers(values).tolist() == [labels.locate(int(value)) for value in values]
    added(labels, [6, 2**62, -3])
    assert labels.locate_integers(values).tolist() == [labels.locate(int(value)) for value in values]


def names(first: str, count: int) -> list[str]:
    return [f"{first}{number:07d}" for number in range(count)]


@pytest.mark.parametrize("batch", [1, 10, 1000])
@pytest.mark.parametrize("descending", [False, True])
def test_constants_that_come_in_order_find_room_between_others(batch: int, descending: bool) -> None:
    labels = Labels(-(2**62), 2**62)
    added(labels, names("a", 10_000) + names("z", 10_000))
    runs = [names(first, 10_000) for first in "fgh"]
    moves = 0
    for start in range(0, 10_000, batch):
        for run in runs:
            part = run[-start - batch : len(run) - start] if descending else run[start : start + batch]
            moves += added(labels, part) is not None
    check(labels)
    assert len(labels) == 50_000
    assert moves <= 1


def test_constants_that_come_in_any_order_find_room_between_others() -> None:
    labels = Labels(-(2**62), 2**62)
    added(labels, names("a", 100) + names("z", 100))
    values = names("f", 50_000)
    random.Random(3).shuffle(values)
    moves = sum(added(labels, [value]) is not None for value in values)
    check(labels)
    assert moves <= 2


@pytest.mark.parametrize("kind", ["names", "integers"])
@pytest.mark.parametrize("batch", [1, 2, 30])
def test_constants_that_close_in_from_both_sides_find_room(kind: str, batch: int) -> None:
    labels = Labels(-(2**62), 2**62)
    pairs = [(2**60 + number, 2**61 - number) for number in range(3_000)]
    values: list[Any] = [value for pair in pairs for value in pair]
    if kind == "names":
        values = [f"k{value % 10**7:07d}" for value in values]
    moves = sum(added(labels, values[start : start + batch]) is not None for start in range(0, len(values), batch))
    check(labels)
    assert moves == 0


def test_strings_that_differ_late_or_are_prefixes_of_others_find_room() -> None:
    labels = Labels(-(2**62), 2**62)
    long = "x" * 50
    texts = [
        "",
        long,
        f"{long}0",
        *(f"{long}{number:05d}" for number in range(2_000)),
        "y",
        "\U0010ffff",
        "é",
        "\ue000",
    ]
    moves = sum(added(labels, [text]) is not None for text in texts)
    check(labels)
    assert moves == 0
