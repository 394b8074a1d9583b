"""The functions of the engine that kernels for cards use, as they run on cards."""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.encoding.dimensions import keys
from tamis.engine.layout import aspects, key_numbers, lists, lookup, pairs, record_words, scale
from tamis.engine.layout.scale import PER_WHOLE
from tamis.engine.matching import checking, filtering, lists_met
from tamis.gpu.device_code import device, instead_of, on_card
from tamis.kernels import bits, sorting
from tamis.kernels.numbers import F64, I64, U32, U64, UP, U8s, U64s

_HALF_BITS = 32
_HALF = (1 << _HALF_BITS) - 1

number_of = on_card(scale.number_of)
code_of_bits, is_small = on_card(keys.code_of_bits), on_card(keys.is_small)


@device
def bits_of_number(number: float) -> Any:
    """The bits of a double."""
    return I64(F64(number).view(np.int64))


@instead_of(scale.table_space)
@device
def table_space(table: U8s, at: int, lowest: int, wholes: int, key: int) -> int:
    """numba-cuda has no `floor` of NumPy."""
    number = number_of(key)
    last = at + PER_WHOLE * wholes - 1
    if not number >= lowest:
        return I64(0) if key < 0 or number < lowest else I64(table[UP(last)])
    if number >= lowest + wholes:
        return I64(table[UP(last)])
    place = I64(number)
    place -= I64(F64(place) > number)
    return I64(table[UP(at + PER_WHOLE * (place - lowest) + I64(F64(place) != number))])


@device
def entry_word(entry: U64s, place: int) -> Any:
    """The filter word of an entry. On cards, both words of an entry are read as one."""
    return U32(entry[UP(place)] & U64(_HALF))


@device
def entry_reference(entry: U64s, place: int) -> Any:
    """The reference of an entry."""
    return U32(entry[UP(place)] >> U64(_HALF_BITS))


local_dimension, space_at = on_card(lists_met.local_dimension), on_card(lists_met.space_at)
list_at, first_half, second_half = on_card(lookup.list_at), on_card(bits.first_half), on_card(bits.second_half)
has_bit_in_bytes = on_card(bits.has_bit_in_bytes)
home_of, find_point = on_card(lists.home_of), on_card(lists.find_point)

code_of, code_of_space = on_card(scale.code_of), on_card(aspects.code_of_space)
number_of_key = on_card(key_numbers.number_of_key)
show, hide = on_card(aspects.show), on_card(aspects.hide)

is_guarded, range_holds = on_card(filtering.is_guarded), on_card(record_words.range_holds)
bounds_in_run, first_above = on_card(lists_met.bounds_in_run), on_card(sorting.first_above)

mixed_cell, bucket_of, part_of = on_card(pairs.mixed_cell), on_card(pairs.bucket_of), on_card(pairs.part_of)
bits_of, is_of_cells = on_card(pairs.bits_of), on_card(pairs.is_of_cells)
pair_word, pair_reference = on_card(pairs.pair_word), on_card(pairs.pair_reference)

record_at, shape_of = on_card(record_words.record_at), on_card(record_words.shape_of)
groups_in, row_of = on_card(record_words.groups_in), on_card(record_words.row_of)
settled_row, found_row = on_card(record_words.settled_row), on_card(record_words.found_row)
in_doubt, is_in_doubt = on_card(record_words.in_doubt), on_card(record_words.is_in_doubt)
predicates_in = on_card(record_words.predicates_in)
check_ranges, check_tests = on_card(checking.check_ranges), on_card(checking.check_tests)
check_long, ties_are_in_doubt = on_card(checking.check_long), on_card(checking.ties_are_in_doubt)
