"""IP addresses and networks, as texts in the order of the addresses.

    10.0.0.1               40a000001                                one digit for the family, then the address in hexadecimal
    2001:db8::1            620010db8000000000000000000000001
    10.0.0.0/8             from 40a000000 up to, and without, 40b000000

So a network is a range of texts. An IPv4 address that is written as an IPv6 address (``::ffff:10.0.0.1``) is the IPv4 address.
An IPv4 address lies in no IPv6 network.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import Any, NamedTuple

from tamis.errors import LiteralError, shortened
from tamis.language.operators import ROWS, Operator

_IPV4 = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!\Z)|\Z)){4}")
_PREFIX = re.compile(r"0|[1-9][0-9]{0,2}")
_MAPPED = 0xFFFF << 32
"""The first address of ``::ffff:0:0/96``, where IPv4 addresses are mapped to."""
_EXAMPLE = ROWS[Operator.IP_IN].example


class _Family(NamedTuple):
    """How addresses of one family are written: `beyond` is greater than all of them."""

    digit: str
    beyond: str
    bits: int

    def text(self, number: int) -> str:
        return f"{self.digit}{number:0{self.bits // 4}x}" if number < 1 << self.bits else self.beyond


_FAMILIES = {4: _Family("4", "5", 32), 6: _Family("6", "7", 128)}


def address_text(text: str) -> str | None:
    """The ordered text of an address; None if the text is not an address. Leading zeros and zones are not allowed."""
    if _IPV4.fullmatch(text):
        first, second, third, fourth = map(int, text.split("."))
        return f"4{first:02x}{second:02x}{third:02x}{fourth:02x}"
    if ":" not in text or "%" in text:
        return None
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped
    return _FAMILIES[4].text(int(mapped)) if mapped is not None else _FAMILIES[6].text(int(address))


@functools.lru_cache(maxsize=4096)
def network_range(network: str) -> tuple[str, str]:
    """The ordered texts of the addresses of a network run from the first up to, and without, the second.

    A single address is a network of one address.

    Raises
    ------
    LiteralError
        For a text that is no network, and for one with host bits set.
    """
    text, slash, length = network.partition("/")
    address = address_text(text)
    if address is None or (slash and not _PREFIX.fullmatch(length)):
        raise LiteralError(f"ip_in cannot read the network {shortened(network)}. Hint: write it as {_EXAMPLE}")
    written = _FAMILIES[6 if ":" in text else 4]
    family = _FAMILIES[int(address[0])]
    prefix = int(length) if slash else written.bits
    if prefix > written.bits:
        raise LiteralError(f"the prefix of the network {shortened(network)} is longer than {written.bits} bits")
    first = int(address[1:], 16)
    if written is not family:
        # ::ffff:10.0.0.0/104 is 10.0.0.0/8. A shorter prefix than 96 holds more than mapped addresses.
        prefix -= 96
        if prefix < 0:
            prefix, family, first = prefix + 96, written, first | _MAPPED
    size = 1 << (family.bits - prefix)
    if first % size:
        right = _written(family, first - first % size, prefix)
        alone = f"{text} for the one address"
        raise LiteralError(f"the network {shortened(network)} has host bits set. Hint: write {right}, or {alone}")
    return family.text(first), family.text(first + size)


def check_network(network: Any) -> None:
    """Raise a LiteralError unless a literal is a network."""
    if not isinstance(network, str):
        raise LiteralError(f"ip_in takes networks as strings, not {shortened(network)}. Hint: {_EXAMPLE}")
    network_range(network)


def networks_between(first: str, beyond: str) -> list[str]:
    """The fewest networks that hold exactly the addresses of one family from one ordered text up to another."""
    family = _FAMILIES[int(first[0])]
    start = int(first[1:], 16)
    end = 1 << family.bits if beyond == family.beyond else int(beyond[1:], 16)
    networks = []
    while start < end:
        size = min(start & -start or 1 << family.bits, 1 << (end - start).bit_length() - 1)
        networks.append(_written(family, start, family.bits - size.bit_length() + 1))
        start += size
    return networks


def _written(family: _Family, first: int, prefix: int) -> str:
    address = ipaddress.IPv4Address(first) if family.bits == 32 else ipaddress.IPv6Address(first)
    return f"{address}/{prefix}"
