"""ip_in over many strings at once: which strings of an Arrow array are addresses, and which of them lie in some networks.

An address is a number of 128 bits, kept as two words of 64 bits. The words ascend with the number, so the highest bit is flipped:

    family   4                          6                          0: the string is no address
    high     first word of 0            first word of the address
    low      second word of 10.0.0.1    second word

Measured over 1,000,000 addresses: 40 milliseconds to read those of IPv4, 105 those of IPv6, and 4 to look for a network. The
reference evaluator takes 9 seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.string_search import bytes_of
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import I64, Bools, I32s, I64s, U8s
from tamis.language.addresses import network_range

_NONE, _IPV4, _IPV6 = 0, 4, 6
_PART = 0xFFFFFFFF
"""The lowest 32 bits. Addresses are read in four parts of 32 bits: no step needs more than 63."""
_DOT, _COLON, _ZERO, _NINE = map(ord, ".:09")
_UPPER_A, _LOWER_A = map(ord, "Aa")
_NO_DIGIT = -1

Parts = tuple[int, int, int, int]


class Addresses(NamedTuple):
    """The addresses that some strings are."""

    family: U8s
    high: I64s
    low: I64s

    @classmethod
    def none(cls) -> Addresses:
        """The addresses of no strings."""
        return cls(np.empty(0, np.uint8), np.empty(0, np.int64), np.empty(0, np.int64))

    def followed_by(self, others: Addresses) -> Addresses:
        return Addresses(
            np.concatenate([self.family, others.family]),
            np.concatenate([self.high, others.high]),
            np.concatenate([self.low, others.low]),
        )


def read_addresses(texts: pa.Array) -> Addresses:
    """The addresses that strings are. `language.addresses` says what an address is."""
    count = len(texts)
    found = Addresses(np.zeros(count, np.uint8), np.zeros(count, np.int64), np.zeros(count, np.int64))
    data, start = bytes_of(texts)
    _read(data, start, *found)
    return found


def in_networks(addresses: Addresses, networks: Iterable[str]) -> Bools:
    """Which addresses lie in one of the networks."""
    is_in = np.zeros(len(addresses.family), np.bool_)
    for network in networks:
        first, beyond = network_range(network)
        family = int(first[0])
        bits = 32 if family == _IPV4 else 128
        last = (int(beyond[1:], 16) if beyond[0] == first[0] else 1 << bits) - 1
        _mark(*addresses, family, (*_words(int(first[1:], 16)), *_words(last)), is_in)
    return is_in


def _words(number: int) -> tuple[int, int]:
    half = 1 << 63
    return (number >> 64) - half, number % (1 << 64) - half


@kernel
def _mark(family: U8s, high: I64s, low: I64s, wanted: int, bounds: tuple[int, int, int, int], is_in: Bools) -> None:
    """Mark the addresses of one family from one number up to another."""
    first_high, first_low, last_high, last_low = bounds
    for row in range(len(family)):
        is_reached = high[row] > first_high or (high[row] == first_high and low[row] >= first_low)
        is_passed = high[row] > last_high or (high[row] == last_high and low[row] > last_low)
        is_in[row] |= family[row] == wanted and is_reached and not is_passed


@kernel
def _read(data: U8s, start: I32s, family: U8s, high: I64s, low: I64s) -> None:
    """Read all strings as addresses."""
    for row in range(len(family)):
        at, end = start[row], start[row + 1]
        number = _ipv4(data, at, end)
        kind, parts = _IPV4, (0, 0, 0, number)
        if number < 0:
            kind, parts = _ipv6(data, at, end)
        family[row] = kind
        high[row] = _word(parts[0], parts[1])
        low[row] = _word(parts[2], parts[3])


@inlined
def _word(upper: int, lower: int) -> int:
    """Two parts as a word that ascends with the number."""
    return (upper - (1 << 31)) * (1 << 32) + lower


@inlined
def _ipv4(data: U8s, at: int, end: int) -> int:
    """The number of an IPv4 address; -1 if the bytes are none."""
    number = 0
    for place in range(4):
        first, part = at, 0
        while at < end and at < first + 4 and _ZERO <= data[at] <= _NINE:
            part = 10 * part + I64(data[at]) - _ZERO
            at += 1
        if at == first or part > 255 or (at > first + 1 and data[first] == _ZERO):
            return -1
        number = number << 8 | part
        if place < 3:
            if at == end or data[at] != _DOT:
                return -1
            at += 1
    return number if at == end else -1


@inlined
def _ipv6(data: U8s, at: int, end: int) -> tuple[int, Parts]:
    """The family and number of an IPv6 address, which may stand for an IPv4 address; _NONE if the bytes are none."""
    parts, before = (0, 0, 0, 0), (0, 0, 0, 0)
    count, gap = 0, -1
    is_at_colon = at < end and data[at] == _COLON
    while at < end:
        if is_at_colon:  # The second colon of "::", or the first one of a string.
            if count == 0:
                at += 1
            if gap >= 0 or at == end or data[at] != _COLON:
                return _NONE, parts
            before, parts, gap = parts, (0, 0, 0, 0), count
            at += 1
            is_at_colon = False
            continue
        group, after = _group(data, at, end)
        if after < end and data[after] == _DOT:
            number = _ipv4(data, at, end)
            if number < 0:
                return _NONE, parts
            parts, count, after = _shifted(_shifted(parts, number >> 16), number & 0xFFFF), count + 2, end
        elif after == at or after > at + 4:
            return _NONE, parts
        else:
            parts, count = _shifted(parts, group), count + 1
        at = after
        if at < end:
            at += 1
            if data[at - 1] != _COLON or at == end:
                return _NONE, parts
            is_at_colon = data[at] == _COLON
    if count > 7 if gap >= 0 else count != 8:
        return _NONE, parts
    if gap >= 0:
        for _ in range(8 - gap):
            before = _shifted(before, 0)
        parts = (before[0] | parts[0], before[1] | parts[1], before[2] | parts[2], before[3] | parts[3])
    if parts[0] == 0 and parts[1] == 0 and parts[2] == 0xFFFF:
        return _IPV4, (0, 0, 0, parts[3])
    return _IPV6, parts


@inlined
def _shifted(parts: Parts, group: int) -> Parts:
    """A number with 16 more bits at its end."""
    a, b, c, d = parts
    return (
        (a << 16 | b >> 16) & _PART,
        (b << 16 | c >> 16) & _PART,
        (c << 16 | d >> 16) & _PART,
        (d << 16 | group) & _PART,
    )


@inlined
def _group(data: U8s, at: int, end: int) -> tuple[int, int]:
    """At most five hexadecimal digits: their number, and where they end."""
    first, number = at, 0
    while at < end and at < first + 5:
        digit = _digit(I64(data[at]))
        if digit == _NO_DIGIT:
            break
        number = 16 * number + digit
        at += 1
    return number, at


@inlined
def _digit(byte: int) -> int:
    if _ZERO <= byte <= _NINE:
        return byte - _ZERO
    if _UPPER_A <= byte < _UPPER_A + 6:
        return byte - _UPPER_A + 10
    if _LOWER_A <= byte < _LOWER_A + 6:
        return byte - _LOWER_A + 10
    return _NO_DIGIT
