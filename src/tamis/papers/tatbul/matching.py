"""The common part of the five indexes: one tree for each attribute, and the vectors that the trees find are ANDed.

    event       price 20, year 2001
    price       tree of price, 20   -> {0, 1, 4}     constrained {0, 1, 2, 4}
    year        tree of year, 2001  -> {1}           constrained {1, 3}
    supported   {0, 1, 4} | {1}                       = {0, 1, 4}      profiles that some attribute supports
    rest        all; without 2 after price; without 3 after year; 0 and 4 say nothing about year
    end         {0, 1, 4} = rest & supported          minus profiles with an attribute that the event lacks

In an attribute's vector, all profiles that say nothing about the attribute are 1. These ones are not stored. Instead the AND is
``rest = rest & (vector | ~constrained)``, 64 profiles at a time. Profiles about an attribute that the event lacks drop out at the
end, one by one.

Readings: a comparison of a value with a key, or with an interval, is one evaluation, as in the paper's figures. Evaluating a
predicate is one, too. Where a node has an interval, comparing the value with both of its ends is one comparison. Finding that no
attribute is missing takes none.

If an attribute has several values, their vectors are ORed, together with the profiles that have several predicates on it. An
attribute with an interval is not searched. The profiles that are left of such an event are evaluated.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import EventPlaces, event_places, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.bits import WORD, set_bit
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import U64, I32s, I64s, U64s
from tamis.papers.interface import Matches
from tamis.papers.parts.collecting import Output, collect, is_true, note_event
from tamis.papers.parts.static import StaticIndex
from tamis.papers.tatbul.profiles import Intervals, Profiles, profiles_of
from tamis.papers.tatbul.vectors import Array, Lists, Vectors, keep, members, room_for, unite, vectors

PAPER = "E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching, 2001, section "

_ABSENT = int(Mode.ABSENT)
_NO_ROOM = -1
_ALL = U64(2**64 - 1)


class Found(NamedTuple):
    """What trees found for values: value i has the elements ``start[i]`` to ``start[i + 1]``; and the work it took."""

    start: Array
    what: Array
    """Numbers of vectors, whose union is the result; an index that `finds_profiles` has their numbers here."""
    comparisons: int
    nodes: int


class _IndexArrays(NamedTuple):
    """An index as kernels take it."""

    vectors: Vectors
    constrained: Vectors
    several: Vectors
    unbound: U64s
    built: I32s
    """The row of each profile."""
    table: Conjunctions
    finds_profiles: bool
    exact: bool


class _Search(NamedTuple):
    """The attribute of each value of a batch, -1 if nobody asks about it, and what its tree found."""

    attributes: I64s
    start: I64s
    what: I64s


class _Scratch(NamedTuple):
    """Bits of profiles: what is left, what some attribute supports, what one attribute satisfies."""

    rest: U64s
    supported: U64s
    satisfied: U64s


class ProfileIndex(StaticIndex):
    """An index with a tree for each attribute. Subclasses build the trees and search them."""

    exact = True
    """Whether the profiles of a vector do match, not only may match."""
    finds_profiles = False
    """Whether trees find profiles, not vectors."""

    def _build(self, rows: I32s) -> None:
        profiles = profiles_of(self.table.view(), rows)
        self._attribute_of = np.full(int(profiles.dimension.max(initial=-1)) + 1, -1, np.int64)
        self._attribute_of[profiles.dimension] = np.arange(len(profiles.dimension))
        self._constrained = vectors(profiles.constrained, len(rows))
        self._several = vectors(profiles.several, len(rows))
        self._unbound = np.zeros(self._constrained.width, np.uint64)
        unbound = Lists(np.array([0, len(profiles.unbound)]), profiles.unbound.astype(np.int32))
        unite(vectors(unbound, len(rows)), 0, self._unbound)
        self._built = rows
        self.vectors = room_for(len(rows), np.zeros(0, np.int64))
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

    def profiles_found(self, found: Array) -> set[int]:
        """The profiles of what was found for one value."""
        if self.finds_profiles:
            return set(found.tolist())
        return {profile for number in found.tolist() for profile in members(self.vectors, number).tolist()}

    # -- matching

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        known = (batch.dimension < len(self._attribute_of)).nonzero()[0]
        attributes = np.full(len(batch.dimension), -1, np.int64)
        attributes[known] = self._attribute_of[batch.dimension[known]]
        asked = np.flatnonzero((attributes >= 0) & (batch.lo == batch.hi))
        found = self.find(attributes[asked], batch.lo[asked])
        start = np.zeros(len(attributes) + 1, np.int64)
        start[asked + 1] = np.diff(found.start)
        np.cumsum(start, out=start)
        search = _Search(attributes, start, found.what.astype(np.int64, copy=False))
        index = _IndexArrays(
            self.vectors,
            self._constrained,
            self._several,
            self._unbound,
            self._built,
            self.table.view(),
            self.finds_profiles,
            self.exact,
        )
        scratch = _Scratch(*np.empty((3, self._constrained.width), np.uint64))
        matches = collect(batch, partial(_match, index, batch, search, event_places(dimensions), scratch))
        counters = matches.counters
        comparisons = found.comparisons + counters.predicates
        return matches._replace(counters=counters._replace(predicates=comparisons, nodes=found.nodes))

    # -- figures and checks

    def _figures(self) -> dict[str, Any]:
        arrays = [self._attribute_of, self._unbound, *self._arrays()]
        own = [self._constrained, self._several, self.vectors]
        return {
            "bytes": sum(array.nbytes for array in arrays) + sum(each.nbytes for each in own),
            "attributes": len(self._constrained.counts),
            "vectors": len(self.vectors.counts),
            **self._shape(),
        }

    def _shape(self) -> dict[str, Any]:
        """Figures about the shape of the trees."""
        return {}

    def _check(self) -> None:
        profiles = profiles_of(self.table.view(), self._built)
        assert (self._built == self._rows).all()
        attributes = range(len(self._constrained.counts))
        assert [members(self._constrained, a).tolist() for a in attributes] == _listed(profiles.constrained)
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
            ours = self.profiles_found(found.what[found.start[i] : found.start[i + 1]])
            assert ours == truth if self.exact else ours >= truth, (attribute, key)

    def _check_trees(self, profiles: Profiles) -> None:
        """Raise an AssertionError if the trees are not what they should be."""


def _listed(lists: Lists) -> list[list[int]]:
    return [lists.data[first:last].tolist() for first, last in zip(lists.start, lists.start[1:], strict=False)]


@lean_kernel
def _match(
    index: _IndexArrays,
    batch: EventBatch,
    search: _Search,
    places: EventPlaces,
    scratch: _Scratch,
    event: int,
    output: Output,
) -> int:
    """Match events from one on; returns the first without room for its matches."""
    written = 0
    for e in range(event, len(batch.start) - 1):
        single_valued = _and_vectors(index, batch, search, e, scratch)
        evaluate = not (index.exact and single_valued)
        load_event(batch, e, places)
        matched, candidates, evaluated = _verify(index, batch, places, evaluate, scratch.rest, output.matches, written)
        unload_event(batch, e, places)
        if matched == _NO_ROOM:
            return e
        note_event(e, matched, candidates, evaluated, 0, output)
        written += matched
    return len(batch.start) - 1


@lean_kernel
def _and_vectors(index: _IndexArrays, batch: EventBatch, search: _Search, e: int, scratch: _Scratch) -> bool:
    """Write the profiles that all attributes of an event leave to `rest`; returns whether each attribute has one value."""
    rest, supported, satisfied = scratch
    for w in range(len(rest)):
        rest[w], supported[w] = _ALL, index.unbound[w]
    single_valued = True
    at, end = batch.start[e], batch.start[e + 1]
    while at < end:
        attribute, first = search.attributes[at], at
        points = True
        while at < end and batch.dimension[at] == batch.dimension[first]:
            points &= batch.lo[at] == batch.hi[at]
            at += 1
        if attribute < 0:
            continue
        for w in range(len(satisfied)):
            satisfied[w] = U64(0)
        if points:
            _load(index, search.what, search.start[first], search.start[at], satisfied)
        if at - first > 1 or not points:
            single_valued = False
            unite(index.several if points else index.constrained, attribute, satisfied)
        keep(index.constrained, attribute, satisfied, rest)
        for w in range(len(supported)):
            supported[w] |= satisfied[w]
    for w in range(len(rest)):
        rest[w] &= supported[w]
    return single_valued


@lean_kernel
def _load(index: _IndexArrays, what: I64s, first: int, last: int, satisfied: U64s) -> None:
    """Set the bits of the profiles that trees found."""
    for i in range(first, last):
        if index.finds_profiles:
            set_bit(satisfied, what[i])
        else:
            unite(index.vectors, what[i], satisfied)


@lean_kernel
def _verify(
    index: _IndexArrays,
    batch: EventBatch,
    places: EventPlaces,
    evaluate: bool,
    rest: U64s,
    matches: I32s,
    written: int,
) -> tuple[int, int, int]:
    """Write which profiles of `rest` match the loaded event: evaluate them, or look for missing attributes.

    Returns how many match, or `_NO_ROOM`; how many there were; and how many predicates were evaluated.
    """
    matched, candidates, evaluated = 0, 0, 0
    for w in range(len(rest)):
        bits, profile = rest[w], WORD * w
        while bits != U64(0):
            if bits & U64(255) == U64(0):
                bits >>= U64(8)
                profile += 8
                continue
            if bits & U64(1):
                row = index.built[profile]
                candidates += 1
                if evaluate:
                    holds, tested = is_true(row, index.table, batch, places)
                    evaluated += tested
                else:
                    holds = _has_attributes(row, index.table, places)
                if holds:
                    if written + matched == len(matches):
                        return _NO_ROOM, candidates, evaluated
                    matches[written + matched] = row
                    matched += 1
            bits >>= U64(1)
            profile += 1
    return matched, candidates, evaluated


@lean_kernel
def _has_attributes(row: int, table: Conjunctions, places: EventPlaces) -> bool:
    """Whether the loaded event has every attribute that a row needs."""
    predicates = table.predicates
    for p in range(table.start[row], table.start[row + 1]):
        if predicates.mode[p] != _ABSENT and places.values[predicates.dimension[p]] == 0:
            return False
    return True
