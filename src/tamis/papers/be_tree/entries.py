"""Entries of l-nodes: the intervals of expressions (Table 1), the tests of entries, and the gain of their place in the tree.

On each attribute, an expression has the interval from the lowest to the highest value of its predicate. For `!=` and NOT IN,
these are all values, as in the paper. Attributes that must be absent are not used.
"""

from __future__ import annotations

from tamis.encoding.dimensions.keys import KEY_MAX, KEY_MIN
from tamis.encoding.dimensions.leaf import Mode
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined
from tamis.kernels.numbers import I64
from tamis.papers.be_tree.nodes import (
    ATTR,
    B_HI,
    B_LO,
    CNODE,
    COVERED,
    E_HI,
    E_LO,
    ENTRY,
    OWN_COVERED,
    OWN_SUBSUMED,
    OWNER,
    ROOM,
    SETTLED,
    SUBSUMED,
    Columns,
    Tree,
    entries_at,
    open_window,
    parent_of,
    room_for,
    set_room,
)
from tamis.papers.parts.records import (
    RecordArrays,
    Words,
    dimension_in,
    following,
    has_one_interval,
    intervals_in,
    mode_in,
)

SOME, ABSENT = int(Mode.SOME), int(Mode.ABSENT)
ALL_LO, ALL_HI = KEY_MIN + 1, KEY_MAX


@inlined
def interval_at(words: Words, at: int) -> tuple[int, int]:
    """The interval of the predicate whose head is at a place of a record."""
    head = words[at]
    if mode_in(head) == SOME:
        return words[at + 1], words[at + 2 * intervals_in(head)]
    return I64(ALL_LO), I64(ALL_HI)


@inlined
def interval_on(records: RecordArrays, c: int, attribute: int) -> tuple[int, int]:
    """The interval of a conjunction on an attribute: that of its first usable predicate there, the most selective one."""
    words, at = records.words, records.at[c]
    for _ in range(records.size[c]):
        if dimension_in(words[at]) == attribute and mode_in(words[at]) != ABSENT:
            break
        at = following(words, at)
    return interval_at(words, at)


@inlined
def mark_path(tree: Tree, x: int, path: Words) -> int:
    """Note the bucket of every attribute that was used on the way to a node; returns how many there are."""
    used = I64(0)
    while tree.cold[x, OWNER] > 0:
        p = tree.cold[x, OWNER]
        path[tree.pnode[p, ATTR]] = x
        used += 1
        x = tree.pnode[p, CNODE]
    return used


@inlined
def unmark_path(tree: Tree, x: int, path: Words) -> None:
    while tree.cold[x, OWNER] > 0:
        p = tree.cold[x, OWNER]
        path[tree.pnode[p, ATTR]] = 0
        x = tree.pnode[p, CNODE]


@inlined
def subsumed(cold: Columns, records: RecordArrays, c: int, path: Words) -> int:
    """How many predicates of a conjunction are equal to the bucket on their attribute."""
    words, at, equal = records.words, records.at[c], I64(0)
    for _ in range(records.size[c]):
        head = words[at]
        x = path[dimension_in(head)]
        if x > 0 and has_one_interval(head) and words[at + 1] == cold[x, B_LO] and words[at + 2] == cold[x, B_HI]:
            equal += 1
        at = following(words, at)
    return equal


@inlined
def settle(tree: Tree, records: RecordArrays, path: Words, x: int) -> None:
    """Write the tests of the last entries of an l-node, which stay there, and count their gain."""
    cold, data = tree.cold, tree.data
    begin, count = entries_at(tree.hot, x)
    if cold[x, ROOM] > 0 and 4 * count <= 1 << cold[x, ROOM]:
        set_room(tree, x, room_for(count) if count > 0 else -1)
        begin, _ = entries_at(tree.hot, x)
    used = mark_path(tree, x, path)
    equal = I64(0)
    for i in range(begin + cold[x, SETTLED], begin + count):
        c = first_half(data[i, ENTRY])
        equal += subsumed(cold, records, c, path)
        data[i, ENTRY] = halves(I64(c), 0)
        _write_test(data, i, records, c, path)
    covers = used * (count - cold[x, SETTLED]) - equal
    unmark_path(tree, x, path)
    cold[x, SETTLED] = count
    count_gain(tree, x, equal, covers)
    open_window(tree, x)


@inlined
def _write_test(data: Columns, i: int, records: RecordArrays, c: int, path: Words) -> None:
    """Give an entry its test: the first predicate on an attribute that the path does not use, or else the first one."""
    words, at = records.words, records.at[c]
    for _ in range(records.size[c]):
        head = words[at]
        if mode_in(head) != SOME:
            break
        is_free = path[dimension_in(head)] == 0
        if is_free or second_half(data[i, ENTRY]) == 0:
            data[i, ENTRY] = halves(I64(c), dimension_in(head) + 1)
            data[i, E_LO], data[i, E_HI] = interval_at(words, at)
        if is_free:
            break
        at = following(words, at)


@inlined
def count_gain(tree: Tree, x: int, equal: int, covers: int) -> None:
    """Add to the subsumed and covered predicates of an l-node, and of all nodes above."""
    cold = tree.cold
    cold[x, OWN_SUBSUMED] += equal
    cold[x, OWN_COVERED] += covers
    while x >= 0:
        cold[x, SUBSUMED] += equal
        cold[x, COVERED] += covers
        x = parent_of(tree, x)


@inlined
def unsettle(tree: Tree, x: int) -> None:
    """Take all entries of an l-node out of the count of the gain: some of them may leave it."""
    count_gain(tree, x, -tree.cold[x, OWN_SUBSUMED], -tree.cold[x, OWN_COVERED])
    tree.cold[x, SETTLED] = 0
