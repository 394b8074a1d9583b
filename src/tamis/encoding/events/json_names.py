"""The dotted names to look for in JSON, as arrays for kernels: a hash table from UTF-8 to the number of a name.

slots      -  2  -  0  1  -  -  -        numbers of names; - is NOT_ASKED
start      0     5     12     18         name n: text[start[n]:start[n + 1]]
text       price user.name user
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.dimension_set import NOT_ASKED, parents_of
from tamis.kernels.byte_search import WORD_BYTES, word_at
from tamis.kernels.hashing import SEED, fold
from tamis.kernels.kernel import inlined, lean_kernel
from tamis.kernels.numbers import I64, U64, UP, Bools, I32s, I64s, U8s


class Names(NamedTuple):
    """Asked names and the names of objects around them."""

    slots: I32s
    start: I64s
    text: U8s
    is_asked: Bools
    """Whether values of this name are read."""
    is_parent: Bools
    """Whether objects of this name may contain asked names."""

    def longest(self) -> int:
        return int(np.diff(self.start).max(initial=0))


def names_of(asked: Iterable[str]) -> tuple[Names, list[str]]:
    """The asked names, ready to look up, and the names in the order of their numbers. The empty name is never found."""
    attributes = {name for name in asked if name}
    parents = {parent for name in attributes for parent in parents_of(name) if parent}
    every = sorted(attributes | parents)
    encoded = [name.encode() for name in every]
    start = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    text = np.frombuffer(b"".join(encoded) + b"\0", np.uint8).copy()
    slots = np.full(1 << (2 * len(every) + 1).bit_length(), NOT_ASKED, np.int32)
    is_asked = np.array([name in attributes for name in every], np.bool_)
    is_parent = np.array([name in parents for name in every], np.bool_)
    names = Names(slots, start, text, is_asked, is_parent)
    _enter(names)
    return names, every


@lean_kernel
def _enter(names: Names) -> None:
    """Fill the slots."""
    for name in range(len(names.start) - 1):
        begin = names.start[UP(name)]
        slot = _slot(names.text, begin, names.start[UP(name + 1)] - begin, len(names.slots))
        while names.slots[UP(slot)] != NOT_ASKED:
            slot = (slot + 1) % len(names.slots)
        names.slots[UP(slot)] = name


@inlined
def find_name(names: Names, data: U8s, begin: int, length: int) -> int:
    """The number of the name that stands in `data`, or NOT_ASKED."""
    slot = _slot(data, begin, length, len(names.slots))
    while True:
        name = names.slots[UP(slot)]
        if name == NOT_ASKED:
            return NOT_ASKED
        own = names.start[UP(name)]
        if names.start[UP(name + 1)] - own == length:
            same = 0
            while same < length and names.text[UP(own + same)] == data[UP(begin + same)]:
                same += 1
            if same == length:
                return I64(name)
        slot = (slot + 1) % len(names.slots)


@inlined
def _slot(data: U8s, begin: int, length: int, slots: int) -> int:
    """The first slot of a name. The number of slots is a power of two."""
    mixed, at = SEED ^ U64(length), begin
    while at + WORD_BYTES <= begin + length:
        mixed = fold(mixed, word_at(data, at))
        at += WORD_BYTES
    rest = U64(0)
    while at < begin + length:
        rest = rest * U64(256) + U64(data[UP(at)])
        at += 1
    return I64(fold(mixed, rest) % U64(slots))
