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

Invariants: an id in use is found by its hash, and no two predicates with ids are equal. `bits` equals `rest` between events. An
id with an exemplar and no references is *retired*: no subscription has it, but some range may still set its bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.encoding.dimensions.intervals import EVERYTHING
from tamis.encoding.dimensions.leaf import Mode
from tamis.encoding.expressions.conjunctions import Conjunctions
from tamis.encoding.expressions.predicates import Predicates
from tamis.kernels.bits import WORD, clear_bit, has_bit, set_bit, word_of
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, I32s, I64s, U64s

FREE = -1
NONE_LEFT = -1
_SOME, _NONE, _ABSENT = int(Mode.SOME), int(Mode.NONE), int(Mode.ABSENT)
_LOWEST, _HIGHEST = EVERYTHING[0]
_LOWEST_WORDS = 2
_LOWEST_CAPACITY = 16

WORDS, FREE_IDS, FREE_WORDS, LIVE = range(4)
"""Places in `totals`: words ever used, free ids, free words, ids with references."""
_NEXT, _FRESH = range(2)
"""Places in `progress`: the next predicate to intern, and how many ids are new."""

Ids = I32s
Words = U64s
TableNumbers = I64s
"""Numbers of predicates in the table of conjunctions."""


class BitArrays(NamedTuple):
    """The bit vector as kernels take it."""

    exemplar: TableNumbers
    hash: U64s
    references: I32s
    by_hash: Ids
    """A hash table of ids, by the hash of their predicates; FREE where there is none."""
    bits: Words
    rest: Words
    fill: Words
    following: I32s
    block: I32s
    absent: Ids
    """Dimension -> the id of its IS NULL."""
    free: Ids
    free_words: I32s
    totals: I64s


class BitVector:
    """The distinct predicates of the conjunctions in an index, by number."""

    def __init__(self) -> None:
        words, ids = _LOWEST_WORDS, _LOWEST_WORDS * WORD
        self._arrays = BitArrays(
            np.full(ids, FREE, np.int64),
            np.zeros(ids, np.uint64),
            np.zeros(ids, np.int32),
            np.full(_LOWEST_CAPACITY, FREE, np.int32),
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

    def intern(self, table: Conjunctions, numbers: TableNumbers) -> tuple[Ids, Ids]:
        """Add a reference to each predicate of the table; returns their ids, and the ids that are new."""
        ids, fresh = np.empty(len(numbers), np.int32), np.empty(len(numbers), np.int32)
        progress = np.zeros(2, np.int64)
        while not _intern(self._arrays, table.predicates, numbers, ids, fresh, progress):
            self._enlarge()
        return ids, fresh[: progress[_FRESH]]

    def find(self, table: Conjunctions, numbers: TableNumbers) -> Ids:
        """The id of each predicate of the table; all must be known."""
        ids = np.empty(len(numbers), np.int32)
        _find(self._arrays, table.predicates, numbers, ids)
        return ids

    def release(self, ids: Ids) -> Ids:
        """Take one reference from each id; returns the ids without references, which are not free yet."""
        died = np.empty(len(ids), np.int32)
        return died[: _release(self._arrays, ids, died)]

    def set_free(self, table: Conjunctions, ids: Ids) -> None:
        """Let ids without references be used again."""
        _set_free(self._arrays, table.predicates, ids)

    def _enlarge(self) -> None:
        arrays = self._arrays
        if 2 * (arrays.totals[LIVE] + 1) > len(arrays.by_hash):
            by_hash = np.full(2 * len(arrays.by_hash), FREE, np.int32)
            arrays = arrays._replace(by_hash=by_hash)
            _enter_all(arrays)
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
def is_equality(predicates: Predicates, p: int) -> bool:
    """Whether a predicate of the table is true of one key."""
    first = predicates.start[p]
    is_single = predicates.start[p + 1] == first + 1
    return predicates.mode[p] == _SOME and is_single and predicates.lo[first] == predicates.hi[first]


@inlined
def is_usual(predicates: Predicates, p: int) -> bool:
    """Whether a predicate belongs in a block: it is true of most values, or of all."""
    return predicates.mode[p] == _NONE or (predicates.mode[p] == _SOME and is_everything(predicates, p))


@inlined
def is_everything(predicates: Predicates, p: int) -> bool:
    """Whether the intervals of a predicate are all keys."""
    first = predicates.start[p]
    is_single = predicates.start[p + 1] == first + 1
    return is_single and predicates.lo[first] == _LOWEST and predicates.hi[first] == _HIGHEST


# -- ids


@inlined
def _hash_of(predicates: Predicates, p: int) -> np.uint64:
    state = fold(SEED, U64(predicates.dimension[p]) * U64(4) + U64(predicates.mode[p]))
    for i in range(predicates.start[p], predicates.start[p + 1]):
        state = fold(fold(state, U64(predicates.lo[i])), U64(predicates.hi[i]))
    return state


@inlined
def _same(predicates: Predicates, p: int, q: int) -> bool:
    """Whether two predicates of the table are equal."""
    lo, hi, of_p, of_q = predicates.lo, predicates.hi, predicates.start[p], predicates.start[q]
    count = predicates.start[p + 1] - of_p
    if predicates.dimension[p] != predicates.dimension[q] or predicates.mode[p] != predicates.mode[q]:
        return False
    if count != predicates.start[q + 1] - of_q:
        return False
    for i in range(count):  # noqa: SIM110 - kernels have no generators
        if lo[of_p + i] != lo[of_q + i] or hi[of_p + i] != hi[of_q + i]:
            return False
    return True


@inlined
def _place_of(arrays: BitArrays, predicates: Predicates, p: int, hashed: np.uint64) -> int:
    """Where the id of a predicate is, or where it would go."""
    by_hash, mask = arrays.by_hash, U64(len(arrays.by_hash) - 1)
    at = hashed & mask
    while by_hash[at] != FREE:
        if arrays.hash[by_hash[at]] == hashed and _same(predicates, arrays.exemplar[by_hash[at]], p):
            break
        at = (at + U64(1)) & mask
    return I64(at)


@inlined
def _take_word(totals: I64s, free_words: I32s) -> int:
    """Take an unused word; there must be one."""
    if totals[FREE_WORDS] > 0:
        totals[FREE_WORDS] -= 1
        return free_words[totals[FREE_WORDS]]
    totals[WORDS] += 1
    return totals[WORDS] - 1


@inlined
def _in_block(arrays: BitArrays, d: int) -> int:
    """Take an unused id in the first block of a dimension that is not full."""
    block, fill = arrays.block, arrays.fill
    if block[d] == NONE_LEFT or fill[block[d]] == ~U64(0):
        word = _take_word(arrays.totals, arrays.free_words)
        arrays.following[word] = block[d]
        block[d] = word
    number = 0
    while has_bit(fill, block[d] * WORD + number):
        number += 1
    set_bit(fill, block[d] * WORD + number)
    return block[d] * WORD + number


@lean_kernel
def _intern(
    arrays: BitArrays, predicates: Predicates, numbers: TableNumbers, ids: Ids, fresh: Ids, progress: I64s
) -> bool:
    """Go on where `progress` says; False if there is no room."""
    by_hash, totals = arrays.by_hash, arrays.totals
    for i in range(progress[_NEXT], len(numbers)):
        p = numbers[i]
        hashed = _hash_of(predicates, p)
        at = _place_of(arrays, predicates, p, hashed)
        if by_hash[at] == FREE:
            no_word = totals[FREE_WORDS] == 0 and totals[WORDS] == len(arrays.bits)
            if 2 * (totals[LIVE] + 1) > len(by_hash) or no_word:
                progress[_NEXT] = i
                return False
            d = predicates.dimension[p]
            if is_usual(predicates, p):
                number = _in_block(arrays, d)
            else:
                if totals[FREE_IDS] == 0:
                    word = _take_word(totals, arrays.free_words)
                    for bit in range(WORD):
                        arrays.free[bit] = word * WORD + WORD - 1 - bit
                    totals[FREE_IDS] = WORD
                totals[FREE_IDS] -= 1
                number = arrays.free[totals[FREE_IDS]]
                if predicates.mode[p] == _ABSENT:
                    arrays.absent[d] = number
                    set_bit(arrays.rest, number)
                    set_bit(arrays.bits, number)
            arrays.exemplar[number], arrays.hash[number], by_hash[at] = p, hashed, number
            totals[LIVE] += 1
            fresh[progress[_FRESH]] = number
            progress[_FRESH] += 1
        ids[i] = by_hash[at]
        arrays.references[by_hash[at]] += 1
    return True


@lean_kernel
def _find(arrays: BitArrays, predicates: Predicates, numbers: TableNumbers, ids: Ids) -> None:
    for i in range(len(numbers)):
        hashed = _hash_of(predicates, numbers[i])
        ids[i] = arrays.by_hash[_place_of(arrays, predicates, numbers[i], hashed)]


@lean_kernel
def _release(arrays: BitArrays, ids: Ids, died: Ids) -> int:
    hashes, by_hash = arrays.hash, arrays.by_hash
    mask = len(by_hash) - 1
    count = 0
    for number in ids:
        arrays.references[number] -= 1
        if arrays.references[number] == 0:
            at = I64(hashes[number] & U64(mask))
            while by_hash[at] != number:
                at = (at + 1) & mask
            hole, at = at, (at + 1) & mask
            while by_hash[at] != FREE:  # others move up to where they belong
                home = I64(hashes[by_hash[at]] & U64(mask))
                if (at - home) & mask >= (at - hole) & mask:
                    by_hash[hole] = by_hash[at]
                    hole = at
                at = (at + 1) & mask
            by_hash[hole] = FREE
            arrays.totals[LIVE] -= 1
            died[count] = number
            count += 1
    return count


@lean_kernel
def _set_free(arrays: BitArrays, predicates: Predicates, ids: Ids) -> None:
    fill, following, block, totals = arrays.fill, arrays.following, arrays.block, arrays.totals
    for number in ids:
        p, word = arrays.exemplar[number], I64(word_of(number))
        arrays.exemplar[number] = FREE
        d = predicates.dimension[p]
        if not is_usual(predicates, p):
            if predicates.mode[p] == _ABSENT:
                arrays.absent[d] = NONE_LEFT
                clear_bit(arrays.rest, number)
                arrays.bits[word] = arrays.rest[word]
            arrays.free[totals[FREE_IDS]] = number
            totals[FREE_IDS] += 1
            continue
        clear_bit(fill, number)
        if block[d] == word:
            block[d] = following[word]
        else:
            before = block[d]
            while following[before] != word:
                before = following[before]
            following[before] = following[word]
        if fill[word] == U64(0):
            following[word] = NONE_LEFT
            arrays.free_words[totals[FREE_WORDS]] = word
            totals[FREE_WORDS] += 1
        else:  # new ones are put into the first
            following[word] = block[d]
            block[d] = word


@lean_kernel
def _enter_all(arrays: BitArrays) -> None:
    by_hash, mask = arrays.by_hash, U64(len(arrays.by_hash) - 1)
    for number in range(len(arrays.hash)):
        if arrays.references[number] > 0:
            at = arrays.hash[number] & mask
            while by_hash[at] != FREE:
                at = (at + U64(1)) & mask
            by_hash[at] = number
