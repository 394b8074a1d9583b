"""Predicate lists L(A, op): the predicates with one operator of all subscriptions with one pivot attribute (section 4.2).

    list            L(A, =), two segments: attributes with even and with odd numbers
    directory       0         2            5            where segments begin, and the end
    signature       0100      1010                      a bit for the hash of each entry in the segment
    attribute       A   A   | B   B   B
    operand         2   2   | 3   6   9                 sorted by attribute, then operand, in every segment
    pointer         0   2   | 0   0   0                 the counter of the subscription in V_A

New entries are `pending` until the lists are read. Then they are sorted once and merged into their lists. With `always`, each
entry is put in its place before the next one, as in an index that matches after every insertion (PS-Tree, 7.2.1, measures
both).

Invariants: the segment of an attribute is its number modulo b; a segment is sorted; the bit of each of its entries is
set in its signature. Bits of entries that are gone may stay.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.kernels.bits import WORD, set_bit, words_for
from tamis.kernels.growing import GrowingArray
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP, I32s, I64s, U8s, U64s
from tamis.papers.op_index.entries import EQ, OPERATORS
from tamis.papers.op_index.growing_lists import GrowingLists

NO_LIST = -1


class Shape(NamedTuple):
    """How lists are divided: b segments, w bits of a signature (0: no signatures), and the number of words for them."""

    segments: int
    bits: int
    words: int


def shape_of(segments: int, bits: int) -> Shape:
    return Shape(segments, bits, words_for(bits))


class ListArrays(NamedTuple):
    """The lists as kernels take them; `number` is by 4 * pivot + operator."""

    number: I32s
    operator: U8s
    begin: I64s
    size: I64s
    attribute: I32s
    operand: I64s
    pointer: npt.NDArray[Any]
    directory: I32s
    signature: U64s


class _Pending(NamedTuple):
    """Entries that are not in their lists yet, with the numbers of these lists."""

    number: I32s
    attribute: I32s
    operand: I64s
    pointer: npt.NDArray[Any]


class PredicateLists:
    """All lists of an index."""

    def __init__(self, shape: Shape, always: bool = False, pointer_type: npt.DTypeLike = np.int32) -> None:
        self.shape = shape
        self._always = always
        self._pointer_type = pointer_type
        self._number = GrowingArray(np.int32)
        self._operator = GrowingArray(np.uint8)
        self._runs = GrowingLists(np.int32, np.int64, pointer_type)
        self._directory = GrowingArray(np.int32)
        self._signature = GrowingArray(np.uint64)
        self._signature.grow(
            1 if shape.bits == 0 else 0, fill=0
        )  # kernels may read a word even if there are no signatures
        self._forget_pending()

    def _forget_pending(self) -> None:
        self._pending = [GrowingArray(dtype) for dtype in (np.int32, np.int32, np.int64, self._pointer_type)]

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def nbytes(self) -> int:
        columns = (self._number, self._operator, self._directory, self._signature, *self._pending)
        return self._runs.nbytes + sum(column.nbytes for column in columns)

    @property
    def entries(self) -> int:
        return int(self._runs.size.sum()) + len(self._pending[0])

    @property
    def segments(self) -> int:
        """How many segments have entries."""
        directory = self._directory.view().reshape(-1, self.shape.segments + 1)
        return int(np.count_nonzero(np.diff(directory, axis=1)))

    def view(self) -> ListArrays:
        """The lists with everything in its place."""
        self.settle()
        return self._arrays()

    def _arrays(self) -> ListArrays:
        attribute, operand, pointer = self._runs.columns
        return ListArrays(
            self._number.view(),
            self._operator.view(),
            self._runs.begin,
            self._runs.size,
            attribute,
            operand,
            pointer,
            self._directory.view(),
            self._signature.view(),
        )

    def put(self, pivot: I32s, operator: U8s, attribute: I32s, operand: I64s, pointer: npt.NDArray[Any]) -> None:
        """Insert predicates of subscriptions with these pivots, with pointers to their counters."""
        if len(pivot) == 0:
            return
        keys = pivot.astype(np.int64) * OPERATORS + operator
        missing = int(keys.max()) + 1 - len(self._number)
        if missing > 0:
            self._number.grow(missing, fill=NO_LIST)
        number = self._number.view()
        fresh = np.unique(keys[number[keys] == NO_LIST])
        number[fresh] = np.arange(len(fresh)) + self._add(fresh % OPERATORS)
        for column, values in zip(self._pending, (number[keys], attribute, operand, pointer), strict=True):
            column.extend(values)
        if self._always:
            self.settle()

    def _add(self, operators: I64s) -> int:
        """Make empty lists for these operators; returns the number of the first."""
        count = len(operators)
        self._operator.extend(operators)
        self._directory.grow(count * (self.shape.segments + 1), fill=0)
        self._signature.grow(count * self.shape.segments * self.shape.words, fill=0)
        return self._runs.add(count)

    def settle(self) -> None:
        """Bring pending entries to their places."""
        pending = _Pending(*(column.view() for column in self._pending))
        if len(pending.number) == 0:
            return
        order = np.arange(len(pending.number)) if self._always else self._sorted(pending)
        lists, added = np.unique(pending.number, return_counts=True)
        self._runs.reserve(lists.astype(np.int64), added)
        _merge(pending, order, self._arrays(), self.shape, self._always)
        self._forget_pending()

    def _sorted(self, pending: _Pending) -> I64s:
        """The order by list, segment, attribute and operand."""
        number, attribute, operand = pending.number, pending.attribute, pending.operand
        if len(number) < _FEWEST_TO_COUNT:
            return np.lexsort((operand, attribute, attribute % self.shape.segments, number))
        dimensions = np.arange(int(attribute.max()) + 1)
        rank = np.empty(len(dimensions), np.int32)
        rank[np.lexsort((dimensions, dimensions % self.shape.segments))] = dimensions
        order = np.argsort(operand, kind="stable")
        for codes in (rank[attribute], number):
            sorted_order = np.empty_like(order)
            _counted(codes, order, np.zeros(int(codes.max()) + 2, np.int64), sorted_order)
            order = sorted_order
        return order

    def content(self, pivot: int, operator: int) -> list[list[tuple[int, int, int]]]:
        """A list as (attribute, operand, pointer), segment by segment: for tests and inspection."""
        self.settle()
        key = pivot * OPERATORS + operator
        number = int(self._number.view()[key]) if key < len(self._number) else NO_LIST
        if number == NO_LIST:
            return [[] for _ in range(self.shape.segments)]
        rows = list(zip(*(self._runs.part(number, column).tolist() for column in range(3)), strict=True))
        at = self._directory.view().reshape(-1, self.shape.segments + 1)[number].tolist()
        return [rows[begin:end] for begin, end in pairwise(at)]

    def signature(self, pivot: int, operator: int) -> list[int]:
        """The signatures of a list's segments."""
        self.settle()
        number = int(self._number.view()[pivot * OPERATORS + operator])
        words = self._signature.view().reshape(-1, self.shape.segments, self.shape.words)[number].tolist()
        return [sum(word << WORD * i for i, word in enumerate(each)) for each in words]

    def check(self) -> None:
        """Raise an AssertionError if an invariant does not hold."""
        self.settle()
        self._runs.check()
        number = self._number.view()
        assert np.sort(number[number != NO_LIST]).tolist() == list(range(len(self)))
        for key in np.flatnonzero(number != NO_LIST).tolist():
            assert self._operator.view()[number[key]] == key % OPERATORS
            segments = self.content(key // OPERATORS, key % OPERATORS)
            assert sum(map(len, segments)) == self._runs.size[number[key]]
            for segment, entries in enumerate(segments):
                assert all(attribute % self.shape.segments == segment for attribute, _, _ in entries)
                assert [each[:2] for each in entries] == sorted(each[:2] for each in entries)
            if self.shape.bits:
                for entries, signature in zip(segments, self.signature(*divmod(key, OPERATORS)), strict=True):
                    for attribute, operand, _ in entries:
                        bit = int(signature_bit(key % OPERATORS, attribute, operand, self.shape.bits))
                        assert signature >> bit & 1


_FEWEST_TO_COUNT = 1 << 10


@inlined
def signature_bit(operator: int, attribute: int, operand: int, bits: int) -> int:
    """h(attribute, operator, operand): for `=` a hash of attribute and operand, otherwise of the attribute alone."""
    mixed = fold(SEED, U64(I64(attribute)))
    if operator == EQ:
        mixed = fold(mixed, U64(I64(operand)))
    return I64(mixed % U64(bits))


@lean_kernel
def _counted(codes: I32s, order: I64s, counts: I64s, out: I64s) -> None:
    """Sort by small codes, stably."""
    for code in codes:
        counts[code + 1] += 1
    for code in range(1, len(counts)):
        counts[code] += counts[code - 1]
    for i in order:
        code = codes[i]
        out[counts[code]] = i
        counts[code] += 1


@inlined
def _behind(attribute: int, operand: int, other: int, other_operand: int, segments: int) -> bool:
    """Whether an entry of a list comes behind another."""
    if attribute == other:
        return operand > other_operand
    segment, other_segment = attribute % segments, other % segments
    return segment > other_segment or (segment == other_segment and attribute > other)


@lean_kernel
def _merge(pending: _Pending, order: I64s, lists: ListArrays, shape: Shape, one_by_one: bool) -> None:
    """Insert entries: all entries of a list together, in the order of the list, or one by one."""
    number, attribute, operand, segments = pending.number, pending.attribute, pending.operand, shape.segments
    attributes, operands, pointers = lists.attribute, lists.operand, lists.pointer
    i = 0
    while i < len(order):
        target = number[order[i]]
        end = i + 1
        while not one_by_one and end < len(order) and number[order[end]] == target:
            end += 1
        first = i
        old = lists.begin[target] + lists.size[target] - 1
        to = old + end - i
        for k in range(end - 1, i - 1, -1):
            e = order[k]
            while old >= lists.begin[target] and _behind(
                attributes[UP(old)], operands[UP(old)], attribute[e], operand[e], segments
            ):
                attributes[UP(to)], operands[UP(to)] = attributes[UP(old)], operands[UP(old)]
                pointers[UP(to)] = pointers[UP(old)]
                old, to = old - 1, to - 1
            attributes[UP(to)], operands[UP(to)], pointers[UP(to)] = attribute[e], operand[e], pending.pointer[e]
            to -= 1
        lists.size[target] += end - i
        place = target * (segments + 1)
        for segment in range(segments):
            while i < end and attribute[order[i]] % segments == segment:
                if shape.bits:
                    bit = signature_bit(lists.operator[target], attribute[order[i]], operand[order[i]], shape.bits)
                    set_bit(lists.signature, (target * segments + segment) * shape.words * WORD + bit)
                i += 1
            lists.directory[place + segment + 1] += i - first
