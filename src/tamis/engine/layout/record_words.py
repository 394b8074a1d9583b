"""The words of records and of the references to them: this module packs and reads them.

A record has 32-bit words. Word 0 is the row. It has DOUBT set if some predicates are not in the record and keys must be compared.
The *shape* of a record, eight bits beside its place, says which groups of words follow. The least likely predicate of a group
comes first.

    r | s << 4     r ranges, s sets
    n | b << 4     n tests for keys, b tests for bounds: in segments that have wide dimensions
    DONE           nothing is left to check: there is no record, and the place is the row
    LONG           a header says how many there are of each group: see `record_header`

    reference  shape << 24 | place                           the record begins at word UNIT * place
    row        DOUBT? | predicates << 24 | row               the predicates that the tests for keys of a short record stand for
    range      dimension << 16 | first << 8 | width          the event's space minus first, as a byte, is at most width
    set        two words: six spaces, 15 bits of dimension, negated?
    mask       dimension, then eight words of bits by space
    test       see `aspects`: one for each bound of a range, or for each of at most eight keys
    far test   two words: for a dimension that does not fit in a test
    far set    aspect | members << 18 | negated? << 31, then a test for each member: for all other sets of keys
"""

from __future__ import annotations

import numpy as np

from tamis.engine.layout.aspects import Words, is_present
from tamis.engine.layout.predicate_codes import MASK_WORDS
from tamis.engine.layout.scale import MISSING, Bytes
from tamis.kernels.bits import has_zero_byte, in_each_byte
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64, U8, U32, U64, UP

_DOUBT_AT, _PREDICATES_AT = 31, 24
DOUBT = 1 << _DOUBT_AT
"""Set in a row whose keys must be compared."""
ROW = (1 << _PREDICATES_AT) - 1
"""The bits of word 0 that hold the row."""
SHAPE_AT = 24
PLACE = (1 << SHAPE_AT) - 1
UNIT = 4
"""Words per step of a place."""
MOST_ROWS, MOST_WORDS = 1 << SHAPE_AT, UNIT << SHAPE_AT
SHAPES = 256
LONG, DONE = 255, 254
_GROUP_BITS = 4
MOST_IN_SHAPE = (1 << _GROUP_BITS) - 1
"""The most words of a group that a shape can count, and the most predicates that word 0 can count."""
RANGE_DIMENSION_AT, RANGE_FIRST_AT = 16, 8
_SPACE_BITS = 8
_SET_DIMENSION_AT, _SET_DIMENSION, _SET_NEGATED_AT = 48, (1 << 15) - 1, 63
_NOT_SPACES = 0xFFFF << _SET_DIMENSION_AT
SET_WORDS, FAR_TEST_WORDS = 2, 2
MASK_SIZE = 1 + 2 * MASK_WORDS
"""The words of a mask: its dimension and its bits."""
_MASK_WORD_AT, _MASK_BIT = 5, (1 << 5) - 1
_MEMBERS_AT, _MEMBERS, _FAR_NEGATED_AT = 18, 0xFF, 31
_LONG_HALF, _LONG_AT = 0xFFFFFFFF, 32


# -- references and shapes


@inlined
def reference_of(shape: int, place: int) -> int:
    """The reference to a record; `place` is in steps of UNIT words. For DONE, it is the row."""
    return (shape << SHAPE_AT) | place


@inlined
def shape_of(reference: np.uint32) -> int:
    return I64(reference >> U32(SHAPE_AT))


@inlined
def record_at(reference: np.uint32) -> int:
    """The first word of a record."""
    return UNIT * I64(reference & U32(PLACE))


@inlined
def settled_row(reference: np.uint32) -> np.uint32:
    """The row of a reference with the shape DONE."""
    return reference & U32(PLACE)


@inlined
def shape_with(first: int, second: int) -> int:
    """The shape of a record with these numbers of ranges and sets, or of tests for keys and for bounds."""
    return first | (second << _GROUP_BITS)


@inlined
def groups_in(shape: int) -> tuple[int, int]:
    """The numbers of ranges and sets, or of tests for keys and for bounds, in a record that is neither DONE nor LONG."""
    return shape & MOST_IN_SHAPE, shape >> _GROUP_BITS


# -- rows


@inlined
def row_of(word: np.uint32) -> int:
    return I64(word & U32(ROW))


@inlined
def found_row(word: np.uint32) -> np.uint32:
    """A row, with DOUBT if word 0 of its record has DOUBT."""
    return word & U32(DOUBT | ROW)


@inlined
def in_doubt(doubt: bool) -> np.uint32:
    """DOUBT or nothing."""
    return U32(doubt) << U32(_DOUBT_AT)


@inlined
def is_in_doubt(word: np.uint32) -> bool:
    return word & U32(DOUBT) != U32(0)


@inlined
def doubt_last(word: np.uint32) -> np.uint32:
    """A row and its DOUBT, in an order in which a row without DOUBT comes right before the same row with DOUBT."""
    return (word << U32(1)) | (word >> U32(_DOUBT_AT))


@inlined
def doubt_first(word: np.uint32) -> np.uint32:
    """The inverse of `doubt_last`."""
    return (word >> U32(1)) | (word << U32(_DOUBT_AT))


@inlined
def predicates_word(count: int) -> np.uint32:
    """The bits of word 0 that say how many predicates the tests for keys stand for."""
    return U32(count << _PREDICATES_AT)


@inlined
def predicates_in(word: np.uint32) -> int:
    """How many predicates the tests for keys of a short record stand for."""
    return I64((word >> U32(_PREDICATES_AT)) & U32(MOST_IN_SHAPE))


# -- predicates


@inlined
def range_word(dimension: int, first: int, last: int) -> np.uint32:
    return U32((dimension << RANGE_DIMENSION_AT) | (first << RANGE_FIRST_AT) | (last - first))


@inlined
def range_dimension(word: np.uint32) -> np.uint32:
    return word >> U32(RANGE_DIMENSION_AT)


@inlined
def range_holds(word: np.uint32, space: Bytes) -> bool:
    """Whether an event satisfies a range word; `space` has its space in each dimension."""
    return U8(space[UP(range_dimension(word))] - U8(word >> U32(RANGE_FIRST_AT))) <= U8(word)


@inlined
def space_in_set(space: int, place: int) -> np.uint64:
    """The bits of a set that hold its space at a place."""
    return U64(space) << U64(_SPACE_BITS * place)


@inlined
def set_of(spaces: np.uint64, dimension: int, negated: bool) -> np.uint64:
    """Both words of a set."""
    return spaces | (U64(dimension) << U64(_SET_DIMENSION_AT)) | (U64(negated) << U64(_SET_NEGATED_AT))


@inlined
def set_dimension(high: np.uint32) -> np.uint32:
    """The dimension of a set, given its second word."""
    return (high >> U32(_SET_DIMENSION_AT - _LONG_AT)) & U32(_SET_DIMENSION)


@inlined
def set_holds(low: np.uint32, high: np.uint32, space: Bytes) -> bool:
    """Whether an event's space is among the six bytes of a set; if the set is negated, whether it is there and not among them."""
    word = U64(low) | (U64(high) << U64(_LONG_AT))
    s = space[UP((word >> U64(_SET_DIMENSION_AT)) & U64(_SET_DIMENSION))]
    # A byte of the difference is zero if the space is a member.
    member = has_zero_byte((word ^ in_each_byte(s)) | U64(_NOT_SPACES))
    negated = (word >> U64(_SET_NEGATED_AT)) != U64(0)
    return (member != negated) and s != U8(MISSING)


@inlined
def mask_holds(record: Words, at: int, space: Bytes) -> bool:
    """Whether an event's space is among the bits of a mask."""
    s = I64(space[UP(record[UP(at)])])
    word = record[UP(at + 1 + (s >> _MASK_WORD_AT))]
    return s != MISSING and (word >> U32(s & _MASK_BIT)) & U32(1) != U32(0)


@inlined
def far_set_word(aspect: int, members: int, negated: bool) -> np.uint32:
    """The first word of a far set."""
    return U32(aspect | (members << _MEMBERS_AT) | (I64(negated) << _FAR_NEGATED_AT))


@inlined
def far_set_holds(record: Words, at: int, seen: Words) -> bool:
    """Whether one of the tests of a far set holds; if the set is negated, whether there is a key and none holds."""
    header = record[UP(at)]
    shown = seen[UP(header & U32((1 << _MEMBERS_AT) - 1))]
    found = U32(0)
    for i in range(far_set_size(header)):
        found |= U32(record[UP(at + 1 + i)] == shown)
    return (found != header >> U32(_FAR_NEGATED_AT)) & is_present(shown)


@inlined
def far_set_size(header: np.uint32) -> int:
    """The number of tests of a far set."""
    return I64((header >> U32(_MEMBERS_AT)) & U32(_MEMBERS))


@inlined
def write_long(word: np.uint64, out: Words, to: int) -> None:
    """Write 64 bits as two words, the lower one first."""
    out[to], out[to + 1] = U32(word & U64(_LONG_HALF)), U32(word >> U64(_LONG_AT))
