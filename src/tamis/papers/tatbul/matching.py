"""The common part of the five indexes: one tree for each attribute, and the vectors that the trees find are ANDed.

    event   price 20, year 2001
    price   tree of price, 20   -> {0, 1, 4}     constrained {0, 1, 2, 4}
    year    tree of year, 2001  -> {1}           constrained {1, 3}
    start   {0, 1, 4} | {1}                       = {0, 1, 4}      profiles that some attribute supports
    AND     without 2: of profiles about price only its vector stays; then without 3; 0 and 4 say nothing about year
    end     {0, 1, 4}                             minus profiles with an attribute that the event lacks

In an attribute's vector, all profiles that say nothing about the attribute are 1. These ones are not stored. Instead the AND is
``rest = (rest - constrained) | (rest & vector)``, in the order that leaves the fewest, until nothing is left. Profiles about an
attribute that the event lacks drop out at the end, one by one.

Readings: a comparison of a value with a key, or with an interval, is one evaluation, as in the paper's figures; evaluating a
predicate is one, too. Finding that no attribute is missing takes none.

If an attribute has several values, their vectors are ORed, together with the profiles that have several predicates on it. An
attribute with an interval is not searched. The profiles that are left of such an event are evaluated.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from pyroaring import BitMap

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import EventPlaces, event_places, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s, U32s
from tamis.papers.interface import Counters, Matches
from tamis.papers.parts.collecting import is_true
from tamis.papers.parts.static import StaticIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles, profiles_of
from tamis.papers.tatbul.vectors import Array, Lists, members, nbytes, vector, vectors

PAPER = "E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching, 2001, section "

_ABSENT = int(Mode.ABSENT)


class Found(NamedTuple):
    """What trees found for values: value i has the elements ``start[i]`` to ``start[i + 1]``; and the work it took."""

    start: Array
    what: Array
    """Numbers of vectors, whose union is the result; an index may store something else."""
    comparisons: int
    nodes: int


class ProfileIndex(StaticIndex):
    """An index with a tree for each attribute. Subclasses build the trees and search them."""

    exact = True
    """Whether the profiles of a vector do match, not only may match."""

    def _build(self, rows: I32s) -> None:
        profiles = profiles_of(self.table.view(), rows)
        self._attribute_of = np.full(int(profiles.dimension.max(initial=-1)) + 1, -1, np.int64)
        self._attribute_of[profiles.dimension] = np.arange(len(profiles.dimension))
        self._constrained = vectors(profiles.constrained)
        self._several = vectors(profiles.several)
        self._unbound = vector(profiles.unbound)
        self._built = rows
        self.vectors: list[BitMap] = []
        self._plant(profiles.intervals)

    @abstractmethod
    def _plant(self, intervals: Intervals) -> None:
        """Build a tree of the intervals of each attribute."""

    @abstractmethod
    def find(self, attributes: Array, keys: Array) -> Found:
        """Search trees for values."""

    @abstractmethod
    def _arrays(self) -> list[Array]:
        """The arrays of the trees."""

    def _vector(self, found: Array) -> BitMap:
        """The vector of what was found for one value."""
        if len(found) == 1:
            return self.vectors[int(found[0])]
        return BitMap.union(*[self.vectors[number] for number in found.tolist()]) if len(found) else BitMap()

    # -- matching

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        known = (batch.dimension < len(self._attribute_of)).nonzero()[0]
        attributes = np.full(len(batch.dimension), -1, np.int64)
        attributes[known] = self._attribute_of[batch.dimension[known]]
        points = batch.lo == batch.hi
        asked = np.flatnonzero((attributes >= 0) & points)
        found = self.find(attributes[asked], batch.lo[asked])
        start = np.zeros(len(attributes) + 1, np.int64)
        start[asked + 1] = np.diff(found.start)
        np.cumsum(start, out=start)
        rest = [
            self._and(lo, hi, attributes[lo:hi].tolist(), points[lo:hi], start[lo : hi + 1].tolist(), found.what)
            for lo, hi in zip(batch.start[:-1].tolist(), batch.start[1:].tolist(), strict=True)
        ]
        counts = np.array([len(profiles) for profiles, _ in rest], np.int64)
        candidates = np.concatenate([np.zeros(0, np.uint32), *(profiles for profiles, _ in rest)])
        evaluate = np.array([not (self.exact and single_valued) for _, single_valued in rest], np.bool_)
        kept = np.empty(len(candidates), np.bool_)
        chosen = self._built[candidates]
        evaluated = _verify(self.table.view(), batch, event_places(dimensions), counts, chosen, evaluate, kept)
        events = np.repeat(np.arange(len(counts)), counts)[kept]
        return Matches(events, chosen[kept], Counters(len(candidates), found.comparisons + evaluated, found.nodes))

    def _and(
        self, first: int, last: int, attributes: list[int], points: Array, start: list[int], what: Array
    ) -> tuple[U32s, bool]:
        """The profiles that all attributes of one event leave; and whether each attribute has one value, so they do match."""
        parts: list[tuple[int, int, BitMap]] = []
        single_valued = True
        at, end = 0, last - first
        all_points = bool(points.all())
        while at < end:
            attribute, begin = attributes[at], at
            at += 1
            if attribute < 0:
                continue
            while at < end and attributes[at] == attribute:
                at += 1
            if all_points or points[begin:at].all():
                satisfied = self._vector(what[start[begin] : start[at]])
                if at - begin > 1:
                    single_valued = False
                    satisfied = satisfied | self._several[attribute]
            else:
                single_valued = False
                satisfied = self._constrained[attribute]
            parts.append((len(satisfied) - len(self._constrained[attribute]), attribute, satisfied))
        rest = BitMap.union(self._unbound, *(satisfied for _, _, satisfied in parts))
        parts.sort(key=lambda part: part[0])
        for failing, attribute, satisfied in parts:
            if not rest or failing == 0:
                break
            stays = rest & satisfied
            rest -= self._constrained[attribute]
            rest |= stays
        return members(rest), single_valued

    # -- figures and checks

    def _figures(self) -> dict[str, Any]:
        bit_vectors = [*self._constrained, *self._several, self._unbound, *self.vectors]
        arrays = [self._attribute_of, *self._arrays()]
        return {
            "bytes": sum(array.nbytes for array in arrays) + nbytes(bit_vectors),
            "attributes": len(self._constrained),
            "vectors": len(self.vectors),
            **self._shape(),
        }

    def _shape(self) -> dict[str, Any]:
        """Figures about the shape of the trees."""
        return {}

    def _check(self) -> None:
        profiles = profiles_of(self.table.view(), self._built)
        assert (self._built == self._rows).all()
        assert [members(each).tolist() for each in self._constrained] == _listed(profiles.constrained)
        for attribute in range(len(profiles.dimension)):
            own = slice(*profiles.intervals.start[attribute : attribute + 2])
            intervals = profiles.intervals
            self._check_attribute(attribute, intervals.profile[own], intervals.lo[own], intervals.hi[own])
        self._check_trees(profiles)

    def _check_attribute(self, attribute: int, profile: Array, lo: Array, hi: Array) -> None:
        """Check that every relevant value finds the profiles with an interval around it."""
        ends = np.concatenate([lo, hi])
        keys = np.concatenate([ends, ends - (ends > KEY_MIN), ends + (ends < KEY_MAX), [0]])
        keys = np.unique(keys[keys != KEY_MIN])
        found = self.find(np.full(len(keys), attribute), keys)
        for i, key in enumerate(keys.tolist()):
            truth = set(profile[(lo <= key) & (key <= hi)].tolist())
            ours = set(self._vector(found.what[found.start[i] : found.start[i + 1]]))
            assert ours == truth if self.exact else ours >= truth, (attribute, key)

    def _check_trees(self, profiles: Profiles) -> None:
        """Raise an AssertionError if the trees are not what they should be."""


def _listed(lists: Lists) -> list[list[int]]:
    return [lists.data[first:last].tolist() for first, last in zip(lists.start, lists.start[1:], strict=False)]


@lean_kernel
def _verify(
    table: Conjunctions,
    batch: EventBatch,
    places: EventPlaces,
    counts: I64s,
    chosen: I32s,
    evaluate: Bools,
    kept: Bools,
) -> int:
    """Find which remaining conjunctions match: evaluate them, or look for missing attributes; returns the evaluations."""
    predicates = table.predicates
    at, evaluated = 0, 0
    for e in range(len(counts)):
        if counts[e] == 0:
            continue
        load_event(batch, e, places)
        for i in range(at, at + counts[e]):
            if evaluate[e]:
                kept[i], tested = is_true(chosen[i], table, batch, places)
                evaluated += tested
            else:
                kept[i] = True
                for p in range(table.start[chosen[i]], table.start[chosen[i] + 1]):
                    if predicates.mode[p] != _ABSENT and places.values[predicates.dimension[p]] == 0:
                        kept[i] = False
                        break
        at += counts[e]
        unload_event(batch, e, places)
    return evaluated
