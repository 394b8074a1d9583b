"""LIKE and RLIKE over many strings at once: which strings of an Arrow array match a pattern.

A LIKE asks about characters, the array has bytes in UTF-8. One string is in another exactly if its bytes are in the other's
bytes. Only `_` has to know where characters begin.

Milliseconds for 1,000,000 titles of 23 bytes:

    `contains`                                                     5 to 20     `pc.match_substring` of Arrow          8 to 54
    a LIKE with `_` and `%`                                          about 20  `pc.match_like`                             81
    `rlike`, an automaton has the pattern (`string_automaton`)     5 to 24     `pc.match_substring_regex`           72 to 116
    `rlike`, a match needs three certain letters                   7 to 26     the same

Other patterns of `rlike` are left to Arrow. Tried: RE2 over all strings in one piece, with a line each. In Python each match
takes five microseconds, so this is faster only if fewer than a hundredth of the strings match. In Arrow
(`replace_substring_regex`) it is never faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tamis.broker.string_automaton import Automaton, decided, read_automaton
from tamis.encoding.dimensions.regex_literals import needed
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import U8, Bools, I32s, U8s
from tamis.language.like import ANY_ONE, ANY_RUN, LikePattern, LikeShape

_LONG = 64
"""Bytes of a pattern from which on RE2 searches: its time does not grow with the length of the pattern."""
_LONG_STRINGS = 64
"""Bytes of a string, on average, from which on RE2 may be faster than an automaton, which takes 0.7 nanoseconds for each."""
_FEW_STRINGS = 4096
"""Strings that RE2 searches in the time in which an automaton is made. Also the sample that tells which literals are frequent."""
_FEW_LITERALS = 2
"""Strings that are looked for before a regular expression. Each takes up to a fifth of its time."""
_SAMPLE = 65_536
"""Bytes of the strings in which the bytes of a needle are counted, to find the rarest."""
_BLOCK = 64
"""Bytes that are looked at together. LLVM makes a few vector instructions of them."""

_WILDCARDS = {ANY_RUN: r"[\s\S]*", ANY_ONE: r"[\s\S]"}
"""Wildcards as parts of a regular expression."""
_ANY_RUN, _ANY_ONE, _NOTHING = -1, -2, -3
"""In the place of a byte of a pattern: `%`, `_`, and the end of the pattern."""


def like(texts: pa.Array, pattern: LikePattern) -> Bools:
    """Which strings match a LIKE pattern."""
    match pattern.shape:
        case LikeShape.ANYTHING:
            return np.ones(len(texts), np.bool_)
        case LikeShape.EXACT:
            return bools(pc.equal(texts, pattern.literal))
        case LikeShape.PREFIX:
            return bools(pc.starts_with(texts, pattern.literal))
        case LikeShape.SUFFIX:
            return bools(pc.ends_with(texts, pattern.literal))
        case LikeShape.CONTAINS:
            return _contains(texts, pattern.literal)
    return _like_in_general(texts, pattern)


def _like_in_general(texts: pa.Array, pattern: LikePattern) -> Bools:
    """As `like`, for a pattern with wildcards between texts, or with `_`."""
    automaton = read_automaton(_regex_of(pattern)) if len(texts) >= _FEW_STRINGS else None
    if automaton is not None:
        return decided(automaton, *bytes_of(texts))[0]
    longest = max((part for part in pattern.parts if isinstance(part, str)), key=len, default="")
    if len(texts) >= _FEW_STRINGS and longest and not _are_frequent(texts[:_FEW_STRINGS], [longest]):
        is_found = _contains(texts, longest)
        is_found[is_found] = _taken(texts.filter(pa.array(is_found)), pattern)
        return is_found
    return _taken(texts, pattern)


def _taken(texts: pa.Array, pattern: LikePattern) -> Bools:
    tokens = _tokens(pattern)
    if len(tokens) > _LONG:
        with suppress(pa.ArrowInvalid):  # It may be too long for RE2.
            return bools(pc.match_substring_regex(texts, pattern.to_regex()))
    is_found = np.zeros(len(texts), np.bool_)
    _take(*bytes_of(texts), tokens, is_found)
    return is_found


def _regex_of(pattern: LikePattern) -> str:
    """A pattern as a regular expression that an automaton may have. `%` at an end is no part of it."""
    pieces = [
        "^",
        *(re.escape(part) if isinstance(part, str) else _WILDCARDS[part.symbol] for part in pattern.parts),
        "$",
    ]
    any_run = _WILDCARDS[ANY_RUN]
    return "".join(pieces[2 if pieces[1] == any_run else 0 : -2 if pieces[-2] == any_run else None])


def rlike(texts: pa.Array, pattern: str) -> Bools:
    """Which strings contain a match of a regular expression, as Arrow's RE2 finds it.

    Strings that a match cannot do without are looked for first, if there are one or two. Often few strings are left then. An
    automaton decides on them if it is faster than RE2.

    Raises
    ------
    pyarrow.ArrowInvalid
        RE2 does not take the pattern.
    """
    automaton = _fast_automaton(texts, pattern)
    literals = needed(pattern).literals
    is_early = automaton is not None and automaton.is_early
    if is_early or not 0 < len(literals) <= _FEW_LITERALS or _are_frequent(texts[:_FEW_STRINGS], literals):
        return _searched(texts, pattern, automaton)
    is_found = _contains_one(texts, literals)
    rows = np.flatnonzero(is_found)
    is_found[rows] = _searched(texts.take(pa.array(rows)), pattern, automaton)
    return is_found


def _fast_automaton(texts: pa.Array, pattern: str) -> Automaton | None:
    """The automaton of a pattern, if it is faster than RE2."""
    if len(texts) < _FEW_STRINGS:
        return None
    automaton, start = read_automaton(pattern), bytes_of(texts)[1]
    is_long = start[-1] - start[0] > _LONG_STRINGS * len(texts)
    return None if automaton is None or (is_long and not automaton.is_early) else automaton


def _searched(texts: pa.Array, pattern: str, automaton: Automaton | None) -> Bools:
    """As `rlike`, by an automaton, if there is one, and RE2."""
    if automaton is None:
        return bools(pc.match_substring_regex(texts, pattern))
    is_found, is_open = decided(automaton, *bytes_of(texts))
    rows = np.flatnonzero(is_open)
    if 2 * len(rows) > len(texts):
        return bools(pc.match_substring_regex(texts, pattern))
    if len(rows):
        is_found[rows] = bools(pc.match_substring_regex(texts.take(pa.array(rows)), pattern))
    return is_found


def _are_frequent(texts: pa.Array, literals: Iterable[str]) -> bool:
    """Whether most strings contain one of some others, so that looking for these saves nothing."""
    return 2 * int(np.count_nonzero(_contains_one(texts, literals))) > len(texts)


def _contains_one(texts: pa.Array, literals: Iterable[str]) -> Bools:
    is_found: Bools = np.logical_or.reduce([_contains(texts, literal) for literal in literals])
    return is_found


def _contains(texts: pa.Array, text: str) -> Bools:
    """Which strings contain another one, which is not empty."""
    needle = np.frombuffer(text.encode(), np.uint8)
    if len(needle) > _LONG:
        return bools(pc.match_substring(texts, text))
    data, start = bytes_of(texts)
    counts = np.bincount(data[start[0] : start[0] + _SAMPLE], minlength=256)
    by_frequency = np.argsort(counts[needle], kind="stable").tolist()
    is_found = np.zeros(len(texts), np.bool_)
    _find(data, start, needle, (by_frequency[0], by_frequency[:2][-1]), is_found)
    return is_found


def bools(found: pa.Array) -> Bools:
    """An array of Arrow as one of NumPy."""
    array: Bools = found.to_numpy(zero_copy_only=False)
    return array


def is_ascii(texts: pa.Array) -> bool:
    """Whether all strings are ASCII."""
    data, start = bytes_of(texts)
    return start[0] == start[-1] or int(data[start[0] : start[-1]].max()) < 128


def bytes_of(texts: pa.Array) -> tuple[U8s, I32s]:
    """The bytes of strings, and where each begins. The strings follow each other."""
    _, starts, data = texts.buffers()
    if not len(texts) or data is None:  # Arrow need not have bytes for strings that are all empty.
        starts, data = pa.py_buffer(bytes(4 * (texts.offset + len(texts) + 1))), pa.py_buffer(b"")
    start = np.frombuffer(starts, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data, np.uint8), start


def _tokens(pattern: LikePattern) -> npt.NDArray[np.int16]:
    """The bytes and wildcards of a pattern."""
    tokens: list[int] = []
    for part in pattern.parts:
        if isinstance(part, str):
            tokens.extend(part.encode())
        else:
            tokens.append(_ANY_RUN if part.symbol == ANY_RUN else _ANY_ONE)
    return np.array(tokens, np.int16)


@kernel
def _find(data: U8s, start: I32s, needle: U8s, probes: tuple[int, int], is_found: Bools) -> None:
    """Mark the strings that contain a needle. `probes` are the places of its two rarest bytes."""
    size, last = len(needle), start[-1] - len(needle)
    one, other = probes
    row, at = 0, int(start[0])
    while at <= last:
        end = min(at + _BLOCK, last + 1)
        if end - at == _BLOCK:
            # Both bytes are looked for in the whole block, which has neither branches nor a search in it.
            seen = U8(0)
            ones, others = data[at + one : at + one + _BLOCK], data[at + other : at + other + _BLOCK]
            for place in range(_BLOCK):
                seen |= U8(ones[place] == needle[one]) & U8(others[place] == needle[other])
            if seen == 0:
                at = end
                continue
        while at < end:
            if data[at + one] == needle[one] and data[at + other] == needle[other] and _is_at(data, at, needle):
                while start[row + 1] <= at:
                    row += 1
                if at + size <= start[row + 1]:
                    is_found[row] = True
                    at = start[row + 1]
                    continue
            at += 1


@inlined
def _is_at(data: U8s, at: int, needle: U8s) -> bool:
    place = 0
    while place < len(needle) and data[at + place] == needle[place]:
        place += 1
    return place == len(needle)


@kernel
def _take(data: U8s, start: I32s, tokens: npt.NDArray[np.int16], is_found: Bools) -> None:
    """Mark the strings that a pattern takes as a whole."""
    for row in range(len(is_found)):
        is_found[row] = _takes(data, start[row], start[row + 1], tokens)


@inlined
def _takes(data: U8s, at: int, end: int, tokens: npt.NDArray[np.int16]) -> bool:
    """Whether a pattern takes a string: greedy with one step back to the last `%`, which is enough."""
    token, star, resume = 0, -1, 0
    while at < end:
        wanted = tokens[token] if token < len(tokens) else _NOTHING
        if wanted == _ANY_RUN:
            star, resume = token, at
            token += 1
            if token == len(tokens):
                return True
        elif wanted == data[at]:
            token += 1
            at += 1
        elif wanted == _ANY_ONE and not _continues(data[at]):
            token += 1
            at += 1
            while at < end and _continues(data[at]):
                at += 1
        elif star >= 0:
            resume += 1
            at, token = resume, star + 1
        else:
            return False
    while token < len(tokens) and tokens[token] == _ANY_RUN:
        token += 1
    return token == len(tokens)


@inlined
def _continues(byte: int) -> bool:
    """Whether a byte of UTF-8 is not the first of its character."""
    return 0x80 <= byte < 0xC0
