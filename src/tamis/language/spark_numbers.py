"""Numbers with a suffix, as Spark SQL writes them: 5L, 5S, 5Y, 1.5D, 1.5F, 1.5BD."""

from __future__ import annotations

import struct

from tamis.errors import LiteralError
from tamis.language.literals import read_decimal, read_integer, shorten

_BITS = {"L": 64, "S": 16, "Y": 8}
SPARK_SUFFIXES = frozenset({*_BITS, "D", "F", "BD"})


def read_spark_number(text: str, suffix: str, *, negative: bool = False) -> int | float:
    """The number that digits and a suffix spell: an integer, or the nearest double.

    A FLOAT is rounded to its 32 bits first: a comparison in Spark sees that number too.
    """
    suffix = suffix.upper()
    bits = _BITS.get(suffix)
    if bits is not None:
        if not text.isdigit():
            raise LiteralError(f"{shorten(text)}{suffix} is not an integer. Hint: a double is written with D: 1.5D")
        value = read_integer(text, negative=negative)
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise LiteralError(
                f"{value}{suffix} does not fit into the {bits} bits of {suffix}. Hint: the suffix L has 64 bits"
            )
        return value
    number = read_decimal(text, negative=negative)
    if suffix != "F":
        return number
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        raise LiteralError(f"{shorten(text)}F is beyond the largest float (about 3.4e38)") from None
    return rounded
