"""Entries of l-nodes: the intervals of expressions (Table 1), the tests of entries, and the gain of their place in the tree.

An expression has, on each attribute, the interval from the lowest to the highest value of its predicate; all values for `!=` and
NOT IN, as in the paper. Attributes that must be absent are not used.
"""

from __future__ import annotations

from typing import Any

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64
from tamis.papers.be_tree.nodes import (
    ATTR,
    B_HI,
    B_LO,
    CNODE,
    COVERED,
    HALF,
    LEAF,
    OWN_COVERED,
    OWN_SUBSUMED,
    OWNER,
    ROOM,
    SETTLED,
    SUBSUMED,
    open_window,
    parent_of,
    room_for,
    set_room,
)

SOME, ABSENT = int(Mode.SOME), int(Mode.ABSENT)
ALL_LO, ALL_HI = KEY_MIN + 1, KEY_MAX


@inlined
def interval_at(words: Any, at: int) -> tuple[Any, Any]:
    """The interval of the predicate whose head is at a place of a record."""
    head = words[at]
    if head & 3 == SOME:
        return words[at + 1], words[at + 2 * ((head & HALF) >> 2)]
    return I64(ALL_LO), I64(ALL_HI)


@inlined
def following(words: Any, at: int) -> Any:
    """Where the next predicate of a record is."""
    return at + 1 + 2 * ((words[at] & HALF) >> 2)


@inlined
def predicate_on(words: Any, at: int, size: int, attribute: int) -> Any:
    """Where the first usable predicate on an attribute is in a record: the most selective one. -1: there is none."""
    for _ in range(size):
        head = words[at]
        if head >> 32 == attribute and head & 3 != ABSENT:
            return at
        at = following(words, at)
    return I64(-1)


@inlined
def mark_path(cold: Any, pnode: Any, x: int, path: Any) -> Any:
    """Note the bucket of every attribute that was used on the way to a node; returns how many there are."""
    used = I64(0)
    while cold[x, OWNER] > 0:
        p = cold[x, OWNER]
        path[pnode[p, ATTR]] = x
        used += 1
        x = pnode[p, CNODE]
    return used


@inlined
def unmark_path(cold: Any, pnode: Any, x: int, path: Any) -> None:
    while cold[x, OWNER] > 0:
        p = cold[x, OWNER]
        path[pnode[p, ATTR]] = 0
        x = pnode[p, CNODE]


@inlined
def subsumed(cold: Any, words: Any, at: int, size: int, path: Any) -> Any:
    """How many predicates of a record are equal to the bucket on their attribute."""
    equal = I64(0)
    for _ in range(size):
        head = words[at]
        x = path[head >> 32]
        if x > 0 and head & HALF == 1 << 2 | SOME and words[at + 1] == cold[x, B_LO] and words[at + 2] == cold[x, B_HI]:
            equal += 1
        at = following(words, at)
    return equal


@inlined
def settle(
    hot: Any,
    cold: Any,
    pnode: Any,
    data: Any,
    state: Any,
    limits: Any,
    rates: Any,
    rec_at: Any,
    rec_size: Any,
    words: Any,
    path: Any,
    x: int,
) -> None:
    """Write the tests of the last entries of an l-node, which stay there, and count their gain."""
    begin, count = hot[x, LEAF] >> 32, hot[x, LEAF] & HALF
    if cold[x, ROOM] > 0 and count <= 1 << cold[x, ROOM] >> 2:
        set_room(hot, cold, data, state, x, room_for(count) if count > 0 else -1)
        begin = hot[x, LEAF] >> 32
    used = mark_path(cold, pnode, x, path)
    equal = I64(0)
    for i in range(begin + cold[x, SETTLED], begin + count):
        c = data[i, 0] >> 32
        at, size = rec_at[c], rec_size[c]
        equal += subsumed(cold, words, at, size, path)
        data[i, 0] = I64(c) << 32
        found = False
        for _ in range(size):
            head = words[at]
            if head & 3 != SOME:
                break
            if data[i, 0] & HALF == 0 or (not found and path[head >> 32] == 0):
                data[i, 0] = I64(c) << 32 | ((head >> 32) + 1)
                data[i, 1], data[i, 2] = interval_at(words, at)
                found = path[head >> 32] == 0
                if found:
                    break
            at = following(words, at)
    covers = used * (count - cold[x, SETTLED]) - equal
    unmark_path(cold, pnode, x, path)
    cold[x, SETTLED] = count
    count_gain(cold, pnode, x, equal, covers)
    open_window(hot, cold, limits, rates, x)


@inlined
def count_gain(cold: Any, pnode: Any, x: int, equal: int, covers: int) -> None:
    """Add to the subsumed and covered predicates of an l-node, and of all nodes above."""
    cold[x, OWN_SUBSUMED] += equal
    cold[x, OWN_COVERED] += covers
    while x >= 0:
        cold[x, SUBSUMED] += equal
        cold[x, COVERED] += covers
        x = parent_of(cold, pnode, x)


@inlined
def unsettle(cold: Any, pnode: Any, x: int) -> None:
    """Take all entries of an l-node out of the count of the gain: some of them may leave it."""
    count_gain(cold, pnode, x, -cold[x, OWN_SUBSUMED], -cold[x, OWN_COVERED])
    cold[x, SETTLED] = 0
