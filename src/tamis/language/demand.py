"""What a clause demands of one attribute, for all events: also for lists, Intervals and missing values.

The values of an attribute are a set of points, see `evaluate`. A *test* is what a literal of a clause says about this set:

    MISSING     there is no value                       a IS NULL
    PRESENT     there is a value                        a IS NOT NULL
    SOME        a value of the kind is in a set         a < 5, a IN (1, 2)
    NONE        the kind has values, none in the set    a <> 5, NOT (a < 5)
    ABSENT      there is no value of the kind           (a < 5) IS UNKNOWN

A *demand* is the conjunction of tests in its one normal form. Two conjunctions of tests that imply each other have the same
demand. Several SOME tests of a kind are not intersected: two elements of a list may satisfy them. But no value is in the set of
a NONE test, so these sets are taken out of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from tamis.language.value_set import EVERYTHING, ValueSet, complement, intersection, is_within, union
from tamis.language.values import Kind


class Mode(Enum):
    """What a test says about the values of an attribute."""

    MISSING = auto()
    PRESENT = auto()
    SOME = auto()
    NONE = auto()
    ABSENT = auto()


class ValueTest(NamedTuple):
    """A mode, and the kind and the set that it is about. MISSING and PRESENT are about no kind."""

    attribute: str
    mode: Mode
    kind: Kind | None = None
    values: ValueSet | None = None


class KindDemand(NamedTuple):
    """There are values of a kind. All are in `allowed`, and some value is in each set of `some`.

    The sets of `some` are smaller than `allowed`, no set is within another, and they are sorted.
    """

    allowed: ValueSet
    some: tuple[ValueSet, ...]

    @property
    def sets(self) -> tuple[ValueSet, ...]:
        """Sets each of which has a value: `some`, or `allowed` alone."""
        return self.some or (self.allowed,)


class Demand(NamedTuple):
    """What a clause demands of an attribute. If it is `missing`, nothing else is said."""

    missing: bool
    present: bool
    """Whether there must be a value. Not said if `kinds` says it."""
    absent: tuple[Kind, ...]
    kinds: tuple[tuple[Kind, KindDemand], ...]

    @property
    def has_value(self) -> bool:
        return self.present or bool(self.kinds)


_MISSING = Demand(True, False, (), ())


def demand_of(tests: Sequence[ValueTest], *, single: bool) -> Demand | None:
    """The demand of tests on one attribute; None if no event satisfies all of them.

    With `single`, the attribute has at most one value and no Interval, and the modes NONE and ABSENT must not occur.
    """
    if len(tests) == 1 and tests[0].mode is Mode.SOME:
        return _demand_of_one(tests[0])
    modes = {test.mode for test in tests}
    absent = {test.kind for test in tests if test.mode is Mode.ABSENT}
    kinds: list[tuple[Kind, KindDemand]] = []
    for kind in Kind:
        some = [
            test.values for test in tests if test.mode is Mode.SOME and test.kind is kind and test.values is not None
        ]
        none = [
            test.values for test in tests if test.mode is Mode.NONE and test.kind is kind and test.values is not None
        ]
        if some or none:
            found = _kind_demand(kind, some, none, single)
            if found is None or kind in absent:
                return None
            kinds.append((kind, found))
    present = Mode.PRESENT in modes
    if single and len(kinds) > 1:
        return None
    if present and not kinds and len(absent) == len(Kind) - 1:
        [last] = [kind for kind in Kind if kind not in absent]
        kinds.append((last, KindDemand(EVERYTHING[last], ())))
    if Mode.MISSING in modes or len(absent) == len(Kind):
        return None if present or kinds else _MISSING
    return Demand(False, present and not kinds, tuple(kind for kind in Kind if kind in absent), tuple(kinds))


def _demand_of_one(test: ValueTest) -> Demand | None:
    """The demand of one SOME: the usual case."""
    kind, values = test.kind, test.values
    assert kind is not None
    if not values:
        return None
    everything = EVERYTHING[kind]
    return Demand(False, False, (), ((kind, KindDemand(everything, () if values == everything else (values,))),))


def _kind_demand(kind: Kind, some: list[ValueSet], none: list[ValueSet], single: bool) -> KindDemand | None:
    allowed = complement(union(none), kind) if none else EVERYTHING[kind]
    sets = {intersection([one, allowed]) for one in some} if none else set(some)
    if single and len(sets) > 1:
        sets = {intersection([*sets])}
    if not allowed or not all(sets):
        return None
    # `allowed` adds nothing to the values that there are; nor does a set around another one.
    least = [one for one in sets if one != allowed and not any(is_within(other, one) for other in sets - {one})]
    return KindDemand(allowed, tuple(sorted(least, key=_order)))


def _order(one: ValueSet) -> tuple[bool, object]:
    return (one.below, one.cuts)


def demand_implies(narrow: Demand, wide: Demand) -> bool:
    """Whether all values that meet the first demand meet the second."""
    if narrow.missing:
        return not wide.has_value
    if wide.missing or (wide.present and not narrow.has_value):
        return False
    if any(kind not in narrow.absent for kind in wide.absent):
        return False
    if not wide.kinds:
        return True
    found = dict(narrow.kinds)
    return all(kind in found and _kind_implies(found[kind], needed) for kind, needed in wide.kinds)


def _kind_implies(narrow: KindDemand, wide: KindDemand) -> bool:
    return is_within(narrow.allowed, wide.allowed) and all(
        any(is_within(one, other) for one in narrow.sets) for other in wide.some
    )
