"""`op-index` with the option `cnf`: conjunctions of disjunctions as they are (section 6.1), by bitmaps and several pivots.

    S = (A = 1 | B = 2) & (C <= 3 | D = 4 | A >= 7) & (E BETWEEN 3 AND 9 | D = 5)

    rewritten    (A = 1 | B = 2)  (C <= 3 | D = 4 | A >= 7)  (E >= 3 | D = 5)  (E <= 9 | D = 5)
    bit           0                1                          2                 3
    pivots       all attributes of the factor with the fewest attributes; of several such factors, the one whose attributes
                 are least frequent together: here {A, B}, {D, E} or {D, E}
    V_A, V_B     S: 1111, in both: if an event has one of the pivots, the lists of this pivot have all predicates of S

A true predicate clears the bit of its factor; a bitmap of zeros is a match. An event finds S under each pivot of S that the event
has, and reports S under the first of them. The pointer of an entry is ``64 * word + bit``. A subscription with more than 64
factors has several words, which must all be zero. Expressions in disjunctive normal form do not need bitmaps: each of their
conjunctions is a row, and the store unites the matches.

    _pivot       the first pivot of a row               _pivots     A  B  - | D  E  - |       up to END
    _place       where its pivots are in `_pivots`      _places     0  4  - | 0  1  - |       its first word in V of that pivot

Invariants: under every pivot of a row in the index, its words have all bits of its factors; a row without bits is in the rest.

Departures from the paper:

- The shortest factor is the one with the fewest attributes, not predicates: ``A IN (1, 2, 3)`` is short.
- An interval inside a disjunction is distributed over it, as above. A factor that would become too many factors, or that has
  IS NULL, has no bit. It is verified when all bits are zero, or with every event if the row has no bits.
- Events with several values or intervals, and deleting: as in `index`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tamis.encoding.expressions.conjunctions import Conjunctions, canonical
from tamis.kernels.bits import WORD, words_for
from tamis.kernels.growing import GrowingArray
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, I32s, I64s
from tamis.kernels.ranges import span_indices
from tamis.papers.factor_table import FactorTable
from tamis.papers.op_index.counting_index import REST, Added, CountingOpIndex, ListEntries
from tamis.papers.op_index.factors import Distributed, distributed
from tamis.papers.op_index.growing_lists import GrowingLists
from tamis.papers.op_index.matching import GONE, BitmapArrays, CounterArrays

END = -1


class CnfOpIndex(CountingOpIndex):
    """Several pivots, operator lists, bitmaps."""

    table: FactorTable
    table_type = FactorTable
    _pointer_type = np.int64
    _v_types = (np.uint64, np.int32, np.bool_, np.int32, np.int32)
    """The columns of V: a word of a bitmap, conjunction, whether it must be verified, first word, how many words."""

    def _clear(self) -> None:
        super()._clear()
        self._pivots = GrowingArray(np.int32)
        self._places = GrowingArray(np.int32)

    def _predicates(self, conjunctions: I32s) -> tuple[Conjunctions, I32s]:
        return canonical(self.table.taken(conjunctions).flat()), np.arange(len(conjunctions), dtype=np.int32)

    def _enter(self, conjunctions: I32s, frequency: I64s) -> None:
        """Choose pivots, append a bitmap to V of each pivot, and put all predicates into the lists of each pivot."""
        parts = distributed(self.table.taken(conjunctions))
        start = np.zeros(len(conjunctions) + 1, np.int64)
        pivots = np.empty(len(parts.attribute) + len(conjunctions), np.int32)
        seen = np.full(len(self._asked), -1, np.int64)
        pivots = pivots[: _choose_pivots(parts, frequency, seen, start, pivots)]
        first = pivots[start[:-1]]
        self._pivot.view()[conjunctions] = np.where(first == END, REST, first)
        self._place.view()[conjunctions] = len(self._pivots) + start[:-1]
        rows = np.repeat(np.arange(len(conjunctions)), np.diff(start))[pivots != END]
        places = np.full(len(pivots), END, np.int32)
        places[pivots != END] = self._put(conjunctions, parts, rows, pivots[pivots != END])
        self._pivots.extend(pivots)
        self._places.extend(places)

    def _put(self, conjunctions: I32s, parts: Distributed, rows: npt.NDArray[np.intp], pivots: I32s) -> I32s:
        """Enter each row under each of its pivots; returns the places of its words in V."""
        self._make_room(pivots, words_for(parts.bits[rows].astype(np.int64)))
        places = np.empty(len(rows), np.int32)
        added = Added(conjunctions[rows], pivots, parts.bits[rows], parts.verified[rows])
        _append(added, self._v_arrays(), self._bitmaps(), places)
        counts = np.diff(parts.start)[rows]
        chosen = span_indices(parts.start[rows], counts)
        self.lists.put(
            np.repeat(pivots, counts),
            parts.operator[chosen],
            parts.attribute[chosen],
            parts.operand[chosen],
            WORD * np.repeat(places.astype(np.int64), counts) + parts.bit[chosen],
        )
        return places

    def _kill(self, rows: I32s) -> None:
        _forget(rows, self._v_arrays(), self._bitmaps(), self._places.view())

    def _bitmaps(self) -> BitmapArrays:
        first, words = self._v.columns[3:]
        rows = self.table.view()
        return BitmapArrays(
            first, words, self._place.view(), self._pivots.view(), rows.start, rows.predicates.dimension
        )

    def _rows(self) -> Conjunctions:
        return self.table.factors.view()

    # -- telling

    def _columns(self) -> list[GrowingArray | GrowingLists]:
        return [*super()._columns(), self._pivots, self._places]

    def counters(self, pivot: int) -> dict[int, int]:
        """V of a pivot: the live conjunctions and their bitmaps."""
        made: dict[int, int] = {}
        columns = (self._v_part(pivot, column).tolist() for column in (0, 1, 3))
        for at, (word, row, first) in enumerate(zip(*columns, strict=True)):
            if row != GONE:
                made[row] = made.get(row, 0) | word << WORD * (at - first)
        return made

    def pivots_of(self, row: int) -> list[int]:
        """The pivots of a conjunction."""
        held: list[int] = self._pivots.view()[self._place.view()[row] :].tolist()
        return held[: held.index(END)]

    def _in_v(self, pointer: int) -> int:
        return pointer // WORD

    def _check_v(self, rows: I32s) -> ListEntries:
        parts = distributed(self.table.taken(rows))
        expected: ListEntries = {}
        words = 0
        for i, row in enumerate(rows.tolist()):
            assert self._pivot.view()[row] == self.pivots_of(row)[0]
            entries = range(parts.start[i], parts.start[i + 1])
            assert not set(self.pivots_of(row)) - set(parts.attribute[entries].tolist())
            for k, pivot in enumerate(self.pivots_of(row)):
                place = int(self._places.view()[self._place.view()[row] + k])
                words += self._check_words(pivot, place, row, int(parts.bits[i]), bool(parts.verified[i]))
                for e in entries:
                    entry = int(parts.attribute[e]), int(parts.operand[e]), WORD * place + int(parts.bit[e])
                    expected.setdefault((pivot, int(parts.operator[e])), []).append(entry)
        alive = sum(np.count_nonzero(self._v_part(pivot, 1) != GONE) for pivot in range(len(self._v_number)))
        assert alive == words
        assert alive == int(self._v.size.sum()) or self._dead
        return expected

    def _check_words(self, pivot: int, place: int, row: int, bits: int, verified: bool) -> int:
        """Check the bitmap of a row in V of a pivot; how many words it has."""
        words = words_for(bits)
        assert self.counters(pivot)[row] == (1 << bits) - 1
        for column, value in enumerate((row, verified, place, words), start=1):
            assert (self._v_part(pivot, column)[place : place + words] == value).all()
        return words


@lean_kernel
def _choose_pivots(parts: Distributed, frequency: I64s, seen: I64s, pivot_start: I64s, pivots: I32s) -> int:
    """Write, for every row, the attributes of the factor with the fewest, then END; returns how many numbers in all.

    A row whose factors have no entries gets none. `seen` is by attribute, and starts with negative numbers.
    """
    start, attribute, bit, total = parts.start, parts.attribute, parts.bit, I64(0)
    for i in range(len(start) - 1):
        pivot_start[i] = total
        best, best_frequency = I64(0), I64(0)
        begin = start[i]
        while begin < start[i + 1]:
            end, size, summed = begin, I64(0), I64(0)
            while end < start[i + 1] and bit[end] == bit[begin]:
                if seen[attribute[end]] != begin:
                    seen[attribute[end]] = begin
                    size += 1
                    summed += frequency[attribute[end]]
                end += 1
            if best == 0 or size < best or (size == best and summed < best_frequency):
                best, best_frequency = size, summed
                _write_attributes(attribute, begin, end, pivots, total)
            begin = end
        total += best
        pivots[total] = END
        total += 1
    pivot_start[len(start) - 1] = total
    return total


@inlined
def _write_attributes(attribute: I32s, begin: int, end: int, pivots: I32s, first: int) -> None:
    """Write each attribute of a factor once."""
    at = first
    for e in range(begin, end):
        known = e > begin and attribute[e] == attribute[e - 1]
        for other in range(first, at):
            known = known or pivots[other] == attribute[e]
        if not known:
            pivots[at] = attribute[e]
            at += 1


@lean_kernel
def _append(added: Added, counters: CounterArrays, bitmaps: BitmapArrays, places: I32s) -> None:
    """Append the bitmap of each row to V of a pivot; `places` receives where in V it begins."""
    for i in range(len(added.row)):
        target, count = counters.number[added.pivot[i]], words_for(added.factors[i])
        places[i] = counters.size[target]
        for word in range(count):
            at = counters.begin[target] + places[i] + word
            counters.initial[at] = ~U64(0) >> U64(WORD - min(added.factors[i] - WORD * word, WORD))
            counters.conjunction[at], counters.verified[at] = added.row[i], added.verified[i]
            bitmaps.first[at], bitmaps.words[at] = places[i], count
        counters.size[target] += count


@lean_kernel
def _forget(rows: I32s, counters: CounterArrays, bitmaps: BitmapArrays, places: I32s) -> None:
    """Mark the words of rows as gone, under every pivot."""
    for c in rows:
        at = bitmaps.place[c]
        while bitmaps.pivots[at] != END:
            first = counters.begin[counters.number[bitmaps.pivots[at]]] + places[at]
            for word in range(first, first + bitmaps.words[first]):
                counters.conjunction[word] = GONE
            at += 1
