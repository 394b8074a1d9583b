"""OpIndex over subscriptions in conjunctive normal form (section 6.1): bitmaps instead of counters, several pivots.

    S = (A = 1 | B = 2) & (C <= 3 | D = 4 | A >= 7) & (E BETWEEN 3 AND 9 | D = 5)

    rewritten    (A = 1 | B = 2)  (C <= 3 | D = 4 | A >= 7)  (E >= 3 | D = 5)  (E <= 9 | D = 5)
    bit           0                1                          2                 3
    pivots       all attributes of the clause with the fewest predicates; of several clauses, of that whose attributes are
                 least frequent together: here {A, B}, {D, E} or {D, E}
    V_A, V_B     S: 1111, in both: whichever of them an event has, the lists of that pivot have all predicates of S

A predicate that is true clears the bit of its clause; a bitmap of zeros is a match, found once however many pivots the
event has. The pointer of an entry is ``word << 6 | bit``; a subscription with more than 64 clauses has several words, which
all must be zero. Subscriptions in disjunctive normal form need nothing of this: each of their conjunctions is a subscription
of `index.OpIndex`, and the store unites what they find.

Departures from the paper:

- An interval inside a disjunction is distributed over it, as above; a subscription of more than
  `MOST_CLAUSES` clauses then is refused.
- A clause with IS NULL has no bit; it is verified when the others are zero, or with every event if there are no others.
- Events with several values or intervals, and deleting: as in `index`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.events import EventBatch, holds, load, unload
from tamis.encoding.growing import GrowingArray
from tamis.encoding.kernel import inlined, lean_kernel, merged
from tamis.encoding.numbers import I64, U64, UP
from tamis.encoding.predicates import GrowingPredicates
from tamis.encoding.runs import run_indices
from tamis.index.collecting import CANDIDATES, NODES, PREDICATES, collect
from tamis.index.interface import Matches, Numbers
from tamis.index.op_index.clauses import CnfRows, Distributed, distributed
from tamis.index.op_index.entries import NE
from tamis.index.op_index.index import OpIndexOptions
from tamis.index.op_index.lists import NO_LIST, PredicateLists, shape_of
from tamis.index.op_index.probes import ask, lower, operands_between, prepare, probes_for, segment_of
from tamis.index.op_index.runs import GrowingRuns

_FEWEST_DEAD = 64


class CnfArrays(NamedTuple):
    """V as kernels read it: a word of bitmap, whose subscription has `words` words from `first` on, both in V."""

    number: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    initial: npt.NDArray[np.uint64]
    subscription: npt.NDArray[np.int32]
    first: npt.NDArray[np.int32]
    words: npt.NDArray[np.int32]


class CnfOpIndex:
    """Subscriptions in conjunctive normal form, numbered from 0 as they are inserted; numbers are not given twice."""

    def __init__(self, options: OpIndexOptions | None = None) -> None:
        self.options = OpIndexOptions() if options is None else options
        self._start = GrowingArray(np.int64)
        self._clause = GrowingArray(np.int64)
        self._start.append(0)
        self._clause.append(0)
        self._predicates = GrowingPredicates()
        self._seen = GrowingArray(np.int64)
        self._events = 0
        self._alive = GrowingArray(np.bool_)
        self._clear()

    def _clear(self) -> None:
        chosen = self.options
        shape = shape_of(chosen.segments, chosen.signature_bits) if chosen.signatures else shape_of(1, 0)
        self.lists = PredicateLists(shape, always=chosen.sort == "always")
        self._asked = GrowingArray(np.int64)
        self._v_number = GrowingArray(np.int32)
        self._v = GrowingRuns(np.uint64, np.int32, np.int32, np.int32)
        self._verified = GrowingArray(np.bool_)
        self._rest = GrowingArray(np.int32)
        self._dead = 0

    def __len__(self) -> int:
        return int(np.count_nonzero(self._alive.view()))

    def rows(self) -> CnfRows:
        """All subscriptions that were ever inserted."""
        return CnfRows(self._start.view(), self._clause.view(), self._predicates.view())

    # -- inserting and deleting

    def insert(self, added: CnfRows) -> Numbers:
        """Take in subscriptions; returns their numbers.

        Raises
        ------
        CapabilityError
            If one of them has too many clauses.
        """
        parts = distributed(added, np.arange(len(added.start) - 1, dtype=np.int32))
        numbers = np.arange(len(self._alive), len(self._alive) + len(added.start) - 1, dtype=np.int32)
        self._start.extend(added.start[1:] + (len(self._clause) - 1))
        self._clause.extend(added.clause[1:] + len(self._predicates))
        self._predicates.extend(added.predicates)
        self._alive.grow(len(numbers), fill=True)
        self._enter(numbers, parts)
        return numbers

    def _enter(self, numbers: Numbers, parts: Distributed) -> None:
        """Choose pivots and put all entries into the lists of each."""
        attribute = parts.entries.attribute[parts.entry]
        dimensions = int(attribute.max(initial=-1)) + 1
        for column, fill in ((self._asked, 0), (self._seen, 0), (self._v_number, NO_LIST)):
            column.grow(max(0, dimensions - len(column)), fill=fill)
        self._verified.grow(int(numbers.max(initial=-1)) + 1 - len(self._verified), fill=False)
        self._verified.view()[numbers] = parts.verified
        _count_attributes(parts.start, attribute, self._asked.view())
        frequency = self._seen if self._events and self.options.pivot == "events" else self._asked
        pivots, pivot_start = np.empty(len(attribute), np.int32), np.empty(len(numbers) + 1, np.int64)
        total = _choose_pivots(parts.start, attribute, parts.bit, parts.bits, frequency.view(), pivots, pivot_start)
        self._rest.extend(numbers[parts.bits == 0])
        self._put(numbers, parts, attribute, pivots[:total], pivot_start)

    def _put(self, numbers: Numbers, parts: Distributed, attribute: Any, pivots: Any, pivot_start: Any) -> None:
        rows = np.repeat(np.arange(len(numbers)), np.diff(pivot_start))
        words = (parts.bits[rows].astype(np.int64) + 63) // 64
        distinct, place = np.unique(pivots, return_inverse=True)
        v_number = self._v_number.view()
        fresh = distinct[v_number[distinct] == NO_LIST]
        v_number[fresh] = np.arange(len(fresh)) + self._v.add(len(fresh))
        needed = np.bincount(place, weights=words, minlength=len(distinct)).astype(np.int64)
        self._v.reserve(v_number[distinct].astype(np.int64), needed)
        first = np.empty(len(rows), np.int32)
        counters = (v_number, self._v.begin, self._v.size, *self._v.columns)
        _append(numbers[rows], pivots, parts.bits[rows], counters, first)
        counts = np.diff(parts.start)[rows]
        chosen = run_indices(parts.start[:-1][rows], counts)
        self.lists.put(
            np.repeat(pivots, counts),
            parts.entries.operator[parts.entry][chosen],
            attribute[chosen],
            parts.entries.operand[parts.entry][chosen],
            (np.repeat(first, counts) << 6) + parts.bit[chosen],
        )

    def delete(self, numbers: Numbers) -> None:
        alive = self._alive.view()
        alive[numbers] = False
        self._dead += len(numbers)
        if self._dead > max(len(self), _FEWEST_DEAD):
            kept = np.flatnonzero(alive).astype(np.int32)
            self._clear()
            self._enter(kept, distributed(self.rows(), kept))

    def observe(self, batch: EventBatch, dimensions: int) -> None:
        """Learn from events how frequent attributes are."""
        self._seen.grow(max(0, dimensions - len(self._seen)), fill=0)
        leads = np.ones(len(batch.dimension), np.bool_)
        leads[1:] = batch.dimension[1:] != batch.dimension[:-1]
        leads[batch.start[:-1][batch.start[:-1] < len(leads)]] = True
        self._seen.view()[:] += np.bincount(batch.dimension[leads], minlength=len(self._seen))
        self._events += len(batch.start) - 1

    # -- matching

    def match(self, batch: EventBatch, dimensions: int) -> Matches:
        """All pairs of an event and a subscription that is true of it."""
        longest = int(self._v.size.max(initial=0))
        left, zeros = np.empty(longest, np.uint64), np.empty(longest, np.int32)
        first, count = np.zeros((2, dimensions), np.int64)
        # An event looks at a subscription of several pivots once for each, but finds and counts it once.
        touched, found = np.full((2, len(self._alive)), -1, np.int64)
        work = partial(
            _match,
            self.lists.view(),
            CnfArrays(self._v_number.view(), self._v.begin, self._v.size, *self._v.columns),
            self.rows(),
            (self._rest.view(), self._alive.view(), self._verified.view()),
            batch,
            self.lists.shape,
            probes_for(int(np.diff(batch.start).max(initial=0))),
            (left, zeros, first, count, touched, found),
        )
        return collect(batch, work)

    # -- telling

    def stats(self) -> dict[str, Any]:
        self.lists.settle()
        return {
            "subscriptions": len(self),
            "pivots": len(self._v),
            "lists": len(self.lists),
            "segments": self.lists.segments,
            "entries": self.lists.entries,
            "rest": int(np.count_nonzero(self._alive.view()[self._rest.view()])),
            "dead": self._dead,
        }

    def bitmaps(self, pivot: int) -> dict[int, int]:
        """V of a pivot: the subscriptions that are alive with their bitmaps."""
        number = int(self._v_number.view()[pivot]) if pivot < len(self._v_number) else NO_LIST
        if number == NO_LIST:
            return {}
        made: dict[int, int] = {}
        columns = (self._v.part(number, column).tolist() for column in range(4))
        for at, (word, row, first, _) in enumerate(zip(*columns, strict=True)):
            if self._alive.view()[row]:
                made[row] = made.get(row, 0) | word << 64 * (at - first)
        return made

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        self.lists.check()
        self._v.check()
        alive = np.flatnonzero(self._alive.view()).astype(np.int32)
        parts = distributed(self.rows(), alive)
        bits = dict(zip(alive.tolist(), parts.bits.tolist(), strict=True))
        entries = 0
        for pivot in range(len(self._v_number)):
            for row, bitmap in self.bitmaps(pivot).items():
                assert bitmap == (1 << bits[row]) - 1
                entries += int(np.diff(parts.start)[np.searchsorted(alive, row)])
        assert entries <= self.lists.entries
        assert entries == self.lists.entries or self._dead
        assert (self._verified.view()[alive] == parts.verified).all()


@lean_kernel
def _count_attributes(start: Any, attribute: Any, asked: Any) -> None:
    """Count the subscriptions that have each attribute."""
    for i in range(len(start) - 1):
        for e in range(start[i], start[i + 1]):
            if _is_new(attribute, start[i], e):
                asked[attribute[e]] += 1


@inlined
def _is_new(attribute: Any, begin: int, e: int) -> bool:
    """Whether no entry from `begin` on has the attribute of entry e."""
    for other in range(begin, e):  # noqa: SIM110 - a kernel
        if attribute[other] == attribute[e]:
            return False
    return True


@lean_kernel
def _choose_pivots(
    start: Any, attribute: Any, bit: Any, bits: Any, frequency: Any, pivots: Any, pivot_start: Any
) -> int:
    """Write the attributes of the clause with the fewest predicates of every subscription; how many there are in all."""
    total = 0
    for i in range(len(start) - 1):
        pivot_start[i] = total
        best_begin, best_end, best_frequency, clauses = I64(0), I64(0), I64(0), 0
        begin = start[i]
        while begin < start[i + 1]:
            end, summed = begin, I64(0)
            while end < start[i + 1] and bit[end] == bit[begin]:
                if _is_new(attribute, begin, end):
                    summed += frequency[attribute[end]]
                end += 1
            size, least = end - begin, best_end - best_begin
            if clauses == 0 or size < least or (size == least and summed < best_frequency):
                best_begin, best_end, best_frequency = begin, end, summed
            clauses += 1
            begin = end
        if clauses == bits[i]:  # Otherwise one has no predicates and is never true.
            for e in range(best_begin, best_end):
                if _is_new(attribute, best_begin, e):
                    pivots[total] = attribute[e]
                    total += 1
    pivot_start[len(start) - 1] = total
    return total


@lean_kernel
def _append(numbers: Any, pivots: Any, bits: Any, counters: Any, places: Any) -> None:
    """Append the bitmap of each subscription to those of a pivot; `places` receives where in V it begins."""
    v_number, begin, size, initial, subscription, first, words = counters
    for i in range(len(numbers)):
        target = v_number[pivots[i]]
        places[i] = size[target]
        count = (bits[i] + 63) // 64
        for word in range(count):
            at = begin[target] + size[target] + word
            ones = min(bits[i] - 64 * word, 64)
            initial[at] = ~U64(0) >> U64(64 - ones)
            subscription[at], first[at], words[at] = numbers[i], size[target], count
        size[target] += count


@inlined
def _is_true(
    s: int,
    start: Any,
    clause: Any,
    dimension: Any,
    mode: Any,
    begin: Any,
    p_lo: Any,
    p_hi: Any,
    lo: Any,
    hi: Any,
    first: Any,
    count: Any,
) -> bool:
    """Whether a subscription is true of the event that was laid out by `load`."""
    for k in range(start[s], start[s + 1]):
        some = False
        for p in range(clause[k], clause[k + 1]):
            d = dimension[p]
            if holds(mode[p], p_lo, p_hi, begin[p], begin[p + 1], lo, hi, first[d], count[d]):
                some = True
                break
        if not some:
            return False
    return True


@merged
def _scan(
    operator: int,
    d: int,
    lo: int,
    hi: int,
    low: int,
    high: int,
    at: int,
    last: int,
    attributes: Any,
    operands: Any,
    pointers: Any,
    left: Any,
    zeros: Any,
    zero: int,
) -> tuple[int, int]:
    """Clear the bits of the entries of a segment that are true of a value; how many words are zero now, how many looked at."""
    at = lower(attributes, operands, at, last, d, low)
    begin = at
    while at < last and attributes[UP(at)] == d and operands[UP(at)] <= high:
        if operator != NE or not lo <= operands[UP(at)] <= hi:
            word, mask = pointers[UP(at)] >> 6, U64(1) << U64(pointers[UP(at)] & 63)
            if left[UP(word)] & mask:
                left[UP(word)] &= ~mask
                if left[UP(word)] == 0:
                    zeros[UP(zero)] = word
                    zero += 1
        at += 1
    return zero, at - begin


@lean_kernel
def _match(
    lists: Any,
    counters: Any,
    rows: Any,
    flags: Any,
    batch: Any,
    shape: Any,
    probes: Any,
    scratch: Any,
    event: int,
    counts: Any,
    out: Any,
    work: Any,
) -> int:
    """Algorithm 2 with bitmaps, for every event from one on."""
    l_number, l_begin, attributes, operands, pointers, directory, signature = lists
    v_number, v_begin, v_size, initial, subscription, v_first, v_words = counters
    s_start, clause, predicates = rows
    p_dimension, p_mode, p_start, p_lo, p_hi = predicates
    rest, alive, verified = flags
    start, dimension, lo, hi = batch
    segments, bits, words = shape
    leads, least, most, segment, equal_word, equal_mask, attribute_word, attribute_mask, hits = probes
    left, zeros, first, count, touched, found = scratch
    filled = 0
    for e in range(event, len(start) - 1):
        before = filled
        candidates, tested, nodes = 0, 0, 0
        begin, end = start[e], start[e + 1]
        load(start, dimension, e, first, count)
        plain = prepare(
            begin, end, dimension, lo, hi, segments, bits, words, leads, least, most, segment, equal_word, equal_mask,
            attribute_word, attribute_mask,
        )  # fmt: skip
        for s in rest:
            if alive[s]:
                candidates += 1
                tested += clause[s_start[s + 1]] - clause[s_start[s]]
                if _is_true(s, s_start, clause, p_dimension, p_mode, p_start, p_lo, p_hi, lo, hi, first, count):
                    if filled < len(out):
                        out[filled] = s
                    filled += 1
        for a in range(begin, end):
            pivot = dimension[a]
            if not leads[a - begin] or pivot >= len(v_number) or v_number[pivot] == NO_LIST:
                continue
            base, size = v_begin[v_number[pivot]], v_size[v_number[pivot]]
            for i in range(size):
                left[i] = initial[base + i]
            zero = 0
            asked = ask(
                pivot, end - begin, l_number, signature, segments * words, leads, equal_word, equal_mask,
                attribute_word, attribute_mask, hits,
            )  # fmt: skip
            for h in range(asked):
                v, operator, from_, to = segment_of(hits[h], pivot, l_number, l_begin, directory, segments, segment)
                if from_ < to:
                    nodes += 1
                    low, high = operands_between(operator, lo[begin + v], hi[begin + v], least[v], most[v])
                    zero, looked = _scan(
                        operator, dimension[begin + v], lo[begin + v], hi[begin + v], low, high, from_, to,
                        attributes, operands, pointers, left, zeros, zero,
                    )  # fmt: skip
                    tested += looked
            for i in range(size):
                s = subscription[base + i]
                if left[i] != initial[base + i] and alive[s] and touched[s] != e:
                    touched[s] = e
                    candidates += 1
            for i in range(zero):
                at = base + zeros[i]
                s = subscription[at]
                if not alive[s] or found[s] == e:
                    continue
                done = True
                for word_of in range(v_first[at], v_first[at] + v_words[at]):
                    done &= left[word_of] == 0
                if done and (not plain or verified[s]):
                    tested += clause[s_start[s + 1]] - clause[s_start[s]]
                    done = _is_true(s, s_start, clause, p_dimension, p_mode, p_start, p_lo, p_hi, lo, hi, first, count)
                if done:
                    found[s] = e
                    if filled < len(out):
                        out[filled] = s
                    filled += 1
        unload(start, dimension, e, count)
        if filled > len(out):
            # The event comes again: nothing of it was found yet.
            for s in range(len(found)):
                found[s] = touched[s] = -1
            return e
        counts[e] = filled - before
        work[CANDIDATES] += candidates
        work[PREDICATES] += tested
        work[NODES] += nodes
    return len(start) - 1
