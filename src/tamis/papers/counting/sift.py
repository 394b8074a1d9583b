"""SIFT's methods over terms (attribute, value), for the option `method` of `counting`.

T. Yan, H. Garcia-Molina, Index Structures for Selective Dissemination of Information under the Boolean Model (1994), as
E. N. Tatbul, Index Structures and Algorithms for Efficient Profile Matching (2001), section 2, describes it. There a
document is a set of words, and a profile is a set of words that must all occur. Here a word is a *term* (attribute, value). A
predicate is one term for each value that satisfies it, and one of these terms must occur: ranges are enumerated by value.

    c1: 7 IN (10, 11)      c4: 7 = 10 AND 9 = 3      c5: 7 = 10 AND 9 = 4

    enumeration     terms  (7, 10) -> 0    lists   0: c1 c4 c5     a profile is in the lists of all its terms; each term of an
                           (7, 11) -> 1            1: c1           event adds 1 to the counters of a list: c1 needs 1, c4 and
                           (9, 3)  -> 2            2: c4           c5 need 2. "SIFT" of the BE-Tree paper (7.2): counting, with
                           (9, 4)  -> 3            3: c5           ranges enumerated as in k-index

    key     terms   (7, 10) -> 0    lists   0: c1           a profile is in the lists of its predicate with the rarest
                    (7, 11) -> 1            1: c1           terms; its other predicates are checked on a hit
                    (9, 3)  -> 2            2: c4
                    (9, 4)  -> 3            3: c5

    tree    root -(7, 10)-> n1 {c1} -(9, 3)-> n3 {c4}       a trie over the ordered terms of profiles, each kept at its
                                    -(9, 4)-> n4 {c5}       shortest identifying prefix: common prefixes are tested once
                 -(7, 11)-> n2 {c1}

The *domain* is the whole numbers from `lowest` to `highest`. The value of a term is the whole part of a number, clamped to the
domain; for a string it is the string. So events with other numbers are answered too: terms find the profiles that may match,
and these are evaluated.

Invariants: a profile is in all lists of all its predicates, or in all lists of one of them. Or it ends at nodes of the trie: one
for each combination of values on the way there. A profile without terms is in `always`.

Departures and readings: all structures are built again after a change. The predicates of a profile are ordered by their number
of terms, then by attribute; our text does not give SIFT's order. A profile that would have more than 128 nodes at some depth of
the trie stays above that depth, even if it shares its node. IS NULL, and NOT of a condition on strings, have no terms and are
checked on a hit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN, KeyKind
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.evaluation import event_places
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import ConjunctionTable
from tamis.errors import CapabilityError
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.papers.counting.sift_matching import ROOT, Profiles, SiftScratch, match_counts, match_keys, match_tree
from tamis.papers.counting.sift_terms import (
    Terms,
    chunks,
    counted,
    fill_lists,
    grow,
    part_ranges,
    rarest,
    stays,
    whole_part,
    write_ranges,
)
from tamis.papers.interface import KindOf, Matches
from tamis.papers.parts.collecting import collect
from tamis.papers.parts.pair_map import FREE, PairMap
from tamis.papers.parts.static import StaticIndex

_SOME, _NONE = int(Mode.SOME), int(Mode.NONE)

Array = npt.NDArray[Any]


class SiftIndex(StaticIndex):
    """The common part of all methods: terms, and the evaluation of profiles that may match."""

    name = "counting"
    summary = "SIFT"
    kernel: ClassVar[Callable[..., int]]
    """Finds the profiles of each event by its terms, and evaluates them."""
    _pairs: PairMap
    _start: I64s
    _profiles: I32s
    _always: I32s
    _seen: Bools
    _found: I32s

    def __init__(self, table: ConjunctionTable, kind_of: KindOf, lowest: int, highest: int) -> None:
        super().__init__(table, None, kind_of)
        self._domain = (lowest, highest)
        self._names = self._numbers = np.zeros(0, np.bool_)
        self._edges, self._nodes = PairMap(), 0
        self._need = self._hits = np.zeros(0, np.int32)
        self._build(self._rows)

    def refuse(self, conjunctions: I32s) -> None:
        table = self.table.view()
        chosen = span_indices(table.start[conjunctions], table.start[conjunctions + 1] - table.start[conjunctions])
        chosen = chosen[table.predicates.mode[chosen] == _SOME]
        counts = table.predicates.start[chosen + 1] - table.predicates.start[chosen]
        intervals = span_indices(table.predicates.start[chosen], counts)
        lo, hi = table.predicates.lo[intervals], table.predicates.hi[intervals]
        dimension = np.repeat(table.predicates.dimension[chosen], counts)
        names, numbers = self._kinds(int(dimension.max(initial=-1)) + 1)
        if (names[dimension] & (lo != hi) & ((lo != KEY_MIN) | (hi != KEY_MAX))).any():
            raise CapabilityError(
                "the SIFT methods of the index 'counting' enumerate the values of a range, which strings do not have. "
                "Hint: use method='counting'"
            )
        lowest, highest = self._domain
        for ends, is_open in ((lo, lo == KEY_MIN), (hi, hi == KEY_MAX)):
            whole = whole_part(ends, numbers[dimension])
            # `< lowest` ends just below it.
            outside = ~names[dimension] & ~is_open & ((whole < lowest - 1) | (whole > highest))
            if outside.any():
                raise CapabilityError(
                    f"the SIFT methods of the index 'counting' enumerate whole numbers from {lowest} to {highest}, but "
                    f"{whole[outside][0]:.0f} is not one of them. Hint: set the options 'lowest' and 'highest', or use "
                    "method='counting'"
                )

    def _values(self, keys: Array, dimension: Array) -> Array:
        """The values of terms: the whole part, clamped to the domain; for a name, the key itself."""
        names, numbers = self._kinds(int(dimension.max(initial=-1)) + 1)
        whole = np.clip(whole_part(keys, numbers[dimension]), *self._domain).astype(np.int64)
        return np.where(names[dimension], keys, whole)

    def _kinds(self, dimensions: int) -> tuple[Array, Array]:
        """Which dimensions have names as keys, and which have codes of doubles. Known dimensions are remembered."""
        if dimensions > len(self._names):
            kinds = [self.kind_of(dimension) for dimension in range(len(self._names), dimensions)]
            self._names = np.append(self._names, [kind is KeyKind.NAME for kind in kinds]).astype(np.bool_)
            self._numbers = np.append(self._numbers, [kind is KeyKind.NUMBER for kind in kinds]).astype(np.bool_)
        return self._names, self._numbers

    def _terms(self, rows: I32s) -> Terms:
        """The terms of rows, predicates with the fewest values first."""
        table = self.table.view()
        counts = table.start[rows + 1] - table.start[rows]
        chosen = span_indices(table.start[rows], counts)
        owner = np.repeat(np.arange(len(rows)), counts)
        dimension, mode = table.predicates.dimension[chosen].astype(np.int64), table.predicates.mode[chosen]
        first, last = table.predicates.start[chosen], table.predicates.start[chosen + 1]
        names, _ = self._kinds(int(dimension.max(initial=-1)) + 1)
        is_name = names[dimension]
        everything = np.zeros(len(chosen), np.bool_)
        some = mode == _SOME
        everything[some] = (table.predicates.lo[first[some]] == KEY_MIN) & (table.predicates.hi[first[some]] == KEY_MAX)
        usable = (some & ~(is_name & everything)) | ((mode == _NONE) & ~is_name)
        chosen, owner, dimension, mode = chosen[usable], owner[usable], dimension[usable], mode[usable]
        first, last = first[usable], last[usable]
        ranges = np.append(0, np.cumsum(last - first + (mode == _NONE)))
        lo, hi, of = (np.empty(int(ranges[-1]), np.int64) for _ in range(3))
        write_ranges(table.predicates, chosen, ranges, lo, hi, of)
        lo, hi = self._values(lo, dimension[of]), self._values(hi, dimension[of])
        values = np.zeros(len(chosen), np.int64)
        part_ranges(ranges, lo, hi, values)
        order = np.lexsort((dimension, values, owner))
        start = np.searchsorted(owner, np.arange(len(rows) + 1))
        widths = np.diff(ranges)[order]
        moved = span_indices(ranges[:-1][order], widths)
        return Terms(start, dimension[order], values[order], np.append(0, np.cumsum(widths)), lo[moved], hi[moved])

    def _match(self, batch: EventBatch, dimensions: int) -> Matches:
        values = self._values(batch.lo, batch.dimension)
        stack, known = np.empty(self._nodes + 1, np.int64), np.empty(int(np.diff(batch.start).max(initial=0)), np.int64)
        scratch = SiftScratch(event_places(dimensions), self._seen, self._found, stack, known, self._hits)
        table, pairs, edges = self.table.view(), self._pairs.view(), self._edges.view()
        profiles = Profiles(table, pairs, edges, self._start, self._profiles, self._always, self._need)
        return collect(batch, partial(self.kernel, profiles, batch, values, scratch))


# -- counting with enumeration


class EnumerationMethod(SiftIndex):
    """Every profile in the lists of all its terms, with a counter."""

    kernel = staticmethod(match_counts)

    def _build(self, rows: I32s) -> None:
        terms = self._terms(rows)
        counts = np.diff(terms.start)
        self._always = rows[counts == 0]
        self._pairs, sizes = counted(terms)
        self._start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        self._profiles = np.empty(int(self._start[-1]), np.int32)
        fill_lists(terms, self._pairs.view(), self._start[:-1].copy(), np.repeat(rows, counts), self._profiles)
        self._need, self._hits = np.zeros((2, len(self.table)), np.int32)
        self._need[rows] = counts
        self._seen, self._found = np.zeros(len(self.table), np.bool_), np.empty(len(rows), np.int32)

    def _figures(self) -> dict[str, Any]:
        arrays = (self._start, self._profiles, self._always, self._seen, self._found, self._need, self._hits)
        return {
            "bytes": self._pairs.nbytes + sum(array.nbytes for array in arrays),
            "terms": len(self._pairs),
            "postings": len(self._profiles),
        }

    def _check(self) -> None:
        assert not self._seen.any()
        assert not self._hits.any()
        terms = self._terms(self._rows)
        assert len(self._profiles) == terms.values.sum()
        for i, row in enumerate(self._rows.tolist()):
            places = np.flatnonzero(self._profiles == row)
            numbers = (np.searchsorted(self._start, places, side="right") - 1).tolist()
            ways = [_numbers(terms, p, self._pairs) for p in range(terms.start[i], terms.start[i + 1])]
            assert sorted(numbers) == sorted(number for way in ways for number in way)
            assert self._need[row] == len(ways)
            assert bool(ways) != (row in self._always)


# -- the key method


class KeyMethod(SiftIndex):
    """Every profile in the lists of its rarest predicate."""

    kernel = staticmethod(match_keys)

    def _build(self, rows: I32s) -> None:
        terms = self._terms(rows)
        pairs, frequency = counted(terms)
        keys = np.empty(len(rows), np.int64)
        rarest(terms, pairs.view(), frequency, keys)
        self._always = rows[keys < 0]
        keyed = np.flatnonzero(keys >= 0)
        chosen = keys[keyed]
        widths = np.diff(terms.ranges)[chosen]
        kept = span_indices(terms.ranges[:-1][chosen], widths)
        terms = Terms(
            np.arange(len(keyed) + 1),
            terms.dimension[chosen],
            terms.values[chosen],
            np.append(0, np.cumsum(widths)),
            terms.lo[kept],
            terms.hi[kept],
        )
        self._pairs, sizes = counted(terms)
        self._start = np.append(0, np.cumsum(sizes)).astype(np.int64)
        self._profiles = np.empty(int(self._start[-1]), np.int32)
        fill_lists(terms, self._pairs.view(), self._start[:-1].copy(), rows[keyed], self._profiles)
        self._seen, self._found = np.zeros(len(self.table), np.bool_), np.empty(len(rows), np.int32)

    def profiles_of(self, dimension: int, value: int) -> list[int]:
        """The profiles in the list of a term."""
        number = self._pairs.get(dimension, value)
        listed: list[int] = self._profiles[self._start[number] : self._start[number + 1]].tolist()
        return listed

    def _figures(self) -> dict[str, Any]:
        arrays = (self._start, self._profiles, self._always, self._seen, self._found)
        return {
            "bytes": self._pairs.nbytes + sum(array.nbytes for array in arrays),
            "terms": len(self._pairs),
            "postings": len(self._profiles),
        }

    def _check(self) -> None:
        assert not self._seen.any()
        assert sorted({*self._profiles.tolist(), *self._always.tolist()}) == self._rows.tolist()
        terms = self._terms(self._rows)
        for i, row in enumerate(self._rows.tolist()):
            places = np.flatnonzero(self._profiles == row)
            numbers = set((np.searchsorted(self._start, places, side="right") - 1).tolist())
            ways = [_numbers(terms, p, self._pairs) for p in range(terms.start[i], terms.start[i + 1])]
            assert numbers in ways or (not ways and row in self._always)


# -- the tree method


class TreeMethod(SiftIndex):
    """A trie over the terms of profiles."""

    kernel = staticmethod(match_tree)

    def _build(self, rows: I32s) -> None:
        terms = self._terms(rows)
        has_terms = np.diff(terms.start) > 0
        self._always = rows[~has_terms]
        self._pairs, _ = counted(terms)
        self._edges = PairMap()
        profile = np.flatnonzero(has_terms)
        node, paths = np.zeros(len(profile), np.int64), np.ones(len(profile), np.int64)
        at_node: list[Array] = []
        at_profile: list[Array] = []
        level, nodes = 0, 1
        while len(profile):
            here = stays(terms, level, node, profile, paths, nodes)
            at_node.append(node[here])
            at_profile.append(profile[here])
            node, profile, paths = node[~here], profile[~here], paths[~here]
            counts = terms.values[terms.start[profile] + level]
            places = np.append(0, np.cumsum(counts))
            child = np.empty(int(places[-1]), np.int64)
            for first, last in chunks(counts):
                self._edges.reserve(int(places[last] - places[first]))
                nodes = grow(
                    terms, level, self._pairs.view(), self._edges.view(), node[first:last], profile[first:last], nodes,
                    child[places[first] : places[last]],
                )  # fmt: skip
            node, profile, paths = child, np.repeat(profile, counts), np.repeat(paths * counts, counts)
            level += 1
        ends = np.concatenate([np.zeros(0, np.int64), *at_node])
        order = np.argsort(ends, kind="stable")
        self._start = np.searchsorted(ends[order], np.arange(nodes + 1))
        self._profiles = rows[np.concatenate([np.zeros(0, np.int64), *at_profile])[order]]
        self._nodes, self._depth = nodes, level
        self._seen, self._found = np.zeros(len(self.table), np.bool_), np.empty(len(rows), np.int32)

    def profiles_at(self, *path: tuple[int, int]) -> list[int]:
        """The profiles at the node to which terms lead from the root. A term is a dimension and a value."""
        node = ROOT
        for term in path:
            node = self._edges.get(node, self._pairs.get(*term))
        held: list[int] = self._profiles[self._start[node] : self._start[node + 1]].tolist()
        return held

    def _figures(self) -> dict[str, Any]:
        arrays = (self._start, self._profiles, self._always, self._seen, self._found)
        return {
            "bytes": self._pairs.nbytes + self._edges.nbytes + sum(array.nbytes for array in arrays),
            "terms": len(self._pairs),
            "tree_nodes": self._nodes,
            "depth": self._depth,
        }

    def _check(self) -> None:
        assert not self._seen.any()
        assert sorted({*self._profiles.tolist(), *self._always.tolist()}) == self._rows.tolist()
        assert len(self._edges) == self._nodes - 1
        terms = self._terms(self._rows)
        for i, row in enumerate(self._rows.tolist()):
            ways = {ROOT}
            ends: set[int] = set()
            place = self._profiles == row
            kept = set((np.searchsorted(self._start, np.flatnonzero(place), side="right") - 1).tolist())
            for p in range(terms.start[i], terms.start[i + 1]):
                numbers = _numbers(terms, p, self._pairs)
                ways = {self._edges.get(node, number) for node in ways - ends for number in numbers}
                assert FREE not in ways
                ends |= ways & kept
            assert ends == kept, "at the end of its way, and nowhere else"
            assert kept or row in self._always


def _numbers(terms: Terms, p: int, pairs: PairMap) -> set[int]:
    """The numbers of the terms of a predicate."""
    found = set()
    for i in range(terms.ranges[p], terms.ranges[p + 1]):
        for value in range(terms.lo[i], terms.hi[i] + 1):
            found.add(pairs.get(int(terms.dimension[p]), value))
    return found
