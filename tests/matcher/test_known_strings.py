"""Keys of strings are remembered, and forgotten when subscriptions change what they are."""

from __future__ import annotations

import random

import pytest

import tamis
from tamis import Matcher
from tamis.encoding.dimensions.dimension import Facet
from tamis.encoding.dimensions.dimension_set import Dimensions
from tamis.language.evaluate import matches

pytestmark = pytest.mark.kernels

WORDS = ("cmd.exe", "CMD", "a.dll", "10.1.2.3", "x", "")
TEXTS = (*WORDS, "C:\\cmd.exe", "run a.dll now", "10.1.2.99", "ä")
CONDITIONS = (
    "a LIKE '%{}%'",
    "a ILIKE '%{}'",
    "a = '{}'",
    "a > '{}'",
    "a RLIKE '{}'",
    "lower(a) LIKE '{}%'",
    "NOT a ILIKE '%{}%'",
    "(a IS NULL OR a ILIKE '{}')",
    "(a = 5 OR a LIKE '{}_')",
)


def drawn(rng: random.Random) -> str:
    parts = [rng.choice(CONDITIONS).format(rng.choice(WORDS)) for _ in range(rng.randrange(1, 3))]
    extra = ["ip_in(a, '10.1.0.0/16')", "b = 1", "a IS NOT NULL"]
    return " AND ".join([*parts, *rng.sample(extra, rng.random() < 0.3)])


def check(matcher: Matcher[int], living: dict[int, str], event: dict[str, object]) -> None:
    expected = sorted(number for number, text in living.items() if matches(tamis.parse(text), event))
    assert sorted(matcher.match(event)) == expected
    assert sorted(matcher.match_batch([event, event], 1).column("subscription").to_pylist()) == sorted(expected * 2)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("index", ["auto", "counting"])
def test_repeated_strings_have_new_keys_after_changes(index: str, seed: int) -> None:
    rng = random.Random(seed)
    matcher: Matcher[int] = Matcher(index)
    living: dict[int, str] = {}
    for number in range(60):
        living[number] = drawn(rng)
        matcher.add(number, living[number])
        if rng.random() < 0.4:
            gone = rng.choice(sorted(living))
            matcher.remove(gone)
            del living[gone]
        for _ in range(2):
            check(matcher, living, {"a": rng.choice(TEXTS), "b": rng.choice((1, "1"))})


def test_labels_that_move_are_not_remembered() -> None:
    matcher: Matcher[int] = Matcher()
    event = {"a": "m", "c": 1}
    for number in range(300):  # Halving a gap each time fills it.
        matcher.add(number, f"a < 'm{'a' * number}z' AND a > 'l{'z' * number}' AND a ILIKE '%m%'")
        assert sorted(matcher.match(event)) == list(range(number + 1))


def test_the_strings_that_are_remembered_are_few() -> None:
    dimensions = Dimensions(most_known=5)
    dimensions.get("a", Facet.STRING)
    dimensions.get("b", Facet.PRESENCE)
    facets = dimensions.by_attribute["a"], dimensions.by_attribute["b"]
    for number in range(23):
        dimensions.string_keys(facets[number % 2], f"text {number // 3}")
        dimensions.string_keys(facets[0], "a long text" * 1_000)
        assert sum(len(each.known) for each in facets) <= 5
    assert sum(len(each.known) for each in facets) > 0
