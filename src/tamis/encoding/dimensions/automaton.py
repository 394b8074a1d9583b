"""An automaton that finds which of many needles strings contain, in one pass over their UTF-8 (Aho and Corasick).

A needle is *cut* some bytes behind the place where it differs from all others. The automaton knows the cut needles; where it
has seen one, the rest of it, its *tail*, is compared with what follows. Two arrays hold all:

    code   | rows of states ...            | candidates ...                                     |
             state s      code[s + class]    candidate c   code[c]       number of the needle
                          the next state                   code[c + 1]   next candidate, or 0
             s odd        code[s - 1]                      code[c + 2]   where in text its tail begins; 0 if neither
                          a candidate                                    it nor any candidate behind it has one
                                                           code[c + 3]   how long its tail is
    text   | class of each byte (256)      | tails of the needles, in classes ...               |

A state is the place of its transitions; it is odd where a cut needle ends, so one bit tells whether there is anything to do. A
row has a place for each *class*: the bytes of the needles, the most frequent first, so that what is looked up most shares a
cache line, and all other bytes together as class 0. UTF-8 needs no care: no character begins inside another.

Reference: A. V. Aho, M. J. Corasick, "Efficient string matching: an aid to bibliographic search", CACM 18(6), 1975: the trie is
the goto function of algorithm 2, and the failures of algorithm 3 become the complete rows of algorithm 4.
Departures: needles are cut (see `_PLANS`), so where a cut needle ends, as many bytes are compared as its tail has; outputs are
chained, not copied; sixteen strings are read in turn, since each next state has to be waited for: 2 to 3 times faster than
one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.encoding.dimensions.texts import Texts
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.ranges import grouped

Ints = npt.NDArray[np.int64]

# How needles are cut: so many bytes behind the first place that at most so many needles share, where rows of no more than so
# many bytes come of it. The first plan that fits is taken. Of 5,000 needles of a dozen characters, searched in command lines:
#
#     whole, 9 MB: 4.1 ns a byte    3 behind, 4 MB: 4.1    1 behind, 2 MB: 5    none, 2 MB: 10    none, four share, 1 MB: 23
#
# and pyahocorasick, string by string, 47. Of 50,000: 9.1 (79 MB), 10.5 (42 MB), 12, 17, 29, and 78.
_WHOLE = 1 << 30
_PLANS = (
    (1, _WHOLE, 1 << 20),
    (1, 3, 64 << 20),
    (1, 1, 64 << 20),
    (1, 0, 64 << 20),
    (4, 0, 64 << 20),
    (16, 0, 1 << 62),
)
# No byte of a string is compared more often than this with one needle, however alike the two are.
_LONGEST_TAIL = 255

# How many strings are read in turn, and how many bytes of each before what was noted is looked at.
_LANES = 16
_CHUNK = 512
# A single string with more needles than these is searched like a column.
_MOST_OF_ONE = 64

_ODD = np.uint32(1)
_CANDIDATE = 4


class Automaton(NamedTuple):
    """The arrays drawn above."""

    code: npt.NDArray[np.uint32]
    text: npt.NDArray[np.uint8]
    first_candidate: int
    """Where in `code` the candidates begin."""
    everywhere: int
    """The number of the empty needle, which every string contains; -1 if there is none."""

    @property
    def nbytes(self) -> int:
        return self.code.nbytes + self.text.nbytes


def build(needles: Sequence[str], numbers: Sequence[int]) -> Automaton:
    """An automaton for distinct needles, each with the number that it is reported by."""
    column = pa.array(needles, pa.large_string())
    order = pc.array_sort_indices(column).to_numpy().astype(np.int64)
    sorted_numbers = np.array(numbers, np.int64)[order]
    offsets, data = Texts(column.take(pa.array(order))).buffers
    everywhere = -1
    if len(offsets) > 1 and offsets[1] == offsets[0]:  # the empty needle is the first
        everywhere, sorted_numbers, offsets = int(sorted_numbers[0]), sorted_numbers[1:], offsets[1:]
    classes, width = _classes(data)
    trie = _trie(offsets, data, 4 * width)
    nodes = len(trie.parent)
    first = np.zeros(nodes + 1, np.int64)
    np.cumsum(np.bincount(trie.end, minlength=nodes), out=first[1:])
    code = np.zeros(nodes * width + _CANDIDATE * len(trie.end), np.uint32)
    candidates = code[nodes * width :].reshape(-1, _CANDIDATE)
    by_node = np.argsort(trie.end, kind="stable")
    candidates[:, 0] = sorted_numbers[by_node]
    candidates[:, 2] = (len(classes) + offsets[:-1] + trie.cut)[by_node]
    candidates[:, 3] = (np.diff(offsets) - trie.cut)[by_node]
    _link(trie.parent, classes[trie.label], first, width, code)
    return Automaton(code, np.concatenate((classes, classes[data])), nodes * width, everywhere)


def search(automaton: Automaton, texts: Texts) -> tuple[Ints, Ints]:
    """Pairs of a string's place and the number of a needle in it, each once, in no order."""
    offsets, data = texts.buffers
    order = grouped(np.diff(offsets))
    events = np.empty(_LANES * _CHUNK, np.int64)
    candidates = (len(automaton.code) - automaton.first_candidate) // _CANDIDATE
    places, numbers = np.empty(2 * len(texts) + 1024, np.int64), np.empty(2 * len(texts) + 1024, np.int64)
    begin = filled = 0
    while True:
        seen = np.zeros((_LANES, candidates), np.int32)  # of which most is never touched, nor cleared
        begin, filled = _search(automaton, order, offsets, data, begin, events, seen, places, numbers, filled)
        if begin == len(order):
            break
        places, numbers = np.resize(places, 4 * len(places)), np.resize(numbers, 4 * len(numbers))
    places, numbers = places[:filled], numbers[:filled]
    if automaton.everywhere >= 0:
        places = np.concatenate((places, np.arange(len(texts))))
        numbers = np.concatenate((numbers, np.full(len(texts), automaton.everywhere)))
    return places, numbers


def search_one(automaton: Automaton, text: str) -> list[int]:
    """The numbers of the needles in one string, ascending.

    With 5,000 needles, a string of 20 characters takes 1.5 us, one of 100 takes 3.5 and one of 500 takes 9; pyahocorasick takes
    1.2, 5 and 22.
    """
    code, classes, _, everywhere = automaton
    found = np.empty(_MOST_OF_ONE, np.int64)
    # The arrays are handed over one by one and the string as bytes: a tuple and an array would double the time of a call.
    count = _search_one(code, classes, text.encode(), found)
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


def _classes(data: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.uint8], int]:
    """The class of each byte, and the width of a row: even, with a place to spare for the candidate of an odd state."""
    counts = np.bincount(data, minlength=256)
    used = np.flatnonzero(counts)
    used = used[np.argsort(-counts[used], kind="stable")]
    classes = np.zeros(256, np.uint8)
    classes[used] = np.arange(1, len(used) + 1)  # at most 243: the other bytes do not occur in UTF-8
    return classes, (len(used) + 3) // 2 * 2


class _Trie(NamedTuple):
    """A trie of cut needles, its nodes in breadth-first order, and of each needle where it is cut and at which node."""

    parent: npt.NDArray[np.int32]
    label: npt.NDArray[np.uint8]
    cut: Ints
    end: npt.NDArray[np.int32]


def _trie(offsets: Ints, data: npt.NDArray[np.uint8], row_bytes: int) -> _Trie:
    """The trie of sorted needles by the first plan that fits."""
    lengths = np.diff(offsets)
    common = np.zeros(len(lengths), np.int64)
    _common_prefixes(offsets, data, common)
    for others, more, most_bytes in _PLANS:
        cut = np.minimum(lengths, np.maximum(_shared(common, others) + 1 + more, lengths - _LONGEST_TAIL))
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


def _shared(common: Ints, others: int) -> Ints:
    """How many of its first bytes each needle shares with at least so many others."""
    count = len(common)
    shared = np.zeros(count, np.int64)
    windows = common[1:]
    for further in range(2, others + 1):
        windows = np.minimum(windows[:-1], common[further:])
    for place in range(others + 1):  # windows[j] is shared by the needles j .. j + others
        np.maximum(shared[place : place + len(windows)], windows, out=shared[place : place + len(windows)])
    return shared


@kernel
def _common_prefixes(offsets: Any, data: Any, common: Any) -> None:
    """How many bytes each needle has in common with the one before it."""
    for i in range(1, len(common)):
        begin, before = offsets[i], offsets[i - 1]
        most = min(offsets[i + 1] - begin, begin - before)
        while common[i] < most and data[begin + common[i]] == data[before + common[i]]:
            common[i] += 1


@kernel
def _grow(offsets: Any, data: Any, common: Any, cut: Any, parent: Any, label: Any, end: Any) -> int:
    """The trie of the cut needles in the order of a depth-first walk; returns how many nodes it has."""
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
def _depths(parent: Any, depth: Any) -> None:
    for node in range(1, len(parent)):
        depth[node] = depth[parent[node]] + 1


@kernel
def _link(parent: Any, label: Any, first: Any, width: int, code: Any) -> None:
    """Write the rows of all states, and the links between candidates, which stand behind them in the order of their nodes.

    Children are neighbours in breadth-first order and come after all shallower nodes, so when they are met, the row of
    their parent's failure is complete.
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
                code[candidate + 1] = head
                if code[candidate + 3] == 0 and (head == 0 or code[head + 2] == 0):
                    code[candidate + 2] = 0
                head = np.uint32(candidate)
            state[child] = child * width
            if head > 0:
                code[state[child]] = head
                state[child] += 1
            code[at] = state[child]
            child += 1


# -- searching. Indices of the hot loops are unsigned, which saves a test for negative ones at every step.


@kernel
def _search(
    automaton: Any,
    order: Any,
    offsets: Any,
    data: Any,
    begin: int,
    events: Any,
    seen: Any,
    places: Any,
    numbers: Any,
    filled: int,
) -> tuple[int, int]:
    """Search strings in the order of their lengths from `begin` on, while there is room for what is found.

    Strings are read in lanes, the shortest of a group being done first. `seen` tells the last string of each lane in which a
    candidate was found, counted from 1. Returns with which string to go on.
    """
    code, text, first_candidate = automaton.code, automaton.text, automaton.first_candidate
    states, starts = np.empty(_LANES, np.uint32), np.empty(_LANES, np.uintp)
    while begin < len(order):
        lanes = min(_LANES, len(order) - begin)
        for lane in range(lanes):
            states[lane] = 0
            starts[lane] = offsets[order[begin + lane]]
        before = filled
        first = done = 0
        while first < lanes:
            shortest = offsets[order[begin + first] + 1] - offsets[order[begin + first]]
            if done == shortest:
                first += 1
                continue
            end = min(shortest, done + _CHUNK)
            if first == 0 and lanes == _LANES:  # for which the loop is unrolled: a fifth faster
                noted = _advance(code, text, data, states, starts, 0, _LANES, done, end, events)
            else:
                noted = _advance(code, text, data, states, starts, first, lanes, done, end, events)
            for e in range(noted):
                step, lane = divmod(events[e] >> 32, _LANES)
                place = order[begin + lane]
                at = offsets[place] + done + step + 1
                state = np.uint32(events[e])
                c = np.int64(code[np.uintp(state) - np.uintp(1)])
                while c > 0:
                    candidate = (c - first_candidate) // _CANDIDATE
                    if seen[lane, candidate] == place + 1:
                        if code[c + 2] == 0:
                            break  # and all behind it were found with it
                    elif _follows(code, text, c, data, at, offsets[place + 1]):
                        seen[lane, candidate] = place + 1
                        if filled < len(places):
                            places[filled] = place
                            numbers[filled] = code[c]
                        filled += 1
                    c = np.int64(code[c + 1])
            done = end
        if filled > len(places):
            return begin, before
        begin += lanes
    return begin, filled


@inlined
def _advance(
    code: Any,
    text: Any,
    data: Any,
    states: Any,
    starts: Any,
    first: int,
    lanes: int,
    done: int,
    end: int,
    events: Any,
) -> Any:
    """Read the bytes from `done` to `end` of some lanes, and note step, lane and state where states are odd."""
    noted = np.uintp(0)
    for k in range(np.uintp(done), np.uintp(end)):
        for lane in range(np.uintp(first), np.uintp(lanes)):
            state = code[np.uintp(states[lane]) + np.uintp(text[np.uintp(data[starts[lane] + k])])]
            states[lane] = state
            if state & _ODD:
                events[noted] = ((np.int64(k) - done) * _LANES + np.int64(lane)) << 32 | np.int64(state)
                noted += np.uintp(1)
    return noted


@inlined
def _follows(code: Any, text: Any, c: Any, data: Any, at: int, end: int) -> bool:
    """Whether the tail of a candidate follows."""
    tail, length = np.uintp(code[c + 2]), np.int64(code[c + 3])
    if length > end - at:
        return False
    same = np.uintp(0)
    while same < np.uintp(length) and text[tail + same] == text[np.uintp(data[np.uintp(at) + same])]:
        same += np.uintp(1)
    return bool(same == np.uintp(length))


@kernel
def _search_one(code: Any, text: Any, data: Any, found: Any) -> int:
    """Write down each needle once; returns how many there are, or more than there is room for."""
    count = 0
    state = np.uint32(0)
    for at in range(len(data)):
        state = code[np.uintp(state) + np.uintp(text[np.uintp(data[at])])]
        if state & _ODD:
            c = np.int64(code[np.uintp(state) - np.uintp(1)])
            while c > 0:
                known = 0
                while known < count and found[known] != code[c]:
                    known += 1
                if known < count:
                    if code[c + 2] == 0:
                        break  # and all behind it were found with it
                elif _follows(code, text, c, data, at + 1, len(data)):
                    if count == len(found):
                        return count + 1
                    found[count] = code[c]
                    count += 1
                c = np.int64(code[c + 1])
    return count
