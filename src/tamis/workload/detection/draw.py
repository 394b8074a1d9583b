"""Drawing one rule. It depends only on the seed and the rule's number.

Rules follow these figures of a real set of rules (shares are of the predicates, log sources left out):

    predicates per rule   median 7, mean 15, a few with several hundred to several thousand; one or two name the log source
    rules with NOT        21 %
    ILIKE                 60 % '%x%', 21 % '%x', 10 % 'x', 6 % 'x%', 1 % with wildcards inside
    others                0.5 % RLIKE, 1.5 % = and IN; no comparison of numbers

A rule has one main list of conditions, which has most of its predicates, and some short lists. A sample of real rules and events
(417 and 8,015) beside what is drawn here (417 and 4,000):

                                                  sample    drawn
    predicates per rule                           15.5      13.0 (15 with 4,000 rules)
    rules by log source                           64 sources; 36 % the first, 6 % the next; here 35; 37 %, 10 %
    rules that ask for product, category, service 95, 81, 19 %    95, 78, 22 %
    rules that ask for Image, CommandLine         45, 34 %  28, 28 %
    predicates on CommandLine, Image              35, 16 %  15, 10 %
    different predicates, different strings       72, 67 %  80, 72 %
    IS NULL and IS NOT NULL                       5 %       none
    bytes and fields of an event                  2,660; 29.8     2,686; 31.3
    values of an event that some rule asks for    8.5       9.0
    their bytes, and the share never seen before  1,673; 88 %     1,587; 83 %
    values never seen before                      17 %      29 % (26 % with 8,000 events)
    events that no rule is about                  7 %       7 %
    rules about the source of an event            4 %       7 %
    values that are no strings                    19 %      none
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeVar

from tamis.language.operators import Operator
from tamis.language.quoting import quoted
from tamis.workload.detection.fields import SOURCES, Field, Source, draw_source
from tamis.workload.detection.rule import Condition, Conditions, Rule
from tamis.workload.detection.texts import FRAGMENTS, GENERAL, REGEX, Shape, fill, fill_both
from tamis.workload.detection.words import FAMILIAR, ODD, Words

Item = TypeVar("Item")

_MEDIAN_SIZE, _SIZE_SPREAD, _MOST = 7, 1.1, 300
"""Sizes of rules are log-normal: their median, the standard deviation of their logarithm, and the largest size."""

_LONG_EVERY = 701
"""One rule in this many has a long list instead."""
_LONG_SIZES = 300, 4_000
_GOLDEN = (5**0.5 - 1) / 2
_LONG_FIELDS = [
    ("Hashes", Shape.CONTAINS),
    ("DestinationHostname", Shape.SUFFIX),
    ("CommandLine", Shape.CONTAINS),
]

_NEGATED, _NEGATED_SIZE = 0.316, 3
"""The share of rules with filters, among rules of at least this size. These are 21 % of all rules."""

_FILTERS = ((1,), (1,), (2,), (1, 1), (1, 2))
"""The choices of filters for a rule, as the number of lists in each filter. A small rule may get fewer."""

# Only short lists have regular expressions and equalities, so these are more common there than overall.
_MAIN_SHAPES = {Shape.CONTAINS: 63, Shape.SUFFIX: 19, Shape.EXACT: 12, Shape.PREFIX: 6}
_SHORT_SHAPES = {
    Shape.CONTAINS: 41, Shape.SUFFIX: 22, Shape.EXACT: 10, Shape.PREFIX: 7, Shape.REGEX: 4, Shape.EQUAL: 16,
}  # fmt: skip
_GENERAL = 0.0125
"""The share of suffix and contains conditions with wildcards inside."""

_OWN_SELECTION = 0.7
"""The probability that a short list is a selection of its own. Otherwise it joins the main selection."""
_FAMILIAR_WORDS = 0.6
"""The probability that a selection of its own has familiar words, so that many events satisfy it."""
_IN = 0.4
"""The probability of IN instead of =."""

_COMMON, _COMMON_CHOICES = 0.33, 80
"""The share of conditions that rules share, such as names of well-known programs, and how many there are to choose from."""

_TRIES = 12
"""The most attempts to find a field that is free for the shape of a list."""


def draw_rule(seed: int, number: int) -> Rule:
    """The rule with this number."""
    rng = Random(f"rule {number} of {seed}")
    round_, place = divmod(number, _LONG_EVERY)
    if place == _LONG_EVERY // 2:
        return _long_rule(rng, round_)
    size = round(rng.lognormvariate(math.log(_MEDIAN_SIZE), _SIZE_SPREAD))
    source = draw_source(rng)
    return _Drawing(rng, source).rule(min(max(size - len(source.log_source), 1), _MOST))


def _long_rule(rng: Random, number: int) -> Rule:
    """A rule with one long list. Its size follows the golden ratio, so that even a few such rules fill the range evenly."""
    least, most = _LONG_SIZES
    size = round(least * (most / least) ** (number * _GOLDEN % 1))
    name, shape = _LONG_FIELDS[number % len(_LONG_FIELDS)]
    source, field = next((each, field) for each in SOURCES for field in each.fields if field.name == name)
    return Rule(source, [_conditions(rng, field, shape, size, ODD)], [])


class _Drawing:
    """Draws one rule. `_used` are the fields that its selections use, with the shapes of their conditions.

    `events.plant` needs rules that can be satisfied. So if two selections use one field, both have the shape CONTAINS. A filter
    on a field of a selection has the shape PREFIX, and the selection then does not decide how the text begins.
    """

    def __init__(self, rng: Random, source: Source) -> None:
        self._rng = rng
        self._source = source
        self._used: dict[str, set[Shape]] = {}

    def rule(self, size: int) -> Rule:
        rng, left = self._rng, size - 1
        filters: list[list[int]] = []
        if size >= _NEGATED_SIZE and rng.random() < _NEGATED:
            for lists in rng.choice(_FILTERS):
                filters.append(self._sizes(lists, left))
                left -= sum(filters[-1])
        others = self._sizes(rng.choices((0, 1, 2, 3), (28, 40, 22, 10))[0], left)
        selections = [self._selection(_MAIN_SHAPES, left - sum(others) + 1, ODD)]
        for each in others:
            if rng.random() < _OWN_SELECTION:
                selections.append(
                    self._selection(_SHORT_SHAPES, each, FAMILIAR if rng.random() < _FAMILIAR_WORDS else ODD)
                )
            else:
                selections[0] += self._selection(_SHORT_SHAPES, each, ODD)
        passed = [self._filter(sizes) for sizes in filters]
        return Rule(
            self._source,
            [selection for selection in selections if selection],
            [lists for lists in passed if lists],
        )

    def _sizes(self, count: int, left: int) -> list[int]:
        """The sizes of up to `count` short lists. Their sum is at most `left`."""
        sizes = []
        for _ in range(count):
            sizes.append(min(left, 1 + int(self._rng.expovariate(1))))
            left -= sizes[-1]
        return [size for size in sizes if size]

    def _selection(self, shapes: Mapping[Shape, float], size: int, words: Words) -> Conditions:
        """A list of conditions on a free field. It is empty in the rare case that no field is free."""
        for _ in range(_TRIES):
            shape = _choice(self._rng, list(shapes.items()))
            free = [
                (field, weight)
                for field, weight in self._source.weights[shape]
                if field.name not in self._used or (shape is Shape.CONTAINS and self._used[field.name] == {shape})
            ]
            if free:
                field = _choice(self._rng, free)
                self._used.setdefault(field.name, set()).add(shape)
                return _conditions(self._rng, field, shape, size, words)
        return []

    def _filter(self, sizes: list[int]) -> list[Conditions]:
        """A list of conditions for each size, on different fields."""
        lists: dict[str, Conditions] = {}
        for _ in range(_TRIES):
            if len(lists) == len(sizes):
                break
            shape = _choice(self._rng, list(_SHORT_SHAPES.items()))
            free = [
                (field, weight)
                for field, weight in self._source.weights[shape]
                if field.name not in lists
                and (
                    field.name not in self._used
                    or (shape is Shape.PREFIX and self._used[field.name] <= {Shape.CONTAINS, Shape.SUFFIX})
                )
            ]
            if free:
                field = _choice(self._rng, free)
                lists[field.name] = _conditions(self._rng, field, shape, sizes[len(lists)], FAMILIAR)
        return list(lists.values())


def _conditions(rng: Random, field: Field, shape: Shape, size: int, words: Words) -> Conditions:
    """`size` different conditions on a field. For an equality it is always a single condition."""
    conditions: dict[tuple[str, ...], Condition] = {}
    while len(conditions) < (1 if shape is Shape.EQUAL else size):
        # Popular conditions come first: each rule draws them from the same numbers.
        common = Random(f"{words is ODD} {int(_COMMON_CHOICES * rng.random() ** 2)}") if rng.random() < _COMMON else rng
        condition = _condition(common, field, shape, words)
        conditions[condition.values] = condition
    return list(conditions.values())


def _condition(rng: Random, field: Field, shape: Shape, words: Words) -> Condition:
    if shape is Shape.REGEX:
        regex, sample = fill_both(rng.choice(REGEX[field.text]), words, rng)
        return Condition(field, shape, Operator.RLIKE, (regex,), None, sample)
    templates = FRAGMENTS[field.text][shape]
    if shape is Shape.EQUAL:
        count = rng.randint(2, 6) if rng.random() < _IN else 1
        values = tuple(dict.fromkeys(fill(rng.choice(templates), words, rng) for _ in range(count)))
        return Condition(field, shape, Operator.IN if len(values) > 1 else Operator.EQ, values, None, values[-1])
    before = "%" if shape in (Shape.CONTAINS, Shape.SUFFIX) else ""
    after = "%" if shape in (Shape.CONTAINS, Shape.PREFIX) else ""
    if before and field.text in GENERAL and rng.random() < _GENERAL:
        core, sample = fill_both(rng.choice(GENERAL[field.text]), words, rng)
        return Condition(field, shape, Operator.ILIKE, (before + core + after,), None, sample)
    sample = fill(rng.choice(templates), words, rng)
    pattern, escape = quoted(sample, before=before, after=after)
    return Condition(field, shape, Operator.ILIKE, (pattern,), escape, sample)


def _choice(rng: Random, weighted: Sequence[tuple[Item, float]]) -> Item:
    """One of the items, drawn by weight."""
    at = rng.random() * sum(weight for _, weight in weighted)
    for item, weight in weighted:
        at -= weight
        if at < 0:
            return item
    return weighted[-1][0]
