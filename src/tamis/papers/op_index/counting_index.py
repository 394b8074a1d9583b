"""`op-index`: subscriptions by pivot attribute, their predicates by operator, matched by counting down.

D. Zhang, C.-Y. Chan, K.-L. Tan: An Efficient Publish/Subscribe Index for E-Commerce Databases. PVLDB 7(8), 2014. Sections 4
(structure) and 5 (matching) are here. Section 6 is elsewhere: CNF in `cnf`, which the option `cnf` asks for, and operators on
strings in `operator_lists`.

*Level 1.* Every subscription has one pivot attribute: its attribute that is least frequent in events. An event can only match
subscriptions whose pivot it has. *Level 2.* The predicates of all subscriptions with pivot A are in lists L(A, op), one for each
operator, see `lists`. Predicates become entries of these lists, see `entries`.

    pivot A:  V_A       subscription    S1    S2    S4           L(A, =)    L(A, <=)    L(A, >=)    L(A, !=)
                        size            2     2     1
              left      of one event    0     1     0            an entry that is true of the event lowers the counter
                                                                 to which it points; at zero, the subscription matches
    rest:     subscriptions that need no attribute to be present; every event evaluates them

Invariants: a subscription is in V of its pivot or in the rest, once. Its size is the number of its factors. Its entries are all
in lists of its pivot, and have exactly these factors.

Departures from the paper:

- The paper does not describe deletion. Here deleting sets the counter to a value that never ends at zero. When as many
  subscriptions are dead as alive, the index is built again from the live ones.
- Before an event, only the counters of its pivots are set, not all (line 2 of Algorithm 2): no other counter is read.
- IS NULL has no list. A subscription with it is verified when its counter is zero, or with every event if it has no pivot.
- If an event has several values of an attribute, or an interval, an entry counts as true if it may be true, and subscriptions
  that end at zero are verified. Every factor of a matching subscription has a true entry, so no match is missed.
- LIKE 'x%' is an interval of string labels, `>=` and `<=`, not a trie; LIKE '%x%' and RLIKE are `=` of the number of a pattern
  that was found. The trie and lists for other operators work on strings, which an index never sees: see `operator_lists`.
- The outer loop goes over operators, the inner one over attributes; Algorithm 2 has these loops the other way round.
- Of equally frequent attributes, the pivot is the one with the lowest number, that is, the one that a subscription named first.
  The paper's example takes the first attribute in the subscription itself. Conjunctions are sorted by attribute before an
  index sees them.
- Frequencies in subscriptions are taken when a subscription is inserted. Pivots stay until the index is built again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s
from tamis.papers.interface import Index, Matches
from tamis.papers.op_index.entries import OPERATORS, entries_of
from tamis.papers.op_index.growing_lists import GrowingLists
from tamis.papers.op_index.lists import NO_LIST, PredicateLists, shape_of
from tamis.papers.op_index.matching import (
    DEAD,
    GONE,
    BitmapArrays,
    CounterArrays,
    OpIndexArrays,
    match_events,
    scratch_for,
)
from tamis.papers.op_index.probes import probes_for
from tamis.papers.options import Options, option
from tamis.papers.parts.collecting import collect

REST = -2
"""Stands for the pivot of a subscription without one. A subscription that is not in the index has GONE."""
_ABSENT = int(Mode.ABSENT)
_FEWEST_DEAD = 64

ListEntries = dict[tuple[int, int], list[tuple[int, int, int]]]
"""Pivot and operator -> attribute, operand and pointer of every entry."""


class Added(NamedTuple):
    """Conjunctions that are appended to V: their pivots, how many factors they have, and whether they must be verified."""

    row: I32s
    pivot: I32s
    factors: I32s
    verified: Bools


@dataclass(frozen=True, slots=True)
class OpIndexOptions(Options):
    """Segments of a list (b) and bits of a signature (w) are those of the paper's experiments."""

    segments: int = option(32, least=1)
    signature_bits: int = option(64, least=1)
    signatures: bool = option(True)
    pivot: str = option("events", choices=("events", "subscriptions"))
    sort: str = option("once", choices=("once", "always"))
    cnf: bool = option(False)


class CountingOpIndex(Index):
    """Pivot attributes, operator lists, counters."""

    name = "op-index"
    summary = "subscriptions by their rarest attribute, predicates in sorted lists by operator; counting"
    paper = (
        "Zhang, Chan, Tan: An Efficient Publish/Subscribe Index for E-Commerce Databases. PVLDB 2014, sections 4 to 6"
    )
    options_type = OpIndexOptions
    _pointer_type: ClassVar[npt.DTypeLike] = np.int32
    _v_types: ClassVar[tuple[npt.DTypeLike, ...]] = (np.int32, np.int32, np.bool_)
    """The columns of V: initial value, conjunction, whether it must be verified."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._seen = GrowingArray(np.int64)
        self._events = 0
        self._clear()

    def _clear(self) -> None:
        chosen: OpIndexOptions = self.options
        # Without a directory, a list is one segment, searched as a whole.
        shape = shape_of(chosen.segments, chosen.signature_bits) if chosen.signatures else shape_of(1, 0)
        self.lists = PredicateLists(shape, chosen.sort == "always", self._pointer_type)
        self._asked = GrowingArray(np.int64)
        self._v_number = GrowingArray(np.int32)
        self._v = GrowingLists(*self._v_types)
        self._pivot = GrowingArray(np.int32)
        self._place = GrowingArray(np.int32)
        self._rest = GrowingArray(np.int32)
        self._count = 0
        self._dead = 0

    # -- inserting and deleting

    def insert(self, conjunctions: I32s) -> None:
        """Algorithm 1, for all conjunctions at once."""
        if len(conjunctions) == 0:
            return
        table, rows = self._predicates(conjunctions)
        ends = table.start[rows + 1]
        ends = ends[ends > table.start[rows]]
        # The predicates of a conjunction are in the order of their dimensions.
        dimensions = int(table.predicates.dimension[ends - 1].max(initial=-1)) + 1
        _lengthen(self._asked, dimensions, 0)
        _lengthen(self._v_number, dimensions, NO_LIST)
        _lengthen(self._pivot, len(self.table), GONE)
        _lengthen(self._place, len(self.table), 0)
        _count_attributes(table, rows, self._asked.view(), 1)
        self._enter(conjunctions, self._frequencies(dimensions))
        self._rest.extend(conjunctions[self._pivot.view()[conjunctions] == REST])
        self._count += len(conjunctions)

    def _predicates(self, conjunctions: I32s) -> tuple[Conjunctions, I32s]:
        """A table with the predicates of conjunctions in the order of their dimensions, and the rows to read there."""
        return self.table.view(), conjunctions

    def _frequencies(self, dimensions: int) -> I64s:
        """The frequency of attributes: in events, if the options say so and events were observed, else in subscriptions."""
        if self.options.pivot == "subscriptions" or self._events == 0:
            return self._asked.view()
        _lengthen(self._seen, dimensions, 0)
        return self._seen.view()

    def _enter(self, conjunctions: I32s, frequency: I64s) -> None:
        """Choose pivots, append a counter for each conjunction with a pivot, and put its predicates into the pivot's lists."""
        table = self.table.view()
        pivot = np.empty(len(conjunctions), np.int32)
        _choose_pivots(table, conjunctions, frequency, pivot)
        self._pivot.view()[conjunctions] = pivot
        rows, pivot = conjunctions[pivot != REST], pivot[pivot != REST]
        entries = entries_of(table, rows)
        self._make_room(pivot, np.ones(len(pivot), np.int64))
        _append(Added(rows, pivot, entries.factors, entries.verified), self._v_arrays(), self._place.view())
        counts = np.diff(entries.start)
        self.lists.put(
            np.repeat(pivot, counts),
            entries.operator,
            entries.attribute,
            entries.operand,
            np.repeat(self._place.view()[rows], counts),
        )

    def _make_room(self, pivots: I32s, added: I64s) -> None:
        """Make room for `added[i]` more in V of `pivots[i]`; a pivot may occur more than once."""
        distinct, which = np.unique(pivots, return_inverse=True)
        numbers = self._v_number.view()
        fresh = distinct[numbers[distinct] == NO_LIST]
        numbers[fresh] = np.arange(len(fresh)) + self._v.add(len(fresh))
        needed = np.bincount(which, weights=added, minlength=len(distinct)).astype(np.int64)
        self._v.reserve(numbers[distinct].astype(np.int64), needed)

    def delete(self, conjunctions: I32s) -> None:
        pivot = self._pivot.view()
        resting = conjunctions[pivot[conjunctions] == REST]
        if len(resting):
            kept = np.setdiff1d(self._rest.view(), resting)
            self._rest = GrowingArray(np.int32)
            self._rest.extend(kept)
        counted = conjunctions[pivot[conjunctions] >= 0]
        self._kill(counted)
        table, rows = self._predicates(conjunctions)
        _count_attributes(table, rows, self._asked.view(), -1)
        pivot[conjunctions] = GONE
        self._count -= len(conjunctions)
        self._dead += len(counted)
        if self._count == 0:
            self._clear()
        elif self._dead > max(self._count, _FEWEST_DEAD):
            alive = self._alive()
            self._clear()
            self.insert(alive)

    def _kill(self, rows: I32s) -> None:
        """Set the counters of conjunctions so that they never end at zero."""
        places = self._v.begin[self._v_number.view()[self._pivot.view()[rows]]] + self._place.view()[rows]
        self._v.columns[0][places], self._v.columns[1][places] = DEAD, GONE

    def _alive(self) -> I32s:
        """The conjunctions that are in the index."""
        return np.flatnonzero(self._pivot.view() != GONE).astype(np.int32)

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        _lengthen(self._seen, dimensions, 0)
        _count_seen(batch, self._seen.view())
        self._events += len(batch.start) - 1

    # -- matching

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        counters = self._v_arrays()
        index = OpIndexArrays(
            self.lists.view(), self.lists.shape, counters, self._bitmaps(), self._rows(), self._rest.view()
        )
        probes = probes_for(int(np.diff(batch.start).max(initial=0)))
        scratch = scratch_for(int(self._v.size.max(initial=0)), counters.initial.dtype, dimensions)
        return collect(batch, partial(match_events, index, batch, probes, scratch))

    def _v_arrays(self) -> CounterArrays:
        """V for kernels."""
        return CounterArrays(self._v_number.view(), self._v.begin, self._v.size, *self._v.columns[:3])

    def _bitmaps(self) -> BitmapArrays | None:
        """The arrays of bitmaps for kernels; None if there are only counters."""
        return None

    def _rows(self) -> Conjunctions:
        """The predicates of conjunctions, or of the factors of which they are made."""
        return self.table.view()

    # -- telling

    def stats(self) -> dict[str, Any]:
        self.lists.settle()
        return {
            "conjunctions": self._count,
            "bytes": self.lists.nbytes + sum(column.nbytes for column in self._columns()),
            "pivots": len(self._v),
            "lists": len(self.lists),
            "segments": self.lists.segments,
            "entries": self.lists.entries,
            "rest": len(self._rest),
            "dead": self._dead,
        }

    def _columns(self) -> list[GrowingArray | GrowingLists]:
        """All arrays besides the lists."""
        return [self._seen, self._asked, self._v_number, self._v, self._pivot, self._place, self._rest]

    def counters(self, pivot: int) -> dict[int, int]:
        """V of a pivot: the live conjunctions and their sizes, in the order of their places."""
        rows, sizes = self._v_part(pivot, 1).tolist(), self._v_part(pivot, 0).tolist()
        return {row: size for row, size in zip(rows, sizes, strict=True) if row != GONE}

    def _v_part(self, pivot: int, column: int) -> npt.NDArray[Any]:
        """A column of V of a pivot; empty if the pivot has no V."""
        number = int(self._v_number.view()[pivot]) if pivot < len(self._v_number) else NO_LIST
        return self._v.columns[column][:0] if number == NO_LIST else self._v.part(number, column)

    def check(self) -> None:
        self.lists.check()
        self._v.check()
        rest, alive = self._rest.view(), self._alive()
        assert np.unique(rest).tolist() == np.flatnonzero(self._pivot.view() == REST).tolist()
        assert len(np.unique(rest)) == len(rest)
        assert len(alive) == self._count
        table, rows = self._predicates(alive)
        asked = np.zeros_like(self._asked.view())
        _count_attributes(table, rows, asked, 1)
        assert (asked == self._asked.view()).all()
        expected = self._check_v(alive[self._pivot.view()[alive] >= 0])
        for pivot in range(len(self._v_number)):
            dead = set(np.flatnonzero(self._v_part(pivot, 1) == GONE).tolist())
            for operator in range(OPERATORS):
                found = [each for segment in self.lists.content(pivot, operator) for each in segment]
                living = [each for each in found if self._in_v(each[2]) not in dead]
                assert sorted(living) == sorted(expected.get((pivot, operator), []))

    def _in_v(self, pointer: int) -> int:
        """Where in V an entry points."""
        return pointer

    def _check_v(self, rows: I32s) -> ListEntries:
        """Check V against the rows that have a pivot; returns the entries that the lists must hold."""
        assert self._dead == int(self._v.size.sum()) - len(rows)
        entries = entries_of(self.table.view(), rows)
        expected: ListEntries = {}
        for i, row in enumerate(rows.tolist()):
            pivot, place = int(self._pivot.view()[row]), int(self._place.view()[row])
            held = [self._v_part(pivot, column)[place] for column in range(3)]
            assert held == [entries.factors[i], row, entries.verified[i]]
            for e in range(entries.start[i], entries.start[i + 1]):
                entry = int(entries.attribute[e]), int(entries.operand[e]), place
                expected.setdefault((pivot, int(entries.operator[e])), []).append(entry)
        return expected


def _lengthen(column: GrowingArray, length: int, fill: int) -> None:
    if length > len(column):
        column.grow(length - len(column), fill=fill)


@lean_kernel
def _count_seen(batch: EventBatch, seen: I64s) -> None:
    """Count the events that have each attribute."""
    for e in range(len(batch.start) - 1):
        for v in range(batch.start[e], batch.start[e + 1]):
            if v == batch.start[e] or batch.dimension[v] != batch.dimension[v - 1]:
                seen[batch.dimension[v]] += 1


@lean_kernel
def _count_attributes(table: Conjunctions, rows: I32s, asked: I64s, by: int) -> None:
    """Count the subscriptions that need each attribute."""
    predicates = table.predicates
    for c in rows:
        last = -1
        for p in range(table.start[c], table.start[c + 1]):
            d = predicates.dimension[p]
            if predicates.mode[p] != _ABSENT and d != last:
                asked[d] += by
                last = d


@lean_kernel
def _choose_pivots(table: Conjunctions, rows: I32s, frequency: I64s, pivot: I32s) -> None:
    """Choose the least frequent attribute of each subscription; of several, the first."""
    predicates = table.predicates
    for i in range(len(rows)):
        pivot[i] = REST
        for p in range(table.start[rows[i]], table.start[rows[i] + 1]):
            d = predicates.dimension[p]
            if predicates.mode[p] != _ABSENT and (pivot[i] == REST or frequency[d] < frequency[pivot[i]]):
                pivot[i] = d


@lean_kernel
def _append(added: Added, counters: CounterArrays, place: I32s) -> None:
    """Append a counter for each subscription to V of its pivot."""
    for i in range(len(added.row)):
        target = counters.number[added.pivot[i]]
        at = counters.begin[target] + counters.size[target]
        counters.initial[at], counters.conjunction[at] = added.factors[i], added.row[i]
        counters.verified[at] = added.verified[i]
        place[added.row[i]] = counters.size[target]
        counters.size[target] += 1
