"""Which subscriptions own which conjunctions.

A subscription has one *edge* per clause of its DNF, and its edges lie side by side. A conjunction may have many owners. Its edges
form a doubly linked list:

    slot         0        1                edge     0    1    2
    first_edge   0        1                slot     0    1    1
    edges        1        2                clause   7    7    9      conjunction numbers
                                           next     -    0    -      of the same conjunction
    head[7] = 1, head[9] = 2               previous 1    -    -

A slot without edges is an expression that is never true.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.evaluation import EventPlaces, accepts, event_places, load_event, unload_event
from tamis.encoding.events.event_batch import EventBatch
from tamis.encoding.expressions.programs import ACCEPT, Programs
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import lean_kernel
from tamis.kernels.numbers import Bools, I32s, I64s

NO_PROGRAM = ACCEPT
"""The program of a slot whose clauses need no further check: it accepts at once."""
_NONE = -1


class Edges(NamedTuple):
    """Ownership as kernels read and write it."""

    first_edge: I64s
    edges: I32s
    program: I64s
    slot: I32s
    clause: I32s
    next: I64s
    previous: I64s
    head: I64s
    owners: I32s


class Owners:
    """Edges between slots and conjunctions."""

    def __init__(self) -> None:
        self._first_edge = GrowingArray(np.int64)
        self._edges = GrowingArray(np.int32)
        self._program = GrowingArray(np.int64)
        self._slot = GrowingArray(np.int32)
        self._clause = GrowingArray(np.int32)
        self._next = GrowingArray(np.int64)
        self._previous = GrowingArray(np.int64)
        self._head = GrowingArray(np.int64)
        self._owners = GrowingArray(np.int32)

    def __len__(self) -> int:
        """The number of slots ever used."""
        return len(self._first_edge)

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for column in vars(self).values())

    def view(self) -> Edges:
        return Edges(*(column.view() for column in vars(self).values()))

    def add(self, clauses: I32s, counts: I32s, programs: I64s, conjunctions: int) -> I32s:
        """Give the next slots their clauses, `counts` each; returns the conjunctions that had no owner before."""
        first, slots = len(self._slot), len(self)
        self._first_edge.extend(first + np.cumsum(counts, dtype=np.int64) - counts)
        self._edges.extend(counts)
        self._program.extend(programs)
        self._slot.extend(np.repeat(np.arange(slots, slots + len(counts), dtype=np.int32), counts))
        self._clause.extend(clauses)
        self._next.grow(len(clauses))
        self._previous.grow(len(clauses))
        if conjunctions > len(self._head):
            missing = conjunctions - len(self._head)
            self._head.grow(missing, fill=_NONE)
            self._owners.grow(missing, fill=0)
        born = np.empty(len(clauses), np.int32)
        return born[: _link(self.view(), first, born)]

    def remove(self, slot: int) -> I32s:
        """Take all clauses from a slot; returns the conjunctions that have no owner any more."""
        died = np.empty(int(self._edges.view()[slot]), np.int32)
        return died[: _unlink(self.view(), slot, died)]

    def of_matches(self, events: I64s, conjunctions: I32s) -> tuple[I64s, I32s]:
        """Pairs of event and slot for pairs of event and conjunction, each once, grouped by event like the input."""
        edges = self.view()
        room = int(edges.owners[conjunctions].sum(dtype=np.int64))
        found, slots = np.empty(room, np.int64), np.empty(room, np.int32)
        if _owners_of(edges, events, conjunctions, found, slots):
            # Several clauses of a subscription may match: name it once per event.
            pairs = np.unique(found * len(self) + slots)
            return pairs // len(self), (pairs % len(self)).astype(np.int32)
        return found, slots


@lean_kernel
def _link(edges: Edges, first: int, born: I32s) -> int:
    count = 0
    for edge in range(first, len(edges.clause)):
        clause = edges.clause[edge]
        head = edges.head[clause]
        edges.next[edge] = head
        edges.previous[edge] = _NONE
        if head != _NONE:
            edges.previous[head] = edge
        else:
            born[count] = clause
            count += 1
        edges.head[clause] = edge
        edges.owners[clause] += 1
    return count


@lean_kernel
def _unlink(edges: Edges, slot: int, died: I32s) -> int:
    count = 0
    start = edges.first_edge[slot]
    for edge in range(start, start + edges.edges[slot]):
        clause = edges.clause[edge]
        before, after = edges.previous[edge], edges.next[edge]
        if before != _NONE:
            edges.next[before] = after
        else:
            edges.head[clause] = after
        if after != _NONE:
            edges.previous[after] = before
        edges.owners[clause] -= 1
        if edges.owners[clause] == 0:
            died[count] = clause
            count += 1
    edges.edges[slot] = 0
    return count


@lean_kernel
def _owners_of(edges: Edges, events: I64s, conjunctions: I32s, found: I64s, slots: I32s) -> bool:
    """Write the owners of every pair; returns whether some of them have several clauses."""
    filled = 0
    several = False
    for i in range(len(events)):
        edge = edges.head[conjunctions[i]]
        while edge != _NONE:
            slot = edges.slot[edge]
            several = several or edges.edges[slot] > 1
            found[filled] = events[i]
            slots[filled] = slot
            filled += 1
            edge = edges.next[edge]
    return several


def verify(
    edges: Edges, programs: Programs, batch: EventBatch, dimensions: int, events: I64s, slots: I32s
) -> tuple[Bools, int]:
    """Run the programs of the slots that have one; returns which pairs remain, and how many programs were run."""
    kept = np.ones(len(events), np.bool_)
    return kept, _verify(edges.program, programs, batch, event_places(dimensions), events, slots, kept)


@lean_kernel
def _verify(
    program: I64s, programs: Programs, batch: EventBatch, places: EventPlaces, events: I64s, slots: I32s, kept: Bools
) -> int:
    loaded, verified = _NONE, 0
    for i in range(len(events)):
        step = program[slots[i]]
        if step == NO_PROGRAM:
            continue
        if loaded != events[i]:
            if loaded != _NONE:
                unload_event(batch, loaded, places)
            loaded = events[i]
            load_event(batch, loaded, places)
        verified += 1
        kept[i] = accepts(step, programs, batch, places)
    return verified
