r"""RLIKE by a deterministic automaton, for simple patterns: one look into a table for each byte, until the string is decided.

    9[0-9]7$, read backwards    7       9       another digit   another character
                    state 4     5       no      no              no
                    state 5     6       6       6               no
                    state 6     no      yes     no              no

A pattern that ends in `$` and does not begin with `^` is read backwards: most strings are decided after a byte or two. Other
patterns are read forwards. Python's parser reads the pattern, if it has only what Python and RE2 read alike: characters, classes,
`.`, repetitions, alternatives, groups, `^` and `$` at the ends, and `(?i)` at the beginning. RE2 decides on other patterns.

Patterns are ASCII. So all characters outside of ASCII are one symbol: the first byte of a character stands for it, and the other
bytes change nothing. With `(?i)`, two of these characters equal k and s. At the first byte of one, RE2 decides on the string.

The positions of a pattern, and what may follow each, are those of Glushkov, "The abstract theory of automata" (1961). A state
of the table is the set of positions that the next byte may take.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from operator import or_
from re import _parser
from string import ascii_letters, digits
from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import UP, Bools, I32s, U8s, U16s

_LARGEST = 200
"""Most parts of a pattern, counted as often as they are repeated."""
_MOST_STATES = 100
"""Most states. Making these takes up to three milliseconds."""

_BYTES, _ASCII = 256, 128
_OTHER, _LEADING, _TRAILING = 128, 129, 130
"""Symbols beside the bytes of ASCII: a character outside of ASCII, the end that is read first, and the other end."""
_FIRST_BYTES = slice(0xC0, 0x100)
"""Bytes that begin a character outside of ASCII. The bytes from 0x80 to 0xBF go on with it."""
_ALIKE_BYTES = [0xC5, 0xE2]
"""The first bytes of \u017f, which equals s when case is ignored, and of \u212a, which equals k."""
_IGNORES_CASE = "(?i)"
_NO, _YES, _OPEN, _FIRST = 0, 1, 2, 4
"""States in which a string is decided, or left to RE2; then the first state that reads on, a power of two."""

_ESCAPE = r"\\[^0-9A-Za-z_]|\\[dDsSwWnrtfva]"
_TIMES = r"\{(?:0|[1-9][0-9]*)(?:,(?:0|[1-9][0-9]*)?)?\}"
_ALIKE = re.compile(
    rf"(?:[^\\\[({{]|{_TIMES}|\((?!\?)|\(\?:|{_ESCAPE}|\[\^?\]?+(?:[^]\\\[&|~-]|-(?!-)|{_ESCAPE})*\])*+"
)
"""Patterns that Python and RE2 read alike, if both take them. RE2 takes {01} and {,1} for characters."""

_ALL = frozenset(range(_OTHER + 1))
_CATEGORIES = {
    "SPACE": frozenset(b"\t\n\f\r "),
    "DIGIT": frozenset(digits.encode()),
    "WORD": frozenset(f"{ascii_letters}{digits}_".encode()),
}


class Automaton(NamedTuple):
    """A pattern as a table."""

    after: U16s
    """By state and byte: the next state, times 256."""
    verdict: U8s
    """By state: the state at the end of a string, which is decided or left to RE2."""
    is_forward: bool
    is_early: bool
    """Whether a match begins where reading begins. Most strings are decided after a few bytes."""


class _NotReadError(Exception):
    """The pattern is left to RE2."""


class _Part(NamedTuple):
    """A part of a pattern. Positions are bits."""

    may_be_empty: bool
    first: int
    last: int


class _Positions:
    """The positions of a pattern: the symbols that each takes, and the positions that may follow each."""

    def __init__(self, is_forward: bool, ignores_case: bool) -> None:
        self._step, self._ignores_case = 1 if is_forward else -1, ignores_case
        self._parts = 0
        self.symbols: list[frozenset[int]] = []
        self.follow: list[int] = []

    def sequence(self, items: Iterable[Any], leads: bool = False, trails: bool = False) -> _Part:
        """Items one after another. `leads` and `trails`: nothing of the pattern is read before, or after."""
        whole, ordered = _Part(True, 0, 0), list(items)[:: self._step]
        for place, (name, value) in enumerate(ordered):
            part = self._item(str(name), value, leads and place == 0, trails and place == len(ordered) - 1)
            whole = self._joined(whole, part)
        return whole

    def _joined(self, left: _Part, right: _Part) -> _Part:
        self._link(left.last, right.first)
        first = left.first | right.first if left.may_be_empty else left.first
        last = left.last | right.last if right.may_be_empty else right.last
        return _Part(left.may_be_empty and right.may_be_empty, first, last)

    def _item(self, name: str, value: Any, leads: bool, trails: bool) -> _Part:
        self._parts += 1
        if self._parts > _LARGEST:
            raise _NotReadError
        match name:
            case "AT":
                symbol = _LEADING if (str(value) == "AT_BEGINNING") == (self._step > 0) else _TRAILING
                if str(value) not in ("AT_BEGINNING", "AT_END") or not (leads if symbol == _LEADING else trails):
                    raise _NotReadError
                return self._position(frozenset((symbol,)))
            case "SUBPATTERN":
                return self.sequence(value[3], leads, trails)
            case "BRANCH":
                empty, first, last = zip(*(self.sequence(items, leads, trails) for items in value[1]), strict=True)
                return _Part(any(empty), reduce(or_, first), reduce(or_, last))
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeated(*value)
        return self._position(_symbols(name, value, self._ignores_case))

    def _position(self, symbols: frozenset[int]) -> _Part:
        bit = 1 << len(self.symbols)
        self.symbols.append(symbols)
        self.follow.append(0)
        return _Part(False, bit, bit)

    def _repeated(self, least: int, most: int, items: Iterable[Any]) -> _Part:
        """A part several times, each with positions of its own. If any number is allowed, each may follow itself."""
        whole, is_endless = _Part(True, 0, 0), str(most) == "MAXREPEAT"
        for time in range(max(least, 1) if is_endless else most):
            part = self.sequence(items)
            if time >= least:
                part = part._replace(may_be_empty=True)
            whole = self._joined(whole, part)
            if is_endless:
                self._link(part.last, part.first)
        return whole

    def _link(self, last: int, first: int) -> None:
        for position in _bits(last):
            self.follow[position] |= first


def _symbols(name: str, value: Any, ignores_case: bool) -> frozenset[int]:
    """The bytes of ASCII that a part of Python's tree takes, and whether it takes other characters."""
    match name:
        case "LITERAL":
            return _in_both_cases((value,)) if ignores_case else frozenset((value,))
        case "NOT_LITERAL":
            return _ALL - _symbols("LITERAL", value, ignores_case)
        case "ANY":
            return _ALL - {ord("\n")}
        case "RANGE":
            some = range(value[0], value[1] + 1)
            return _in_both_cases(some) if ignores_case else frozenset(some)
        case "CATEGORY":
            _, *negated, category = str(value).split("_")
            return _ALL - _CATEGORIES[category] if negated else _CATEGORIES[category]
        case "IN":
            is_negated = str(value[0][0]) == "NEGATE"
            parts = frozenset().union(*(_symbols(str(each), of, ignores_case) for each, of in value[is_negated:]))
            return _ALL - parts if is_negated else parts
    raise _NotReadError


def _in_both_cases(letters: Iterable[int]) -> frozenset[int]:
    return frozenset(ord(each) for letter in letters for each in (chr(letter).lower(), chr(letter).upper()))


def _bits(positions: int) -> Iterable[int]:
    while positions:
        lowest = positions & -positions
        yield lowest.bit_length() - 1
        positions ^= lowest


def read_automaton(pattern: str) -> Automaton | None:
    """The automaton of a pattern that RE2 takes; None if it is left to RE2."""
    ignores_case = pattern.startswith(_IGNORES_CASE)
    pattern = pattern.removeprefix(_IGNORES_CASE)
    if not pattern.isascii() or len(pattern) > _LARGEST or _ALIKE.fullmatch(pattern) is None:
        return None
    try:
        items = _parser.parse(pattern)
        is_forward = not items or str(items[0][1]) == "AT_BEGINNING" or str(items[-1][1]) != "AT_END"
        return _automaton(items, is_forward, ignores_case)
    except (_NotReadError, re.error, RecursionError):
        return None


def _automaton(items: Any, is_forward: bool, ignores_case: bool) -> Automaton:
    positions = _Positions(is_forward, ignores_case)
    whole = positions.sequence(items, leads=True, trails=True)
    takers = [0] * (_TRAILING + 1)
    for position, symbols in enumerate(positions.symbols):
        for symbol in symbols:
            takers[symbol] |= 1 << position
    groups, group = np.unique(np.array(takers[: _OTHER + 1], object), return_inverse=True)
    number: dict[int, int] = {0: _NO}
    """By the positions that the next byte may take."""
    waiting: list[int] = []

    def state(takes: int) -> int:
        """The state after some positions were taken. A match may begin anywhere."""
        if takes & whole.last or whole.may_be_empty:
            return _YES
        following = whole.first
        for position in _bits(takes):
            following |= positions.follow[position]
        following &= ~takers[_LEADING]
        if following not in number:
            number[following] = _FIRST + len(waiting)
            waiting.append(following)
            if len(waiting) > _MOST_STATES:
                raise _NotReadError
        return number[following]

    if state(whole.first & takers[_LEADING]) < _FIRST:
        raise _NotReadError  # It takes all strings, or none.
    rows, verdict = [], [_NO, _YES, _OPEN, _NO]
    for following in waiting:  # The list grows.
        rows.append([state(following & each) for each in groups.tolist()])
        verdict.append(_YES if following & takers[_TRAILING] & whole.last else _NO)
    # A byte that goes on with a character leaves the state as it is.
    after = np.repeat(np.arange(_FIRST + len(rows), dtype=np.uint16)[:, None] * np.uint16(_BYTES), _BYTES, axis=1)
    states = np.array(rows)[:, group] * _BYTES
    after[_FIRST:, :_ASCII], after[_FIRST:, _FIRST_BYTES] = states[:, :_ASCII], states[:, _OTHER:]
    if ignores_case:
        after[_FIRST:, _ALIKE_BYTES] = _OPEN * _BYTES
    is_early = not whole.first & ~takers[_LEADING]
    return Automaton(after.ravel(), np.array(verdict, np.uint8), is_forward, is_early)


def decided(automaton: Automaton, data: U8s, start: I32s) -> tuple[Bools, Bools]:
    """Which strings match, and which are left to RE2."""
    verdict = np.empty(len(start) - 1, np.uint8)
    _read(automaton, data, start, verdict)
    return verdict == _YES, verdict == _OPEN


@kernel
def _read(automaton: Automaton, data: U8s, start: I32s, verdict: U8s) -> None:
    """The verdict on each string. Four strings are read together, so the processor waits for four table entries at once."""
    after, step, first = automaton.after, 1 if automaton.is_forward else -1, UP(_FIRST * _BYTES)
    row, last = 0, len(verdict) - 4
    while row <= last:
        (a, a_size), (b, b_size) = _span(automaton, start, row), _span(automaton, start, row + 1)
        (c, c_size), (d, d_size) = _span(automaton, start, row + 2), _span(automaton, start, row + 3)
        one, two, three, four = first, first, first, first
        read, shortest = 0, min(a_size, b_size, c_size, d_size)
        while read < shortest and one | two | three | four >= first:
            one, two = UP(after[one + data[UP(a)]]), UP(after[two + data[UP(b)]])
            three, four = UP(after[three + data[UP(c)]]), UP(after[four + data[UP(d)]])
            a, b, c, d = a + step, b + step, c + step, d + step
            read += 1
        verdict[row] = _verdict(automaton, data, one, a, a_size - read)
        verdict[row + 1] = _verdict(automaton, data, two, b, b_size - read)
        verdict[row + 2] = _verdict(automaton, data, three, c, c_size - read)
        verdict[row + 3] = _verdict(automaton, data, four, d, d_size - read)
        row += 4
    while row < len(verdict):
        place, size = _span(automaton, start, row)
        verdict[row] = _verdict(automaton, data, first, place, size)
        row += 1


@inlined
def _span(automaton: Automaton, start: I32s, row: int) -> tuple[int, int]:
    """Where reading a string begins, and how many bytes it has."""
    begin, end = int(start[row]), int(start[row + 1])
    return begin if automaton.is_forward else end - 1, end - begin


@inlined
def _verdict(automaton: Automaton, data: U8s, state: int, place: int, left: int) -> int:
    """The verdict on a string of which some bytes are left."""
    step = 1 if automaton.is_forward else -1
    while left > 0 and state >= _FIRST * _BYTES:
        state = UP(automaton.after[state + data[UP(place)]])
        place += step
        left -= 1
    return int(automaton.verdict[state // UP(_BYTES)])
