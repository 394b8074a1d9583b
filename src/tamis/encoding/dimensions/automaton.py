"""An automaton that finds which of many needles strings contain, in one pass over their UTF-8 (Aho and Corasick).

A needle is *cut* some bytes behind the place where it differs from all others. The automaton knows the cut needles. Where it
finds one, the rest of the needle, its *tail*, is compared with what follows. Two arrays hold everything:

    code   | rows of states ...            | candidates ...                                     |
             state s      code[s + class]    candidate c   four words, see `_CANDIDATE`
                          the next state
             s odd        code[s - 1]
                          a candidate
    text   | class of each byte (256)      | tails of the needles, in classes ...               |

A state is the place of its row in `code`. It is odd where a cut needle ends, so one bit tells whether there is anything to do. A
row has a place for each *class* of bytes. Each byte of the needles is a class, the most frequent first, so that the places used
most share a cache line. All other bytes are class 0. UTF-8 needs no care: no character begins inside another.

Reference: A. V. Aho, M. J. Corasick, "Efficient string matching: an aid to bibliographic search", CACM 18(6), 1975: the trie is
the goto function of algorithm 2, and the failures of algorithm 3 become the complete rows of algorithm 4. Departures: needles are
cut (see `PLANS`), so where a cut needle ends, its tail is compared byte by byte. Outputs are chained, not copied. Every step
waits for the state before it. So sixteen strings are read in turn, which is 2 to 3 times faster than one string after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.dimensions.texts import Texts
from tamis.kernels.bits import first_half, halves, second_half
from tamis.kernels.kernel import inlined, kernel, lean_kernel, merged
from tamis.kernels.numbers import I64, U32, UP, I32s, I64s, U8s, U32s
from tamis.kernels.ranges import grouped

Nodes = I32s
Words = U32s
Bytes = U8s

# Plans for cutting needles: (others, more, most bytes). The first bytes of a needle that at least `others` other needles share
# are kept, and `more` bytes after the next one. Tamis takes the first plan whose rows fit in `most bytes`. Time per byte with
# 5,000 needles of a dozen characters, searched in command lines:
#
#     whole, 9 MB: 4.1 ns    3 more, 4 MB: 4.1    1 more, 2 MB: 5    0 more, 2 MB: 10    0 more, 4 others, 1 MB: 23
#
# and pyahocorasick, string by string, 47 ns. With 50,000 needles: 9.1 (79 MB), 10.5 (42 MB), 12, 17, 29, and 78.
Plan = tuple[int, int, int]
_WHOLE = 1 << 30
PLANS = (
    (1, _WHOLE, 1 << 20),
    (1, 3, 64 << 20),
    (1, 1, 64 << 20),
    (1, 0, 64 << 20),
    (4, 0, 64 << 20),
    (16, 0, 1 << 62),
)
# The longest tail, in bytes. No byte of a string is compared more often than this with one needle, however alike the two are.
LONGEST_TAIL = 255

# Strings that are read in turn, and the bytes read of each before the odd states among them are looked at.
LANES = 16
CHUNK = 512
# A single string that contains more needles than this is searched like a column.
_MOST_OF_ONE = 64

_ODD = np.uint32(1)
_CANDIDATE = 4
_NUMBER, _NEXT, _TAIL, _LENGTH = range(_CANDIDATE)
# The words of a candidate:
#
#     code[c + _NUMBER]   number of the needle
#     code[c + _NEXT]     next candidate, or 0
#     code[c + _TAIL]     where in text its tail begins; 0 if neither it nor any candidate behind it has one
#     code[c + _LENGTH]   how long its tail is


class Automaton(NamedTuple):
    """The arrays drawn above."""

    code: Words
    text: Bytes
    first_candidate: int
    """Where in `code` the candidates begin."""
    everywhere: int
    """The number of the empty needle, which every string contains; -1 if there is none."""

    @property
    def nbytes(self) -> int:
        return self.code.nbytes + self.text.nbytes


def build(
    needles: Sequence[str], numbers: Sequence[int], plans: Sequence[Plan] = PLANS, longest_tail: int = LONGEST_TAIL
) -> Automaton:
    """An automaton for distinct needles, each with the number that it is reported by."""
    column = pa.array(needles, pa.large_string())
    order = pc.array_sort_indices(column).to_numpy().astype(np.int64)
    sorted_numbers = np.array(numbers, np.int64)[order]
    offsets, data = Texts(column.take(pa.array(order))).buffers
    everywhere = -1
    if len(offsets) > 1 and offsets[1] == offsets[0]:  # the empty needle is the first
        everywhere, sorted_numbers, offsets = int(sorted_numbers[0]), sorted_numbers[1:], offsets[1:]
    classes, width = _classes(data)
    trie = _trie(offsets, data, 4 * width, plans, longest_tail)
    nodes = len(trie.parent)
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(trie.end, minlength=nodes), out=first[1:])
    code = np.zeros(nodes * width + _CANDIDATE * len(trie.end), np.uint32)
    candidates = code[nodes * width :].reshape(-1, _CANDIDATE)
    by_node = np.argsort(trie.end, kind="stable")
    candidates[:, _NUMBER] = sorted_numbers[by_node]
    candidates[:, _TAIL] = (len(classes) + offsets[:-1] + trie.cut)[by_node]
    candidates[:, _LENGTH] = (np.diff(offsets) - trie.cut)[by_node]
    _link(trie.parent, classes[trie.label], first, width, code)
    return Automaton(code, np.concatenate((classes, classes[data])), nodes * width, everywhere)


def search(automaton: Automaton, texts: Texts) -> tuple[I64s, I64s]:
    """Pairs of a string's place and the number of a needle in it, each once, in no order."""
    offsets, data = texts.buffers
    strings = _Strings(offsets, data, grouped(np.diff(offsets)))
    candidates = (len(automaton.code) - automaton.first_candidate) // _CANDIDATE
    states, starts, odd = np.empty(LANES, np.uint32), np.empty(LANES, np.uintp), np.empty(LANES * CHUNK, np.int64)
    found = _Found(np.empty(2 * len(texts) + 1024, np.int64), np.empty(2 * len(texts) + 1024, np.int64))
    begin = filled = 0
    while True:
        seen = np.zeros((LANES, candidates), np.int32)  # The system clears only what is touched, which is little.
        begin, filled = _search(automaton, strings, _Lanes(states, starts, odd, seen), found, begin, filled)
        if begin == len(texts):
            break
        found = _Found(np.resize(found.places, 4 * len(found.places)), np.resize(found.numbers, 4 * len(found.numbers)))
    places, numbers = found.places[:filled], found.numbers[:filled]
    if automaton.everywhere >= 0:
        places = np.concatenate((places, np.arange(len(texts))))
        numbers = np.concatenate((numbers, np.full(len(texts), automaton.everywhere)))
    return places, numbers


def search_one(automaton: Automaton, text: str) -> list[int]:
    """The numbers of the needles in one string, ascending.

    With 5,000 needles, a string of 20 characters takes 1.5 us, one of 100 takes 3.5 and one of 500 takes 9; pyahocorasick takes
    1.2, 5 and 22.
    """
    everywhere = automaton.everywhere
    found = np.empty(_MOST_OF_ONE, np.int64)
    # The arrays are passed one by one and the string as bytes: a tuple and an array would double the time of a call.
    count = _search_one(automaton.code, automaton.text, text.encode(), found)
    if count == 0 and everywhere < 0:
        return []
    if count > _MOST_OF_ONE:
        _, all_found = search(automaton, Texts(pa.array([text])))
        return [int(number) for number in np.sort(all_found)]
    numbers: list[int] = found[:count].tolist()
    if everywhere >= 0:
        numbers.append(everywhere)
    numbers.sort()
    return numbers


# -- building


def _classes(data: Bytes) -> tuple[Bytes, int]:
    """The class of each byte, and the width of a row: even, with a place to spare for the candidate of an odd state."""
    counts = np.bincount(data, minlength=256)
    used = np.flatnonzero(counts)
    used = used[np.argsort(-counts[used], kind="stable")]
    classes = np.zeros(256, np.uint8)
    classes[used] = np.arange(1, len(used) + 1)  # at most 243: the other bytes do not occur in UTF-8
    return classes, (len(used) + 3) // 2 * 2


class _Trie(NamedTuple):
    """A trie of cut needles with its nodes in breadth-first order: parent and last byte of each node.

    For each needle: its length when it is cut, and the node where it ends.
    """

    parent: Nodes
    label: Bytes
    cut: I64s
    end: Nodes


def _trie(offsets: I64s, data: Bytes, row_bytes: int, plans: Sequence[Plan], longest_tail: int) -> _Trie:
    """The trie of sorted needles by the first plan that fits."""
    lengths = np.diff(offsets)
    common = np.zeros(len(lengths), np.int64)
    _common_prefixes(offsets, data, common)
    for others, more, most_bytes in plans:
        cut = np.minimum(lengths, np.maximum(_shared(common, others) + 1 + more, lengths - longest_tail))
        parent, label = np.zeros(int(cut.sum()) + 1, np.int32), np.zeros(int(cut.sum()) + 1, np.uint8)
        end = np.empty(len(lengths), np.int32)
        nodes = _grow(offsets, data, common, cut, parent, label, end)
        if nodes * row_bytes <= most_bytes:
            break
    parent, label = parent[:nodes], label[:nodes]
    depth = np.zeros(nodes, np.int32)
    _depths(parent, depth)
    order = grouped(depth)
    rank = np.empty(nodes, np.int32)
    rank[order] = np.arange(nodes, dtype=np.int32)
    return _Trie(rank[parent[order]], label[order], cut, rank[end])


def _shared(common: I64s, others: int) -> I64s:
    """How many first bytes each needle shares with at least `others` other needles."""
    count = len(common)
    shared = np.zeros(count, np.int64)
    windows = common[1:]
    for further in range(2, others + 1):
        windows = np.minimum(windows[:-1], common[further:])
    for place in range(others + 1):  # windows[j] is shared by the needles j .. j + others
        np.maximum(shared[place : place + len(windows)], windows, out=shared[place : place + len(windows)])
    return shared


@kernel
def _common_prefixes(offsets: I64s, data: Bytes, common: I64s) -> None:
    """Count the first bytes that each needle shares with the needle before it."""
    for i in range(1, len(common)):
        begin, before = offsets[i], offsets[i - 1]
        most = min(offsets[i + 1] - begin, begin - before)
        while common[i] < most and data[begin + common[i]] == data[before + common[i]]:
            common[i] += 1


@kernel
def _grow(offsets: I64s, data: Bytes, common: I64s, cut: I64s, parent: Nodes, label: Bytes, end: Nodes) -> int:
    """Write the trie of the cut needles in the order of a depth-first walk; returns the number of its nodes."""
    path = np.zeros(np.max(cut) + 1 if len(cut) else 1, np.int32)
    nodes = 1
    known = 0  # path[: known + 1] are the nodes of the needle before
    for i in range(len(cut)):
        known = min(known, common[i])
        for depth in range(known, cut[i]):
            parent[nodes] = path[depth]
            label[nodes] = data[offsets[i] + depth]
            path[depth + 1] = nodes
            nodes += 1
        known = max(known, cut[i])
        end[i] = path[cut[i]]
    return nodes


@kernel
def _depths(parent: Nodes, depth: Nodes) -> None:
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + 1


@kernel
def _link(parent: Nodes, label: Bytes, first: I64s, width: int, code: Words) -> None:
    """Write the rows of all states and the links between candidates. Candidates lie behind the rows, in the order of nodes.

    In breadth-first order, children are neighbours and come after all shallower nodes. So the row of their parent's failure is
    complete when they are reached.
    """
    nodes = len(parent)
    failure, state = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    child = 1
    for node in range(nodes):
        row, fallback = state[node], state[failure[node]]
        if node > 0:
            for c in range(width - 1):
                code[row + c] = code[fallback + c]
        while child < nodes and parent[child] == node:
            at = row + label[child]
            failure[child] = code[at] // width if node > 0 else 0
            inherited = state[failure[child]]
            head = code[inherited - 1] if inherited % 2 == 1 else np.uint32(0)
            for j in range(first[child + 1] - 1, first[child] - 1, -1):
                candidate = nodes * width + _CANDIDATE * j
                code[candidate + _NEXT] = head
                if code[candidate + _LENGTH] == 0 and (head == 0 or code[head + _TAIL] == 0):
                    code[candidate + _TAIL] = 0
                head = np.uint32(candidate)
            state[child] = child * width
            if head > 0:
                code[state[child]] = head
                state[child] += 1
            code[at] = state[child]
            child += 1


# -- searching. Indices of the hot loops are unsigned, which saves a test for negative ones at every step.


class _Strings(NamedTuple):
    """A column of strings: offsets, UTF-8, and the places of the strings by ascending length."""

    offsets: I64s
    data: Bytes
    order: npt.NDArray[np.intp]


class _Lanes(NamedTuple):
    """Strings that are read in turn: the state of each lane, and where in `data` its string starts."""

    states: Words
    starts: npt.NDArray[np.uintp]
    odd: I64s
    """The odd states of a chunk: step, lane and state in one word."""
    seen: I32s
    """By lane and candidate: the last string in which the candidate was found, counted from 1."""


class _Found(NamedTuple):
    """Places of strings, and numbers of needles in them."""

    places: I64s
    numbers: I64s


@lean_kernel
def _search(
    automaton: Automaton, strings: _Strings, lanes: _Lanes, found: _Found, begin: int, filled: int
) -> tuple[int, int]:
    """Search strings from the one with rank `begin` on, while there is room for what is found.

    The strings of a group are read together, and the shortest ends first. Returns the rank of the string to go on with.
    """
    offsets, order = strings.offsets, strings.order
    while begin < len(order):
        count = min(LANES, len(order) - begin)
        for lane in range(count):
            lanes.states[lane] = 0
            lanes.starts[lane] = offsets[order[begin + lane]]
        before = filled
        first = done = 0
        while first < count:
            shortest = offsets[order[begin + first] + 1] - offsets[order[begin + first]]
            if done == shortest:
                first += 1
                continue
            end = min(shortest, done + CHUNK)
            if first == 0 and count == LANES:  # LLVM unrolls the loop over all lanes: a fifth faster
                noted = _advance(automaton, strings.data, lanes, 0, LANES, done, end)
            else:
                noted = _advance(automaton, strings.data, lanes, first, count, done, end)
            filled = _take(automaton, strings, lanes, found, begin, done, noted, filled)
            done = end
        if filled > len(found.places):
            return begin, before
        begin += count
    return begin, filled


@inlined
def _advance(automaton: Automaton, data: Bytes, lanes: _Lanes, first: int, last: int, done: int, end: int) -> int:
    """Read the bytes from `done` to `end` of the lanes from `first` to `last`; returns how many odd states were noted."""
    noted = UP(0)
    for k in range(UP(done), UP(end)):
        for lane in range(UP(first), UP(last)):
            state = automaton.code[UP(lanes.states[lane]) + UP(automaton.text[UP(data[lanes.starts[lane] + k])])]
            lanes.states[lane] = state
            if state & _ODD:
                lanes.odd[noted] = halves((I64(k) - done) * LANES + I64(lane), I64(state))
                noted += UP(1)
    return int(noted)


@merged
def _take(
    automaton: Automaton,
    strings: _Strings,
    lanes: _Lanes,
    found: _Found,
    begin: int,
    done: int,
    noted: int,
    filled: int,
) -> int:
    """Follow the candidates of the odd states of a chunk; returns how many needles were found so far, even without room."""
    code = automaton.code
    for i in range(noted):
        step, lane = divmod(first_half(lanes.odd[i]), LANES)
        place = strings.order[begin + lane]
        at = strings.offsets[place] + done + step + 1
        c = I64(code[UP(second_half(lanes.odd[i])) - UP(1)])
        while c > 0:
            candidate = (c - automaton.first_candidate) // _CANDIDATE
            if lanes.seen[lane, candidate] == place + 1:
                if code[c + _TAIL] == 0:
                    break  # and all behind it were found with it
            elif _follows(code, automaton.text, c, strings.data, at, strings.offsets[place + 1]):
                lanes.seen[lane, candidate] = place + 1
                if filled < len(found.places):
                    found.places[filled] = place
                    found.numbers[filled] = code[c + _NUMBER]
                filled += 1
            c = I64(code[c + _NEXT])
    return filled


@inlined
def _follows(code: Words, text: Bytes, c: int, data: Bytes | bytes, at: int, end: int) -> bool:
    """Whether the tail of a candidate follows."""
    tail, length = UP(code[c + _TAIL]), I64(code[c + _LENGTH])
    if length > end - at:
        return False
    same = UP(0)
    while same < UP(length) and text[tail + same] == text[UP(data[UP(at) + same])]:
        same += UP(1)
    return bool(same == UP(length))


@kernel
def _search_one(code: Words, text: Bytes, data: bytes, found: I64s) -> int:
    """Write down each needle once; returns their number, or one more than `found` has room for."""
    count = 0
    state = U32(0)
    for at in range(len(data)):
        state = code[UP(state) + UP(text[UP(data[at])])]
        if state & _ODD:
            c = I64(code[UP(state) - UP(1)])
            while c > 0:
                known = 0
                while known < count and found[known] != code[c + _NUMBER]:
                    known += 1
                if known < count:
                    if code[c + _TAIL] == 0:
                        break  # and all behind it were found with it
                elif _follows(code, text, c, data, at + 1, len(data)):
                    if count == len(found):
                        return count + 1
                    found[count] = code[c + _NUMBER]
                    count += 1
                c = I64(code[c + _NEXT])
    return count
