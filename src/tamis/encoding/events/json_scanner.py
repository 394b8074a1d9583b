"""JSON lines to values of asked names, in one pass of a kernel over the bytes, without a Python object per value.

The kernel checks the grammar of every byte, and keeps only values whose dotted name someone asks about. It reads what is common.
Everything else makes a line *odd*, and Python's own reader then decides what the line means or what is wrong with it:

    what is not JSON, is not an object, or has words such as NaN        escapes in names, and lone surrogates in asked strings
    an asked name twice in an object, or nested and as a dotted name    objects in objects in lists, lists in lists
    asked integers of 19 digits or more                                 more than `DEEPEST` levels

So a line that is not odd surely means what Python's reader says. A line ends at a line feed, which is never part of JSON here.

    line        {"a": 5, "b": {"c": "x\\ty"}, "d": [1.5, true]}
    attribute   a    b.c   d     d              numbers of names
    kind        INTEGER  STRING  DOUBLE  BOOLEAN
    place       5    ~0    bits  1              the value, or where its text begins: in the lines, or (~) in `unescaped`
    size        0    3     0     0              bytes of the text
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encoding.dimensions.dimension_set import NOT_ASKED
from tamis.encoding.dimensions.keys import INT_EXACT
from tamis.encoding.events.json_names import Names, find_name
from tamis.kernels.byte_search import BACKSLASH, FIRST_PRINTABLE, LANES, QUOTE, plain_bytes
from tamis.kernels.kernel import inlined, kernel
from tamis.kernels.numbers import F64, I64, UP, Bools, I8s, I32s, I64s, U8s

KINDS = 5
INTEGER, DOUBLE, DIGITS, BOOLEAN, STRING = range(KINDS)
"""Kinds of values. DIGITS is a double whose text must be converted with care."""

DEEPEST = 64
"""Levels of objects and lists in a line that is not odd."""

_ODD = -1
_ROOT = -2
"""Instead of the number of a name: the event itself."""
_MOST_DIGITS = 18
"""Digits of the integers that surely have 64 bits."""
_EXACT_POWER = 22
"""The powers of ten up to this one are doubles."""
_LARGEST_EXPONENT = 250
"""Doubles with larger exponents may be infinite or 0. Python's reader decides."""
_LONGEST_DIGITS = 40
_VALUE_BYTES = 2
"""The fewest bytes of a line that one value takes, with what separates it from the next."""

_OBJECT, _LIST = ord("{"), ord("[")
_CLOSING = 2
"""Brackets close with the second character after the one that opens."""
_COMMA, _COLON, _DOT, _MINUS, _PLUS, _ZERO, _NINE = (ord(each) for each in ",:.-+09")
_T, _R, _U, _E, _F, _A, _L, _S, _N = (ord(each) for each in "truefalsn")
_LARGE_E = ord("E")
_IS_OPENING, _IS_BLANK = np.zeros(256, np.bool_), np.zeros(256, np.bool_)
_IS_OPENING[[_OBJECT, _LIST]] = True
_IS_BLANK[[ord(blank) for blank in " \t\r"]] = True

_ESCAPES = np.zeros(256, np.uint8)
"""The byte of each escape of one letter; 0 for others."""
for _letter, _byte in zip('"\\/bfnrt', '"\\/\b\f\n\r\t', strict=True):
    _ESCAPES[ord(_letter)] = ord(_byte)
_HEX = np.full(256, -1, np.int64)
"""The value of each hexadecimal digit."""
for _digit in "0123456789abcdefABCDEF":
    _HEX[ord(_digit)] = int(_digit, 16)
_HEX_DIGITS = 4
_ESCAPE_BYTES = 2 + _HEX_DIGITS
_FIRST_HIGH, _FIRST_LOW, _LAST_LOW = 0xD800, 0xDC00, 0xDFFF
"""Surrogates: two of them are one character beyond 16 bits."""
_BEYOND_16, _LOW_VALUES = 0x10000, 0x400
_ONE_BYTE, _TWO_BYTES, _TAIL, _TAIL_VALUES = 0x80, 0x800, 0x80, 0x40
_LEAD_OF_TWO, _LEAD_OF_THREE, _LEAD_OF_FOUR = 0xC0, 0xE0, 0xF0
"""UTF-8."""
_POWERS = 10.0 ** np.arange(_EXACT_POWER + 1)


class Lines(NamedTuple):
    """Lines in one array of bytes. A line feed stands at the end of each."""

    data: U8s
    start: I64s
    end: I64s


class Found(NamedTuple):
    """The values that were found, with unused room at the end."""

    attribute: I32s
    row: I32s
    kind: I8s
    place: I64s
    size: I64s
    unescaped: U8s
    """The texts of strings with escapes."""


class Scratch(NamedTuple):
    """What the kernel notes while it reads. All but `counts` is about names, or about the levels around the present value."""

    counts: I64s
    in_object: I64s
    """The last object that had each name."""
    in_row: I64s
    """The last row with a value of each name."""
    in_list: I64s
    """The list around that value."""
    opened: I64s
    """The bracket of each level."""
    name: I64s
    """The name of each level; NOT_ASKED if nothing inside is asked about."""
    number: I64s
    """The number of each object."""
    around: I64s
    """The number of each list, and of the list around each object; 0 if there is none."""
    prefix: I64s
    """The length of the prefix of the names in each object."""
    prefixes: U8s

    @staticmethod
    def of(names: Names) -> Scratch:
        each, levels = len(names.start) - 1, DEEPEST + 1
        about_names = [np.full(each, -1, np.int64) for _ in range(3)]
        about_levels = [np.zeros(levels, np.int64) for _ in range(5)]
        # Two more bytes: a dot behind the longest name, and one that makes the array never empty.
        prefixes = np.zeros(names.longest() + 2, np.uint8)
        return Scratch._make([np.zeros(_COUNTS, np.int64), *about_names, *about_levels, prefixes])


_COUNTS = 3
_VALUES, _UNESCAPED, _NUMBERED = range(_COUNTS)
"""Counts: of values, of unescaped bytes, of objects and lists."""


def counts_of(scratch: Scratch) -> int:
    """How many values were found."""
    return int(scratch.counts[_VALUES])


@kernel
def scan(lines: Lines, first: int, names: Names, found: Found, scratch: Scratch, odd: Bools) -> int:
    """Read the lines from `first` on, and note which are odd. Returns their number, or the line without room."""
    counts = scratch.counts
    for row in range(first, len(lines.start)):
        begin, end = lines.start[UP(row)], lines.end[UP(row)]
        values, unescaped = counts[_VALUES], counts[_UNESCAPED]
        if values + (end - begin) // _VALUE_BYTES > len(found.attribute) or unescaped + end - begin > len(
            found.unescaped
        ):
            return row
        if odd[UP(row)] or not _is_read(lines.data, begin, end, row, names, found, scratch):
            odd[UP(row)] = True
            counts[_VALUES], counts[_UNESCAPED] = values, unescaped
    return len(lines.start)


@inlined
def _is_read(data: U8s, at: int, end: int, row: int, names: Names, found: Found, scratch: Scratch) -> bool:
    """Read one line: objects and lists without recursion. Returns False if it is odd."""
    depth, name, is_key = 0, _ROOT, False
    at = _after_blanks(data, at)
    if data[UP(at)] != _OBJECT:
        return False
    while True:
        if is_key:
            at, name = _name(data, at, depth, names, scratch)
            if at == _ODD:
                return False
        byte = I64(data[UP(at)])
        if _IS_OPENING[UP(byte)]:
            depth += 1
            if depth > DEEPEST or not _is_opened(byte, depth, name, names, scratch):
                return False
            at = _after_blanks(data, at + 1)
            if data[UP(at)] != byte + _CLOSING:
                is_key, name = byte == _OBJECT, scratch.name[UP(depth)]
                continue
        else:
            around = scratch.around[UP(depth)]
            asked = name != NOT_ASKED and names.is_asked[UP(name)]
            at = _after_scalar(data, at, name if asked else NOT_ASKED, row, around, found, scratch)
            if at == _ODD:
                return False
            at = _after_blanks(data, at)
        while data[UP(at)] != _COMMA:
            if data[UP(at)] != scratch.opened[UP(depth)] + _CLOSING:
                return False
            depth, at = depth - 1, _after_blanks(data, at + 1)
            if depth == 0:
                return at == end
        at = _after_blanks(data, at + 1)
        is_key, name = scratch.opened[UP(depth)] == _OBJECT, scratch.name[UP(depth)]


@inlined
def _is_opened(bracket: int, depth: int, name: int, names: Names, scratch: Scratch) -> bool:
    """Note a new level. Returns False if it is an asked list in a list, or an object so deep in one that values may repeat."""
    counts = scratch.counts
    counts[_NUMBERED] += 1
    is_object = bracket == _OBJECT
    scratch.opened[UP(depth)], scratch.number[UP(depth)] = bracket, counts[_NUMBERED]
    outer = I64(0)
    if is_object:
        wanted = name == _ROOT or (name != NOT_ASKED and names.is_parent[UP(name)])
        if depth > 1 and scratch.opened[UP(depth - 1)] == _LIST:
            outer = scratch.around[UP(depth - 1)]
        prefix = I64(0)
        if wanted and name != _ROOT:
            begin = names.start[UP(name)]
            prefix = names.start[UP(name + 1)] - begin
            for letter in range(prefix):
                scratch.prefixes[UP(letter)] = names.text[UP(begin + letter)]
            scratch.prefixes[UP(prefix)] = _DOT
            prefix += 1
        scratch.prefix[UP(depth)], scratch.around[UP(depth)] = prefix, outer
    else:
        wanted = name != NOT_ASKED
        if wanted and scratch.opened[UP(depth - 1)] == _LIST:
            return False
        scratch.around[UP(depth)] = counts[_NUMBERED]
    scratch.name[UP(depth)] = name if wanted else NOT_ASKED
    return True


@inlined
def _name(data: U8s, at: int, depth: int, names: Names, scratch: Scratch) -> tuple[int, int]:
    """Read a name and the colon behind it: where the value begins, and the number of the name. Odd if the name is asked twice."""
    if data[UP(at)] != QUOTE:
        return _ODD, NOT_ASKED
    name, begin = I64(NOT_ASKED), at + 1
    if scratch.name[UP(depth)] == NOT_ASKED:
        at = _after_string(data, begin)
        if at == _ODD:
            return _ODD, NOT_ASKED
    else:
        end = _plain_end(data, begin)
        if data[UP(end)] != QUOTE:
            return _ODD, NOT_ASKED
        at, length, prefix = end + 1, end - begin, scratch.prefix[UP(depth)]
        if length > 0:
            if prefix == 0:
                name = find_name(names, data, begin, length)
            elif prefix + length < len(scratch.prefixes):
                for letter in range(length):
                    scratch.prefixes[UP(prefix + letter)] = data[UP(begin + letter)]
                name = find_name(names, scratch.prefixes, 0, prefix + length)
        if name != NOT_ASKED:
            number = scratch.number[UP(depth)]
            if scratch.in_object[UP(name)] == number:
                return _ODD, NOT_ASKED
            scratch.in_object[UP(name)] = number
    at = _after_blanks(data, at)
    if data[UP(at)] != _COLON:
        return _ODD, NOT_ASKED
    return _after_blanks(data, at + 1), name


@inlined
def _after_scalar(data: U8s, at: int, name: int, row: int, around: int, found: Found, scratch: Scratch) -> int:
    """Read a value that is no object and no list. Returns where it ends, or _ODD. Nothing is kept if `name` is NOT_ASKED.

    An asked name may have several values in a row only if one list has all of them.
    """
    byte = I64(data[UP(at)])
    if byte == _N:
        return at + 4 if _is_word(data, at + 1, _U, _L, _L) else _ODD
    if name != NOT_ASKED:
        if scratch.in_row[UP(name)] == row and (around == 0 or scratch.in_list[UP(name)] != around):
            return _ODD
        scratch.in_row[UP(name)], scratch.in_list[UP(name)] = row, around
    if byte == QUOTE:
        if name == NOT_ASKED:
            return _after_string(data, at + 1)
        return _after_kept_string(data, at + 1, name, row, found, scratch)
    if byte == _T and _is_word(data, at + 1, _R, _U, _E):
        _put(found, scratch, name, row, BOOLEAN, I64(1), I64(0))
        return at + 4
    if byte == _F and _is_word(data, at + 1, _A, _L, _S) and data[UP(at + 4)] == _E:
        _put(found, scratch, name, row, BOOLEAN, I64(0), I64(0))
        return at + 5
    return _after_number(data, at, name, row, found, scratch)


@inlined
def _is_word(data: U8s, at: int, first: int, second: int, third: int) -> bool:
    """Whether three letters follow. The line feed behind a line stops the comparison."""
    return data[UP(at)] == first and data[UP(at + 1)] == second and data[UP(at + 2)] == third


# A value in its five columns, and where it goes.
@inlined
def _put(found: Found, scratch: Scratch, name: int, row: int, kind: int, place: int, size: int) -> None:
    """Keep a value, if its name is asked about."""
    if name != NOT_ASKED:
        at = scratch.counts[_VALUES]
        scratch.counts[_VALUES] = at + 1
        found.attribute[UP(at)], found.row[UP(at)], found.kind[UP(at)] = name, row, kind
        found.place[UP(at)], found.size[UP(at)] = place, size


@inlined
def _after_blanks(data: U8s, at: int) -> int:
    """The next place that is not blank. The line feed at the end of a line is not blank."""
    while _IS_BLANK[UP(data[UP(at)])]:
        at += 1
    return at


@inlined
def _plain_end(data: U8s, at: int) -> int:
    """The next quote, backslash or control character. There is one: the line feed."""
    while at + LANES <= len(data):
        plain = plain_bytes(data, at)
        at += plain
        if plain < LANES:
            return at
    while data[UP(at)] != QUOTE and data[UP(at)] != BACKSLASH and data[UP(at)] >= FIRST_PRINTABLE:
        at += 1
    return at


@inlined
def _after_string(data: U8s, at: int) -> int:
    """Where a string ends that nobody asks about, or _ODD if it is not JSON."""
    while True:
        at = _plain_end(data, at)
        if data[UP(at)] == QUOTE:
            return at + 1
        if data[UP(at)] != BACKSLASH:
            return _ODD
        if _ESCAPES[UP(data[UP(at + 1)])] != 0:
            at += 2
        elif data[UP(at + 1)] == _U and _code(data, at + 2) >= 0:
            at += _ESCAPE_BYTES
        else:
            return _ODD


@inlined
def _code(data: U8s, at: int) -> int:
    """The number of four hexadecimal digits, or -1."""
    code = I64(0)
    for digit in range(_HEX_DIGITS):
        value = _HEX[UP(data[UP(at + digit)])]
        if value < 0:
            return -1
        code = code * 16 + value
    return code


@inlined
def _after_kept_string(data: U8s, at: int, name: int, row: int, found: Found, scratch: Scratch) -> int:
    """Keep a string. Returns where it ends, or _ODD."""
    begin, stop = at, _plain_end(data, at)
    if data[UP(stop)] == QUOTE:
        _put(found, scratch, name, row, STRING, begin, stop - begin)
        return stop + 1
    out, first = found.unescaped, scratch.counts[_UNESCAPED]
    used = first
    while True:
        for place in range(stop - at):
            out[UP(used + place)] = data[UP(at + place)]
        used += stop - at
        if data[UP(stop)] == QUOTE:
            _put(found, scratch, name, row, STRING, ~first, used - first)
            scratch.counts[_UNESCAPED] = used
            return stop + 1
        if data[UP(stop)] != BACKSLASH:
            return _ODD
        short = _ESCAPES[UP(data[UP(stop + 1)])]
        if short != 0:
            out[UP(used)] = short
            at, used = stop + 2, used + 1
        else:
            at, used = _after_code(data, stop, out, used)
            if at == _ODD:
                return _ODD
        stop = _plain_end(data, at)


@inlined
def _after_code(data: U8s, at: int, out: U8s, used: int) -> tuple[int, int]:
    """Write the character of an escape with a number: where the escape ends, or _ODD, and where the character ends."""
    code = _code(data, at + 2) if data[UP(at + 1)] == _U else -1
    if code < 0:
        return _ODD, used
    at += _ESCAPE_BYTES
    if _FIRST_HIGH <= code <= _LAST_LOW:
        is_pair = code < _FIRST_LOW and data[UP(at)] == BACKSLASH and data[UP(at + 1)] == _U
        low = _code(data, at + 2) if is_pair else -1
        if not _FIRST_LOW <= low <= _LAST_LOW:
            return _ODD, used
        code = _BEYOND_16 + (code - _FIRST_HIGH) * _LOW_VALUES + low - _FIRST_LOW
        at += _ESCAPE_BYTES
    if code < _ONE_BYTE:
        out[UP(used)] = code
        return at, used + 1
    tails = 1 if code < _TWO_BYTES else (2 if code < _BEYOND_16 else 3)
    for tail in range(tails):
        out[UP(used + tails - tail)] = _TAIL + code % _TAIL_VALUES
        code //= _TAIL_VALUES
    lead = _LEAD_OF_TWO if tails == 1 else (_LEAD_OF_THREE if tails == 2 else _LEAD_OF_FOUR)
    out[UP(used)] = lead + code
    return at, used + tails + 1


@inlined
def _after_number(data: U8s, at: int, name: int, row: int, found: Found, scratch: Scratch) -> int:
    """Read a number. Returns where it ends, or _ODD."""
    begin, sign = at, 1
    if data[UP(at)] == _MINUS:
        at, sign = at + 1, -1
    first = at
    mantissa, at = _digits(data, at, I64(0))
    digits = at - first
    if digits == 0 or (digits > 1 and data[UP(first)] == _ZERO):
        return _ODD
    exponent, is_integer = I64(0), True
    if data[UP(at)] == _DOT:
        is_integer, first = False, at + 1
        mantissa, at = _digits(data, first, mantissa)
        exponent = first - at
        digits -= exponent
        if exponent == 0:
            return _ODD
    if data[UP(at)] == _E or data[UP(at)] == _LARGE_E:
        is_integer, at, raised = False, at + 1, 1
        if data[UP(at)] == _MINUS or data[UP(at)] == _PLUS:
            at, raised = at + 1, -1 if data[UP(at)] == _MINUS else 1
        power, last = _digits(data, at, I64(0))
        if last == at or last - at > _HEX_DIGITS:
            return _ODD
        at, exponent = last, exponent + raised * power
    if name == NOT_ASKED:
        return at
    if is_integer:
        if digits > _MOST_DIGITS:
            return _ODD
        _put(found, scratch, name, row, INTEGER, sign * mantissa, I64(0))
    elif digits <= _MOST_DIGITS and mantissa < INT_EXACT and -_EXACT_POWER <= exponent <= _EXACT_POWER:
        # Both are exact doubles, so the quotient or product is the nearest one.
        size = F64(mantissa) / _POWERS[UP(-exponent)] if exponent < 0 else F64(mantissa) * _POWERS[UP(exponent)]
        _put(found, scratch, name, row, DOUBLE, F64(sign * size).view(np.int64), I64(0))
    elif digits <= _LONGEST_DIGITS and -_LARGEST_EXPONENT <= exponent <= _LARGEST_EXPONENT:
        _put(found, scratch, name, row, DIGITS, begin, at - begin)
    else:
        return _ODD
    return at


@inlined
def _digits(data: U8s, at: int, number: int) -> tuple[int, int]:
    """Append digits to a number, which overflows after 18 digits. Returns it, and where the digits end."""
    byte = I64(data[UP(at)])
    while _ZERO <= byte <= _NINE:
        if number < INT_EXACT * 100:
            number = number * 10 + byte - _ZERO
        at += 1
        byte = I64(data[UP(at)])
    return number, at
