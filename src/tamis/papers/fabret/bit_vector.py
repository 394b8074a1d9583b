"""The predicate bit vector: every distinct predicate owns a bit, for as long as some subscription has the predicate.

    id           0    1    2   ...  63 | 64 ...  127 | 128 ...
    exemplar     12   FREE 40       7  | 9       FREE            a predicate of the table that is equal to it
    references   3    0    1        1  | 8       0               how many conjunctions in the index have it
    bits         ....................  | ..........  | ....      one word for 64 ids
    rest         `bits` between events: 1 for IS NULL, which is true of dimensions that an event does not have
    fill         0                     | 0b1...      | 0         blocks: the ids in use

A *block* is a word for the predicates of one dimension that are true of most values, or of all: <>, NOT IN, IS NOT NULL. An
event that has the dimension sets all bits of its blocks, 64 at a time, and then clears the bits of predicates that do not hold.
The blocks of dimension d are ``block[d]``, ``following[block[d]]``, and so on.

Invariants: an id in use is found by its hash, and two of them are never equal; `bits` equals `rest` between events; an id with
an exemplar and no references is *retired*: no subscription has it, but some range may still set its bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.intervals import EVERYTHING
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP

FREE = -1
NONE_LEFT = -1
WORD = 64
_SOME, _NONE, _ABSENT = int(Mode.SOME), int(Mode.NONE), int(Mode.ABSENT)
_LOWEST, _HIGHEST = EVERYTHING[0]
_LOWEST_WORDS = 2
_LOWEST_SLOTS = 16

WORDS, FREE_IDS, FREE_WORDS, LIVE = range(4)
"""Places in `totals`: words ever used, free ids, free words, ids with references."""


class BitArrays(NamedTuple):
    """The bit vector as kernels take it."""

    exemplar: npt.NDArray[np.int64]
    hash: npt.NDArray[np.uint64]
    references: npt.NDArray[np.int32]
    slots: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint64]
    rest: npt.NDArray[np.uint64]
    fill: npt.NDArray[np.uint64]
    following: npt.NDArray[np.int32]
    block: npt.NDArray[np.int32]
    absent: npt.NDArray[np.int32]
    free: npt.NDArray[np.int32]
    free_words: npt.NDArray[np.int32]
    totals: npt.NDArray[np.int64]


class BitVector:
    """The distinct predicates of the conjunctions in an index, by number."""

    def __init__(self) -> None:
        words, ids = _LOWEST_WORDS, _LOWEST_WORDS * WORD
        self._arrays = BitArrays(
            np.full(ids, FREE, np.int64),
            np.zeros(ids, np.uint64),
            np.zeros(ids, np.int32),
            np.full(_LOWEST_SLOTS, FREE, np.int32),
            np.zeros(words, np.uint64),
            np.zeros(words, np.uint64),
            np.zeros(words, np.uint64),
            np.full(words, NONE_LEFT, np.int32),
            np.full(0, NONE_LEFT, np.int32),
            np.full(0, NONE_LEFT, np.int32),
            np.zeros(ids, np.int32),
            np.zeros(words, np.int32),
            np.zeros(4, np.int64),
        )

    def __len__(self) -> int:
        """How many predicates there are."""
        return int(self._arrays.totals[LIVE])

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    @property
    def capacity(self) -> int:
        """A number above all ids."""
        return len(self._arrays.exemplar)

    def view(self) -> BitArrays:
        return self._arrays

    def cover(self, dimensions: int) -> None:
        """Make room for predicates on `dimensions` dimensions."""
        block, absent = self._arrays.block, self._arrays.absent
        if dimensions > len(block):
            room = max(dimensions, 2 * len(block))
            self._arrays = self._arrays._replace(
                block=_longer(block, room, NONE_LEFT), absent=_longer(absent, room, NONE_LEFT)
            )

    def intern(
        self, table: Conjunctions, numbers: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Add a reference to each predicate of the table; returns their ids, and the ids that are new."""
        ids, fresh = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.int32)
        progress = np.zeros(2, np.int64)
        while not _intern(self._arrays, table.predicates, numbers, ids, fresh, progress):
            self._enlarge()
        return ids, fresh[: progress[1]]

    def find(self, table: Conjunctions, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The id of each predicate of the table; all must be known."""
        ids = np.empty(len(numbers), np.int32)
        _find(self._arrays, table.predicates, numbers, ids)
        return ids

    def release(self, ids: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Take one reference from each id; returns the ids without references, which are not free yet."""
        died = np.empty(len(ids), np.int32)
        return died[: _release(self._arrays, ids, died)]

    def set_free(self, table: Conjunctions, ids: npt.NDArray[np.int32]) -> None:
        """Let ids without references be used again."""
        _set_free(self._arrays, table.predicates, ids)

    def _enlarge(self) -> None:
        arrays = self._arrays
        if 2 * (arrays.totals[LIVE] + 1) > len(arrays.slots):
            slots = np.full(2 * len(arrays.slots), FREE, np.int32)
            _fill_slots(arrays.hash, arrays.references, slots)
            arrays = arrays._replace(slots=slots)
        if arrays.totals[WORDS] == len(arrays.bits):
            words = 2 * len(arrays.bits)
            ids = words * WORD
            arrays = arrays._replace(
                exemplar=_longer(arrays.exemplar, ids, FREE),
                hash=_longer(arrays.hash, ids, 0),
                references=_longer(arrays.references, ids, 0),
                bits=_longer(arrays.bits, words, 0),
                rest=_longer(arrays.rest, words, 0),
                fill=_longer(arrays.fill, words, 0),
                following=_longer(arrays.following, words, NONE_LEFT),
                free=_longer(arrays.free, ids, 0),
                free_words=_longer(arrays.free_words, words, 0),
            )
        self._arrays = arrays


def _longer(array: npt.NDArray[Any], length: int, fill: int) -> npt.NDArray[Any]:
    longer = np.full(length, fill, array.dtype)
    longer[: len(array)] = array
    return longer


# -- kinds of predicates


@inlined
def is_equality(mode: Any, start: Any, lo: Any, hi: Any, p: int) -> Any:
    """Whether a predicate of the table is true of one key."""
    first = start[p]
    return mode[p] == _SOME and start[p + 1] == first + 1 and lo[first] == hi[first]


@inlined
def is_usual(mode: Any, start: Any, lo: Any, hi: Any, p: int) -> Any:
    """Whether a predicate belongs in a block: it is true of most values, or of all."""
    return mode[p] == _NONE or (mode[p] == _SOME and is_everything(start, lo, hi, p))


@inlined
def is_everything(start: Any, lo: Any, hi: Any, p: int) -> Any:
    first = start[p]
    return start[p + 1] == first + 1 and lo[first] == _LOWEST and hi[first] == _HIGHEST


# -- bits


@inlined
def is_set(bits: Any, number: int) -> Any:
    """Whether the bit of an id is set."""
    return (bits[UP(number >> 6)] >> U64(number & 63)) & U64(1) != U64(0)


@inlined
def bit_of(number: int) -> Any:
    """The bit of an id in its word."""
    return U64(1) << U64(number & 63)


# -- ids


@inlined
def _hash_of(dimension: Any, mode: Any, start: Any, lo: Any, hi: Any, p: int) -> Any:
    state = fold(SEED, U64(dimension[p]) * U64(4) + U64(mode[p]))
    for i in range(start[p], start[p + 1]):
        state = fold(fold(state, U64(lo[i])), U64(hi[i]))
    return state


@inlined
def _same(dimension: Any, mode: Any, start: Any, lo: Any, hi: Any, p: int, q: int) -> bool:
    """Whether two predicates of the table are equal."""
    count = start[p + 1] - start[p]
    if dimension[p] != dimension[q] or mode[p] != mode[q] or count != start[q + 1] - start[q]:
        return False
    for i in range(count):  # noqa: SIM110 - kernels have no generators
        if lo[start[p] + i] != lo[start[q] + i] or hi[start[p] + i] != hi[start[q] + i]:
            return False
    return True


@inlined
def _slot_of(slots: Any, hashes: Any, exemplar: Any, predicates: Any, p: int, hashed: Any) -> int:
    """Where the id of a predicate is, or where it would go."""
    dimension, mode, start, lo, hi = predicates
    mask = U64(len(slots) - 1)
    at = hashed & mask
    while slots[at] != FREE:
        known = slots[at]
        if hashes[known] == hashed and _same(dimension, mode, start, lo, hi, exemplar[known], p):
            break
        at = (at + U64(1)) & mask
    place: int = I64(at)
    return place


@inlined
def _take_word(totals: Any, free_words: Any) -> int:
    """Take an unused word; there must be one."""
    if totals[FREE_WORDS] > 0:
        totals[FREE_WORDS] -= 1
        word: int = free_words[totals[FREE_WORDS]]
        return word
    totals[WORDS] += 1
    new: int = totals[WORDS] - 1
    return new


@inlined
def _in_block(block: Any, fill: Any, d: int) -> Any:
    """An unused id in the first block of a dimension; the block must not be full."""
    word = block[d]
    number = 0
    while (fill[word] >> U64(number)) & U64(1) != U64(0):
        number += 1
    fill[word] |= U64(1) << U64(number)
    return word * WORD + number


@lean_kernel
def _intern(arrays: Any, predicates: Any, numbers: Any, ids: Any, fresh: Any, progress: Any) -> bool:
    """Go on where `progress` says; False if there is no room."""
    exemplar, hashes, references, slots, bits, rest, fill, following, block, absent, free, free_words, totals = arrays
    dimension, mode, start, lo, hi = predicates
    full = ~U64(0)
    for i in range(progress[0], len(numbers)):
        p = numbers[i]
        hashed = _hash_of(dimension, mode, start, lo, hi, p)
        at = _slot_of(slots, hashes, exemplar, predicates, p, hashed)
        if slots[at] == FREE:
            if 2 * (totals[LIVE] + 1) > len(slots) or (totals[FREE_WORDS] == 0 and totals[WORDS] == len(bits)):
                progress[0] = i
                return False
            d = dimension[p]
            if is_usual(mode, start, lo, hi, p):
                if block[d] == NONE_LEFT or fill[block[d]] == full:
                    word = _take_word(totals, free_words)
                    following[word] = block[d]
                    block[d] = word
                number = _in_block(block, fill, d)
            else:
                if totals[FREE_IDS] == 0:
                    word = _take_word(totals, free_words)
                    for bit in range(WORD):
                        free[bit] = word * WORD + WORD - 1 - bit
                    totals[FREE_IDS] = WORD
                totals[FREE_IDS] -= 1
                number = free[totals[FREE_IDS]]
                if mode[p] == _ABSENT:
                    absent[d] = number
                    rest[number >> 6] |= bit_of(number)
                    bits[number >> 6] |= bit_of(number)
            exemplar[number], hashes[number], slots[at] = p, hashed, number
            totals[LIVE] += 1
            fresh[progress[1]] = number
            progress[1] += 1
        ids[i] = slots[at]
        references[slots[at]] += 1
    return True


@lean_kernel
def _find(arrays: Any, predicates: Any, numbers: Any, ids: Any) -> None:
    dimension, mode, start, lo, hi = predicates
    for i in range(len(numbers)):
        hashed = _hash_of(dimension, mode, start, lo, hi, numbers[i])
        ids[i] = arrays.slots[_slot_of(arrays.slots, arrays.hash, arrays.exemplar, predicates, numbers[i], hashed)]


@lean_kernel
def _release(arrays: Any, ids: Any, died: Any) -> int:
    hashes, references, slots, totals = arrays.hash, arrays.references, arrays.slots, arrays.totals
    mask = len(slots) - 1
    count = 0
    for number in ids:
        references[number] -= 1
        if references[number] == 0:
            at = I64(hashes[number] & U64(mask))
            while slots[at] != number:
                at = (at + 1) & mask
            hole, at = at, (at + 1) & mask
            while slots[at] != FREE:  # others move up to where they belong
                home = I64(hashes[slots[at]] & U64(mask))
                if (at - home) & mask >= (at - hole) & mask:
                    slots[hole] = slots[at]
                    hole = at
                at = (at + 1) & mask
            slots[hole] = FREE
            totals[LIVE] -= 1
            died[count] = number
            count += 1
    return count


@lean_kernel
def _set_free(arrays: Any, predicates: Any, ids: Any) -> None:
    exemplar, _, _, _, bits, rest, fill, following, block, absent, free, free_words, totals = arrays
    dimension, mode, start, lo, hi = predicates
    for number in ids:
        p, word = exemplar[number], number >> 6
        exemplar[number] = FREE
        d = dimension[p]
        if not is_usual(mode, start, lo, hi, p):
            if mode[p] == _ABSENT:
                absent[d] = NONE_LEFT
                rest[word] &= ~bit_of(number)
                bits[word] = rest[word]
            free[totals[FREE_IDS]] = number
            totals[FREE_IDS] += 1
            continue
        fill[word] &= ~bit_of(number)
        if block[d] == word:
            block[d] = following[word]
        else:
            before = block[d]
            while following[before] != word:
                before = following[before]
            following[before] = following[word]
        if fill[word] == U64(0):
            following[word] = NONE_LEFT
            free_words[totals[FREE_WORDS]] = word
            totals[FREE_WORDS] += 1
        else:  # new ones are put into the first
            following[word] = block[d]
            block[d] = word


@lean_kernel
def _fill_slots(hashes: Any, references: Any, slots: Any) -> None:
    mask = U64(len(slots) - 1)
    for number in range(len(hashes)):
        if references[number] > 0:
            at = hashes[number] & mask
            while slots[at] != FREE:
                at = (at + U64(1)) & mask
            slots[at] = number
